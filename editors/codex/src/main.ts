#!/usr/bin/env node
/**
 * reminderd-codex [CODEX] app-server …: Codex's app server, with what reminderd has to say.
 * README.md says how to use it.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { Client, DEFAULT_COMMAND } from "reminderd";
import { linesOf, send } from "./lines.js";
import { Relay } from "./relay.js";

const SERVER = "app-server";
/** How long a daemon that was asked to end may hold up the end, in milliseconds. */
const END_MS = 1_000;

/** The program that is run, and its arguments. */
function command(args: readonly string[]): [string, string[]] {
  const [first = "", ...rest] = args;
  if (first !== SERVER && !first.startsWith("-") && rest.includes(SERVER)) return [first, rest];
  return ["codex", [...args]];
}

/** The status with which this program ends as the other did. */
function ended(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`reminderd-codex: ${error.message}`);
      resolve(127);
    });
    child.once("close", (status, signal) =>
      resolve(status ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  });
}

async function relay(program: string, args: string[]): Promise<number> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const status = ended(child);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => child.kill(signal));
  }
  // A side that went away is heard of by the end of its stream.
  for (const stream of [child.stdin, process.stdout]) stream.on("error", () => undefined);
  const daemon = process.env.REMINDERD;
  const deadline = Number(process.env.REMINDERD_DEADLINE_MS);
  const client = new Client({
    command: daemon === undefined ? DEFAULT_COMMAND : [daemon, "connect"],
    client: { name: "codex-app-server" },
    ...(deadline > 0 && { deadlineMs: deadline }),
    onNotice: (notice) => console.error(notice),
  });
  const between = new Relay(client, (line) => void send(child.stdin, line));
  const toServer = async () => {
    for await (const line of linesOf(process.stdin)) {
      await send(child.stdin, await between.fromClient(line));
    }
    child.stdin.end();
  };
  const toClient = async () => {
    for await (const line of linesOf(child.stdout)) {
      if (between.fromServer(line)) await send(process.stdout, line);
    }
  };
  void toServer();
  await Promise.all([toClient(), status]);
  const late = new Promise((resolve) => setTimeout(resolve, END_MS));
  await Promise.race([between.end().then(() => client.close()), late]);
  return status;
}

const [program, args] = command(process.argv.slice(2));
// Whatever else Codex does is none of ours.
const status = args.includes(SERVER)
  ? await relay(program, args)
  : await ended(spawn(program, args, { stdio: "inherit" }));
process.exit(status);
