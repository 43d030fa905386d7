/**
 * Conversations: a session's root and its agents. What they report is sent at once; a WAIT gives
 * what the model should hear, or nothing when the daemon can't say it in time.
 */
import type { Client } from "./client.js";
import { RefusedError, type Askable, type Patience } from "./connection.js";
import { Records, type HistoryEvent } from "./records.js";
import type {
  AgentOutcome,
  AgentSpawnParams,
  CommitParams,
  CommitResult,
  ComputeParams,
  Delivery,
  Events,
  InjectionRecord,
  ReminderForm,
  SessionOpenParams,
  SessionOpenResult,
  TurnOutcome,
  WaitParams,
} from "./protocol.js";

type Scoped = "session" | "agent";
/** The events that are about a conversation. The turn's and the agent's have methods of their own. */
export type Report = Exclude<
  {
    [M in keyof Events]: Events[M]["params"] extends { session: string } ? M : never;
  }[keyof Events],
  "turn/begin" | "turn/end" | "agent/spawn" | "agent/settle"
>;
/** The requests that are about a conversation. */
export type Question = Exclude<
  {
    [M in keyof Askable]: Askable[M]["params"] extends { session: string } ? M : never;
  }[keyof Askable],
  "reminder/wait" | "session/open" | "session/close" | "turn/begin" | "turn/end"
>;

/** What a WAIT may be told. `deadlineMs` is the client's unless given. */
export type WaitOptions = Omit<WaitParams, Scoped | "deadlineMs" | "autoCommit"> & Patience;
/** What a commit may be told. */
export type CommitOptions = Omit<CommitParams, "token">;
/** Gives a reminder's body; `null` is silence. `force` says that an unchanged body is wanted too. */
export type Generator = (asked: ComputeParams) => string | null | Promise<string | null>;

/** What of a WAIT's time the daemon is told to take, so that its answer is back in time. */
const DAEMONS_SHARE = 0.8;
/** `noTurn` of SPEC.md, "Errors". */
const NO_TURN = -33004;

/** A session's root, or one of its agents. */
export class Conversation {
  readonly #client: Client;
  readonly #scope: { session: string; agent?: string };
  readonly #records: Records | undefined;
  readonly #generators = new Map<string, { form: ReminderForm; generator: Generator }>();
  #turn: { turn: string; prompt?: string } | undefined;

  /** Made by `Client.session` and `Session.agent`. @internal */
  constructor(client: Client, scope: { session: string; agent?: string }, records?: Records) {
    this.#client = client;
    this.#scope = scope;
    this.#records = records;
  }

  /** The turn that is open, as this client knows it. */
  get turn(): string | undefined {
    return this.#turn?.turn;
  }

