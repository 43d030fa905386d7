/** The status bar: how many reminders the next request would carry, and which. */
import * as vscode from "vscode";
import type { Picture, Shown } from "./shown.js";

/** Shows the count, for as long as it is not disposed. */
export function showStatus(shown: Shown): vscode.Disposable {
  const item = vscode.window.createStatusBarItem(
    "reminderd.status",
    vscode.StatusBarAlignment.Right,
  );
  item.name = "Reminders";
  const update = (picture: Picture) => {
    const speaking = picture.rows.filter(({ speaks }) => speaks);
    const isDown = picture.status === "down";
    item.text = isDown ? "◇ $(warning)" : `◇ ${speaking.length}`;
    item.command = isDown ? "reminderd.health" : "reminderd.explain.focus";
    item.tooltip = isDown
      ? "reminderd does not run: requests go out without reminders"
      : [
          picture.session === undefined
            ? "no session of an agent"
            : `${speaking.length} of ${picture.rows.length} reminders of ${picture.session} would speak`,
          ...speaking.map(({ id, reason, tokens }) => `${id}: ${reason} (${tokens} tokens)`),
        ].join("\n");
  };
  update(shown.picture);
  item.show();
  return vscode.Disposable.from(item, shown.onDidChange(update));
}
