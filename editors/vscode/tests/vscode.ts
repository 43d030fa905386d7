/**
 * A stand-in for the editor's module: as much of it as the extension uses, and `editor`, with which a
 * test plays the person and the other extensions.
 */
import { EventEmitter as NodeEmitter } from "node:events";
import { URI } from "vscode-uri";

export { URI as Uri };

export class Disposable {
  constructor(readonly dispose: () => void) {}
  static from(...all: { dispose(): void }[]) {
    return new Disposable(() => all.forEach((one) => one.dispose()));
  }
}

export class EventEmitter<T> {
  readonly #emitter = new NodeEmitter().setMaxListeners(0);
  readonly event = (listener: (event: T) => void) => {
    this.#emitter.on("event", listener);
    return new Disposable(() => this.#emitter.off("event", listener));
  };
  fire(event: T) {
    this.#emitter.emit("event", event);
  }
  dispose() {
    this.#emitter.removeAllListeners();
  }
}

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export class Range {
  readonly start: Position;
  readonly end: Position;
  constructor(startLine: number, startCharacter: number, endLine: number, endCharacter: number) {
    this.start = new Position(startLine, startCharacter);
    this.end = new Position(endLine, endCharacter);
  }
}

export class Diagnostic {
  source?: string;
  code?: unknown;
  constructor(
    readonly range: Range,
    readonly message: string,
    readonly severity = 0,
  ) {}
}

export class CancellationError extends Error {}

export class CancellationTokenSource {
  readonly #emitter = new EventEmitter<void>();
  readonly token = { isCancellationRequested: false, onCancellationRequested: this.#emitter.event };
  cancel() {
    this.token.isCancellationRequested = true;
    this.#emitter.fire();
  }
}

export class TreeItem {
  constructor(
    readonly label: string,
    readonly collapsibleState = 0,
  ) {}
}

export class ThemeIcon {
  constructor(readonly id: string) {}
}

export const TreeItemCollapsibleState = { None: 0, Collapsed: 1, Expanded: 2 };
export const StatusBarAlignment = { Left: 1, Right: 2 };
export const version = "1.95.0";

export class LanguageModelChatMessage {
  constructor(
    readonly role: number,
    readonly content: string,
  ) {}
  static User(content: string) {
    return new LanguageModelChatMessage(1, content);
  }
}

class Document {
  version = 1;
  readonly languageId = "plaintext";
  constructor(
    readonly uri: URI,
    private text: string,
  ) {}
  getText() {
    return this.text;
  }
  replace(text: string) {
    const lines = this.text.split("\n");
    const end = [lines.length - 1, lines.at(-1)?.length ?? 0] as const;
    this.text = text;
    this.version += 1;
    return [{ range: new Range(0, 0, ...end), text }];
  }
}

const opened = new EventEmitter<Document>();
const changed = new EventEmitter<{ document: Document; contentChanges: object[] }>();
const saved = new EventEmitter<Document>();
const closed = new EventEmitter<Document>();
const diagnosed = new EventEmitter<{ uris: URI[] }>();
const configured = new EventEmitter<{ affectsConfiguration: (key: string) => boolean }>();
const trusted = new EventEmitter<void>();
const focused = new EventEmitter<{ focused: boolean }>();
const settings = new Map<string, unknown>();
const diagnostics = new Map<string, Diagnostic[]>();
const handlers = new Map<string, (...given: unknown[]) => unknown>();

/** What a test does to the editor, and what it sees there. */
export const editor = {
  warnings: [] as string[],
  trees: new Map<string, import("vscode").TreeDataProvider<unknown>>(),
  contents: new Map<string, { provideTextDocumentContent(uri: URI): unknown }>(),
  status: { text: "", tooltip: "" },
  shown: "",

  reset(folder: string, values: Record<string, unknown>) {
    workspace.workspaceFolders = [{ uri: URI.file(folder) }];
    workspace.textDocuments = [];
    workspace.isTrusted = true;
    settings.clear();
    for (const [key, value] of Object.entries(values)) settings.set(key, value);
    diagnostics.clear();
    editor.warnings = [];
  },
  configure(key: string, value: unknown) {
    settings.set(key, value);
    configured.fire({ affectsConfiguration: (asked) => asked === `reminderd.${key}` });
  },
  distrust() {
    workspace.isTrusted = false;
  },
  trust() {
    workspace.isTrusted = true;
    trusted.fire();
  },
  open(uri: URI, text: string) {
    const document = new Document(uri, text);
    workspace.textDocuments.push(document);
    opened.fire(document);
    return document;
  },
  change(document: Document, text: string) {
    changed.fire({ document, contentChanges: document.replace(text) });
  },
  save: (document: Document) => saved.fire(document),
  close(document: Document) {
    workspace.textDocuments = workspace.textDocuments.filter((other) => other !== document);
    closed.fire(document);
  },
  diagnose(uri: URI, found: Diagnostic[]) {
    diagnostics.set(uri.toString(), found);
    diagnosed.fire({ uris: [uri] });
  },
};

export const workspace = {
  workspaceFolders: [] as { uri: URI }[],
  textDocuments: [] as Document[],
  isTrusted: true,
  getConfiguration: (_section: string) => ({
    get: (key: string, fallback: unknown) => settings.get(key) ?? fallback,
  }),
  onDidOpenTextDocument: opened.event,
  onDidChangeTextDocument: changed.event,
  onDidSaveTextDocument: saved.event,
  onDidCloseTextDocument: closed.event,
  onDidChangeConfiguration: configured.event,
  onDidGrantWorkspaceTrust: trusted.event,
  registerTextDocumentContentProvider(
    scheme: string,
    provider: { provideTextDocumentContent(uri: URI): unknown },
  ) {
    editor.contents.set(scheme, provider);
    return new Disposable(() => undefined);
  },
  openTextDocument: ({ content }: { content: string }) => Promise.resolve({ content }),
};

export const window = {
  state: { focused: true },
  onDidChangeWindowState: focused.event,
  createOutputChannel: () => ({ info() {}, warn() {}, dispose() {} }),
  createStatusBarItem() {
    const item = { text: "", tooltip: "", show() {}, dispose() {} };
    editor.status = item;
    return item;
  },
  registerTreeDataProvider(id: string, provider: import("vscode").TreeDataProvider<unknown>) {
    editor.trees.set(id, provider);
    return new Disposable(() => undefined);
  },
  showWarningMessage(message: string) {
    editor.warnings.push(message);
    return Promise.resolve(undefined);
  },
  showTextDocument({ content }: { content: string }) {
    editor.shown = content;
    return Promise.resolve();
  },
};

export const languages = {
  onDidChangeDiagnostics: diagnosed.event,
  getDiagnostics: (uri?: URI) =>
    uri === undefined
      ? [...diagnostics].map(([name, found]) => [URI.parse(name), found])
      : (diagnostics.get(uri.toString()) ?? []),
};

export const commands = {
  registerCommand(id: string, handler: (...given: unknown[]) => unknown) {
    handlers.set(id, handler);
    return new Disposable(() => handlers.delete(id));
  },
  executeCommand: async (id: string, ...given: unknown[]) => handlers.get(id)?.(...given),
};
