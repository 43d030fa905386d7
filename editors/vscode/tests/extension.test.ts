/** The extension against the real daemon, in a stand-in of the editor. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type * as code from "vscode";
import { activate } from "../src/extension.js";
import type { Reminded, ReminderdApi } from "../src/api.js";
import {
  CancellationError,
  CancellationTokenSource,
  commands,
  Diagnostic,
  editor,
  Range,
  Uri,
} from "./vscode.js";

/** Where everything is that the tests write. */
const PLACE = mkdtempSync(join(tmpdir(), "reminderd-vscode-"));
process.once("exit", () => rmSync(PLACE, { recursive: true, force: true }));
const TOP = process.env.REMINDERD_TOP ?? "";
const REMINDERD = process.env.REMINDERD ?? "";
/** How long a condition may take to hold, in milliseconds; also a deadline that none misses. */
const PATIENCE_MS = 20_000;

/** A window on an empty directory, with the extension in it. */
function start(test: TestContext, settings: Record<string, unknown> = {}, isTrusted = true) {
  const folder = mkdtempSync(join(PLACE, "window-"));
  for (const name of ["XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"]) {
    process.env[name] = folder;
  }
  const command = [REMINDERD, "--ephemeral"];
  editor.reset(folder, { command, deadline: PATIENCE_MS, ...settings });
  if (!isTrusted) editor.distrust();
  const context = { subscriptions: [] as { dispose(): void }[] };
  const api = activate(context as unknown as code.ExtensionContext);
  test.after(async () => {
    await api.client.close();
    for (const subscription of context.subscriptions) subscription.dispose();
  });
  return { api, folder };
}

/** A file on disk that is open in the editor. */
function opened(folder: string, name: string, text: string) {
  const path = join(folder, name);
  writeFileSync(path, text);
  const uri = Uri.file(path);
  const document = editor.open(uri, text);
  const save = (changed: string) => {
    editor.change(document, changed);
    writeFileSync(path, changed);
    editor.save(document);
  };
  return { uri, document, save };
}

