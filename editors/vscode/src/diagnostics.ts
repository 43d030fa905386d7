/**
 * What the editor's checkers say, each under its own name. The editor does not tell which checker
 * reported, nor on which version: those whose lists changed are taken to be the ones, or all when
 * none changed, and what counts as fresh is left to the time of the report.
 */
import type { Client } from "reminderd";
import * as vscode from "vscode";
import type { Daemon } from "./daemon.js";
import { plain } from "./documents.js";

/** The checker of diagnostics that do not name theirs. */
const UNNAMED = "vscode";

/** What was last published of a file: each checker's list, as it was sent. */
type Published = Map<string, string>;

/** Reports the diagnostics of files, for as long as it is not disposed. */
export function reportDiagnostics(daemon: Daemon): vscode.Disposable {
  const files = new Map<string, Published>();
  return vscode.Disposable.from(
    daemon.onDidStart((client) => {
      files.clear();
      for (const [uri] of vscode.languages.getDiagnostics()) publish(client, files, uri);
    }),
    vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      for (const uri of uris) publish(daemon.client, files, uri);
    }),
  );
}

function publish(client: Client, files: Map<string, Published>, uri: vscode.Uri): void {
  if (uri.scheme !== "file") return;
  const name = uri.toString();
  const before: Published = files.get(name) ?? new Map();
  const now = new Map([...before.keys()].map((checker) => [checker, [] as object[]]));
  for (const diagnostic of vscode.languages.getDiagnostics(uri)) {
    const checker = diagnostic.source ?? UNNAMED;
    now.set(checker, [...(now.get(checker) ?? []), written(diagnostic)]);
  }
  const lists = [...now].map(([checker, diagnostics]) => {
    const text = JSON.stringify(diagnostics);
    return { checker, diagnostics, text, isNew: before.get(checker) !== text };
  });
  const changed = lists.filter(({ isNew }) => isNew);
  for (const { checker, diagnostics, text } of changed.length > 0 ? changed : lists) {
    client.tell("diagnostic/publish", { uri: name, checker, diagnostics });
    before.set(checker, text);
  }
  files.set(name, before);
}

/** A diagnostic as LSP writes it. */
function written({ range, message, severity, source, code }: vscode.Diagnostic): object {
  return {
    range: plain(range),
    message,
    severity: severity + 1,
    ...(source === undefined ? {} : { source }),
    ...(code === undefined ? {} : { code: typeof code === "object" ? code.value : code }),
  };
}
