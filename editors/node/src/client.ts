/**
 * The life of a client: it starts the daemon, starts it again with growing pauses when it goes away,
 * opens its sessions anew each time, and says once that reminders are missing.
 */
import { randomInt } from "node:crypto";
import {
  Connection,
  GoneError,
  RefusedError,
  type Askable,
  type Patience,
  type Tellable,
} from "./connection.js";
import { PROTOCOL_VERSION, type ComputeParams, type InitializeResult } from "./protocol.js";
import type { ProblemParams } from "./protocol.js";
import { Session, type SessionOptions } from "./session.js";

/** The daemon that all clients of a user share. */
export const DEFAULT_COMMAND: readonly string[] = ["reminderd", "connect"];
/** How long a WAIT may hold up a request, in milliseconds, unless the client says otherwise. */
export const DEFAULT_DEADLINE_MS = 500;

/** A daemon that lived so long, in milliseconds, is started again at once when it goes away. */
const SOUND_MS = 10_000;
/** The first pause before another start, in milliseconds; each further one is twice as long. */
const FIRST_PAUSE_MS = 500;
/** The longest pause between two starts, in milliseconds. */
const LONGEST_PAUSE_MS = 30_000;

/** How a client stands with its daemon. `down`: it went away and is started again after a pause. */
export type Status = "starting" | "ready" | "down" | "closed";

/** What a client may be told at its making. */
export interface ClientOptions {
  /** The program and its arguments: `["reminderd", "connect"]` unless given. */
  command?: readonly string[];
  /** Who the client is, for the daemon's logs. */
  client?: { name: string; version?: string };
  /** How long a WAIT, a commit or a release may take, in milliseconds: 500 unless given. */
  deadlineMs?: number;
  /** Whether the workspace's own configuration is trusted; no unless said. */
  trusted?: boolean;
  /** A whole configuration file in JSON, laid over the workspace's. */
  config?: unknown;
  /** Where the daemon is started. */
  cwd?: string;
  /** The daemon's environment; that of this process unless given. */
  env?: NodeJS.ProcessEnv;
  /**
   * Hears each time that the daemon was started, before anything else is sent to it: the place to
   * report again what belongs to no session, such as open documents.
   */
  onStart?: (client: Client) => void;
  /**
   * Tells the person that requests go out without reminders, and why. It is called once in a
   * client's life. Without it the words go to `process.emitWarning`.
   */
  onNotice?: (message: string) => void;
  /** Hears of each change of the status, which is `starting` at first. */
  onStatus?: (status: Status) => void;
  /** Hears of messages that the daemon refused. They are for logs; nothing is to be done. */
  onProblem?: (problem: ProblemParams) => void;
  /** Hears of watched files that changed; they are reported only when this is given. */
  onFileChanged?: (uri: string) => void;
}

/** What {@link Client.health} found. */
export interface Health {
  status: Status;
  command: readonly string[];
  /** The process id of what was started. */
  pid: number | undefined;
  /** The daemon's version. */
  version: string | undefined;
  /** How long the daemon took to answer just now, in milliseconds; absent when it did not. */
  answeredMs: number | undefined;
  /** How often the daemon was started. */
  starts: number;
  /** Why the daemon is not there, or last went away. */
  trouble: string | undefined;
  /** The end of what the daemon said on its stderr. */
  stderr: string;
  /** How many messages the daemon refused. */
  problems: number;
  /** The sessions of this client, and whether the daemon has them open. */
  sessions: { session: string; open: boolean }[];
}

/** A client of one daemon. */
export class Client {
  /** How long a WAIT, a commit or a release may take, in milliseconds. */
  readonly deadlineMs: number;
  readonly #options: ClientOptions;
  readonly #command: readonly string[];
  readonly #sessions = new Map<string, Session>();
  #connection: Connection | undefined;
  #status: Status = "starting";
  #server: InitializeResult | undefined;
  #stderr = "";
  #starts = 0;
  /** How many times in a row the daemon went away before it had lived for long. */
  #failures = 0;
  #restart: NodeJS.Timeout | undefined;
  #trouble: string | undefined;
  #problems = 0;
  #noticed = false;

  /** Starts the daemon. Nothing is thrown when there is none; a WAIT will then say nothing. */
  constructor(options: ClientOptions = {}) {
    this.#options = options;
    this.#command = options.command ?? DEFAULT_COMMAND;
    this.deadlineMs = options.deadlineMs ?? DEFAULT_DEADLINE_MS;
    this.#start();
  }

  /** How the client stands with its daemon. */
  get status(): Status {
    return this.#status;
  }

  /** What the daemon said of itself, once it did. */
  get server(): InitializeResult | undefined {
    return this.#server;
  }

