/** The program between a client and a stand-in of the app server, with the real daemon. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { Client, type TaskStatus } from "reminderd";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PROGRAM = join(HERE, "../dist/main.js");
const SERVER = join(HERE, "server.mjs");
const REMINDERD = process.env.REMINDERD ?? join(HERE, "../../../target/debug/reminderd");
/** How long a condition may take to hold before the test fails, in milliseconds. */
const PATIENCE_MS = 20_000;
const THREAD = "thread-1";
const CONFIGURATION = `
[[reminders]]
id = "round"
body = "This is round {{ turn }}."
policy = "always"
[[reminders]]
id = "read"
globs = ["a.txt"]
body = "a.txt is made by the build."
policy = "once"
`;

interface Message {
  id?: number | string;
  method?: string;
  params?: { item?: { type: string; content?: { text: string }[] } };
  result?: unknown;
  error?: unknown;
}

/** A machine with the program on it, and a client of its own. */
class Machine {
  readonly place = mkdtempSync(join(tmpdir(), "reminderd-codex-"));
  readonly environment: NodeJS.ProcessEnv;
  /** The lines that the client got, and those that reached the app server. */
  readonly got: string[] = [];
  readonly arrived: string[] = [];
  readonly #process;
  #count = 0;

  constructor(t: TestContext, daemon = REMINDERD) {
    const xdg = { XDG_CONFIG_HOME: "config", XDG_RUNTIME_DIR: "run", XDG_STATE_HOME: "state" };
    const places = Object.entries(xdg).map(([name, it]) => [name, join(this.place, it)]);
    this.environment = {
      ...process.env,
      ...Object.fromEntries(places),
      REMINDERD: daemon,
      // A deadline that no sound daemon misses.
      REMINDERD_DEADLINE_MS: String(PATIENCE_MS),
    };
    writeFileSync(join(this.place, "a.txt"), "a\n");
    mkdirSync(join(this.place, "config/reminderd"), { recursive: true });
    writeFileSync(join(this.place, "config/reminderd/reminderd.toml"), CONFIGURATION);
    const server = join(this.place, "codex");
    writeFileSync(server, `#!/bin/sh\nexec "${process.execPath}" "${SERVER}"\n`, { mode: 0o755 });
    this.#process = spawn(process.execPath, [PROGRAM, server, "app-server"], {
      cwd: this.place,
      env: this.environment,
      stdio: "pipe",
    });
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.got.push(line));
    createInterface({ input: this.#process.stderr }).on("line", (line) => this.arrived.push(line));
    t.after(async () => {
      await this.end();
      // The daemon, which others could share, would stay for a while.
      spawnSync("pkill", ["-f", `serve --detached .*${this.place}`]);
      rmSync(this.place, { recursive: true, force: true, maxRetries: 10 });
    });
  }

  /** Ends as a client does, and gives the status of the program. */
  async end(): Promise<number | null> {
    const { exitCode } = this.#process;
    if (exitCode !== null) return exitCode;
    this.#process.stdin.end();
    const [status] = (await once(this.#process, "close")) as [number | null];
    return status;
  }

  send(line: string): void {
    this.#process.stdin.write(line + "\n");
  }

  get messages(): Message[] {
    return this.got.map((line) => JSON.parse(line) as Message);
  }

  async ask(method: string, params: object = {}): Promise<Message> {
    const id = (this.#count += 1);
    this.send(JSON.stringify({ id, method, params }));
    return until(() => this.messages.find((it) => it.id === id && it.method === undefined));
  }

  /** Begins a turn; when it is answered, all that the turn says at once has come too. */
  async prompt(text: string, more: object = {}): Promise<Message> {
    const input = [{ type: "text", text }];
    const answer = await this.ask("turn/start", { threadId: THREAD, input, ...more });
    await this.ask("echo");
    return answer;
  }

  /** The texts of each user's message that stands in the history. */
  get history(): string[][] {
    return this.messages
      .filter((it) => it.method === "item/started" && it.params?.item?.type === "userMessage")
      .map((it) => (it.params?.item?.content ?? []).map(({ text }) => text));
  }

  /** Another client of the same daemon. */
  client(t: TestContext): Client {
    const client = new Client({ command: [REMINDERD, "connect"], env: this.environment });
    t.after(() => client.close());
    return client;
  }
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

const told = (text: string) => `<system-reminder>\n${text}\n</system-reminder>`;

test("a prompt gets a part of its own, and tools one message behind all results", async (t) => {
  const machine = new Machine(t);
  await machine.ask("thread/start", { cwd: machine.place });
  await machine.prompt("tools");
  await machine.ask("finish");
  // What was read in the first batch is known when the second begins.
  await until(() => machine.arrived.some((line) => line.includes("turn/steer")));
  await machine.ask("finish");
  await machine.prompt("go");
  const steered = machine.history[1] ?? [];
  assert.match(steered.join("\n"), /a\.txt is made by the build\./);
  assert.deepEqual(machine.history, [
    ["tools", told("This is round 1.")],
    steered,
    ["go", told("This is round 2.")],
  ]);
  // The answer to the steer is not the client's.
  assert.deepEqual(
    machine.messages.filter(({ id }) => typeof id === "string"),
    [],
  );
  const other = machine.client(t).session({ session: THREAD });
  const { records } = await other.ask("reminder/history", { retained: true });
  assert.equal(records.length, 3);
});

test("a prompt that is refused or fails is told again, and counts once", async (t) => {
  const machine = new Machine(t);
  await machine.ask("thread/start", { cwd: machine.place });
  const other = machine.client(t).session({ session: THREAD });
  other.report("reminder/enqueue", { body: "the build is green" });
  await other.ask("reminder/explain", {});
  assert.ok((await machine.prompt("refuse")).error);
  await machine.prompt("fail");
  await machine.prompt("go");
  await machine.prompt("on");
  const held = machine.history.map((it) => it.join("\n").includes("the build is green"));
  assert.deepEqual(held, [true, false]);
});

test("plans and plan mode reach the daemon, and a resumed thread is the same session", async (t) => {
  const machine = new Machine(t);
  await machine.ask("thread/resume", { threadId: THREAD });
  await machine.prompt("plan", { collaborationMode: { mode: "plan" } });
  assert.match(machine.history[0]?.at(-1) ?? "", /A plan is being made/);
  const other = machine.client(t).session({ session: THREAD });
  const tasks = await until(async () => {
    const list: { subject: string; status: TaskStatus }[] = await other.ask("task/list", {});
    return list.length > 0 ? list : undefined;
  });
  assert.deepEqual(
    tasks.map(({ subject, status }) => [subject, status]),
    [
      ["Write the parser", "completed"],
      ["Test it", "in_progress"],
    ],
  );
});

test("what is not understood passes as it came, in its order", async (t) => {
  const machine = new Machine(t);
  const strange = [
    '{"id": 7,  "method":"initialize","params":{"é":"\\u00e9","n":1.0}}',
    "not JSON",
    "[]",
    '{"id":"x","method":"turn/start","params":{"threadId":4,"input":"no"}}',
    '{"id":"y","method":"turn/start","params":{"threadId":"t","input":"no"}}',
    '{"method":"turn/start"}',
    '{"id":"reminderd-1","result":{}}',
    `{"id":9,"method":"m","params":"${"x".repeat(1 << 20)}"}`,
  ];
  for (const line of strange) machine.send(line);
  await until(() => machine.arrived.length === strange.length);
  assert.deepEqual(machine.arrived, strange);
  assert.ok(machine.got.includes("that was no JSON"));
});

for (const [name, daemon] of [
  ["is not there", "/nowhere/reminderd"],
  ["ends at once", "/bin/false"],
] as const) {
  test(`prompts pass as they came when the daemon ${name}`, async (t) => {
    const machine = new Machine(t, daemon);
    await machine.ask("thread/start", {});
    await machine.prompt("go");
    await machine.prompt("tools");
    await machine.ask("finish");
    assert.deepEqual(machine.history, [["go"], ["tools"]]);
  });
}

test("the program ends with the app server's status, and runs all else of Codex", () => {
  const place = mkdtempSync(join(tmpdir(), "reminderd-codex-"));
  const codex = join(place, "codex");
  writeFileSync(codex, '#!/bin/sh\necho "$@"\nexit 3\n', { mode: 0o755 });
  for (const [args, said] of [
    [["--version"], "--version\n"],
    [["exec", "hello"], "exec hello\n"],
    [[codex, "-c", "a=1", "app-server"], "-c a=1 app-server\n"],
    [["app-server", "--listen", "x"], "app-server --listen x\n"],
  ] as const) {
    const env = { ...process.env, PATH: `${place}:${process.env.PATH}`, REMINDERD: "/bin/false" };
    assert.throws(
      () => execFileSync(process.execPath, [PROGRAM, ...args], { env, stdio: "pipe" }),
      (error: { status: number; stdout: Buffer }) =>
        error.status === 3 && error.stdout.toString() === said,
    );
  }
  rmSync(place, { recursive: true });
});
