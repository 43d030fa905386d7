/**
 * A stand-in for Codex's app server. It answers as that does, and the texts of the prompts say what
 * its model does: `tools` is two batches of two calls, each of which ends at `finish`; `refuse` a request that is refused, `fail` a turn
 * that fails before the prompt is taken in, `plan` a plan of two steps. What it was sent it writes to its stderr.
 */
import { createInterface } from "node:readline";

interface Asked {
  id?: number | string;
  method?: string;
  params?: { threadId?: string; input?: { text: string }[] };
}

const THREAD = "thread-1";
const cwd = process.cwd();
let turns = 0;
let calls = 0;
let steered: { text: string }[] = [];

function say(message: object): void {
  process.stdout.write(JSON.stringify(message) + "\n");
}

function notify(method: string, params: object): void {
  say({ method, params: { threadId: THREAD, ...params } });
}

function item(when: "started" | "completed", turnId: string, it: object): void {
  notify(`item/${when}`, { turnId, item: it });
}

function user(turnId: string, content: { text: string }[]): void {
  const parts = content.map(({ text }) => ({ type: "text", text, text_elements: [] }));
  item("started", turnId, { type: "userMessage", id: `u${turns}`, content: parts });
}

function end(id: string, status: string): void {
  notify("turn/completed", { turn: { id, status, items: [] } });
}

function turn(id: string, input: { text: string }[]): void {
  notify("turn/started", { turn: { id, status: "inProgress", items: [] } });
  const prompt = input[0]?.text ?? "";
  if (prompt === "fail") {
    end(id, "failed");
    return;
  }
  user(id, input);
  if (prompt === "plan") {
    const plan = [
      { step: "Write the parser", status: "completed" },
      { step: "Test it", status: "inProgress" },
    ];
    notify("turn/plan/updated", { turnId: id, explanation: null, plan });
  }
  if (prompt !== "tools") {
    end(id, "completed");
    return;
  }
  batch(id);
  finish = () => {
    over(id);
    batch(id);
    finish = () => {
      over(id);
      end(id, "completed");
    };
  };
}

/** Two calls, both with their results. */
function batch(turnId: string): void {
  calls += 1;
  const read = {
    type: "commandExecution",
    id: `c${calls}`,
    command: "cat a.txt",
    cwd,
    commandActions: [{ type: "read", command: "cat a.txt", name: "a.txt", path: "a.txt" }],
  };
  const change = { path: `${cwd}/b.txt`, kind: { type: "add" }, diff: "b\n" };
  const patch = { type: "fileChange", id: `p${calls}`, changes: [change] };
  item("started", turnId, read);
  item("started", turnId, patch);
  item("completed", turnId, { ...read, status: "completed", exitCode: 0, aggregatedOutput: "a\n" });
  item("completed", turnId, { ...patch, status: "completed" });
}

/** The results of a batch are complete: what was steered follows them. */
function over(turnId: string): void {
  notify("thread/tokenUsage/updated", { turnId });
  if (steered.length > 0) user(turnId, steered);
  steered = [];
}

/** Ends the batch of tools that is running. */
let finish: () => void = () => undefined;

createInterface({ input: process.stdin }).on("line", (line) => {
  process.stderr.write(line + "\n");
  let asked: Asked;
  try {
    asked = JSON.parse(line) as Asked;
  } catch {
    process.stdout.write("that was no JSON\n");
    return;
  }
  const { id, method, params } = asked;
  const input = Array.isArray(params?.input) ? params.input : [];
  switch (method) {
    case "thread/start":
    case "thread/resume":
      say({ id, result: { thread: { id: THREAD, cwd, path: null } } });
      break;
    case "turn/start":
      if (input[0]?.text === "refuse") {
        say({ id, error: { code: -32600, message: "no" } });
        break;
      }
      turns += 1;
      say({ id, result: { turn: { id: `turn-${turns}`, status: "inProgress", items: [] } } });
      turn(`turn-${turns}`, input);
      break;
    case "turn/steer":
      steered.push(...input);
      say({ id, result: { turnId: `turn-${turns}` } });
      break;
    case "finish":
      finish();
      say({ id, result: {} });
      break;
    default:
      if (id !== undefined) say({ id, result: { echo: asked } });
  }
});
