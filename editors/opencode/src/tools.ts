/** What OpenCode's own tools do to files. */
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
export function touched(tool: string, input: unknown, directory: string): Touched | undefined {
  if (tool !== "read" && tool !== "write" && tool !== "edit") return undefined;
  const { filePath, offset, limit } = (input ?? {}) as Record<string, unknown>;
  if (typeof filePath !== "string") return undefined;
  return {
    uri: pathToFileURL(resolve(directory, filePath)).href,
    access: tool === "read" ? "read" : "write",
    partial: offset != null || limit != null,
  };
}
