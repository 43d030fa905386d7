/** The package as others get it: packed, installed, its types checked, its program run. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { directory, privately, REMINDERD, TOP } from "./support.js";

const HERE = join(TOP, "editors/node");

/** What a program of the package's users looks like. */
const PROGRAM = `
import { Client, type Delivery } from "reminderd";
const client = new Client({ command: [process.env.REMINDERD!], deadlineMs: 20000 });
const session = client.session({ session: "s", reminders: [{ id: "x", body: "hello" }] });
session.beginTurn("t1", "a prompt");
session.report("task/put", { task: { id: "1", subject: "x", status: "pending" } });
// @ts-expect-error: a task has a subject
session.report("task/put", { task: { id: "1", status: "pending" } });
const delivery: Delivery | undefined = await session.wait();
console.log(delivery?.row);
if (delivery !== undefined) await session.commit(delivery);
await client.close();
`;

test("the packed library is installed and used with its types, and its program runs", () => {
  const place = directory();
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, {
      cwd: place,
      encoding: "utf8",
      env: { ...privately(place), REMINDERD },
    });
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", place], {
    cwd: HERE,
    encoding: "utf8",
  });
  // What the build says stands before the list.
  const [pack] = JSON.parse(packed.slice(packed.indexOf("[\n"))) as [
    { filename: string; files: { path: string }[] },
  ];
  const paths = pack.files.map(({ path }) => path);
  for (const wanted of [
    "dist/index.js",
    "dist/index.d.ts",
    "README.md",
    "package.json",
    "LICENSE-MIT",
  ]) {
    assert.ok(paths.includes(wanted), `${wanted} is not in the package`);
  }
  assert.deepEqual(
    paths.filter((path) => /tests|scripts|\.ts$/.test(path) && !/\.d\.ts$/.test(path)),
    [],
  );

  writeFileSync(join(place, "package.json"), '{ "private": true, "type": "module" }');
  run("npm", "install", "--no-audit", "--no-fund", "--silent", join(place, pack.filename));
  writeFileSync(join(place, "program.ts"), PROGRAM);
  const compiler = join(HERE, "node_modules/typescript/bin/tsc");
  const types = join(HERE, "node_modules/@types");
  run(
    process.execPath,
    compiler,
    "--strict",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--types",
    "node",
    "--typeRoots",
    types,
    "program.ts",
  );
  assert.equal(run(process.execPath, "program.js").trim(), "◇ 1 system reminder (x)");
  assert.match(run("npx", "--no-install", "reminderd-health", REMINDERD), /^status: ready/);
});
