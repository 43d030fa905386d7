#!/usr/bin/env node
/** `reminderd-health [COMMAND…]`: says whether the daemon can be spoken to, and what to do if not. */
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Client, type Health } from "./client.js";

/** How long a daemon that is only just being started may take, in milliseconds. */
const FIRST_ANSWER_MS = 5_000;

/** Health in lines for a person, the last of them the next step when something is wrong. */
export function describe(health: Health): string {
  const open = health.sessions.filter((session) => session.open).length;
  const lines = [
    `status: ${health.status}`,
    `command: ${health.command.join(" ")} (started ${health.starts} times)`,
    `version: ${health.version ?? "unknown"}`,
    health.answeredMs === undefined
      ? "answer: none in time"
      : `answer: after ${health.answeredMs} ms`,
    `sessions: ${open} of ${health.sessions.length} open`,
    `refused messages: ${health.problems}`,
  ];
  if (health.trouble !== undefined) lines.push(`trouble: ${health.trouble}`);
  if (health.stderr.trim() !== "") lines.push(`stderr: ${health.stderr.trim()}`);
  if (health.status === "down") {
    lines.push(
      `next: run \`${health.command.join(" ")}\` in a terminal, and set the right command`,
    );
  } else if (health.answeredMs === undefined) {
    lines.push("next: give it more time with a longer deadline, or end the daemon");
  }
  return lines.join("\n");
}

async function main(command: string[]): Promise<void> {
  const client = new Client({
    ...(command.length === 0 ? {} : { command }),
    client: { name: "reminderd-health" },
    deadlineMs: FIRST_ANSWER_MS,
    onNotice: () => undefined,
  });
  const health = await client.health();
  console.log(describe(health));
  process.exitCode = health.answeredMs === undefined ? 1 : 0;
  await client.close();
}

const started = process.argv[1];
if (started !== undefined && realpathSync(started) === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2));
}
