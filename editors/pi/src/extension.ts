/**
 * The extension: what pi does is reported, and what the daemon has to say is put into the session
 * behind the prompt or behind the complete results of a batch of tools.
 */
import { randomUUID } from "node:crypto";
import {
  Client,
  type ClientOptions,
  type Delivery,
  type Generator,
  type InjectionRecord,
  type ReminderForm,
  type Report,
  type Session,
} from "reminderd";
import type { Context, CustomMessage, Host } from "./host.js";
import { touched } from "./tools.js";

/** The type of the messages that hold reminders; their details are the injection records. */
export const CUSTOM_TYPE = "reminderd";
/** What another extension emits to have a reminder computed at each WAIT. */
export const GENERATOR = "reminderd:generator";
/** What another extension emits to report something that pi does not know of: tasks, a mode. */
export const REPORT = "reminderd:report";
/** What is emitted when a session was opened: the time to report again. */
export const READY = "reminderd:ready";

/** What comes with {@link GENERATOR}. */
export interface GeneratorRequest {
  reminder: Omit<ReminderForm, "client">;
  compute: Generator;
}
/** What comes with {@link REPORT}: an event of the protocol, without its session. */
export interface ReportRequest {
  method: Report;
  params: object;
}

/** Makes the extension; the options are for tests. */
export function extension(options: ClientOptions = {}): (pi: Host) => void {
  return (pi) => {
    const generators = new Map<string, GeneratorRequest>();
    let conversation: PiSession | undefined;

    pi.events.on(GENERATOR, (data) => {
      const request = data as GeneratorRequest;
      generators.set(request.reminder.id, request);
      conversation?.generate(request);
    });
    pi.events.on(REPORT, (data) => conversation?.report(data as ReportRequest));

    pi.on("session_start", async (_, context) => {
      await conversation?.close();
      conversation = new PiSession(options, context);
      for (const request of generators.values()) conversation.generate(request);
      pi.events.emit(READY, { session: context.sessionManager.getSessionId() });
    });
    pi.on("session_shutdown", async () => {
      const closing = conversation;
      conversation = undefined;
      await closing?.close();
    });
    pi.on("session_compact", (_, context) => conversation?.compacted(context));
    pi.on("session_tree", (_, context) => conversation?.moved(context));
    pi.on("before_agent_start", async (event, context) => {
      const message = await conversation?.prompted(event.prompt, context);
      return message && { message };
    });
    pi.on("turn_end", async (event, context) => {
      if (event.toolResults.length === 0 || event.outcome !== "completed") return undefined;
      const message = await conversation?.wait("batch", context);
      return message && { entries: [...event.entries, { type: "custom_message", ...message }] };
    });
    pi.on("before_provider_request", async ({ payload }) => {
      await conversation?.sent(payload);
    });
    pi.on("agent_settled", async ({ aborted }, context) => {
      await conversation?.settled(aborted, context);
    });
    pi.on("tool_execution_start", (event) =>
      conversation?.toolBegan(event.toolCallId, event.toolName, event.args),
    );
    pi.on("tool_call", async (event, context) => {
      await conversation?.toolWillRun(event.toolCallId, event.toolName, event.input, context);
    });
    pi.on("tool_execution_end", (event) =>
      conversation?.toolEnded(event.toolCallId, event.toolName, !event.isError),
    );
  };
}

/** One session of pi, with its client. */
class PiSession {
  readonly #client: Client;
  readonly #session: Session;
  /** Deliveries that are in the session, or on their way there, and that no request held yet. */
  readonly #pending = new Set<Delivery>();
  /** What running tools do to files. */
  readonly #touching = new Map<string, ReturnType<typeof touched>>();
  /** Whether the daemon may know less of what history holds than the session's entries do. */
  #behind = false;

