// A headless Chromium, spoken to over a pipe in its own protocol (DevTools): no port, no package.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** How long the browser may take for one thing, in milliseconds. */
const PATIENCE = 30_000;

/** A browser, and the pages that are open in it. */
export class Browser {
  #last = 0;
  #answers = new Map();
  #pages = new Map();

  constructor() {
    this.home = mkdtempSync(join(tmpdir(), "reminderd-page-"));
    const options = ["--headless=new", "--remote-debugging-pipe", `--user-data-dir=${this.home}`, "--no-first-run"];
    // Nothing of the browser's own is fetched either; root and containers have no sandbox.
    options.push("--disable-background-networking", "--no-sandbox", "--disable-gpu", "about:blank");
    this.process = spawn("chromium", options, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.ended = new Promise((resolve) => this.process.once("exit", resolve));
    let text = "";
    this.process.stdio[4].setEncoding("utf8").on("data", (chunk) => {
      const messages = (text + chunk).split("\0");
      text = messages.pop();
      for (const message of messages) this.#take(JSON.parse(message));
    });
  }

  #take({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      this.#pages.get(sessionId)?.heard(method, params);
      return;
    }
    const { resolve, reject } = this.#answers.get(id);
    this.#answers.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }

  send(method, params = {}, sessionId = undefined) {
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${method}: no answer in ${PATIENCE} ms`)), PATIENCE);
      this.#answers.set(id, {
        resolve: (result) => (clearTimeout(late), resolve(result)),
        reject: (error) => (clearTimeout(late), reject(error)),
      });
      this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** Opens a file and waits until it has drawn itself. */
  async open(file, { width = 1400, height = 1000, colours = "light" } = {}) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page((method, params) => this.send(method, params, sessionId));
    this.#pages.set(sessionId, page);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
    await page.colours(colours);
    await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    const loaded = page.once("Page.loadEventFired");
    await page.send("Page.navigate", { url: pathToFileURL(file).href });
    await loaded;
    return page;
  }

  async close() {
    await this.send("Browser.close").catch(() => this.process.kill());
    await this.ended;
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A page. */
export class Page {
  /** What the page complained of. */
  complaints = [];
  /** What it asked the network for, itself apart. */
  requests = [];
  #waiting = [];

  constructor(send) {
    this.send = send;
  }

  heard(method, params) {
    if (method === "Runtime.exceptionThrown") this.complaints.push(params.exceptionDetails);
    if (method === "Runtime.consoleAPICalled") this.complaints.push(params.args);
    if (method === "Log.entryAdded") this.complaints.push(params.entry);
    const isItself = params.type === "Document" && params.request?.url.startsWith("file:");
    if (method === "Network.requestWillBeSent" && !isItself) this.requests.push(params.request.url);
    this.#waiting = this.#waiting.filter(([name, resolve]) => name !== method || resolve(params));
  }

  once(method) {
    return new Promise((resolve) => this.#waiting.push([method, (params) => void resolve(params)]));
  }

  /** What an expression comes to in the page. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** The texts of all elements that a selector finds. */
  texts(selector) {
    return this.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((e) => e.textContent)`);
  }

  async text(selector) {
    return (await this.texts(selector)).join("\n");
  }

  click(selector) {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`);
  }

  /** Presses a key, as a keyboard does. */
  async press(key) {
    const letters = { Enter: "\r", " ": " " };
    const text = key.length === 1 ? key : letters[key];
    const code = { Enter: 13, Tab: 9, " ": 32 }[key];
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode: code });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode: code });
  }

  /** Waits until an expression holds. */
  async until(expression) {
    const end = Date.now() + PATIENCE;
    while (!(await this.evaluate(expression))) {
      if (Date.now() > end) throw new Error(`never: ${expression}`);
      await this.evaluate("new Promise(requestAnimationFrame)");
    }
  }

  colours(colours, media = "") {
    return this.send("Emulation.setEmulatedMedia", { media, features: [{ name: "prefers-color-scheme", value: colours }] });
  }

  async picture(file) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(file, Buffer.from(data, "base64"));
  }
}
