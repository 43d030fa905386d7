/**
 * The injection records that a client keeps beside its transcript: what a conversation's history
 * holds of what was told. They are handed back when a session is opened again.
 */
import type { Events, InjectionRecord } from "./protocol.js";

/** The events that say what became of a history. */
export type HistoryEvent = Extract<keyof Events, `history/${string}`>;

/** A session's records, of its root and its agents, oldest first. */
export class Records {
  #records: InjectionRecord[];

  constructor(records: readonly InjectionRecord[]) {
    this.#records = [...records];
  }

  /** All of them, oldest first. */
  get all(): InjectionRecord[] {
    return [...this.#records];
  }

  /** Adds what was told now, unless it is there already. */
  add(record: InjectionRecord): void {
    if (!this.#records.some(({ id }) => id === record.id)) this.#records.push(record);
  }

  /** Lets go of what a history lost by this event. */
  follow<M extends HistoryEvent>(method: M, params: Events[M]["params"]): void {
    const own = this.#records.filter((record) => (record.agent ?? null) === (params.agent ?? null));
    const kept = new Set(
      keptIds(
        own.map(({ id }) => id),
        method,
        params,
      ),
    );
    this.#records = this.#records.filter((record) => !own.includes(record) || kept.has(record.id));
  }
}

function keptIds(ids: string[], method: HistoryEvent, params: Events[HistoryEvent]["params"]) {
  switch (method) {
    case "history/cleared":
      return [];
    case "history/compacted": {
      const { retained } = params as Events["history/compacted"]["params"];
      if (Array.isArray(retained)) return retained;
      return retained === "none" ? [] : ids;
    }
    case "history/reported":
      return (params as Events["history/reported"]["params"]).records;
    case "history/rewound": {
      const { through } = params as Events["history/rewound"]["params"];
      return through === null ? [] : ids.slice(0, ids.indexOf(through) + 1);
    }
  }
}

/**
 * The message's content that a record stands for, as the model read it: SPEC.md, "Content". Empty
 * for a record without entries.
 */
export function contentOf(record: InjectionRecord): string {
  const bodies = record.entries.map(({ body }) => body);
  if (bodies.length === 0) return "";
  const tagged = (text: string) => `<system-reminder>\n${text}\n</system-reminder>`;
  switch (record.form) {
    case "blocks":
      return bodies.map(tagged).join("\n");
    case "block":
      return tagged(bodies.join("\n\n"));
    case "plain":
      return bodies.join("\n\n");
  }
}

/**
 * The line that a view shows for what a record told, as its WAIT gave it: SPEC.md, "Row". `null`
 * for a record without entries.
 */
export function rowOf(record: InjectionRecord): string | null {
  const count = record.entries.length;
  if (count === 0) return null;
  const plural = count === 1 ? "" : "s";
  if (record.form === "block") return `✦ reminder: ${count} block${plural}`;
  const labels = record.entries.map(({ label }) => oneLine(label)).join(", ");
  return `◇ ${count} system reminder${plural} (${labels})`;
}

/** A label on one line: what controls, hides or turns text is visibly escaped. */
function oneLine(label: string): string {
  return label.replace(
    /[\p{Cc}\p{Bidi_Control}\u{2028}\u{2029}\u{feff}\u{e0000}-\u{e007f}]/gu,
    (character) => SHORT_ESCAPES[character] ?? `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

const SHORT_ESCAPES: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
