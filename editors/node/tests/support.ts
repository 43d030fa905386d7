/** What the tests share: a private daemon, stand-ins for broken ones, and waiting for conditions. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestContext } from "node:test";
import { Client, type ClientOptions } from "reminderd";

// Each directory has its listener.
process.setMaxListeners(0);

/** The checkout. */
export const TOP = fileURLToPath(new URL("../../../../", import.meta.url));
/** The daemon that is tested against. */
export const REMINDERD = process.env.REMINDERD ?? join(TOP, "target/debug/reminderd");
/** How long a condition may take to hold before the test fails, in milliseconds. */
const PATIENCE_MS = 20_000;
/** A deadline that no sound daemon misses, in milliseconds. */
const GENEROUS_MS = 20_000;

/** An empty directory, which goes when the tests are over. */
export function directory(): string {
  const place = mkdtempSync(join(tmpdir(), "reminderd-node-"));
  process.once("exit", () => rmSync(place, { recursive: true, force: true }));
  return place;
}

/** An environment in which a daemon has its own state, socket and configuration. */
export function privately(place = directory()): NodeJS.ProcessEnv {
  return {
    ...process.env,
    XDG_CONFIG_HOME: place,
    XDG_RUNTIME_DIR: place,
    XDG_STATE_HOME: place,
  };
}

/** A client that is closed when its test ends, and what it told the person and the log. */
export function client(test: TestContext, options: ClientOptions = {}) {
  const notices: string[] = [];
  const problems: string[] = [];
  const made = new Client({
    command: [REMINDERD],
    env: privately(),
    deadlineMs: GENEROUS_MS,
    onNotice: (notice) => notices.push(notice),
    onProblem: ({ method, message }) => problems.push(`${method}: ${message}`),
    ...options,
  });
  test.after(() => made.close());
  return { client: made, notices, problems };
}

/** The command of a stand-in that runs a program of JavaScript. */
export function standIn(program: string): string[] {
  return [process.execPath, "--input-type=module", "--eval", program];
}

/** Waits until a condition holds; fails when it does not in time. */
export async function until<T>(condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`this did not come to hold: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