  /** Reports an event of this conversation. It is not answered. */
  report<M extends Report>(method: M, params: Omit<Events[M]["params"], Scoped>): void {
    const scoped = { ...this.#scope, ...params } as Events[M]["params"];
    this.#client.tell(method, scoped);
    if (isHistory(method)) this.#records?.follow(method, scoped as Events[typeof method]["params"]);
  }

  /** Asks something about this conversation. Rejects as `Client.ask` does. */
  ask<M extends Question>(
    method: M,
    params: Omit<Askable[M]["params"], Scoped>,
    patience?: Patience,
  ): Promise<Askable[M]["result"]> {
    const scoped = { ...this.#scope, ...params } as Askable[M]["params"];
    return this.#client.ask(method, scoped, patience);
  }

  /** Begins a turn, under an id that this conversation has not used before. */
  beginTurn(turn: string, prompt?: string): void {
    this.#turn = prompt === undefined ? { turn } : { turn, prompt };
    this.#sendTurn(this.#turn, false);
  }

  /** Ends the turn that is open. */
  endTurn(outcome: TurnOutcome = "completed"): void {
    if (this.#turn === undefined) return;
    this.#client.tell("turn/end", { ...this.#scope, turn: this.#turn.turn, outcome });
    this.#turn = undefined;
  }

  /**
   * Asks what the model should be told with the request that is being prepared. Commit the delivery
   * once the payload holds its message, or release it.
   *
   * `undefined` when there is no daemon, or it does not answer in time: the request then goes out
   * without reminders, nothing counts as told, and the next WAIT offers all of it. Rejects only with
   * the reason of `signal`.
   */
  async wait(options: WaitOptions = {}): Promise<Delivery | undefined> {
    const { deadlineMs = this.#client.deadlineMs, signal, ...params } = options;
    const patience = signal === undefined ? { deadlineMs } : { deadlineMs, signal };
    try {
      return await this.#client.ask(
        "reminder/wait",
        { ...this.#scope, ...params, deadlineMs: Math.floor(deadlineMs * DAEMONS_SHARE) },
        patience,
        (late) => void this.release(late, "late"),
      );
    } catch (error) {
      if (signal?.aborted) throw error;
      this.#client.report("reminder/wait", error);
      return undefined;
    }
  }

  /**
   * Says that the payload holds the delivery's message. `undefined` when the daemon did not take
   * it: nothing counts as told, and it is offered again.
   */
  async commit(delivery: Delivery, options: CommitOptions = {}): Promise<CommitResult | undefined> {
    const { deadlineMs } = this.#client;
    const told = (result: CommitResult) => {
      if (result.record != null) this.#records?.add(result.record);
    };
    try {
      const params = { ...options, token: delivery.token };
      const result = await this.#client.ask("reminder/commit", params, { deadlineMs }, told);
      told(result);
      return result;
    } catch (error) {
      this.#client.report("reminder/commit", error);
      return undefined;
    }
  }

  /** Says that the delivery's message never came to be: the next WAIT offers the same again. */
  async release(delivery: Delivery, reason?: string): Promise<void> {
    const { deadlineMs } = this.#client;
    try {
      const params = { token: delivery.token, reason: reason ?? null };
      await this.#client.ask("reminder/release", params, { deadlineMs });
    } catch (error) {
      this.#client.report("reminder/release", error);
    }
  }

  /** Registers a reminder whose body this client computes at each WAIT, within 250 ms. */
  generate(form: Omit<ReminderForm, "client">, generator: Generator): void {
    const whole = { ...form, client: true };
    this.#generators.set(form.id, { form: whole, generator });
    this.report("roster/register", { reminder: whole });
  }

  /** Says to the daemon again what it has to know of a conversation that goes on. @internal */
  restore(): void {
    for (const { form } of this.#generators.values()) {
      this.report("roster/register", { reminder: form });
    }
    if (this.#turn !== undefined) this.#sendTurn(this.#turn, true);
  }

  /** The generator of that id, if it was registered here. @internal */
  generator(id: string): Generator | undefined {
    return this.#generators.get(id)?.generator;
  }

  #sendTurn(turn: { turn: string; prompt?: string }, again: boolean): void {
    this.#client.ask("turn/begin", { ...this.#scope, ...turn }).catch((error: unknown) => {
      // A shared daemon that was there all the time has the turn still open.
      if (again && error instanceof RefusedError && error.code === NO_TURN) return;
      if (error instanceof RefusedError) this.#client.report("turn/begin", error);
    });
  }
}

function isHistory(method: Report): method is HistoryEvent & Report {
  return method.startsWith("history/");
}

/** An agent: a child conversation of a session. */
export class Agent extends Conversation {
  readonly #client: Client;
  readonly #spawn: AgentSpawnParams;
  readonly #settled: () => void;

  /** Made by `Session.agent`. @internal */
  constructor(client: Client, spawn: AgentSpawnParams, settled: () => void, records?: Records) {
    super(client, { session: spawn.session, agent: spawn.agent }, records);
    this.#client = client;
    this.#spawn = spawn;
    this.#settled = settled;
    client.tell("agent/spawn", spawn);
  }

  /** Ends the agent. */
  settle(outcome: AgentOutcome = "succeeded"): void {
    const { session, agent } = this.#spawn;
    this.#client.tell("agent/settle", { session, agent, outcome });
    this.#settled();
  }

  override restore(): void {
    // An agent that still runs is refused, as it should be.
    this.#client.ask("agent/spawn", this.#spawn).catch(() => undefined);
    super.restore();
  }
}

/** How a session is opened: the params of `session/open`. */
export interface SessionOptions extends SessionOpenParams {
  /**
   * The records that history holds, if the client keeps the transcript; they are handed back, with
   * those of later commits, whenever the session is opened again. Without them the daemon's own
   * ledger stands.
   */
  records?: InjectionRecord[] | null;
  /**
   * Hears each time that the session was opened, also after a restart, with what the daemon knows
   * of it: the place to report again what the daemon does not keep.
   */
  onOpen?: (result: SessionOpenResult) => void;
}

/** One conversation, with its agents. Made by `Client.session`. */
export class Session extends Conversation {
  /** The session's id. */
  readonly id: string;
  readonly #client: Client;
  readonly #params: SessionOpenParams;
  readonly #onOpen: SessionOptions["onOpen"];
  readonly #records: Records | undefined;
  readonly #agents = new Map<string, Agent>();
  readonly #closed: () => void;
  #opened: Promise<SessionOpenResult | undefined>;
  #open = false;
  #refused = false;

  /** @internal */
  constructor(client: Client, options: SessionOptions, closed: () => void) {
    const { records, onOpen, ...params } = options;
    const kept = records == null ? undefined : new Records(records);
    super(client, { session: params.session }, kept);
    this.id = params.session;
    this.#client = client;
    this.#params = params;
    this.#onOpen = onOpen;
    this.#records = kept;
    this.#closed = closed;
    this.#opened = this.#sendOpen();
  }

  /** Whether the daemon has the session open. */
  get open(): boolean {
    return this.#open;
  }

  /** What the daemon answered when the session was last opened; `undefined` when it did not. */
  get opened(): Promise<SessionOpenResult | undefined> {
    return this.#opened;
  }

  /** The records that history holds; empty when the client keeps none. */
  get records(): InjectionRecord[] {
    return this.#records?.all ?? [];
  }

  /** Begins an agent. A running agent of that path is given as it is. */
  agent(path: string, options: Omit<AgentSpawnParams, Scoped> = {}): Agent {
    const known = this.#agents.get(path);
    if (known !== undefined) return known;
    const spawn = { ...options, session: this.id, agent: path };
    const agent = new Agent(this.#client, spawn, () => this.#agents.delete(path), this.#records);
    this.#agents.set(path, agent);
    return agent;
  }

  override beginTurn(turn: string, prompt?: string): void {
    // What stood in the way, another daemon say, may be gone by now.
    if (this.#refused) this.#opened = this.#sendOpen();
    super.beginTurn(turn, prompt);
  }

  /** Closes the session. With `forget`, everything stored about it is erased. */
  async close(options: { forget?: boolean } = {}): Promise<void> {
    this.#closed();
    this.#open = false;
    try {
      const { deadlineMs } = this.#client;
      await this.#client.ask("session/close", { session: this.id, ...options }, { deadlineMs });
    } catch (error) {
      this.#client.report("session/close", error);
    }
  }

  /** The daemon is gone, and what it had open with it. @internal */
  lost(): void {
    this.#open = false;
  }

  /** Opens the session at a daemon that was started again. @internal */
  reopen(): void {
    this.#opened = this.#sendOpen();
    this.restore();
    // Parents were made before their children.
    for (const agent of this.#agents.values()) agent.restore();
  }

  /** Finds who computes a reminder: an agent's own generators go before the session's. @internal */
  compute(asked: ComputeParams): string | null | Promise<string | null> {
    const agent = asked.agent == null ? undefined : this.#agents.get(asked.agent);
    const generator = agent?.generator(asked.generator) ?? this.generator(asked.generator);
    if (generator === undefined) throw new Error(`nothing computes ${asked.generator} here`);
    return generator(asked);
  }

  async #sendOpen(): Promise<SessionOpenResult | undefined> {
    this.#open = false;
    this.#refused = false;
    const records = this.#records?.all;
    const params = records === undefined ? this.#params : { ...this.#params, records };
    try {
      const result = await this.#client.ask("session/open", params);
      this.#open = true;
      this.#onOpen?.(result);
      return result;
    } catch (error) {
      this.#refused = error instanceof RefusedError;
      this.#client.report("session/open", error);
      return undefined;
    }
  }
}
