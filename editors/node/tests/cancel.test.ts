/** Requests that are given up, and generators. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { Conversation, Delivery } from "reminderd";
import { client, directory, REMINDERD, TOP, until } from "./support.js";

interface Params {
  reason?: string;
  deadlineMs?: number;
}

/** A client of a daemon whose WAITs stay open until they are cancelled, and what it was sent. */
function lateClient(test: TestContext) {
  const log = join(directory(), "sent.jsonl");
  const late = ["python3", join(TOP, "tests/support/late_daemon.py"), log, REMINDERD];
  const sent = (method: string) =>
    (existsSync(log) ? readFileSync(log, "utf8") : "")
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as { method?: string; params: Params })
      .find((message) => message.method === method);
  return { ...client(test, { command: late }), sent };
}

test("a cancelled WAIT rejects with the signal's reason and leaves no open token", async (t) => {
  const { client: daemon, notices, sent } = lateClient(t);
  const session = daemon.session({ session: "s" });
  session.beginTurn("t1");
  const abort = new AbortController();
  const reason = new Error("the person pressed escape");
  const waiting = session.wait({ signal: abort.signal });
  await until(() => sent("reminder/wait"));
  abort.abort(reason);
  await assert.rejects(waiting, reason);
  await until(() => sent("$/cancelRequest"));
  await until(() => sent("reminder/release"));
  assert.equal((await session.ask("session/state", {})).openTokens, 0);
  await assert.rejects(session.wait({ signal: abort.signal }), reason);
  assert.deepEqual(notices, []);
});

test("a late answer is released, and told with the next WAIT", async (t) => {
  const { client: daemon, notices, sent } = lateClient(t);
  const session = daemon.session({ session: "s" });
  session.beginTurn("t1");
  session.report("reminder/enqueue", { body: "still to be told" });
  assert.equal(await session.wait({ deadlineMs: 50 }), undefined);
  assert.equal(notices.length, 1);
  const released = await until(() => sent("reminder/release"));
  assert.equal(released.params.reason, "late");
  // The daemon has less time than the client, so that its answer can be back.
  assert.equal(sent("reminder/wait")?.params.deadlineMs, 40);
  const state = await session.ask("session/state", {});
  assert.equal(state.openTokens, 0);
  assert.equal(state.queues.pending, 1);
});

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
  const delivery = await told(session);
  assert.deepEqual(
    delivery.entries.map(({ type, body }) => [type, body]),
    [["speaks", "body ✓"]],
  );
  const agent = session.agent("/a", { kinds: { speaks: true } });
  agent.beginTurn("t1");
  assert.deepEqual(
    (await told(agent)).entries.map(({ type }) => type),
    ["speaks"],
  );
  assert.deepEqual(
    [...new Set(asked)].map((path) => path ?? "root"),
    ["root", "/a"],
  );
});

/** A delivery that tells something: a generator has 250 ms, which a busy machine may miss. */
function told(conversation: Conversation): Promise<Delivery> {
  return until(async () => {
    const delivery = await conversation.wait();
    return delivery !== undefined && delivery.entries.length > 0 ? delivery : undefined;
  });
}
