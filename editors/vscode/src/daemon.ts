/** The daemon of this window: one client, made anew when its settings or the trust change. */
import { Client, type ClientOptions } from "reminderd";
import * as vscode from "vscode";

/** What a client needs to know of the window. */
function settings(): { command: string[]; deadlineMs: number; trusted: boolean } {
  const configuration = vscode.workspace.getConfiguration("reminderd");
  return {
    command: configuration.get<string[]>("command", ["reminderd", "connect"]),
    deadlineMs: configuration.get<number>("deadline", 500),
    trusted: vscode.workspace.isTrusted,
  };
}

/** Owns the window's client. */
export class Daemon implements vscode.Disposable {
  readonly #log: vscode.LogOutputChannel;
  readonly #started = new vscode.EventEmitter<Client>();
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];
  #client: Client | undefined;

  /** A daemon was started: what belongs to no session is to be reported to it. */
  readonly onDidStart = this.#started.event;
  /** The daemon came, went, or noticed that a watched file changed. */
  readonly onDidChange = this.#changed.event;

  constructor(log: vscode.LogOutputChannel) {
    this.#log = log;
    this.#subscriptions = [
      this.#started,
      this.#changed,
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.restart()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (
          event.affectsConfiguration("reminderd.command") ||
          event.affectsConfiguration("reminderd.deadline")
        ) {
          this.restart();
        }
      }),
    ];
  }

  /** The client that speaks to the daemon; started when it is first asked for. */
  get client(): Client {
    return (this.#client ??= this.#start());
  }

  /** Ends the connection and begins another one, with the settings of now. */
  restart(): void {
    void this.#client?.close();
    this.#client = this.#start();
  }

  /** Ends the connection; resolves when it ended. */
  async close(): Promise<void> {
    await this.#client?.close();
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    void this.close();
  }

  #start(): Client {
    const options: ClientOptions = {
      ...settings(),
      client: { name: "vscode", version: vscode.version },
      onStart: (client) => {
        // Who is told of the start may speak to the daemon at once.
        this.#client = client;
        this.#started.fire(client);
      },
      onStatus: (status) => {
        this.#log.info(`daemon: ${status}`);
        this.#changed.fire();
      },
      onProblem: ({ method, code, message }) => this.#log.warn(`${method} (${code}): ${message}`),
      onFileChanged: () => this.#changed.fire(),
      onNotice: (notice) => void this.#tell(notice),
    };
    return new Client(options);
  }

  async #tell(notice: string): Promise<void> {
    const health = "Show Health";
    const chosen = await vscode.window.showWarningMessage(notice, health);
    if (chosen === health) await vscode.commands.executeCommand("reminderd.health");
  }
}
