/** Daemons that are absent, silent, of another version, or crash: no request is ever held up. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, type InjectionRecord, type Status } from "reminderd";
import { client, directory, privately, REMINDERD, standIn, until } from "./support.js";

/** What answers every request with an error, as an `initialize` of another version is. */
const OTHER_VERSION = standIn(`
  let text = "";
  process.stdin.setEncoding("utf8").on("data", (part) => {
    text += part;
    const body = JSON.stringify({ jsonrpc: "2.0", id: 0, error: { code: -32602,
      message: "version 1 is not spoken here", data: { kind: "version", supported: [2] } } });
    if (text.includes('"initialize"'))
      process.stdout.write("Content-Length: " + body.length + "\\r\\n\\r\\n" + body);
  });
`);

const BROKEN: [string, string[], RegExp][] = [
  ["is not there", ["/nowhere/reminderd"], /does not start.*ENOENT/],
  ["ends at once", standIn("console.error('no room'); process.exit(3)"), /status 3: no room/],
  ["never answers", standIn("process.stdin.resume()"), /was not answered within 50 ms/],
  ["speaks another version", OTHER_VERSION, /version 1 is not spoken here/],
  ["talks nonsense", standIn("console.log('hello'.repeat(9999))"), /./],
];
for (const [what, command, trouble] of BROKEN) {
  test(`requests go out, and the person is told once, when the daemon ${what}`, async (t) => {
    const { client: daemon, notices } = client(t, { command, deadlineMs: 50 });
    const session = daemon.session({ session: "s", records: [] });
    for (const turn of ["t1", "t2", "t3"]) {
      session.beginTurn(turn);
      session.report("task/put", { task: { id: "1", subject: "x", status: "pending" } });
      assert.equal(await session.wait(), undefined);
      session.endTurn();
    }
    const health = await until(async () => {
      const found = await daemon.health();
      return trouble.test(found.trouble ?? "") ? found : undefined;
    });
    assert.equal(health.answeredMs, undefined);
    assert.match(describe(health), /^next: /m);
    await session.close();
    assert.equal(notices.length, 1, notices.join("\n"));
  });
}

test("what is said to a process that closed its output is lost without an error", async (t) => {
  const deaf = standIn("import { closeSync } from 'node:fs'; closeSync(1); process.stdin.resume()");
  const { client: daemon, notices } = client(t, { command: deaf, deadlineMs: 50 });
  const session = daemon.session({ session: "s" });
  session.beginTurn("t1");
  await until(async () => {
    session.report("history/cleared", {});
    assert.equal(await session.wait(), undefined);
    return daemon.status === "down";
  });
  assert.equal(notices.length, 1);
});

test("a client may be closed at once, and a closed one says nothing more", async (t) => {
  for (const command of [["/nowhere/reminderd"], standIn("process.exit(1)"), [REMINDERD]]) {
    const { client: daemon, notices } = client(t, { command });
    const session = daemon.session({ session: "s" });
    await daemon.close();
    assert.equal(daemon.status, "closed");
    session.beginTurn("t1");
    assert.equal(await session.wait(), undefined);
    assert.deepEqual(notices, []);
  }
});

test("a daemon that ends at once is started again after a pause, not in a loop", async (t) => {
  const statuses: Status[] = [];
  const { client: daemon } = client(t, {
    command: standIn("process.exit(1)"),
    onStatus: (status) => statuses.push(status),
  });
  await until(() => statuses.length >= 3);
  assert.deepEqual(statuses.slice(0, 3), ["down", "starting", "down"]);
  assert.ok((await daemon.health()).starts <= 3);
});

/** Kills the daemon, and waits until another one has opened the session. */
async function crash(daemon: ReturnType<typeof client>["client"], opened: () => number) {
  const before = opened();

  const { pid } = await daemon.health();
  assert.ok(pid);
  process.kill(pid, "SIGKILL");
  await until(() => opened() > before);
}

for (const kept of [true, false]) {
  const what = kept ? "hears nothing twice" : "hears all again without records";
  test(`a session goes on in its turn after a crash, and ${what}`, async (t) => {
    let opens = 0;
    const openWhenDown: boolean[] = [];
    const { client: daemon, notices } = client(t, {
      command: [REMINDERD, "--ephemeral"],
      onStatus: (status) => status === "down" && openWhenDown.push(session.open),
    });
    const records: InjectionRecord[] | null = kept ? [] : null;
    const session = daemon.session({
      session: "s",
      records,
      reminders: [{ id: "standing", body: "told once" }],
      onOpen: () => (opens += 1),
    });
    session.beginTurn("t1");
    const told = await session.wait();
    assert.ok(told);
    await session.commit(told);
    session.report("reminder/stage", { type: "x", body: "staged" });
    const lost = await session.wait();
    assert.equal(lost?.entries.length, 1);

    assert.ok(session.open);
    await crash(daemon, () => opens);
    assert.deepEqual(openWhenDown, [false]);
    assert.ok(lost);
    assert.equal(await session.commit(lost), undefined);
    assert.deepEqual(await session.opened.then((opened) => opened?.records.accepted), [
      ...(kept ? [told.record?.id] : []),
    ]);
    const after = await session.wait();
    assert.deepEqual(
      after?.entries.map(({ type }) => type),
      kept ? [] : ["standing"],
    );
    assert.deepEqual(notices, []);
    assert.equal(session.records.length, kept ? 1 : 0);
  });
}

