/** Health, for a person to read. */
import type { Health } from "./client.js";

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
