/** What pi's own tools do to files. */
import { homedir } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** A file that a tool call names. */
export interface Touched {
  uri: string;
  access: "read" | "write";
  /** Whether only some lines were read. */
  partial: boolean;
}

/** The file that a call of `read`, `write` or `edit` names; other tools name none. */
export function touched(tool: string, input: unknown, cwd: string): Touched | undefined {
  if (tool !== "read" && tool !== "write" && tool !== "edit") return undefined;
  const { path, offset, limit } = input as { path?: unknown; offset?: unknown; limit?: unknown };
  if (typeof path !== "string") return undefined;
  // pi takes a path with the mark of a mention, and one of the home directory.
  const plain = path.replace(/^@/, "").replace(/^~(?=$|\/)/, homedir());
  return {
    uri: pathToFileURL(resolve(cwd, plain)).href,
    access: tool === "read" ? "read" : "write",
    partial: offset != null || limit != null,
  };
}
