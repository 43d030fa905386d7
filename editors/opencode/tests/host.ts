/** A stand-in for OpenCode: it plays prompts as OpenCode does, and keeps a session's messages. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Hooks, HostEvent, Message, Part } from "../src/host.js";
import { plugin } from "../src/plugin.js";

// Each directory has its listener.
process.setMaxListeners(0);

/** The daemon that is tested against. */
export const REMINDERD = process.env["REMINDERD"] ?? "reminderd";
/** A deadline that no sound daemon misses, in milliseconds. */
const GENEROUS_MS = 20_000;
const SESSION = "conversation";

/** A directory that goes when the tests are over. */
export function directory(): string {
  const place = mkdtempSync(join(tmpdir(), "reminderd-opencode-"));
  process.once("exit", () => rmSync(place, { recursive: true, force: true }));
  return place;
}

/** A call of a tool. */
export interface Call {
  tool: string;
  args: object;
  run?: () => void;
}

/** One process of OpenCode, on a session's messages. */
export class OpenCode {
  /** The texts of each request that went to the model. */
  readonly requests: string[][] = [];
  #hooks: Hooks | undefined;
  #number = 0;

  constructor(
    readonly project: string,
    public messages: Message[] = [],
    readonly parent?: string,
  ) {}

  /** Loads the plugin, with a daemon whose state is in a place of its own. */
  async load(state: string, command: readonly string[] = [REMINDERD], deadlineMs = GENEROUS_MS) {
    const env = {
      ...process.env,
      XDG_CONFIG_HOME: state,
      XDG_RUNTIME_DIR: state,
      XDG_STATE_HOME: state,
    };
    this.#hooks = await plugin({ command, env, deadlineMs })({
      directory: this.project,
      client: {
        session: {
          get: async () => ({ data: this.parent === undefined ? {} : { parentID: this.parent } }),
          messages: async () => ({ data: this.messages }),
          prompt: async ({ body }) => {
            const parts = body.parts.map((part) => ({ ...part, ...this.#ids() }));
            await this.#receive(parts);
          },
        },
      },
    });
    return this;
  }

  #ids(): Pick<Part, "id" | "sessionID" | "messageID"> {
    const number = (this.#number += 1);
    return { id: `prt_${number}`, sessionID: SESSION, messageID: `msg_${number}` };
  }

  /** A message of the user's side comes into the session. */
  async #receive(parts: Part[], agent = "build") {
    const info = { id: `msg_u${(this.#number += 1)}`, role: "user", sessionID: SESSION };
    await this.#hooks?.["chat.message"](
      { sessionID: SESSION, agent },
      { message: { id: info.id }, parts },
    );
    this.messages.push({ info, parts });
  }

  async happen(type: string, more: Partial<HostEvent["properties"]> = {}) {
    await this.#hooks?.event({ event: { type, properties: { sessionID: SESSION, ...more } } });
  }

  /** A prompt, with one batch of calls after its first answer when there are any. */
  async prompt(text: string, calls: Call[] = [], agent?: string) {
    await this.#receive([{ type: "text", text, ...this.#ids() }], agent);
    await this.#request();
    if (calls.length > 0) {
      const open = calls.map((call) => ({
        call,
        input: { tool: call.tool, sessionID: SESSION, callID: `call ${(this.#number += 1)}` },
      }));
      for (const { call, input } of open) {
        await this.#hooks?.["tool.execute.before"](input, { args: call.args });
      }
      for (const { call, input } of open) {
        call.run?.();
        this.#say("assistant", `result of ${call.tool}`);
        await this.#hooks?.["tool.execute.after"](input, { output: "done" });
      }
      await this.#request();
    }
    await this.happen("session.idle");
  }

  #say(role: string, text: string) {
    const ids = this.#ids();
    const info = { id: ids.messageID, role, sessionID: SESSION };
    this.messages.push({ info, parts: [{ type: "text", text, ...ids }] });
  }

  /** A request of the model, with what the session holds. */
  async #request() {
    const messages = structuredClone(this.messages);
    await this.#hooks?.["experimental.chat.messages.transform"]({}, { messages });
    this.requests.push(messages.flatMap(({ parts }) => parts.map(({ text }) => text ?? "")));
  }

  /** How often a text stands in a request. */
  count(request: number, text: string): number {
    return (this.requests.at(request) ?? []).filter((each) => each.includes(text)).length;
  }
}
