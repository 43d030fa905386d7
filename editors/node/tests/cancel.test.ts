/** Requests that are given up, and generators, which are what a WAIT can be held up by. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { client, directory, REMINDERD, TOP, until } from "./support.js";

test("a cancelled WAIT rejects with the signal's reason and leaves no open token", async (t) => {
  const { client: daemon, notices } = client(t);
  const session = daemon.session({ session: "s" });
  const abort = new AbortController();
  const reason = new Error("the person pressed escape");
  let answer: (body: string) => void = () => undefined;
  session.generate({ id: "slow" }, () => {
    abort.abort(reason);
    return new Promise((resolve) => (answer = resolve));
  });
  session.beginTurn("t1");
  await assert.rejects(session.wait({ signal: abort.signal }), reason);
  answer("too late");
  assert.equal((await session.ask("session/state", {})).openTokens, 0);
  assert.deepEqual(notices, []);
  await assert.rejects(session.wait({ signal: abort.signal }), reason);
});

test("a late answer is released, and told with the next WAIT", async (t) => {
  const log = join(directory(), "sent.jsonl");
  const late = ["python3", join(TOP, "tests/support/late_daemon.py"), log, REMINDERD];
  const { client: daemon, notices } = client(t, { command: late });
  const session = daemon.session({ session: "s" });
  await session.opened;
  session.beginTurn("t1");
  session.report("reminder/enqueue", { body: "still to be told" });
  // Long enough for the daemon to answer, and the answer is held until this runs out.
  assert.equal(await session.wait({ deadlineMs: 1_000 }), undefined);
  assert.equal(notices.length, 1);

  const sent = () =>
    readFileSync(log, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Sent);
  const released = await until(() => sent().find(({ method }) => method === "reminder/release"));
  assert.equal(released.params.reason, "late");
  const state = await session.ask("session/state", {});
  assert.equal(state.openTokens, 0);
  assert.equal(state.queues.pending, 1);
});

interface Sent {
  method: string;
  params: { token?: string; reason?: string };
}

test("a generator speaks, is silent, or fails, and is asked for its agent", async (t) => {
  const { client: daemon } = client(t);
  const session = daemon.session({ session: "s" });
  const asked: (string | null | undefined)[] = [];
  session.generate({ id: "speaks", policy: "always", scopes: ["root", "agents"] }, (params) => {
    asked.push(params.agent);
    return "body ✓";
  });
  session.generate({ id: "silent" }, () => Promise.resolve(null));
  session.generate({ id: "fails" }, () => {
    throw new Error("broken");
  });
  session.beginTurn("t1");
  const delivery = await session.wait();
  assert.deepEqual(
    delivery?.entries.map(({ type, body }) => [type, body]),
    [["speaks", "body ✓"]],
  );
  const agent = session.agent("/a", { kinds: { speaks: true } });
  agent.beginTurn("t1");
  assert.deepEqual(
    (await agent.wait())?.entries.map(({ type }) => type),
    ["speaks"],
  );
  assert.deepEqual(
    asked.map((path) => path ?? "root"),
    ["root", "/a"],
  );
});
