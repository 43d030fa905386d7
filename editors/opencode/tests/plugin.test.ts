/** The plugin in a stand-in of OpenCode, against the real daemon. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { directory, OpenCode } from "./host.js";

/** A place for a daemon, with these reminders of the person's. */
function place(configuration: string): string {
  const state = directory();
  mkdirSync(join(state, "reminderd"));
  writeFileSync(join(state, "reminderd", "reminderd.toml"), configuration);
  return state;
}

const ONCE = '[[reminders]]\nid = "rule"\nbody = "Tests come first."\n';
const TASKS = '[[reminders]]\nid = "tasks"\nwhen = "tasks | length > 0"\nbody = "Think of it."\n';

test("what is told follows the prompt, stays, and is told once", async () => {
  const host = await new OpenCode(directory()).load(place(ONCE));
  await host.prompt("begin");
  await host.prompt("go on");
  assert.deepEqual(
    [0, 1].map((request) => host.count(request, "Tests come first.")),
    [1, 1],
  );
  assert.equal(host.messages[0]?.parts[0]?.text, "begin");
  assert.match(host.messages[0]?.parts[1]?.text ?? "", /Tests come first\./);
});

test("a file that somebody changed is told behind all results of the batch", async () => {
  const host = await new OpenCode(directory()).load(place(""));
  const file = join(host.project, "notes.txt");
  writeFileSync(file, "one\n");
  await host.prompt("read", [{ tool: "read", args: { filePath: file } }]);
  await host.prompt("write", [
    { tool: "write", args: { filePath: file }, run: () => writeFileSync(file, "mine\n") },
  ]);
  assert.equal(host.count(-1, "notes.txt"), 0);
  await host.prompt("work", [
    { tool: "bash", args: { command: "x" }, run: () => writeFileSync(file, "somebody's\n") },
    { tool: "bash", args: { command: "y" } },
  ]);
  assert.match(host.messages.at(-1)?.parts[0]?.text ?? "", /notes\.txt/);
  assert.equal(host.count(-1, "somebody's"), 1);
});

test("a resumed session hands over what its messages hold", async () => {
  const project = directory();
  const first = await new OpenCode(project).load(place(ONCE));
  await first.prompt("begin");
  // Another machine: its daemon knows nothing but what the messages say.
  const resumed = new OpenCode(project, JSON.parse(JSON.stringify(first.messages)));
  await resumed.load(place(ONCE));
  await resumed.prompt("go on");
  assert.equal(resumed.count(0, "Tests come first."), 1);
});

test("what a compaction dropped is told again, and what it kept is not", async () => {
  for (const keeps of [true, false]) {
    const host = await new OpenCode(directory()).load(place(ONCE));
    await host.prompt("begin");
    if (!keeps) host.messages = [];
    await host.happen("session.compacted");
    await host.prompt("go on");
    await host.prompt("and on");
    assert.equal(host.count(-1, "Tests come first."), 1, `${keeps}`);
  }
});

test("tasks and plan mode reach the daemon", async () => {
  const host = await new OpenCode(directory()).load(place(TASKS));
  await host.prompt("begin");
  await host.happen("todo.updated", { todos: [{ content: "look", status: "pending" }] });
  await host.prompt("go on", [], "plan");
  assert.equal(host.count(-1, "Think of it."), 1);
  assert.equal(host.count(-1, "A plan is being made"), 1);
});

test("the session of an agent is left alone", async () => {
  const host = await new OpenCode(directory(), [], "parent").load(place(ONCE));
  await host.prompt("begin");
  assert.deepEqual(host.requests, [["begin"]]);
});

const sleeper = [process.execPath, "--eval", "setInterval(() => undefined, 1000)"];
for (const [name, command] of [
  ["is absent", [join("/", "nowhere", "reminderd")]],
  ["says nothing", sleeper],
  ["dies", [process.execPath, "--eval", ""]],
] as const) {
  test(`prompts go out as they were when the daemon ${name}`, async () => {
    const host = await new OpenCode(directory()).load(directory(), command, 100);
    await host.prompt("begin", [{ tool: "edit", args: { filePath: "x" } }]);
    await host.prompt("go on");
    assert.deepEqual(host.requests.at(-1), ["begin", "result of edit", "go on"]);
  });
}
