/** What the app server's file of a thread holds. */
import { createReadStream } from "node:fs";
import { linesOf, listIn, objectIn, read, textIn } from "./lines.js";

/** What a compaction's line holds, however JSON is spaced around it. */
const COMPACTED = Buffer.from('"compacted"');

/** The texts of the user's messages that the last compaction kept; none where no file tells. */
export async function keptTexts(rollout: string | undefined): Promise<Set<string>> {
  if (rollout === undefined) return new Set();
  let last: Record<string, unknown> = {};
  for await (const line of linesOf(createReadStream(rollout))) {
    if (!line.includes(COMPACTED)) continue;
    const message = read(line);
    if (textIn(message, "type") === "compacted") last = objectIn(message, "payload");
  }
  const users = listIn(last, "replacement_history").filter(({ role }) => role === "user");
  const parts = users.flatMap((message) => listIn(message, "content"));
  return new Set(parts.flatMap((part) => textIn(part, "text") ?? []));
}