  constructor(options: ClientOptions, context: Context) {
    this.#client = new Client({
      client: { name: "pi" },
      // Nothing may be printed: the terminal is the host's.
      onNotice: (notice) => {
        if (context.hasUI) context.ui.notify(notice, "warning");
      },
      ...options,
    });
    let opened = false;
    this.#session = this.#client.session({
      session: context.sessionManager.getSessionId(),
      root: context.cwd,
      records: held(context),
      onOpen: () => {
        // A daemon that was started again was told what was committed, not what history took since.
        this.#behind = opened;
        opened = true;
      },
    });
  }

  generate({ reminder, compute }: GeneratorRequest): void {
    this.#session.generate(reminder, compute);
  }

  report({ method, params }: ReportRequest): void {
    this.#session.report(method, params as never);
  }

  async close(): Promise<void> {
    this.#session.endTurn("cancelled");
    await this.#session.close();
    await this.#client.close();
  }

  /** A prompt begins a turn and is a WAIT. */
  async prompted(prompt: string | undefined, context: Context) {
    // A run that never began settles nothing.
    await this.settled(true, context);
    this.#session.beginTurn(randomUUID(), prompt);
    return this.wait("prompt", context);
  }

  /** Asks what the model should hear, and gives it as a message for the session. */
  async wait(seam: string, context: Context): Promise<CustomMessage | undefined> {
    await this.#catchUp(context);
    const { signal } = context;
    const delivery = await this.#session
      .wait(signal === undefined ? { seam } : { seam, signal })
      .catch(() => undefined);
    if (delivery == null) return undefined;
    if (delivery.message == null || delivery.record == null) {
      await this.#session.commit(delivery);
      return undefined;
    }
    this.#pending.add(delivery);
    if (context.hasUI) context.ui.setStatus(CUSTOM_TYPE, delivery.row ?? undefined);
    return {
      customType: CUSTOM_TYPE,
      content: delivery.message.content,
      display: false,
      details: delivery.record,
    };
  }

  /** Commits what stands in a request that goes out. */
  async sent(payload: unknown): Promise<void> {
    if (this.#pending.size === 0) return;
    const text = JSON.stringify(payload) ?? "";
    for (const delivery of this.#pending) {
      const content = JSON.stringify(delivery.message?.content ?? "").slice(1, -1);
      if (text.includes(content)) await this.#commit(delivery);
    }
  }

  /** The run is over: what the session took counts as told, since the next request holds it. */
  async settled(aborted: boolean, context: Context): Promise<void> {
    const kept = new Set(held(context).map(({ id }) => id));
    for (const delivery of this.#pending) {
      if (delivery.record != null && kept.has(delivery.record.id)) await this.#commit(delivery);
      else {
        this.#pending.delete(delivery);
        await this.#session.release(delivery, "never sent");
      }
    }
    this.#session.endTurn(aborted ? "cancelled" : "completed");
  }

  compacted(context: Context): void {
    this.#session.report("history/compacted", { retained: held(context).map(({ id }) => id) });
  }

  moved(context: Context): void {
    this.#behind = true;
    this.#session.report("history/reported", { records: held(context).map(({ id }) => id) });
  }

  toolBegan(call: string, name: string, input: unknown): void {
    this.#session.report("tool/begin", { call, name, input });
  }

  /** Takes the baseline of what a tool is going to write, before it does. */
  async toolWillRun(call: string, name: string, input: unknown, { cwd }: Context): Promise<void> {
    const touching = touched(name, input, cwd);
    this.#touching.set(call, touching);
    if (touching?.access !== "write") return;
    const { deadlineMs } = this.#client;
    await this.#session
      .ask("edit/begin", { uris: [touching.uri] }, { deadlineMs })
      .catch(() => undefined);
  }

  toolEnded(call: string, name: string, ok: boolean): void {
    const touching = this.#touching.get(call);
    this.#touching.delete(call);
    if (touching?.access === "write") {
      this.#session.report("edit/end", { ok, uris: [{ uri: touching.uri }] });
      if (ok) this.#session.report("file/wrote", { uri: touching.uri });
    } else if (touching !== undefined && ok) {
      this.#session.report("file/read", { uri: touching.uri, partial: touching.partial });
    }
    this.#session.report("tool/end", { call, name, ok });
  }

  async #commit(delivery: Delivery): Promise<void> {
    this.#pending.delete(delivery);
    // The message stands in the session whatever the daemon says now: it hears of that later.
    if ((await this.#session.commit(delivery)) === undefined) this.#behind = true;
  }

  /** Says what history holds to a daemon that may have missed it. */
  async #catchUp(context: Context): Promise<void> {
    if (!this.#behind) return;
    const { deadlineMs } = this.#client;
    const known = { session: this.#session.id, records: held(context) };
    await this.#client.ask("session/open", known, { deadlineMs }).then(
      () => (this.#behind = false),
      () => undefined,
    );
  }
}

/** The records of the reminders that the model sees in the session. */
function held({ sessionManager }: Context): InjectionRecord[] {
  return sessionManager
    .buildContextEntries()
    .filter((entry) => entry.type === "custom_message" && entry.customType === CUSTOM_TYPE)
    .map((entry) => entry.details as InjectionRecord);
}
