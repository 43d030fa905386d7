/**
 * What passes between a client and the app server. Both sides' messages go on as they came, save the
 * prompts, which get a text part more; requests of our own are answered to us alone.
 */
import { randomUUID } from "node:crypto";
import type { Client } from "reminderd";
import { objectIn, read, textIn, written, type Message } from "./lines.js";
import { Thread, type Place } from "./thread.js";

/** What asks for a thread, by its method. */
const THREAD_METHODS = new Set(["thread/start", "thread/resume", "thread/fork"]);

/** A request of the client that the server has not answered yet. */
interface Asked {
  method: string;
  params: unknown;
  thread?: Thread;
}

/** One connection of a client to an app server. */
export class Relay {
  readonly #client: Client;
  readonly #toServer: (line: Buffer) => void;
  readonly #threads = new Map<string, Thread>();
  readonly #asked = new Map<string | number, Asked>();
  /** No id of the client's begins like that. */
  readonly #prefix = `reminderd-${randomUUID()}-`;
  readonly #own = new Map<string, (answer: Message) => void>();
  #count = 0;

  /** `toServer` sends a line to the app server, between those of the client. */
  constructor(client: Client, toServer: (line: Buffer) => void) {
    this.#client = client;
    this.#toServer = toServer;
  }

  /** What the app server gets for a line of the client. It takes no longer than a WAIT may. */
  async fromClient(line: Buffer): Promise<Buffer> {
    const message = read(line);
    if (message?.method === undefined || message.id === undefined) return line;
    const { id, method, params } = message;
    const asked: Asked = { method, params };
    if (THREAD_METHODS.has(method) || method === "thread/revert") this.#asked.set(id, asked);
    const threadId = textIn(params, "threadId");
    if (method === "thread/settings/update" && threadId !== undefined) {
      this.#threads.get(threadId)?.planning(params);
    }
    if (method !== "turn/start" || threadId === undefined) return line;
    const thread = this.#thread(threadId);
    const input = objectIn(message, "params").input;
    // A turn that runs takes the prompt in: it has no request of its own.
    if (thread.running || !Array.isArray(input)) return line;
    asked.thread = thread;
    this.#asked.set(id, asked);
    const content = await thread.prompt(params);
    if (content === undefined) return line;
    const part = { type: "text", text: content };
    return written({
      ...message,
      params: { ...objectIn(message, "params"), input: [...input, part] },
    });
  }

  /** Hears a line of the app server. Whether the client gets it, which is not so for answers to us. */
  fromServer(line: Buffer): boolean {
    const message = read(line);
    if (message === undefined) return true;
    if (message.method === undefined) return this.#answered(message);
    if (message.id === undefined) this.#notified(message.method, message.params);
    return true;
  }

  /** The app server is gone: what has not arrived never will. */
  async end(): Promise<void> {
    await Promise.all([...this.#threads.values()].map((thread) => thread.gone()));
  }

  #answered(message: Message): boolean {
    const { id, error, result } = message;
    if (id === undefined) return true;
    const own = typeof id === "string" ? this.#own.get(id) : undefined;
    if (own !== undefined) {
      this.#own.delete(id as string);
      own(message);
      return false;
    }
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    if (asked === undefined) return true;
    if (error !== undefined) {
      asked.thread?.refused();
      return true;
    }
    const threadId = textIn(asked.params, "threadId");
    if (asked.method === "thread/revert" && threadId !== undefined) {
      this.#threads.get(threadId)?.reverted();
    } else if (THREAD_METHODS.has(asked.method)) {
      this.#opened(asked, objectIn(result, "thread"));
    }
    return true;
  }

  #opened(asked: Asked, thread: Record<string, unknown>): void {
    const id = textIn(thread, "id");
    if (id === undefined) return;
    const from = textIn(asked.params, "threadId");
    const cut = textIn(asked.params, "beforeTurnId") ?? textIn(asked.params, "lastTurnId");
    // Of what a fork leaves behind nothing is known; where all comes along, so does what was told.
    if (asked.method === "thread/fork" && from !== undefined && cut === undefined) {
      this.#client
        .ask("session/fork", { session: from, into: id }, { deadlineMs: this.#client.deadlineMs })
        .catch(() => undefined);
    }
    this.#thread(id, { root: textIn(thread, "cwd"), rollout: textIn(thread, "path") });
  }

  #notified(method: string, params: unknown): void {
    const thread = this.#threads.get(textIn(params, "threadId") ?? "");
    thread?.hear(method, params);
  }

  #thread(id: string, place: Place = {}): Thread {
    const known = this.#threads.get(id);
    if (known !== undefined) return known;
    const thread = new Thread(this.#client, id, place, (turn, content, answered) => {
      const request = `${this.#prefix}${(this.#count += 1)}`;
      this.#own.set(request, (answer) => answered(answer.error === undefined));
      const input = [{ type: "text", text: content }];
      const steer = { threadId: id, expectedTurnId: turn, input };
      this.#toServer(written({ id: request, method: "turn/steer", params: steer }));
    });
    this.#threads.set(id, thread);
    return thread;
  }
}
