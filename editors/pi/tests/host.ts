/** A stand-in for pi: it plays prompts as pi does, and keeps a session's entries. */
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { extension } from "../src/extension.js";
import type { Context, CustomMessage, Entry, Host, HostEvents } from "../src/host.js";

// Each directory has its listener.
process.setMaxListeners(0);

/** The daemon that is tested against. */
export const REMINDERD = process.env["REMINDERD"] ?? "reminderd";
/** A deadline that no sound daemon misses, in milliseconds. */
const GENEROUS_MS = 20_000;

type Stored = Entry & { content?: string };
type Handler = (event: never, context: Context) => unknown;

/** A directory that goes when the tests are over. */
export function directory(): string {
  const place = mkdtempSync(join(tmpdir(), "reminderd-pi-"));
  process.once("exit", () => rmSync(place, { recursive: true, force: true }));
  return place;
}

/** One process of pi, on a session's entries. */
export class Pi implements Host {
  readonly notices: string[] = [];
  /** The payloads that went to the model: the texts of each. */
  readonly requests: string[][] = [];
  readonly #emitter = new EventEmitter();
  readonly #handlers = new Map<string, Handler[]>();
  readonly #context: Context;
  #calls = 0;

  readonly events = {
    emit: (channel: string, data: unknown) => void this.#emitter.emit(channel, data),
    on: (channel: string, handler: (data: unknown) => void) => this.#emitter.on(channel, handler),
  };

  constructor(
    readonly project: string,
    public entries: Stored[] = [],
  ) {
    this.#context = {
      cwd: project,
      hasUI: true,
      ui: { notify: (message) => this.notices.push(message), setStatus: () => undefined },
      sessionManager: {
        getSessionId: () => "conversation",
        buildContextEntries: () => this.entries,
      },
    };
  }

  /** Loads the extension, with a daemon whose state is in a place of its own. */
  load(t: TestContext, state: string, command: readonly string[] = [REMINDERD], ms = GENEROUS_MS) {
    const env = {
      ...process.env,
      XDG_CONFIG_HOME: state,
      XDG_RUNTIME_DIR: state,
      XDG_STATE_HOME: state,
    };
    extension({ command, env, deadlineMs: ms })(this);
    t.after(() => this.emit("session_shutdown", {}));
    return this;
  }

  on<E extends keyof HostEvents>(
    event: E,
    handler: (event: HostEvents[E], context: Context) => unknown,
  ) {
    this.#handlers.set(event, [...(this.#handlers.get(event) ?? []), handler as Handler]);
  }

  /** Plays an event; gives what the last handler answered. */
  async emit<E extends keyof HostEvents>(event: E, data: HostEvents[E]): Promise<unknown> {
    let answer: unknown;
    for (const handler of this.#handlers.get(event) ?? []) {
      answer = await handler(data as never, this.#context);
    }
    return answer;
  }

  /** A prompt, with one batch of calls after its first answer when there are any. */
  async prompt(text: string, tools: { name: string; args: object; run?: () => void }[] = []) {
    await this.begin(text);
    await this.request();
    if (tools.length > 0) {
      for (const tool of tools) {
        const call = { toolCallId: `call ${(this.#calls += 1)}`, toolName: tool.name };
        await this.emit("tool_execution_start", { ...call, args: tool.args });
        await this.emit("tool_call", { ...call, input: tool.args });
        tool.run?.();
        await this.emit("tool_execution_end", { ...call, isError: false });
        this.entries.push({ type: "message", content: `result of ${tool.name}` });
      }
      const answer = (await this.emit("turn_end", {
        toolResults: tools,
        outcome: "completed",
        entries: [],
      })) as { entries: Stored[] } | undefined;
      this.entries.push(...(answer?.entries ?? []));
      await this.request();
    }
    await this.emit("agent_settled", { aborted: false });
  }

  /** A prompt, up to where its messages are in the session. */
  async begin(text: string) {
    const answer = (await this.emit("before_agent_start", {
      messageType: "user",
      prompt: text,
    })) as { message: CustomMessage } | undefined;
    this.entries.push({ type: "message", content: text });
    if (answer) this.entries.push({ type: "custom_message", ...answer.message });
  }

  /** A request of the model, with what the session holds. */
  async request() {
    const texts = this.entries.map(({ content }) => content ?? "");
    await this.emit("before_provider_request", {
      payload: { messages: texts.map((content) => ({ role: "user", content })) },
    });
    this.requests.push(texts);
  }

  /** How often a text stands in a request. */
  count(request: number, text: string): number {
    return (this.requests.at(request) ?? []).filter((each) => each.includes(text)).length;
  }
}
