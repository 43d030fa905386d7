// Runs the packaged extension in the real editor: VS Code's server, with a headless browser as its
// window. The extension `probe` beside this file does the checks; what it found is printed here.
//
//     node run.mjs SERVER BROWSER VSIX
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** How long the editor may take for all of it, in milliseconds. */
const PATIENCE_MS = 120_000;

const [server, browser, vsix] = process.argv.slice(2).map((path) => resolve(path));
const place = mkdtempSync(join(tmpdir(), "reminderd-editor-"));
const [workspace, data, extensions, report] = [
  "workspace",
  "data",
  "extensions",
  "report.json",
].map((name) => join(place, name));

// The person's settings, and a workspace that would rather start a program of its own.
mkdirSync(join(data, "data/Machine"), { recursive: true });
writeFileSync(
  join(data, "data/Machine/settings.json"),
  JSON.stringify({
    "reminderd.command": [process.env.REMINDERD, "--ephemeral"],
    "reminderd.deadline": 20_000,
  }),
);
mkdirSync(join(workspace, ".vscode"), { recursive: true });
writeFileSync(
  join(workspace, ".vscode/settings.json"),
  JSON.stringify({ "reminderd.command": ["touch", join(workspace, "started-by-the-workspace")] }),
);

const main = join(server, "out/server-main.js");
const directories = [
  ...["--server-data-dir", data, "--extensions-dir", extensions],
  "--accept-server-license-terms",
];
// The editor lets go of extensions that it did not install itself.
const probe = join(place, "probe.vsix");
run(
  fileURLToPath(new URL("../../node_modules/.bin/vsce", import.meta.url)),
  ["package", "--skip-license", "--allow-missing-repository", "--out", probe],
  fileURLToPath(new URL("probe", import.meta.url)),
);
for (const extension of [vsix, probe]) {
  run(process.execPath, [main, ...directories, "--install-extension", extension]);
}

const environment = {
  ...process.env,
  PROBE_REPORT: report,
  XDG_CONFIG_HOME: place,
  XDG_RUNTIME_DIR: place,
  XDG_STATE_HOME: place,
};
const options = ["--host", "127.0.0.1", "--port", "0", "--without-connection-token"];
const editor = spawn(process.execPath, [main, ...directories, ...options, "--disable-telemetry"], {
  env: environment,
  stdio: ["ignore", "pipe", "pipe"],
});
let said = "";
for (const stream of [editor.stdout, editor.stderr]) {
  stream.setEncoding("utf8").on("data", (text) => (said += text));
}

let window;
try {
  const port = await until(() => /Server bound to 127\.0\.0\.1:(\d+)/.exec(said)?.[1]);
  const address = `http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}`;
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  window = spawn(browser, [...flags, `--user-data-dir=${join(place, "browser")}`, address], {
    env: environment,
    stdio: "ignore",
  });
  await until(() => existsSync(report) && readFileSync(report, "utf8") !== "");
  const { version, failures } = JSON.parse(readFileSync(report, "utf8"));
  console.log(`VS Code ${version}`);
  for (const [name, failure] of Object.entries(failures)) {
    console.log(failure === null ? `ok - ${name}` : `not ok - ${name}\n${failure}`);
  }
  const failed = Object.values(failures).filter((failure) => failure !== null).length;
  console.log(`${Object.keys(failures).length - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
} catch (error) {
  console.error(said);
  throw error;
} finally {
  window?.kill();
  editor.kill();
  process.once("exit", () => rmSync(place, { recursive: true, force: true, maxRetries: 5 }));
}

function run(program, args, cwd = place) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}\n${stdout}${stderr}`);
}

async function until(condition) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`this did not come to hold: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
