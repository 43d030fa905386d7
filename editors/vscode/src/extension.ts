/** The extension: it reports what the editor knows, and shows what reminders say. It decides nothing. */
import { describe } from "reminderd";
import * as vscode from "vscode";
import type { ReminderdApi } from "./api.js";
import { Daemon } from "./daemon.js";
import { reportDiagnostics } from "./diagnostics.js";
import { reportDocuments } from "./documents.js";
import { participantApi } from "./participant.js";
import { Shown } from "./shown.js";
import { showStatus } from "./status.js";
import { showViews } from "./views.js";

let running: Daemon | undefined;

export function activate(context: vscode.ExtensionContext): ReminderdApi {
  const log = vscode.window.createOutputChannel("reminderd", { log: true });
  const daemon = new Daemon(log);
  const shown = new Shown(daemon);
  running = daemon;
  context.subscriptions.push(
    log,
    daemon,
    shown,
    reportDocuments(daemon),
    reportDiagnostics(daemon),
    showStatus(shown),
    showViews(shown),
    vscode.commands.registerCommand("reminderd.refresh", () => shown.refresh()),
    vscode.commands.registerCommand("reminderd.health", () => showHealth(daemon)),
  );
  // Who listens to its start is there now.
  daemon.restart();
  return participantApi(daemon, shown);
}

/** Ends the connection before the window is gone. */
export async function deactivate(): Promise<void> {
  await running?.close();
}

/** Shows why reminders do or do not come, in a document that can be copied from. */
async function showHealth(daemon: Daemon): Promise<string> {
  const health = describe(await daemon.client.health());
  const document = await vscode.workspace.openTextDocument({ content: health });
  await vscode.window.showTextDocument(document, { preview: true });
  return health;
}
