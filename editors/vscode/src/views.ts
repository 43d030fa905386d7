/**
 * The two views: why each reminder speaks or is silent, and what was told, collapsed to rows that
 * expand to bodies.
 */
import { rowOf, type ExplainRow, type HistoryRow } from "reminderd";
import * as vscode from "vscode";
import type { Shown } from "./shown.js";

/** The scheme under which a body is opened as a document of its own. */
const SCHEME = "reminderd";

/** A line of a view, with what it expands to. */
export interface Line {
  item: vscode.TreeItem;
  children: Line[];
}

/** Shows both views, for as long as it is not disposed. */
export function showViews(shown: Shown): vscode.Disposable {
  const explain = new Lines(shown, ({ rows }) => {
    const silent = rows.filter(({ speaks }) => !speaks);
    return [...rows.filter(({ speaks }) => speaks), ...silent].map(explained);
  });
  const log = new Lines(shown, ({ records }) => records.filter(hasEntries).map(told));
  return vscode.Disposable.from(
    explain,
    log,
    vscode.window.registerTreeDataProvider("reminderd.explain", explain),
    vscode.window.registerTreeDataProvider("reminderd.log", log),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      provideTextDocumentContent: ({ query }) => bodyOf(shown.picture.records, query),
    }),
  );
}

class Lines implements vscode.TreeDataProvider<Line>, vscode.Disposable {
  readonly #shown: Shown;
  readonly #lines: (picture: Shown["picture"]) => Line[];
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscription: vscode.Disposable;

  readonly onDidChangeTreeData = this.#changed.event;

  constructor(shown: Shown, lines: (picture: Shown["picture"]) => Line[]) {
    this.#shown = shown;
    this.#lines = lines;
    this.#subscription = shown.onDidChange(() => this.#changed.fire());
  }

  getTreeItem(line: Line): vscode.TreeItem {
    return line.item;
  }

  getChildren(line?: Line): Line[] {
    return line === undefined ? this.#lines(this.#shown.picture) : line.children;
  }

  dispose(): void {
    this.#subscription.dispose();
    this.#changed.dispose();
  }
}

/** Why a reminder speaks or is silent. */
function explained({ id, kind, speaks, reason, tokens, next }: ExplainRow): Line {
  const item = new vscode.TreeItem(id, vscode.TreeItemCollapsibleState.Collapsed);
  item.id = `explain ${id}`;
  item.description = reason;
  item.tooltip = `${id}: ${reason}`;
  item.iconPath = new vscode.ThemeIcon(speaks ? "comment" : "circle-outline");
  const details = [
    leaf(speaks ? "speaks" : "silent", reason),
    ...(kind === id ? [] : [leaf("kind", kind)]),
    ...(speaks ? [leaf("costs", `${tokens} tokens`)] : []),
    leaf("next", next ?? "unknown"),
  ];
  return { item, children: details };
}

function leaf(label: string, description: string): Line {
  const item = new vscode.TreeItem(label);
  item.description = description;
  item.tooltip = description;
  return { item, children: [] };
}

/** A record without entries only notes what was known from the start. */
function hasEntries(record: HistoryRow): boolean {
  return record.entries.length > 0;
}

/** What was told at once: its row, and under it each body. */
function told(record: HistoryRow): Line {
  const row = rowOf(record) ?? "";
  const item = new vscode.TreeItem(row, vscode.TreeItemCollapsibleState.Collapsed);
  item.id = `log ${record.id}`;
  const gone = record.retained ? "" : " · no longer in history";
  item.description = `${new Date(record.at).toLocaleTimeString()}${gone}`;
  const children = record.entries.map((entry) => {
    const line = leaf(entry.label, entry.body.replaceAll(/\s+/g, " "));
    line.item.id = `log ${record.id} ${entry.id}`;
    line.item.tooltip = entry.body;
    const document = vscode.Uri.from({
      scheme: SCHEME,
      path: `/${entry.type}.txt`,
      query: entry.id,
    });
    line.item.command = { command: "vscode.open", title: "Open", arguments: [document] };
    return line;
  });
  return { item, children };
}

function bodyOf(records: HistoryRow[], entry: string): string | undefined {
  return records.flatMap(({ entries }) => entries).find(({ id }) => id === entry)?.body;
}