test(
  "a WAIT that is under way when the daemon crashes gives nothing at once",
  { timeout: 120_000 },
  async (t) => {
    const { client: daemon, notices } = client(t);
    const session = daemon.session({ session: "s" });
    const { pid } = await daemon.health();
    session.generate({ id: "deadly" }, () => {
      process.kill(pid ?? 0, "SIGKILL");
      return null;
    });
    session.beginTurn("t1");
    // A busy machine may not ask in time, and answers without the generator.
    await until(async () => (await session.wait({ deadlineMs: 3_600_000 })) === undefined);
    assert.equal(notices.length, 1);
  },
);

test("records follow what becomes of history", async (t) => {
  const { client: daemon } = client(t);
  const session = daemon.session({ session: "s", records: [] });
  const agent = session.agent("/a");
  const tell = async (turn: string, scope: typeof agent | typeof session = session) => {
    scope.beginTurn(turn);
    scope.report("reminder/stage", { type: "x", body: turn });
    const delivery = await scope.wait();
    assert.ok(delivery);
    await scope.commit(delivery);
    return delivery.record?.id ?? "";
  };
  const ids = () => session.records.map(({ id }) => id);
  const [a, b, c] = [await tell("t1"), await tell("t2"), await tell("t3")];
  const other = await tell("t1", agent);
  session.report("history/rewound", { through: b });
  assert.deepEqual(ids(), [a, b, other]);
  session.report("history/compacted", { retained: [b] });
  assert.deepEqual(ids(), [b, other]);
  session.report("history/compacted", { retained: "all" });
  session.report("history/reported", { records: [b, c] });
  assert.deepEqual(ids(), [b, other]);
  session.report("history/cleared", {});
  assert.deepEqual(ids(), [other]);
  agent.report("history/rewound", { through: null });
  assert.deepEqual(ids(), []);
});

test("two clients share a session of one daemon, and either commits", async (t) => {
  const env = privately(directory());
  const command = [REMINDERD, "connect", "--ephemeral", "--idle", "0"];
  const host = client(t, { command, env });
  const editor = client(t, { command, env });
  const session = host.client.session({ session: "s" });
  session.beginTurn("t1");
  await session.opened;
  const seen = editor.client.session({ session: "s" });
  assert.equal((await seen.opened)?.state, "live");
  await seen.ask("reminder/enqueue", { body: "from the editor" });
  const delivery = await session.wait();
  assert.match(delivery?.message?.content ?? "", /from the editor/);
  assert.ok(delivery);
  assert.equal((await seen.commit(delivery))?.already, false);
  assert.equal((await session.commit(delivery))?.already, true);
  assert.deepEqual([host.problems, editor.problems], [[], []]);
});

test("a client's turn is still open when only its connection was lost", async (t) => {
  const env = privately(directory());
  const command = [REMINDERD, "connect", "--ephemeral", "--idle", "0"];
  let opens = 0;
  // Another connection keeps the shared daemon alive.
  const other = client(t, { command, env });
  assert.notEqual((await other.client.health()).answeredMs, undefined);
  const { client: daemon, problems } = client(t, { command, env });
  const session = daemon.session({ session: "s", onOpen: () => (opens += 1) });
  session.beginTurn("t1");
  session.report("reminder/stage", { type: "x", body: "staged" });
  assert.ok(await session.wait());
  await crash(daemon, () => opens);
  assert.equal((await session.opened)?.state, "live");
  assert.deepEqual(
    (await session.wait())?.entries.map(({ type }) => type),
    ["x"],
  );
  assert.deepEqual(problems, []);
});

test("a session that another daemon holds is opened when it is free", async (t) => {
  const env = privately(directory());
  const holder = client(t, { env });
  await holder.client.session({ session: "s" }).opened;
  const { client: daemon, problems } = client(t, { env });
  const session = daemon.session({ session: "s" });
  assert.equal(await session.opened, undefined);
  assert.match(problems.join(), /session\/open: /);
  await holder.client.close();
  session.beginTurn("t1");
  assert.equal((await session.opened)?.state, "restored");
  assert.ok(session.open);
  assert.ok(await session.wait());
});

test("health tells of a daemon that is well", async (t) => {
  const { client: daemon } = client(t);
  await daemon.session({ session: "s" }).opened;
  const health = await daemon.health();
  assert.equal(health.status, "ready");
  assert.match(health.version ?? "", /^\d+\.\d+/);
  assert.deepEqual(health.sessions, [{ session: "s", open: true }]);
  assert.doesNotMatch(describe(health), /next:/);
});