async function until<T>(condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`this did not come to hold: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function texts({ messages }: Reminded): string[] {
  return messages.map(({ content }) => content as unknown as string);
}

function ask(api: ReminderdApi, turn: string, more: object = {}) {
  return api.withReminders({ session: "chat", turn, prompt: "do it", ...more }, []);
}

/** Stages a reminder for the chat's open turn. */
function stage(api: ReminderdApi, body: string) {
  api.client.session({ session: "chat" }).report("reminder/stage", { type: "staged", body });
}

/** A daemon whose WAITs stay open until they are cancelled, and that logs what it is sent. */
function lateDaemon(log: string): string[] {
  return ["python3", join(TOP, "tests/support/late_daemon.py"), log, REMINDERD];
}

/** What such a daemon was sent so far. */
function sent(log: string) {
  const lines = existsSync(log) ? readFileSync(log, "utf8").split("\n") : [];
  return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as Sent);
}

interface Sent {
  method?: string;
  params: {
    initializationOptions?: { trusted: boolean };
    textDocument?: { uri: string; text?: string };
    checker?: string;
    diagnostics?: object[];
  };
}

async function crash(api: ReminderdApi) {
  const { pid, starts } = await api.client.health();
  process.kill(pid ?? 0, "SIGKILL");
  await until(async () => {
    const health = await api.client.health();
    return health.starts > starts && health.status === "ready";
  });
}

test("what a person saves in the editor is told as the person's", async (t) => {
  const { api, folder } = start(t);
  const file = opened(folder, "naïve 数据.txt", "one\n");
  await ask(api, "t1");
  await api.client.session({ session: "chat" }).ask("file/read", { uri: file.uri.toString() });
  file.save("two\n");
  const [told] = texts(await ask(api, "t1"));
  assert.match(told ?? "", /naïve 数据\.txt/);
  assert.match(told ?? "", /the person/);
  assert.match(told ?? "", /\+two/);
});

test("open files, and no other documents, are reported to each daemon that is started", async (t) => {
  const log = join(PLACE, "documents.jsonl");
  const { api, folder } = start(t, { command: lateDaemon(log) });
  const { uri, document, save } = opened(folder, "a.txt", "one\n");
  const untitled = editor.open(Uri.parse("untitled:Untitled-1"), "not a file");
  editor.change(untitled, "still none");
  const reported = () =>
    sent(log)
      .filter(({ method }) => method?.startsWith("textDocument/"))
      .map(({ method, params }) => [method, params.textDocument?.uri, params.textDocument?.text]);
  await until(() => reported().length === 1);
  await crash(api);
  save("two\n");
  editor.close(document);
  editor.save(untitled);
  editor.close(untitled);
  await until(() => reported().some(([method]) => method === "textDocument/didClose"));
  assert.deepEqual(reported(), [
    ["textDocument/didOpen", uri.toString(), "one\n"],
    ["textDocument/didOpen", uri.toString(), "one\n"],
    ["textDocument/didChange", uri.toString(), undefined],
    ["textDocument/didSave", uri.toString(), undefined],
    ["textDocument/didClose", uri.toString(), undefined],
  ]);
});

test("each checker is reported under its name, when its list changes, and emptied", async (t) => {
  const log = join(PLACE, "checkers.jsonl");
  const { api, folder } = start(t, { command: lateDaemon(log) });
  await until(() => api.client.status === "ready");
  const uri = Uri.file(join(folder, "a.txt"));
  const found = (source?: string) =>
    Object.assign(new Diagnostic(new Range(0, 0, 0, 1), "wrong"), source && { source });
  const published = () =>
    sent(log)
      .filter(({ method }) => method === "diagnostic/publish")
      .map(({ params }) => [params.checker, params.diagnostics?.length]);
  editor.diagnose(Uri.parse("untitled:Untitled-1"), [found("types")]);
  editor.diagnose(uri, [found("types"), found("style"), found()]);
  editor.diagnose(uri, [found("style"), found("style")]);
  await until(() => published().length >= 6);
  assert.deepEqual(published(), [
    ["types", 1],
    ["style", 1],
    ["vscode", 1],
    ["types", 0],
    ["style", 2],
    ["vscode", 0],
  ]);
});

test("each checker's problems after an edit are told, and replaced by that checker alone", async (t) => {
  const { api, folder } = start(t);
  const file = opened(folder, "a.txt", "one\ntwo\n");
  const uri = file.uri.toString();
  const found = (source: string, message: string, line: number) =>
    Object.assign(new Diagnostic(new Range(line, 0, line, 3), message, 1), {
      source,
      code: { value: "E1", target: Uri.parse("https://example.org") },
    });
  editor.diagnose(file.uri, [found("types", "was there", 0)]);
  await ask(api, "t1");
  const session = api.client.session({ session: "chat" });
  const edit = async (text: string, diagnostics: Diagnostic[][]) => {
    await session.ask("edit/begin", { uris: [uri] });
    file.save(text);
    await session.ask("edit/end", { uris: [{ uri }], ok: true });
    for (const list of diagnostics) editor.diagnose(file.uri, list);
    return session.ask("edit/settle", { uris: [uri] });
  };
  const types = [found("types", "was there", 0), found("types", "unknown name", 1)];
  const style = [found("style", "too short", 1)];
  assert.deepEqual(await edit("one\n2\n", [types, [...types, ...style]]), {
    files: [{ uri, outcome: "ready" }],
  });
  const first = await ask(api, "t1");
  assert.match(texts(first).join(), /warning.*unknown name/i);
  assert.match(texts(first).join(), /too short/);
  await first.commit();

  await edit("one\n22\n", [[...style, found("types", "was there", 0)]]);
  const counts = (await session.ask("session/state", {})).diagnostics as { resolved: number }[];
  assert.deepEqual(
    counts.map(({ resolved }) => resolved),
    [1],
  );
  assert.deepEqual(texts(await ask(api, "t1")), []);

  // Both say the same again: the file was checked.
  const again = [...style, found("types", "was there", 0)];
  assert.deepEqual(await edit("one\n222\n", [again]), { files: [{ uri, outcome: "ready" }] });
});

test("a participant's messages carry the reminders, and its results the records", async (t) => {
  const { api } = start(t);
  await ask(api, "t1");
  stage(api, "mind the gap");
  const first = await api.withReminders({ session: "chat", turn: "t1" }, [
    { content: "hello" } as never,
  ]);
  assert.deepEqual(texts(first), ["hello", "<system-reminder>\nmind the gap\n</system-reminder>"]);
  assert.equal(first.row, "◇ 1 system reminder (staged)");
  const open = async () => (await api.client.ask("session/state", { session: "chat" })).openTokens;
  assert.equal(await open(), 1);
  await first.release("the model is busy");
  assert.equal(await open(), 0);
  const second = await ask(api, "t1");
  assert.equal(texts(second).length, 1);
  const record = await second.commit();
  assert.ok(record);
  api.endTurn("chat");

  const history = [
    { prompt: "hello" },
    { result: { metadata: { reminderd: [record] } } },
    { result: {} },
  ] as never;
  const records = api.recordsOf(history);
  assert.deepEqual(records, [record]);
  assert.equal(api.messageOf(record).content as unknown, texts(second)[0]);
  assert.deepEqual(texts(await ask(api, "t2", { records })), []);
  const log = await api.client.session({ session: "chat" }).ask("reminder/history", {});
  assert.deepEqual(
    log.records.map(({ retained }) => retained),
    [true],
  );
  // The person went back: the next prompt's history holds nothing of it.
  await ask(api, "t3", { records: [] });
  const after = await api.client.session({ session: "chat" }).ask("reminder/history", {});
  assert.deepEqual(
    after.records.map(({ retained }) => retained),
    [false],
  );
});

test("an agent of a participant is asked for itself", async (t) => {
  const { api } = start(t);
  await ask(api, "t1");
  stage(api, "for the root");
  assert.deepEqual(texts(await ask(api, "t1", { agent: "/reviewer" })), []);
  assert.equal(texts(await ask(api, "t1")).length, 1);
});

test("a cancelled token rejects with the editor's own error and tells nothing", async (t) => {
  const log = join(PLACE, "cancelled.jsonl");
  const { api } = start(t, { command: lateDaemon(log) });
  const source = new CancellationTokenSource();
  const asking = ask(api, "t1", { token: source.token });
  await until(() => sent(log).some(({ method }) => method === "reminder/wait"));
  source.cancel();
  await assert.rejects(asking, { constructor: CancellationError });
  await until(() => sent(log).some(({ method }) => method === "reminder/release"));
  assert.equal((await api.client.ask("session/state", { session: "chat" })).openTokens, 0);
  await assert.rejects(ask(api, "t2", { token: source.token }), { constructor: CancellationError });
});

for (const [what, command] of [
  ["is not there", ["/nowhere/reminderd"]],
  ["never answers", [process.execPath, "--eval", "process.stdin.resume()"]],
] as const) {
  test(`messages go out as they were, with one warning, when the daemon ${what}`, async (t) => {
    const { api, folder } = start(t, { command, deadline: 50 });
    opened(folder, "a.txt", "one\n").save("two\n");
    for (const turn of ["t1", "t2"]) {
      const reminded = await api.withReminders({ session: "chat", turn }, [
        { content: "hello" } as never,
      ]);
      assert.deepEqual(texts(reminded), ["hello"]);
      assert.equal(reminded.row, null);
      assert.equal(await reminded.commit(), undefined);
    }
    assert.equal(editor.warnings.length, 1, editor.warnings.join("\n"));
    assert.match((await commands.executeCommand("reminderd.health")) as string, /next: /);
  });
}

test("the status bar counts what would speak, and says when nothing can", async (t) => {
  const { api } = start(t);
  await until(() => editor.status.text === "◇ 0");
  await ask(api, "t1");
  stage(api, "one");
  await commands.executeCommand("reminderd.refresh");
  assert.equal(editor.status.text, "◇ 1");
  assert.match(editor.status.tooltip, /^1 of \d+ reminders of chat would speak\n.*staged/);
  const reminded = await ask(api, "t1");
  await reminded.commit();
  await until(() => editor.status.text === "◇ 0");
  editor.configure("command", ["/nowhere/reminderd"]);
  await until(() => editor.status.text === "◇ $(warning)");
  assert.match(editor.status.tooltip, /does not run/);
});

test("the views expand rows to reasons and to bodies", async (t) => {
  const { api } = start(t);
  await ask(api, "t1");
  stage(api, "first line\nsecond line ✓");
  await (await ask(api, "t1")).commit();
  stage(api, "not told yet");
  await commands.executeCommand("reminderd.refresh");
  type Item = {
    label: string;
    description: string;
    iconPath: { id: string };
    command?: code.Command;
  };
  const lines = async (view: string, parent?: unknown) => {
    const tree = editor.trees.get(view);
    const found = (await tree?.getChildren(parent)) ?? [];
    return found.map((line) => ({ line, item: tree?.getTreeItem(line) as unknown as Item }));
  };
  const explained = await lines("reminderd.explain");
  assert.deepEqual(
    explained.slice(0, 2).map(({ item }) => item.iconPath.id),
    ["comment", "circle-outline"],
  );
  const tasks = explained.find(({ item }) => item.label === "task-nudge");
  assert.match(tasks?.item.description ?? "", /task/);
  const reasons = await lines("reminderd.explain", tasks?.line);
  assert.deepEqual(
    reasons.map(({ item }) => item.label),
    ["silent", "next"],
  );

  const [told] = await lines("reminderd.log");
  assert.equal(told?.item.label, "◇ 1 system reminder (staged)");
  const [body] = await lines("reminderd.log", told?.line);
  assert.equal(body?.item.description, "first line second line ✓");
  const document = body?.item.command?.arguments?.[0] as Uri;
  const content = editor.contents.get("reminderd")?.provideTextDocumentContent(document);
  assert.equal(content, "first line\nsecond line ✓");
});

test("the session of another program in this workspace is shown, or the one of the settings", async (t) => {
  const { api, folder } = start(t);
  for (const [session, root] of [
    ["here", folder],
    ["elsewhere", "/"],
  ] as const) {
    await api.client.ask("session/open", { session, root });
  }
  await commands.executeCommand("reminderd.refresh");
  assert.match(editor.status.tooltip, / of here /);
  editor.configure("session", "elsewhere");
  await until(() => / of elsewhere /.test(editor.status.tooltip));
});

test("a workspace that is not trusted is told as such, until it is", async (t) => {
  const log = join(PLACE, "trust.jsonl");
  const { api } = start(t, { command: lateDaemon(log) }, false);
  await until(() => api.client.status === "ready");
  editor.trust();
  await until(() => api.client.status === "ready");
  const trust = sent(log)
    .filter(({ method }) => method === "initialize")
    .map(({ params }) => params.initializationOptions?.trusted);
  assert.deepEqual(trust, [false, true]);
});

test("health is shown as a document", async (t) => {
  const { api } = start(t);
  await until(() => api.client.status === "ready");
  await commands.executeCommand("reminderd.health");
  assert.match(editor.shown, /^status: ready\n/);
  assert.equal(editor.warnings.length, 0);
});
