/** The extension in a stand-in of pi, against the real daemon. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";
import { CUSTOM_TYPE } from "../src/extension.js";
import { directory, Pi } from "./host.js";

/** Another extension's reminder, which stands for the state of a branch. */
function branch(pi: Pi, body: () => string | null) {
  const register = () =>
    pi.events.emit("reminderd:generator", { reminder: { id: "branch" }, compute: body });
  pi.events.on("reminderd:ready", register);
}

test("what is told follows the prompt, stays, and is told once", async (t) => {
  const pi = new Pi(directory()).load(t, directory());
  let body = "on main";
  branch(pi, () => body);
  await pi.emit("session_start", {});
  await pi.prompt("begin");
  await pi.prompt("go on");
  body = "on a branch";
  await pi.prompt("and on");
  assert.deepEqual(
    pi.entries.map(({ type, customType }) => customType ?? type),
    ["message", CUSTOM_TYPE, "message", "message", CUSTOM_TYPE],
  );
  assert.deepEqual(
    [0, 1, 2].map((request) => pi.count(request, "on main")),
    [1, 1, 1],
  );
  assert.equal(pi.count(2, "on a branch"), 1);
  assert.deepEqual(pi.notices, []);
});

test("a file that somebody changed is told behind all results of the batch", async (t) => {
  const pi = new Pi(directory()).load(t, directory());
  const file = join(pi.project, "notes.txt");
  writeFileSync(file, "one\n");
  await pi.emit("session_start", {});
  await pi.prompt("read", [{ name: "read", args: { path: "notes.txt" } }]);
  await pi.prompt("write", [
    { name: "write", args: { path: file }, run: () => writeFileSync(file, "mine\n") },
  ]);
  assert.equal(pi.count(-1, "notes.txt"), 0);
  await pi.prompt("work", [
    { name: "bash", args: { command: "x" }, run: () => writeFileSync(file, "somebody's\n") },
    { name: "bash", args: { command: "y" } },
  ]);
  assert.match(pi.entries.at(-1)?.content ?? "", /notes\.txt/);
  assert.equal(pi.count(-1, "somebody's"), 1);
});

test("a resumed session hands over what its entries hold", async (t) => {
  const project = directory();
  const first = new Pi(project).load(t, directory());
  branch(first, () => "on main");
  await first.emit("session_start", {});
  await first.prompt("begin");
  await first.emit("session_shutdown", {});

  // Another machine: its daemon knows nothing but what the entries say.
  const resumed = new Pi(project, JSON.parse(JSON.stringify(first.entries))).load(t, directory());
  branch(resumed, () => "on main");
  await resumed.emit("session_start", {});
  await resumed.prompt("go on");
  assert.equal(resumed.count(0, "on main"), 1);
});

test("what a compaction or a step back dropped is told again", async (t) => {
  for (const event of ["session_compact", "session_tree"] as const) {
    const pi = new Pi(directory()).load(t, directory());
    branch(pi, () => "on main");
    await pi.emit("session_start", {});
    await pi.prompt("begin");
    pi.entries = [];
    await pi.emit(event, {});
    await pi.prompt("go on");
    assert.equal(pi.count(-1, "on main"), 1, event);
  }
});

test("a request that never came tells nothing, unless the session kept the message", async (t) => {
  const pi = new Pi(directory()).load(t, directory());
  branch(pi, () => "on main");
  await pi.emit("session_start", {});
  await pi.begin("lost");
  pi.entries = [];
  await pi.emit("agent_settled", { aborted: true });
  await pi.begin("kept");
  assert.equal(pi.entries.length, 2);
  await pi.emit("agent_settled", { aborted: true });
  await pi.prompt("go on");
  assert.equal(pi.count(-1, "on main"), 1);
});

test("another extension reports tasks and a mode", async (t) => {
  const pi = new Pi(directory()).load(t, directory());
  await pi.emit("session_start", {});
  pi.events.emit("reminderd:report", {
    method: "reminder/enqueue",
    params: { body: "the build is green" },
  });
  await pi.prompt("begin");
  assert.equal(pi.count(-1, "the build is green"), 1);
});

const sleeper = [process.execPath, "--eval", "setInterval(() => undefined, 1000)"];
for (const [name, command] of [
  ["is absent", [join("/", "nowhere", "reminderd")]],
  ["says nothing", sleeper],
  ["dies", [process.execPath, "--eval", ""]],
] as const) {
  test(`prompts go out as they were, with one notice, when the daemon ${name}`, async (t) => {
    const pi = new Pi(directory()).load(t, directory(), command, 100);
    await pi.emit("session_start", {});
    await pi.prompt("begin", [{ name: "edit", args: { path: "x" } }]);
    await pi.prompt("go on");
    assert.deepEqual(
      pi.entries.map(({ content }) => content),
      ["begin", "result of edit", "go on"],
    );
    assert.equal(pi.notices.length, 1);
    assert.match(pi.notices[0] ?? "", /without reminders/);
  });
}

test("the README's example of another extension works", async (t) => {
  const readme = readFileSync("README.md", "utf8");
  const example = /```js\n(\/\/ branch\.js\n[^]*?)```/.exec(readme)?.[1];
  assert.ok(example);
  const file = join(directory(), "branch.mjs");
  writeFileSync(file, example);
  const { default: other } = (await import(pathToFileURL(file).href)) as {
    default: (pi: Pi) => void;
  };
  const pi = new Pi(directory());
  other(pi);
  pi.load(t, directory());
  await pi.emit("session_start", {});
  await pi.prompt("begin");
  assert.equal(pi.count(-1, "The working directory is"), 1);
  assert.equal(pi.count(-1, "Release the lock"), 1);
});
