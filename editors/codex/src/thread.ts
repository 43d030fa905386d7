/**
 * A thread of the app server, which is a session of the daemon's under the same id. Each of its turns
 * is reported, and what is to be told is asked for twice: with a prompt, and when a batch of tools
 * has begun, since what is steered then stands behind the results of all of them.
 */
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import {
  contentOf,
  type Client,
  type Delivery,
  type InjectionRecord,
  type Session,
  type Task,
} from "reminderd";
import { keptTexts } from "./rollout.js";
import { listIn, objectIn, textIn } from "./lines.js";

/** The host, as `session/open` wants it said. */
const HOST = { history: "native", receipts: "late" } as const;
/** How many records of a history are handed back to a daemon that lost some of them. */
const RECORDS_MAX = 10_000;
/** How a turn of the server's ended, in the protocol's words. */
const OUTCOMES: Record<string, "completed" | "cancelled" | "failed"> = {
  completed: "completed",
  interrupted: "cancelled",
  failed: "failed",
};
/** The items that are calls of tools. */
const TOOLS = new Set([
  "commandExecution",
  "fileChange",
  "mcpToolCall",
  "dynamicToolCall",
  "collabAgentToolCall",
  "imageView",
]);

/** Steers a text into a turn of the server's, and hears whether it was taken. */
export type Steer = (turn: string, content: string, answered: (taken: boolean) => void) => void;

/** What was given to the server and has not shown up in its history yet. */
interface Given {
  delivery: Delivery;
  content: string;
  /** Whether its turn is open; what was released with its turn may still arrive. */
  open: boolean;
}

/** Where a thread is. */
export interface Place {
  /** The directory that it works in. */
  root?: string | undefined;
  /** The file that the server keeps it in. */
  rollout?: string | undefined;
}

/** One thread. */
export class Thread {
  readonly #client: Client;
  readonly #session: Session;
  readonly #root: string;
  readonly #rollout: string | undefined;
  readonly #steer: Steer;
  #running = false;
  /** What may still arrive, also that of turns that ended without it. */
  #given: Given[] = [];
  /** The WAIT of a request that nothing is told in; it counts once the request goes out. */
  #silent: Delivery | undefined;
  /** The batch of tools that is running, once it was asked for. */
  #batch: object | undefined;
  /** The asking of a batch, until its answer was steered or given back. */
  #asking: Promise<void> = Promise.resolve();
  /** The compaction that is being looked at. */
  #compaction: Promise<void> = Promise.resolve();
  /** What stands in history, though the daemon lost it before it was told so. */
  #lost: Delivery[] = [];

  constructor(client: Client, id: string, place: Place, steer: Steer) {
    this.#client = client;
    this.#root = place.root ?? process.cwd();
    this.#rollout = place.rollout;
    this.#steer = steer;
    this.#session = client.session({ session: id, root: this.#root, host: HOST });
  }

  /** Whether a turn is open. */
  get running(): boolean {
    return this.#running;
  }

  /** Begins a turn; gives what is to be told with its prompt. */
  async prompt(params: unknown): Promise<string | undefined> {
    this.planning(params);
    const texts = listIn(params, "input").flatMap((part) => textIn(part, "text") ?? []);
    this.#begin(texts.join("\n"));
    await this.#asking;
    const delivery = await this.#wait("prompt");
    if (delivery?.message == null) {
      this.#silent = delivery;
      return undefined;
    }
    return this.#give(delivery, delivery.message.content).content;
  }

  /** Reports plan mode, where these params say which mode it is. */
  planning(params: unknown): void {
    const mode = textIn(objectIn(params, "collaborationMode"), "mode");
    if (mode === undefined) return;
    this.#session.report("plan/set", { state: mode === "plan" ? "active" : "none" });
  }

  /** The prompt was refused: there is no turn. */
  refused(): void {
    void this.#end("failed");
  }

  /** Some of the history is gone, and which records with it is not known. */
  reverted(): void {
    this.#session.report("history/cleared", {});
  }

  /** The server is gone. */
  async gone(): Promise<void> {
    await this.#end("failed");
  }

