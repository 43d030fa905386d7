/** WAIT, commit, release, and what a conversation reports, against the real daemon. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contentOf, rowOf, type SessionOptions } from "reminderd";
import { client, until } from "./support.js";

test("a body is told once its WAIT is committed, and offered again when it is released", async (t) => {
  const { client: daemon, notices, problems } = client(t);
  const session = daemon.session({ session: "s" });
  session.beginTurn("t1");
  session.report("reminder/enqueue", { body: "the build is green" });

  const first = await session.wait();
  assert.equal(first?.row, "◇ 1 system reminder (pending events)");
  await session.release(first, "cancelled");

  const second = await session.wait({ seam: "prompt" });
  assert.match(second?.message?.content ?? "", /the build is green/);
  assert.ok(second);
  const committed = await session.commit(second, { placement: "behind the prompt" });
  assert.deepEqual(committed?.record, second.record);
  assert.equal((await session.commit(second))?.already, true);

  assert.equal((await session.wait())?.message, null);
  session.endTurn();
  assert.equal(session.turn, undefined);
  assert.deepEqual([notices, problems], [[], []]);
});

test("what a commit leaves out is offered again", async (t) => {
  const { client: daemon } = client(t);
  const session = daemon.session({ session: "s" });
  session.beginTurn("t1");
  session.report("reminder/stage", { type: "one", body: "first" });
  session.report("reminder/stage", { type: "two", body: "second" });
  const delivery = await session.wait();
  const kept = delivery?.entries.find(({ type }) => type === "one");
  assert.ok(delivery && kept);
  const result = await session.commit(delivery, { entries: [kept.id] });
  assert.deepEqual(result?.committed, [kept.id]);
  assert.deepEqual(
    (await session.wait())?.entries.map(({ type }) => type),
    ["two"],
  );
});

for (const [name, body] of [
  ["of many scripts", "naïve — 数据 — 🦀👩‍👩‍👧 — عربى — \u2028"],
  ["of a mebibyte", "x€".repeat(1 << 18)],
] as const) {
  test(`a body ${name} arrives as it was sent`, async (t) => {
    const { client: daemon } = client(t);
    const session = daemon.session({ session: `s ${name} é` });
    session.beginTurn("t1");
    session.report("reminder/stage", { type: "x", body });
    const delivery = await session.wait();
    assert.equal(delivery?.entries[0]?.body, body);
    assert.ok(delivery);
    assert.equal((await session.commit(delivery))?.committed.length, 1);
  });
}

const forms: [string, Omit<SessionOptions, "session">][] = [
  ["blocks", {}],
  ["block", { profile: "prompt" }],
  ["plain", { host: { render: "plain" } }],
];
for (const [form, options] of forms) {
  test(`a record in the form ${form} gives the message's content and row again`, async (t) => {
    const { client: daemon } = client(t);
    const reminders = ["a", "b\u202e\n\u0007"].map((label, index) => ({
      id: `${index}`,
      label,
      body: `text of ${index} … ✓`,
    }));
    const session = daemon.session({ ...options, session: "s", reminders });
    session.beginTurn("t1", "a prompt");
    const delivery = await session.wait();
    assert.ok(delivery?.record && delivery.message);
    assert.equal(delivery.record.form, form);
    assert.equal(delivery.entries.length, 2);
    assert.equal(contentOf(delivery.record), delivery.message.content);
    assert.equal(rowOf(delivery.record), delivery.row);
  });
}

test("an agent has a turn and reminders of its own, and none once it settled", async (t) => {
  const { client: daemon, problems } = client(t);
  const session = daemon.session({ session: "s" });
  session.beginTurn("t1");
  const agent = session.agent("/reviewer", { maxRequests: 1 });
  assert.equal(session.agent("/reviewer"), agent);
  agent.beginTurn("t1");
  const delivery = await agent.wait();
  assert.deepEqual(
    delivery?.entries.map(({ type }) => type),
    ["max-requests-limit"],
  );
  assert.equal((await session.wait())?.entries.length, 0);
  agent.settle();
  await assert.rejects(agent.ask("reminder/wait" as "session/state", {}), { code: -33003 });
  assert.deepEqual(problems, []);
});

test("an event that is refused is a problem for the log, and breaks nothing", async (t) => {
  const { client: daemon, notices, problems } = client(t);
  const session = daemon.session({ session: "s" });
  session.report("reminder/observe", { key: "k", type: "x", body: "without a turn" });
  session.beginTurn("t1");
  session.beginTurn("t1");
  assert.ok(await session.wait());
  await until(() => problems.some((problem) => /reminder\/observe: .*turn/.test(problem)));
  await until(() => problems.some((problem) => /turn\/begin: /.test(problem)));
  assert.equal(notices.length, 0);
});

test("explain, history and the roster can be asked for", async (t) => {
  const { client: daemon } = client(t);
  const session = daemon.session({ session: "s", reminders: [{ id: "hello", body: "hello" }] });
  session.beginTurn("t1");
  const rows = (await session.ask("reminder/explain", {})).rows;
  assert.equal(rows.find(({ id }) => id === "hello")?.speaks, true);
  const delivery = await session.wait();
  assert.ok(delivery);
  await session.commit(delivery);
  const { records } = await session.ask("reminder/history", { limit: 5 });
  assert.deepEqual(
    records.map(({ id, retained }) => [id, retained]),
    [[delivery.record?.id, true]],
  );
  assert.ok((await session.ask("roster/list", {})).some(({ id }) => id === "hello"));
});