  /**
   * Opens a session, and opens it again whenever the daemon was started again. A session that this
   * client has open already is given as it is.
   */
  session(options: SessionOptions): Session {
    const known = this.#sessions.get(options.session);
    if (known !== undefined) return known;
    const session = new Session(this, options, () => this.#sessions.delete(options.session));
    this.#sessions.set(options.session, session);
    return session;
  }

  /** Reports an event. Without a daemon it is lost, as the daemon itself is. */
  tell<M extends keyof Tellable>(method: M, params: Tellable[M]["params"]): void {
    this.#connection?.tell(method, params);
  }

  /**
   * Asks the daemon. Rejects with a `RefusedError`, `LateError` or `GoneError`, or with the reason
   * of the signal. An answer behind the deadline goes to `late`.
   */
  ask<M extends keyof Askable>(
    method: M,
    params: Askable[M]["params"],
    patience: Patience = {},
    late?: (result: Askable[M]["result"]) => void,
  ): Promise<Askable[M]["result"]> {
    if (this.#connection === undefined) {
      return Promise.reject(new GoneError(this.#trouble ?? "the client is closed"));
    }
    return this.#connection.ask(method, params, patience, late);
  }

  /**
   * Notes that something could not be done, without disturbing whoever asked for it. What the daemon
   * refused is a problem for the log; where it means that reminders are missing, the person is told
   * once. @internal
   */
  report(method: string, error: unknown): void {
    if (error instanceof RefusedError) {
      this.#problem({ method, code: error.code, message: error.message });
      if (method !== "reminder/wait" && method !== "session/open") return;
    }
    const message = error instanceof Error ? error.message : String(error);
    this.#trouble ??= message;
    if (this.#noticed || this.#status === "closed") return;
    this.#noticed = true;
    const notice = `reminderd: requests go out without reminders (${message})`;
    if (this.#options.onNotice !== undefined) this.#options.onNotice(notice);
    else process.emitWarning(notice);
  }

  /** What a person needs to know when reminders do not come. Never rejects. */
  async health(): Promise<Health> {
    const asked = performance.now();
    const answered = await this.ask("session/list", {}, { deadlineMs: this.deadlineMs }).then(
      () => true,
      () => false,
    );
    return {
      status: this.#status,
      command: this.#command,
      pid: this.#connection?.pid,
      version: this.#server?.serverInfo.version ?? undefined,
      answeredMs: answered ? Math.round(performance.now() - asked) : undefined,
      starts: this.#starts,
      trouble: this.#trouble,
      stderr: this.#connection?.stderr ?? this.#stderr,
      problems: this.#problems,
      sessions: [...this.#sessions.values()].map(({ id, open }) => ({ session: id, open })),
    };
  }

  /** Ends the connection; a private daemon ends with it. The client is of no use afterwards. */
  async close(): Promise<void> {
    clearTimeout(this.#restart);
    this.#become("closed");
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.end();
  }

  #start(): void {
    this.#become("starting");
    this.#starts += 1;
    const started = Date.now();
    const { client, config, trusted } = this.#options;
    const connection = new Connection({
      command: this.#command,
      cwd: this.#options.cwd,
      env: this.#options.env,
      initialize: {
        processId: process.pid,
        capabilities: {},
        initializationOptions: {
          protocolVersion: PROTOCOL_VERSION,
          client: client ?? { name: "node" },
          trusted: trusted ?? null,
          config: config ?? null,
          fileChanged: this.#options.onFileChanged !== undefined,
        },
      },
      compute: (params) => this.#compute(params),
      problem: (problem) => this.#problem(problem),
      fileChanged: ({ uri }) => this.#options.onFileChanged?.(uri),
      closed: (reason) => this.#lost(reason, Date.now() - started),
    });
    this.#connection = connection;
    this.#options.onStart?.(this);
    connection.initialized.then(
      (server) => {
        this.#server = server;
        this.#become("ready");
      },
      () => undefined,
    );
    for (const session of this.#sessions.values()) session.reopen();
  }

  #lost(reason: string, livedMs: number): void {
    this.#stderr = this.#connection?.stderr ?? "";
    this.#connection = undefined;
    for (const session of this.#sessions.values()) session.lost();
    this.#failures = livedMs >= SOUND_MS ? 0 : this.#failures + 1;
    this.#trouble = reason;
    // One that was there and went away is missed only by a request that comes before the next one.
    if (this.#status !== "ready") this.report("initialize", new GoneError(reason));
    if (this.#failures === 0) {
      this.#start();
      return;
    }
    this.#become("down");
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (this.#failures - 1), LONGEST_PAUSE_MS);
    // Clients that lost one daemon together do not come back together.
    this.#restart = setTimeout(() => this.#start(), pause + randomInt(pause / 4));
    this.#restart.unref();
  }

  #become(status: Status): void {
    if (this.#status === status || this.#status === "closed") return;
    this.#status = status;
    this.#options.onStatus?.(status);
  }

  #problem(problem: ProblemParams): void {
    this.#problems += 1;
    this.#options.onProblem?.(problem);
  }

  #compute(params: ComputeParams): string | null | Promise<string | null> {
    const session = this.#sessions.get(params.session);
    if (session === undefined) throw new Error(`no session ${params.session} is open here`);
    return session.compute(params);
  }
}
