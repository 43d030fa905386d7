/**
 * The plugin: what OpenCode does is reported, and what the daemon has to say is put into the session
 * behind the prompt or behind the complete results of a batch of tools.
 */
import {
  Client,
  type ClientOptions,
  type Delivery,
  type InjectionRecord,
  type Session,
} from "reminderd";
import type { Hooks, Host, HostClient, HostEvent, Message, Part } from "./host.js";
import { touched } from "./tools.js";

/** The member of a part's metadata that holds the injection record. */
export const METADATA = "reminderd";

/** Makes the plugin; the options are for tests. */
export function plugin(options: ClientOptions = {}): (host: Host) => Promise<Hooks> {
  return async ({ client: host, directory }) => {
    const client = new Client({
      client: { name: "opencode" },
      // Nothing may be printed: the terminal is the host's.
      onNotice: () => undefined,
      ...options,
    });
    /** Sessions of the person's; those of agents have a parent, and are left alone. */
    const conversations = new Map<string, Promise<Conversation | undefined>>();
    const conversation = (id: string) => {
      let known = conversations.get(id);
      if (known === undefined) {
        known = begin(client, host, id, directory).catch(() => undefined);
        conversations.set(id, known);
      }
      return known;
    };

    return {
      async event({ event }) {
        const id = event.properties.sessionID ?? event.properties.info?.id;
        if (id === undefined || !conversations.has(id)) return;
        (await conversation(id))?.happened(event);
        if (event.type === "session.deleted") conversations.delete(id);
      },
      async "chat.message"({ sessionID, agent }, { message, parts }) {
        // Our own message comes here, too.
        if (parts.some(recordOf)) return;
        const prompt = parts.map(({ synthetic, text }) => (synthetic ? "" : (text ?? ""))).join("");
        const part = await (await conversation(sessionID))?.prompted(message.id, prompt, agent);
        if (part !== undefined) parts.push(part);
      },
      async "tool.execute.before"({ tool, sessionID, callID }, { args }) {
        await (await conversation(sessionID))?.toolWillRun(callID, tool, args);
      },
      async "tool.execute.after"({ tool, sessionID, callID }, output) {
        await (await conversation(sessionID))?.toolEnded(callID, tool, output?.output);
      },
      async "experimental.chat.messages.transform"(_, { messages }) {
        const id = messages[0]?.info.sessionID;
        if (id !== undefined && conversations.has(id))
          await (await conversation(id))?.sent(messages);
      },
    };
  };
}

/** The conversation of a session, with what its messages hold; none for that of an agent. */
async function begin(client: Client, host: HostClient, id: string, directory: string) {
  const { data: info } = await host.session.get({ path: { id } });
  if (info?.parentID != null) return undefined;
  const { data: messages } = await host.session.messages({ path: { id } });
  return new Conversation(client, host, id, directory, held(messages ?? []));
}

/** One session of OpenCode. */
class Conversation {
  readonly #client: Client;
  readonly #host: HostClient;
  readonly #session: Session;
  readonly #directory: string;
  /** Deliveries that are in the session, or on their way there, and that no request held yet. */
  readonly #pending = new Set<Delivery>();
  /** Calls that are open, with what they do to files. */
  readonly #calls = new Map<string, ReturnType<typeof touched>>();
  #number = 0;
  #compacted = false;
  /** Whether the daemon may know less of what history holds than the session's messages do. */
  #behind = false;