  /** Hears a notification about this thread. */
  hear(method: string, params: unknown): void {
    switch (method) {
      case "turn/started":
        // Also one that no prompt began: a review, a compaction, a queued message.
        if (!this.#running) this.#begin();
        break;
      case "turn/completed": {
        const status = textIn(objectIn(params, "turn"), "status") ?? "";
        void this.#end(OUTCOMES[status] ?? "failed");
        break;
      }
      case "turn/plan/updated":
        this.#session.report("task/replace", { tasks: listIn(params, "plan").map(task) });
        break;
      case "thread/tokenUsage/updated":
        this.#over();
        break;
      case "item/started":
        this.#started(objectIn(params, "item"), textIn(params, "turnId"));
        break;
      case "item/completed":
        this.#completed(objectIn(params, "item"));
        break;
    }
  }

  #begin(prompt?: string): void {
    this.#running = true;
    this.#session.beginTurn(randomUUID(), prompt);
  }

  async #end(outcome: "completed" | "cancelled" | "failed"): Promise<void> {
    if (!this.#running) return;
    this.#running = false;
    this.#batch = undefined;
    const open = this.#given.filter((given) => given.open).map(({ delivery }) => delivery);
    for (const given of this.#given) given.open = false;
    if (this.#silent !== undefined) open.push(this.#silent);
    this.#silent = undefined;
    const released = open.map((delivery) => this.#session.release(delivery, "the turn ended"));
    this.#session.endTurn(outcome);
    await Promise.all(released);
  }

  #started(item: Record<string, unknown>, turn: string | undefined): void {
    const kind = textIn(item, "type") ?? "";
    if (kind === "userMessage") {
      this.#arrived(item);
      return;
    }
    if (kind === "agentMessage" || kind === "reasoning") this.#over();
    if (kind === "fileChange") this.#session.report("edit/begin", { uris: this.#changed(item) });
    if (TOOLS.has(kind) && turn !== undefined) this.#toolsBegan(turn);
  }

  /** Asks once in a batch, and steers what is to be told while the batch is running. */
  #toolsBegan(turn: string): void {
    if (!this.#running || this.#batch !== undefined) return;
    if (this.#given.some(({ open }) => open)) return;
    const batch = (this.#batch = {});
    // The request that these calls are the answer to went out.
    this.#commitSilent();
    // While an earlier offer is open, nothing new is offered.
    this.#asking = this.#asking.then(() => this.#askForTools(turn, batch));
  }

  async #askForTools(turn: string, batch: object): Promise<void> {
    if (this.#batch !== batch) return;
    const delivery = await this.#wait("tools");
    if (delivery === undefined) return;
    if (this.#batch !== batch) {
      await this.#session.release(delivery, "the tools were quicker");
    } else if (delivery.message == null) {
      this.#silent = delivery;
    } else {
      const given = this.#give(delivery, delivery.message.content);
      this.#steer(turn, given.content, (taken) => {
        if (taken || !given.open) return;
        this.#given = this.#given.filter((it) => it !== given);
        void this.#session.release(delivery, "the turn took nothing more");
      });
    }
  }

  #give(delivery: Delivery, content: string): Given {
    // The same text, offered again, stands for the one that did not arrive.
    this.#given = this.#given.filter((given) => given.content !== content);
    const given = { delivery, content, open: true };
    this.#given.push(given);
    return given;
  }

  /** The calls of a batch are over, and the next request goes out. */
  #over(): void {
    this.#batch = undefined;
    this.#commitSilent();
  }

