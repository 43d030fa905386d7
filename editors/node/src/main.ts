#!/usr/bin/env node
/** `reminderd-health [COMMAND…]`: says whether the daemon can be spoken to, and what to do if not. */
import { Client } from "./client.js";
import { describe } from "./health.js";

/** How long a daemon that is only just being started may take, in milliseconds. */
const FIRST_ANSWER_MS = 5_000;

const command = process.argv.slice(2);
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
