/** What the person does to files in the editor: opening, changing, saving and closing them. */
import type { Client } from "reminderd";
import * as vscode from "vscode";
import type { Daemon } from "./daemon.js";

/** Reports the open documents that are files on disk, for as long as it is not disposed. */
export function reportDocuments(daemon: Daemon): vscode.Disposable {
  return vscode.Disposable.from(
    daemon.onDidStart((client) => {
      for (const document of vscode.workspace.textDocuments) open(client, document);
    }),
    vscode.workspace.onDidOpenTextDocument((document) => open(daemon.client, document)),
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (!isFile(document) || contentChanges.length === 0) return;
      daemon.client.tell("textDocument/didChange", {
        textDocument: { uri: document.uri.toString(), version: document.version },
        contentChanges: contentChanges.map(({ range, text }) => ({ range: plain(range), text })),
      });
    }),
    vscode.workspace.onDidSaveTextDocument((document) => {
      if (!isFile(document)) return;
      daemon.client.tell("textDocument/didSave", {
        textDocument: { uri: document.uri.toString() },
      });
    }),
    vscode.workspace.onDidCloseTextDocument((document) => {
      if (!isFile(document)) return;
      daemon.client.tell("textDocument/didClose", {
        textDocument: { uri: document.uri.toString() },
      });
    }),
  );
}

function open(client: Client, document: vscode.TextDocument): void {
  if (!isFile(document)) return;
  client.tell("textDocument/didOpen", {
    textDocument: {
      uri: document.uri.toString(),
      languageId: document.languageId,
      version: document.version,
      text: document.getText(),
    },
  });
}

function isFile(document: vscode.TextDocument): boolean {
  return document.uri.scheme === "file";
}

/** A range as the protocol writes it. */
export function plain(range: vscode.Range) {
  const { start, end } = range;
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}
