/** Help for chat participants: what stands in `api.ts`. */
import { contentOf, type InjectionRecord, type Session } from "reminderd";
import * as vscode from "vscode";
import type { Reminded, ReminderdApi, ReminderRequest } from "./api.js";
import type { Daemon } from "./daemon.js";
import type { Shown } from "./shown.js";

/** The exports of this extension. */
export function participantApi(daemon: Daemon, shown: Shown): ReminderdApi {
  return {
    get client() {
      return daemon.client;
    },
    withReminders: (request, messages) => withReminders(daemon, shown, request, messages),
    endTurn: (session, outcome) => daemon.client.session({ session }).endTurn(outcome),
    recordsOf,
    messageOf: (record) => vscode.LanguageModelChatMessage.User(contentOf(record)),
  };
}

async function withReminders(
  daemon: Daemon,
  shown: Shown,
  request: ReminderRequest,
  messages: readonly vscode.LanguageModelChatMessage[],
): Promise<Reminded> {
  const session = opened(daemon, request);
  const scope = request.agent === undefined ? session : session.agent(request.agent);
  const begins = scope.turn !== request.turn;
  if (begins) scope.beginTurn(request.turn, request.prompt);

  const abort = new AbortController();
  const cancelled = request.token?.onCancellationRequested(() => abort.abort());
  if (request.token?.isCancellationRequested) abort.abort();
  const delivery = await scope
    .wait({ seam: begins ? "prompt" : "tools", signal: abort.signal })
    .catch(() => Promise.reject(new vscode.CancellationError()))
    .finally(() => cancelled?.dispose());

  const reminders = delivery?.message == null ? [] : [delivery.message];
  return {
    messages: [
      ...messages,
      ...reminders.map(({ content }) => vscode.LanguageModelChatMessage.User(content)),
    ],
    row: delivery?.row ?? null,
    async commit() {
      const result = delivery && (await scope.commit(delivery, { placement: request.turn }));
      void shown.refresh();
      return result?.record ?? undefined;
    },
    async release(reason) {
      if (delivery !== undefined) await scope.release(delivery, reason);
      void shown.refresh();
    },
  };
}

/** The request's session, knowing what the messages hold. */
function opened(daemon: Daemon, request: ReminderRequest): Session {
  const root = request.root ?? vscode.workspace.workspaceFolders?.[0]?.uri;
  const session = daemon.client.session({
    session: request.session,
    root: root?.toString() ?? null,
    records: request.records ?? null,
    host: { persists: "client" },
  });
  if (request.records !== undefined && session.turn !== request.turn) {
    session.report("history/reported", { records: request.records.map(({ id }) => id) });
  }
  return session;
}

function recordsOf(history: vscode.ChatContext["history"]): InjectionRecord[] {
  return history.flatMap((turn) => {
    const metadata = "result" in turn ? turn.result.metadata : undefined;
    const records: unknown = metadata?.["reminderd"];
    return Array.isArray(records) ? (records as InjectionRecord[]) : [];
  });
}
