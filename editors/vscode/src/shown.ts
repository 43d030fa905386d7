/** What the views show: one session, why each of its reminders speaks or not, and what was told. */
import type { ExplainRow, HistoryRow, SessionSummary, Status } from "reminderd";
import * as vscode from "vscode";
import type { Daemon } from "./daemon.js";

/** How often the daemon is asked while the window has the focus, in milliseconds. */
const POLL_MS = 3_000;
/** How many tellings the log shows. */
const LOG_ROWS = 100;

/** A picture of one session. */
export interface Picture {
  status: Status;
  session: string | undefined;
  rows: ExplainRow[];
  records: HistoryRow[];
}

/** Keeps the picture up to date. Other programs' sessions change unheard, so they are asked for. */
export class Shown implements vscode.Disposable {
  readonly #daemon: Daemon;
  readonly #changed = new vscode.EventEmitter<Picture>();
  readonly #subscriptions: vscode.Disposable[];
  readonly #timer: NodeJS.Timeout;
  #picture: Picture = { status: "starting", session: undefined, rows: [], records: [] };
  #refreshing: Promise<void> | undefined;
  #again = false;

  /** The picture changed. */
  readonly onDidChange = this.#changed.event;

  constructor(daemon: Daemon) {
    this.#daemon = daemon;
    const refresh = () => void this.refresh();
    this.#subscriptions = [
      this.#changed,
      daemon.onDidChange(refresh),
      vscode.window.onDidChangeWindowState(({ focused }) => {
        if (focused) refresh();
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("reminderd.session")) refresh();
      }),
    ];
    this.#timer = setInterval(() => {
      if (vscode.window.state.focused) refresh();
    }, POLL_MS);
  }

  /** What is shown now. */
  get picture(): Picture {
    return this.#picture;
  }

  /** Asks the daemon. Of several calls at a time, the last sees what is there then. */
  refresh(): Promise<void> {
    this.#again = true;
    return (this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined)));
  }

  dispose(): void {
    clearInterval(this.#timer);
    for (const subscription of this.#subscriptions) subscription.dispose();
  }

  async #refresh(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      const picture = await this.#look();
      if (JSON.stringify(picture) === JSON.stringify(this.#picture)) continue;
      this.#picture = picture;
      this.#changed.fire(picture);
    }
  }

  async #look(): Promise<Picture> {
    const { client } = this.#daemon;
    const patience = { deadlineMs: client.deadlineMs };
    const nothing = () => ({ status: client.status, session: undefined, rows: [], records: [] });
    try {
      const session = chosen(await client.ask("session/list", {}, patience));
      if (session === undefined) return nothing();
      const [{ rows }, { records }] = await Promise.all([
        client.ask("reminder/explain", { session }, patience),
        client.ask("reminder/history", { session, limit: LOG_ROWS }, patience),
      ]);
      return { status: client.status, session, rows, records };
    } catch {
      // The client tells of a daemon that is gone; a session may close at any time.
      return nothing();
    }
  }
}

/** The session of the settings, or else this workspace's that is in a turn, or was active last. */
function chosen(sessions: SessionSummary[]): string | undefined {
  const live = sessions.filter(({ state }) => state === "live");
  const wanted = vscode.workspace.getConfiguration("reminderd").get<string>("session", "");
  if (wanted !== "") return live.find(({ session }) => session === wanted)?.session;
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  return live
    .filter(({ root }) => root != null && folders.includes(pathOf(root)))
    .sort(
      (one, other) =>
        Number(other.turn !== null) - Number(one.turn !== null) ||
        other.lastActive - one.lastActive,
    )[0]?.session;
}

function pathOf(root: string): string {
  const uri = root.startsWith("file:") ? vscode.Uri.parse(root) : vscode.Uri.file(root);
  return uri.fsPath;
}