  #commitSilent(): void {
    const silent = this.#silent;
    this.#silent = undefined;
    if (silent !== undefined) void this.#session.commit(silent);
  }

  /** A user's message is in the history: what of ours stands in it was told. */
  #arrived(item: Record<string, unknown>): void {
    const texts = listIn(item, "content").map((part) => textIn(part, "text"));
    const arrived = this.#given.filter(({ content }) => texts.includes(content));
    this.#given = this.#given.filter((given) => !arrived.includes(given));
    for (const { delivery } of arrived) void this.#commit(delivery);
    this.#over();
  }

  async #commit(delivery: Delivery): Promise<void> {
    this.#lost.push(delivery);
    if ((await this.#session.commit(delivery)) !== undefined) this.#found(delivery);
  }

  #found(delivery: Delivery): void {
    this.#lost = this.#lost.filter((it) => it !== delivery);
  }

  /** Asks what is to be told; nothing, while the daemon does not know all that was. */
  async #wait(seam: "prompt" | "tools"): Promise<Delivery | undefined> {
    try {
      await this.#compaction;
      await this.#handBack();
    } catch (error) {
      this.#client.report("session/open", error);
      return undefined;
    }
    return this.#session.wait({ seam });
  }

  /** Reports a compaction with what it kept: the server keeps messages of the user. */
  async #compacted(): Promise<void> {
    const { deadlineMs } = this.#client;
    let retained: string[] | "none" = "none";
    try {
      const asked = { retained: true, limit: RECORDS_MAX };
      const history = await this.#session.ask("reminder/history", asked, { deadlineMs });
      const kept = await keptTexts(this.#rollout);
      retained = history.records.filter((it) => kept.has(contentOf(it))).map(({ id }) => id);
    } catch {
      // What may be lost is told again.
    }
    this.#session.report("history/compacted", { retained, engine: "native" });
  }

  /** Hands back to the daemon what history holds, and it lost before it was told so. */
  async #handBack(): Promise<void> {
    const { deadlineMs } = this.#client;
    // All at once: a daemon that does not answer is waited for once.
    await Promise.all(
      this.#lost.map(async (delivery) => {
        if ((await this.#session.commit(delivery)) !== undefined) this.#found(delivery);
      }),
    );
    const records = this.#lost.flatMap(({ record }) => record ?? []);
    if (records.length === 0) return;
    const asked = { retained: true, limit: RECORDS_MAX };
    const history = await this.#session.ask("reminder/history", asked, { deadlineMs });
    const told: InjectionRecord[] = [...history.records].reverse();
    const open = { session: this.#session.id, root: this.#root, host: HOST };
    await this.#client.ask(
      "session/open",
      { ...open, records: [...told, ...records] },
      { deadlineMs },
    );
    this.#lost = [];
  }

  #completed(item: Record<string, unknown>): void {
    const call = textIn(item, "id");
    const kind = textIn(item, "type");
    if (kind === "contextCompaction") {
      this.#compaction = this.#compacted();
      return;
    }
    if (kind === undefined || call === undefined || !TOOLS.has(kind)) return;
    const ok = textIn(item, "status") === "completed" && (item.exitCode ?? 0) === 0;
    // Only now, since nothing can be asked for while a call is open.
    const { name, input, output } = described(kind, item);
    this.#session.report("tool/begin", { call, name, input });
    this.#session.report("tool/end", { call, name, ok, output });
    if (kind === "fileChange") {
      const uris = this.#changed(item);
      if (ok) for (const uri of uris) this.#session.report("file/wrote", { uri });
      this.#session.report("edit/end", { uris: uris.map((uri) => ({ uri })), ok });
    }
    if (!ok) return;
    const directory = textIn(item, "cwd") ?? this.#root;
    for (const action of listIn(item, "commandActions")) {
      const path = textIn(action, "path");
      if (action.type !== "read" || path === undefined) continue;
      this.#session.report("file/read", { uri: resolve(directory, path) });
    }
  }

  /** The files that a patch changes. */
  #changed(item: Record<string, unknown>): string[] {
    const paths = listIn(item, "changes").flatMap((change) => [
      textIn(change, "path") ?? [],
      textIn(objectIn(change, "kind"), "move_path") ?? [],
    ]);
    return paths.flat().map((path) => resolve(this.#root, path));
  }
}

/** A step of the agent's plan, as a task. */
function task(step: Record<string, unknown>, index: number): Task {
  const status = textIn(step, "status");
  return {
    id: String(index + 1),
    subject: textIn(step, "step") ?? "",
    status:
      status === "inProgress" ? "in_progress" : status === "completed" ? "completed" : "pending",
  };
}

/** What a call was, in the names under which hooks know the same tools. */
function described(
  kind: string,
  item: Record<string, unknown>,
): { name: string; input: unknown; output: unknown } {
  switch (kind) {
    case "commandExecution":
      return { name: "Bash", input: { command: item.command }, output: item.aggregatedOutput };
    case "fileChange":
      return { name: "apply_patch", input: { changes: item.changes }, output: null };
    case "mcpToolCall": {
      const name = `mcp__${textIn(item, "server")}__${textIn(item, "tool")}`;
      return { name, input: item.arguments, output: item.result };
    }
    default:
      return { name: textIn(item, "tool") ?? kind, input: item.arguments, output: null };
  }
}
