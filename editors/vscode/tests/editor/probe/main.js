// Runs in the real editor. Each check throws when something is wrong; what became of them is written
// to the file named by PROBE_REPORT.
const assert = require("node:assert/strict");
const { existsSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const vscode = require("vscode");

/** How long a condition may take to hold, in milliseconds. */
const PATIENCE_MS = 20_000;

const folder = vscode.workspace.workspaceFolders[0].uri;
let api;

async function until(condition) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`this did not come to hold: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The text of a message, which is a list of parts in the real editor. */
function text({ content }) {
  return typeof content === "string" ? content : content.map(({ value }) => value).join("");
}

function ask(turn, more = {}) {
  return api.withReminders({ session: "chat", turn, prompt: "do it", ...more }, [
    vscode.LanguageModelChatMessage.User("hello"),
  ]);
}

async function rewrite(uri, replacement) {
  const document = await vscode.workspace.openTextDocument(uri);
  const edit = new vscode.WorkspaceEdit();
  const whole = new vscode.Range(0, 0, document.lineCount, 0);
  edit.replace(uri, document.validateRange(whole), replacement);
  assert.ok(await vscode.workspace.applyEdit(edit));
  assert.ok(await document.save());
}

const checks = {
  "the extension runs in a workspace that is not trusted": () => {
    assert.equal(vscode.workspace.isTrusted, false);
    assert.ok(vscode.extensions.getExtension("reminderd.reminderd-vscode").isActive);
  },
  "a workspace can't name the program that is started": async () => {
    await until(() => api.client.status === "ready");
    assert.equal(existsSync(join(folder.fsPath, "started-by-the-workspace")), false);
  },
  "health says that the daemon answers": async () => {
    assert.match(await vscode.commands.executeCommand("reminderd.health"), /^status: ready\n/);
    assert.match(vscode.window.activeTextEditor.document.getText(), /^status: ready\n/);
  },
  "what a participant stages is told, and told once": async () => {
    await ask("t1");
    api.client
      .session({ session: "chat" })
      .report("reminder/stage", { type: "staged", body: "naïve 数据 🦀" });
    const reminded = await ask("t1");
    assert.deepEqual(reminded.messages.map(text), [
      "hello",
      "<system-reminder>\nnaïve 数据 🦀\n</system-reminder>",
    ]);
    const record = await reminded.commit();
    assert.equal(text(api.messageOf(record)), text(reminded.messages[1]));
    assert.equal((await ask("t1")).row, null);
  },
  "what the person saves is told as the person's": async () => {
    const uri = vscode.Uri.joinPath(folder, "naïve 数据.txt");
    await vscode.workspace.fs.writeFile(uri, Buffer.from("one\n"));
    await ask("t2");
    const session = api.client.session({ session: "chat" });
    await session.ask("file/read", { uri: uri.toString() });
    await rewrite(uri, "two\n");
    const told = (await ask("t2")).messages.map(text).join();
    assert.match(told, /the person/);
    assert.match(told, /\+two/);
  },
  "a checker's new problem after an edit is told": async () => {
    const uri = vscode.Uri.joinPath(folder, "checked.txt");
    await vscode.workspace.fs.writeFile(uri, Buffer.from("one\n"));
    await ask("t3");
    const session = api.client.session({ session: "chat" });
    const collection = vscode.languages.createDiagnosticCollection("probe");
    await session.ask("edit/begin", { uris: [uri.toString()] });
    await rewrite(uri, "two\n");
    await session.ask("edit/end", { uris: [{ uri: uri.toString() }], ok: true });
    const problem = new vscode.Diagnostic(
      new vscode.Range(0, 0, 0, 3),
      "this is no number",
      vscode.DiagnosticSeverity.Warning,
    );
    problem.source = "probe";
    collection.set(uri, [problem]);
    await until(async () => {
      const { files } = await session.ask("edit/settle", { uris: [uri.toString()] });
      return files[0].outcome === "ready";
    });
    assert.match((await ask("t3")).messages.map(text).join(), /warning.*this is no number/i);
    collection.dispose();
  },
  "a cancelled request rejects with the editor's error": async () => {
    const source = new vscode.CancellationTokenSource();
    source.cancel();
    await assert.rejects(ask("t4", { token: source.token }), vscode.CancellationError);
  },
  "a daemon that crashed is started again, and requests go on": async () => {
    const { pid, starts } = await api.client.health();
    process.kill(pid, "SIGKILL");
    await until(async () => (await api.client.health()).starts > starts);
    await until(() => api.client.status === "ready");
    assert.equal((await ask("t5")).messages.length >= 1, true);
    assert.ok(await api.client.session({ session: "chat" }).opened);
  },
};

exports.activate = async () => {
  api = vscode.extensions.getExtension("reminderd.reminderd-vscode").exports;
  const failures = {};
  for (const [name, check] of Object.entries(checks)) {
    failures[name] = await Promise.resolve()
      .then(check)
      .then(
        () => null,
        (error) => String(error.stack ?? error),
      );
  }
  const report = { version: vscode.version, failures };
  writeFileSync(process.env.PROBE_REPORT, JSON.stringify(report));
};
