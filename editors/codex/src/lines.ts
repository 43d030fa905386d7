/** JSON lines as bytes: what is not to be changed passes as it came. */
import type { Readable, Writable } from "node:stream";

/** A message of either side, as far as it is an object. */
export interface Message {
  id?: string | number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: unknown;
}

const NEWLINE = 0x0a;

/** The lines of a stream, each with its newline; the last may lack it. */
export async function* linesOf(stream: Readable): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(NEWLINE, from);
      if (at < 0) break;
      yield Buffer.concat([...pieces, chunk.subarray(from, at + 1)]);
      pieces = [];
      from = at + 1;
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from));
  }
  if (pieces.length > 0) yield Buffer.concat(pieces);
}

/** What a line says; `undefined` where it is no JSON object. */
export function read(line: Buffer): (Message & Record<string, unknown>) | undefined {
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A message as a line. */
export function written(message: Message): Buffer {
  return Buffer.from(JSON.stringify(message) + "\n");
}

/** Writes, and waits while the reader is behind. A reader that is gone takes nothing. */
export async function send(stream: Writable, line: Buffer): Promise<void> {
  if (!stream.writable || stream.write(line)) return;
  await new Promise<void>((resolve) => {
    const go = () => {
      for (const event of ["drain", "close", "error"]) stream.off(event, go);
      resolve();
    };
    for (const event of ["drain", "close", "error"]) stream.on(event, go);
  });
}

/** Whether a value has members. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member, as an object; empty where there is none. */
export function objectIn(value: unknown, name: string): Record<string, unknown> {
  const member = isObject(value) ? value[name] : undefined;
  return isObject(member) ? member : {};
}

/** A member that is a text. */
export function textIn(value: unknown, name: string): string | undefined {
  const member = isObject(value) ? value[name] : undefined;
  return typeof member === "string" ? member : undefined;
}

/** A member that is a list of objects; empty where it is not. */
export function listIn(value: unknown, name: string): Record<string, unknown>[] {
  const member = isObject(value) ? value[name] : undefined;
  return Array.isArray(member) ? member.filter(isObject) : [];
}