  constructor(
    client: Client,
    host: HostClient,
    id: string,
    directory: string,
    records: InjectionRecord[],
  ) {
    this.#client = client;
    this.#host = host;
    this.#directory = directory;
    let opened = false;
    this.#session = client.session({
      session: id,
      root: directory,
      records,
      onOpen: () => {
        // A daemon that was started again was told what was committed, not what history took since.
        this.#behind = opened;
        opened = true;
      },
    });
  }

  /** A prompt begins a turn and is a WAIT. */
  async prompted(message: string, prompt: string, agent?: string): Promise<Part | undefined> {
    this.#calls.clear();
    this.#session.beginTurn(message, prompt);
    this.#session.report("plan/set", { state: agent === "plan" ? "active" : "none" });
    const delivery = await this.#wait("prompt");
    if (delivery === undefined) return undefined;
    // Ids of parts sort by when they were made: it stands behind the prompt.
    const id = `prt_zz${Date.now().toString(36)}${(this.#number += 1).toString(36)}`;
    return { id, sessionID: this.#session.id, messageID: message, ...part(delivery) };
  }

  /** Takes the baseline of what a tool is going to write, before it does. */
  async toolWillRun(call: string, name: string, input: unknown): Promise<void> {
    const touching = touched(name, input, this.#directory);
    this.#calls.set(call, touching);
    this.#session.report("tool/begin", { call, name, input });
    if (touching?.access !== "write") return;
    const { deadlineMs } = this.#client;
    await this.#session
      .ask("edit/begin", { uris: [touching.uri] }, { deadlineMs })
      .catch(() => undefined);
  }

  /** A call went well; behind the last one of a batch it is asked what the model should hear. */
  async toolEnded(call: string, name: string, output: string | undefined): Promise<void> {
    const touching = this.#calls.get(call);
    if (touching?.access === "write") {
      this.#session.report("edit/end", { ok: true, uris: [{ uri: touching.uri }] });
      this.#session.report("file/wrote", { uri: touching.uri });
    } else if (touching !== undefined) {
      this.#session.report("file/read", { uri: touching.uri, partial: touching.partial });
    }
    this.#session.report("tool/end", { call, name, ok: true, output });
    this.#calls.delete(call);
    if (this.#calls.size > 0) return;
    const delivery = await this.#wait("batch");
    if (delivery === undefined) return;
    const body = { noReply: true, parts: [part(delivery)] };
    try {
      await this.#host.session.prompt({ path: { id: this.#session.id }, body });
    } catch {
      this.#pending.delete(delivery);
      await this.#session.release(delivery, "not taken");
    }
  }

  /** Commits what stands in a request that goes out, and says what a compaction left. */
  async sent(messages: Message[]): Promise<void> {
    const kept = new Set(held(messages).map(({ id }) => id));
    if (this.#compacted) {
      this.#compacted = false;
      this.#session.report("history/compacted", { retained: [...kept] });
    }
    for (const delivery of this.#pending) {
      if (delivery.record == null || !kept.has(delivery.record.id)) continue;
      this.#pending.delete(delivery);
      // It stands in the session whatever the daemon says now: it hears of that later.
      if ((await this.#session.commit(delivery)) === undefined) this.#behind = true;
    }
  }

  happened({ type, properties }: HostEvent): void {
    switch (type) {
      case "session.idle":
        return this.#session.endTurn("completed");
      case "session.error": {
        const isCancel = properties.error?.name === "MessageAbortedError";
        return this.#session.endTurn(isCancel ? "cancelled" : "failed");
      }
      case "session.compacted":
        this.#compacted = true;
        return;
      case "session.deleted":
        void this.#session.close();
        return;
      case "todo.updated": {
        const tasks = (properties.todos ?? []).map(({ id, content, status }, index) => ({
          id: id ?? `${index + 1}`,
          subject: content,
          status,
        }));
        return this.#session.report("task/replace", { tasks } as never);
      }
    }
  }

  /** What the model should hear; nothing when nothing speaks, or the daemon can't say it in time. */
  async #wait(seam: string): Promise<Delivery | undefined> {
    await this.#catchUp();
    const delivery = await this.#session.wait({ seam }).catch(() => undefined);
    if (delivery == null) return undefined;
    if (delivery.message == null || delivery.record == null) {
      await this.#session.commit(delivery);
      return undefined;
    }
    this.#pending.add(delivery);
    return delivery;
  }

  /** Says what history holds to a daemon that may have missed it. */
  async #catchUp(): Promise<void> {
    if (!this.#behind) return;
    const { deadlineMs } = this.#client;
    try {
      const { data } = await this.#host.session.messages({ path: { id: this.#session.id } });
      const known = { session: this.#session.id, records: held(data ?? []) };
      await this.#client.ask("session/open", known, { deadlineMs });
      this.#behind = false;
    } catch {
      // It is asked again at the next WAIT.
    }
  }
}

/** A part that holds what was delivered, and its record. */
function part(delivery: Delivery) {
  return {
    type: "text" as const,
    text: delivery.message?.content ?? "",
    synthetic: true,
    metadata: { [METADATA]: delivery.record },
  };
}

function recordOf({ metadata }: Part): InjectionRecord | undefined {
  return metadata?.[METADATA] as InjectionRecord | undefined;
}

/** The records of the reminders that messages hold. */
function held(messages: Message[]): InjectionRecord[] {
  return messages.flatMap(({ parts }) => parts.flatMap((it) => recordOf(it) ?? []));
}
