/**
 * What other extensions get from `vscode.extensions.getExtension("reminderd.reminderd-vscode")`:
 * help for chat participants, and the client itself.
 */
import type { Client, InjectionRecord, TurnOutcome } from "reminderd";
import type * as vscode from "vscode";

/** A request to a model that is being prepared. */
export interface ReminderRequest {
  /** The conversation: an id of the participant's own. */
  session: string;
  /** The exchange with the person: one id for all requests of one call of the handler. */
  turn: string;
  /** What the person wrote. */
  prompt?: string;
  /** The conversation's directory; the first folder of the workspace unless given. */
  root?: vscode.Uri;
  /** A child conversation, such as `/reviewer`. */
  agent?: string;
  /** The records that the messages hold already: `recordsOf(context.history)`. */
  records?: InjectionRecord[];
  /** Gives the request up. */
  token?: vscode.CancellationToken;
}

/** Messages with what the model should be told. */
export interface Reminded {
  /** What to send: the messages, and behind them the reminders, if any speak. */
  messages: vscode.LanguageModelChatMessage[];
  /** What a view shows of the reminders; `null` when none speak. */
  row: string | null;
  /**
   * Says that the messages are sent. The record belongs into the `ChatResult`, as
   * `metadata: { reminderd: [record, …] }`; `undefined` when nothing was told.
   */
  commit(): Promise<InjectionRecord | undefined>;
  /** Says that they were not: the next request is offered the same. */
  release(reason?: string): Promise<void>;
}

/** The exports of this extension. */
export interface ReminderdApi {
  /** The client of this window, for all that a participant may report. */
  readonly client: Client;
  /**
   * Adds what the model should be told to the messages of a request. It takes no longer than the
   * setting `reminderd.deadline`; then the messages come back as they were. Rejects only with a
   * `CancellationError`, when the token was cancelled.
   */
  withReminders(
    request: ReminderRequest,
    messages: readonly vscode.LanguageModelChatMessage[],
  ): Promise<Reminded>;
  /** Says that the exchange with the person is over. */
  endTurn(session: string, outcome?: TurnOutcome): void;
  /** The records in the results of earlier exchanges, oldest first. */
  recordsOf(history: vscode.ChatContext["history"]): InjectionRecord[];
  /** The message that a record stands for, to be put where it stood. */
  messageOf(record: InjectionRecord): vscode.LanguageModelChatMessage;
}
