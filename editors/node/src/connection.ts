/**
 * One process of the daemon (or of `reminderd connect`) and the JSON-RPC connection to it: from its
 * start to its end, and never again after that. When to start another is not decided here.
 *
 * Everything is sent at once, in the order of the calls: the daemon takes what stands behind
 * `initialize` without waiting for the answer to be read.
 */
import { spawn, type ChildProcess } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import {
  CancellationTokenSource,
  createMessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import type {
  ComputeParams,
  Events,
  InitializeParams,
  InitializeResult,
  Notifications,
  ProblemParams,
  Requests,
  ServerNotifications,
} from "./protocol.js";

/** Every method that can be asked: the requests, and the events, which may be asked too. */
export type Askable = Requests & Events;
/** Every method that can be sent without an answer. */
export type Tellable = Events & Notifications;

/** How long a daemon has to answer `initialize`, in milliseconds. */
const START_MS = 10_000;
/** How long a message may lie unread by the daemon before it is given up, in milliseconds. */
const UNREAD_MS = 30_000;
/** How long a daemon that was asked to end has before it is killed, in milliseconds. */
const END_MS = 1_000;
/** How long a process that closed its streams has to say why, in milliseconds. */
const LAST_WORDS_MS = 100;
/** How much of what the process says on its stderr is kept, in UTF-16 units. */
const STDERR_UNITS = 2_000;

/** What an unanswered call may wait for. */
export interface Patience {
  /** How long the answer may take, in milliseconds; without it, as long as the daemon lives. */
  deadlineMs?: number;
  /** Gives up the call and tells the daemon so. */
  signal?: AbortSignal;
}

/** The daemon did not answer within the deadline. */
export class LateError extends Error {
  override name = "LateError";
}

/** There is no daemon, or it went away. */
export class GoneError extends Error {
  override name = "GoneError";
}

/** The daemon refused a message. */
export class RefusedError extends Error {
  override name = "RefusedError";

  constructor(
    /** The code of SPEC.md, "Errors". */
    readonly code: number,
    message: string,
    /** `data` of the error: `kind`, and often `hint`, the next step. */
    readonly data: { kind?: string; hint?: string } | undefined,
  ) {
    super(message);
  }
}

/** What a connection is made of. */
export interface ConnectionOptions {
  /** Program and arguments. */
  command: readonly string[];
  /** Where the program runs. */
  cwd?: string | undefined;
  /** Its environment; that of this process unless given. */
  env?: NodeJS.ProcessEnv | undefined;
  /** The params of `initialize`. */
  initialize: InitializeParams;
  /** Answers `reminder/compute`. */
  compute: (params: ComputeParams) => string | null | Promise<string | null>;
  /** Hears what the daemon says of notifications that failed. */
  problem: (params: ProblemParams) => void;
  /** Hears of watched files that changed, when `initialize` asked for it. */
  fileChanged: (params: ServerNotifications["file/changed"]["params"]) => void;
  /** Hears, once, why the connection ended. */
  closed: (reason: string) => void;
}

/** A running daemon that is spoken to. */
export class Connection {
  /** What the daemon said of itself; rejected when it did not come to that. */
  readonly initialized: Promise<InitializeResult>;
  readonly #options: ConnectionOptions;
  readonly #process: ChildProcess;
  readonly #rpc: MessageConnection;
  #stderr = "";
  #closed = false;
  #ending = false;
  /** How many messages are not written yet, and since when. */
  #unwritten = { count: 0, since: 0 };

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const [program = "", ...args] = options.command;
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    this.#process = child;
    child.once("error", (error) => this.#close(`${program} does not start: ${error.message}`));
    child.once("exit", (status, signal) => {
      const ended = () => this.#close(`${program} ended with ${signal ?? `status ${status}`}`);
      // Its last words may come behind its end; a child of its own may keep the stream open.
      child.once("close", ended);
      setTimeout(ended, LAST_WORDS_MS).unref();
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_UNITS);
    });
    this.#rpc = connected(child.stdout, child.stdin);
    // A process that closed its output or writes what can't be read is of no use any more.
    this.#rpc.onClose(() => setTimeout(() => child.kill("SIGKILL"), LAST_WORDS_MS).unref());
    this.#rpc.onError(() => undefined);
    this.#rpc.onRequest("reminder/compute", async (params: ComputeParams) => ({
      body: await options.compute(params),
    }));
    this.#rpc.onNotification("reminderd/problem", options.problem);
    this.#rpc.onNotification("file/changed", options.fileChanged);
    this.#rpc.listen();

    this.initialized = this.ask("initialize", options.initialize, { deadlineMs: START_MS });
    this.initialized.catch((error: Error) => this.#close(`${program}: ${error.message}`));
    this.tell("initialized", {});
  }

  /** The process id of what was started. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** The end of what the process said on its stderr. */
  get stderr(): string {
    return this.#stderr;
  }

  /**
   * Sends a message that is not answered. Nothing is thrown: a daemon that is gone hears nothing.
   */
  tell<M extends keyof Tellable>(method: M, params: Tellable[M]["params"]): void {
    if (this.#closed) return;
    const now = Date.now();
    if (this.#unwritten.count === 0) this.#unwritten.since = now;
    if (now - this.#unwritten.since > UNREAD_MS) {
      this.#close(`${this.#options.command[0]} does not read what it is told`);
      return;
    }
    this.#unwritten.count += 1;
    attempt(() => this.#rpc.sendNotification(method, params))
      .catch(() => undefined)
      .finally(() => {
        this.#unwritten.count -= 1;
        this.#unwritten.since = Date.now();
      });
  }

  /**
   * Asks, and gives up at the deadline or the signal, whereupon the daemon is told with
   * `$/cancelRequest`. An answer that comes nevertheless goes to `late`.
   *
   * Rejects with `LateError`, `GoneError`, `RefusedError`, or the signal's reason.
   */
  ask<M extends keyof Askable>(
    method: M,
    params: Askable[M]["params"],
    patience: Patience = {},
    late: (result: Askable[M]["result"]) => void = () => undefined,
  ): Promise<Askable[M]["result"]> {
    const { deadlineMs, signal } = patience;
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    if (this.#closed) return Promise.reject(new GoneError("the daemon is gone"));
    const cancellation = new CancellationTokenSource();
    return new Promise((resolve, reject) => {
      let waiting = true;
      const settle = (how: () => void) => {
        if (!waiting) return;
        waiting = false;
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
        how();
      };
      const giveUp = (reason: Error) =>
        settle(() => {
          cancellation.cancel();
          reject(reason);
        });
      const aborted = () => giveUp(signal?.reason as Error);
      const timer =
        deadlineMs === undefined
          ? undefined
          : setTimeout(
              () => giveUp(new LateError(`${method} was not answered within ${deadlineMs} ms`)),
              deadlineMs,
            );
      signal?.addEventListener("abort", aborted);
      attempt(() =>
        this.#rpc.sendRequest<Askable[M]["result"]>(method, params, cancellation.token),
      ).then(
        (result) => (waiting ? settle(() => resolve(result)) : late(result)),
        (error: unknown) => settle(() => reject(refusal(error))),
      );
    });
  }

  /** Ends the connection as the protocol wants it; kills a process that does not follow. */
  async end(): Promise<void> {
    const { exitCode, signalCode } = this.#process;
    if (this.#closed || exitCode !== null || signalCode !== null) return;
    this.#ending = true;
    const exited = new Promise<void>((resolve) => {
      this.#process.once("exit", () => resolve());
      this.#process.once("error", () => resolve());
    });
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), END_MS);
    await this.ask("shutdown", {}, { deadlineMs: END_MS }).catch(() => undefined);
    this.tell("exit", {});
    await exited;
    clearTimeout(timer);
  }

  #close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#rpc.dispose();
    this.#process.kill("SIGKILL");
    const said = this.#stderr.trim().split("\n").at(-1);
    if (!this.#ending) this.#options.closed(said ? `${reason}: ${said}` : reason);
  }
}

function connected(output: Readable, input: Writable): MessageConnection {
  return createMessageConnection(new StreamMessageReader(output), new StreamMessageWriter(input), {
    error: () => undefined,
    warn: () => undefined,
    info: () => undefined,
    log: () => undefined,
  });
}

/** The library throws at once when the process has closed its output and has not ended yet. */
function attempt<T>(send: () => Promise<T>): Promise<T> {
  try {
    return send();
  } catch (error) {
    return Promise.reject(error as Error);
  }
}

/** What the library says of a failed call, in the words of this one. */
function refusal(error: unknown): Error {
  // The library's own errors, such as those of a closed connection, have codes from -32099 on.
  if (error instanceof ResponseError && !(error.code >= -32099 && error.code <= -32090)) {
    return new RefusedError(error.code, error.message, error.data as RefusedError["data"]);
  }
  return new GoneError("the daemon went away");
}
