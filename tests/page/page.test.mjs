// The pages of `reminderd report`, in a real browser.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Browser } from "./browser.mjs";

const binary = process.env.REMINDERD;
const pictures = process.env.PICTURES;
const scenarios = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "../scenarios");
const MANY = 2000;

let home;
let browser;
before(() => {
  home = mkdtempSync(join(tmpdir(), "reminderd-report-"));
  browser = new Browser();
});
after(async () => {
  await browser.close();
  rmSync(home, { recursive: true, force: true });
});

function reminderd(...given) {
  const env = { ...process.env, XDG_STATE_HOME: home, XDG_RUNTIME_DIR: home, TZ: "UTC" };
  return execFileSync(binary, given, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });
}

/** Makes the page of a session or of a recording. */
function report(name, ...of) {
  const file = join(home, `${name}.html`);
  reminderd("report", "--state", join(home, "state"), ...of, "-o", file);
  return file;
}

/** Keeps a script's session in the store. */
function keep(script) {
  const against = `'${binary}' --deterministic --no-config --state '${join(home, "state")}'`;
  reminderd("run", "--timeout", "4m", "--against", against, script);
}

/** A script of the verbs that `write` is handed a function for. */
function script(name, write) {
  const lines = [];
  write((line) => lines.push(JSON.stringify(line)));
  const file = join(home, `${name}.jsonl`);
  writeFileSync(file, lines.map((line) => `${line}\n`).join(""));
  return file;
}

/** A session that is told these bodies, one a turn, and nothing once in each. */
function saying(name, session, bodies) {
  return script(name, (add) => {
    add({ store: true });
    add({ open: { session } });
    bodies.forEach((body, place) => {
      const scope = { session, turn: `<b>t${place}</b>` };
      add({ event: "turn/begin", params: scope });
      add({ event: "reminder/observe", params: { session, key: "<i>", type: "note", body } });
      add({ wait: { session }, as: "w" });
      add({ commit: { token: "$w.token", placement: "<u>here</u>" } });
      add({ wait: { session }, as: "w" });
      add({ commit: "$w.token" });
      add({ event: "turn/end", params: { ...scope, outcome: "completed" } });
    });
  });
}

/** Opens a page that has to be quiet and to stay at home, does something with it, and looks again. */
async function opened(file, options, look) {
  const page = await browser.open(file, options);
  await look(page);
  assert.deepEqual(page.complaints, []);
  assert.deepEqual(page.requests, []);
}

async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.picture(join(pictures, `${name}.png`));
}

const chosen = (page) => page.text("#wait-title");
const numbers = async (page) => (await page.texts("#rows tr td:first-child")).map(Number);

test("a recording shows what was told, and why the others were silent", async () => {
  const file = report("recording", join(scenarios, "first-session.jsonl"));
  assert.equal(statSync(file).mode & 0o077, 0);
  await opened(file, {}, async (page) => {
    assert.equal(await page.text("#session"), "demo");
    assert.equal(await page.evaluate("document.title"), "demo – reminderd report");
    assert.deepEqual(await numbers(page), [1, 3, 4, 7, 8, 13]);
    assert.equal(await page.evaluate("document.querySelector('#note').hidden"), true);
    assert.match(await page.text("#sums"), /14/);
    await picture(page, "recording-light");

    await page.click("#rows tr:last-child");
    assert.equal(await chosen(page), "WAIT 13 of 14");
    assert.match(await page.text("details[open] pre"), /^The task list has open work/);
    const why = await page.text(".why");
    assert.match(why, /pending-eventsthe pending FIFO is empty/);
    assert.doesNotMatch(why, /task-nudge/);
    assert.equal(await page.evaluate("location.hash"), "#13");
    // A WAIT that told nothing is chosen along the line.
    await page.click("#later");
    assert.equal(await chosen(page), "WAIT 14 of 14");
    assert.match(await page.text("#detail"), /Told nothing/);
    assert.match(await page.text(".why"), /task-nudge/);
    assert.equal(await page.evaluate("document.querySelector('#later').disabled"), true);
  });
});

test("the store shows what was told, and says that it knows no more", async () => {
  keep(join(scenarios, "first-session.jsonl"));
  await opened(report("store", "demo"), {}, async (page) => {
    assert.match(await page.text("#note"), /from the store.*from a recording only/);
    assert.equal((await numbers(page)).length, 5);
    assert.match(await page.text("#detail"), /not kept in the store/);
    assert.equal(await page.evaluate("document.querySelector('.why')"), null);
  });
});

test("the table sorts, finds, and filters by kind and by agent", async () => {
  await opened(report("table", join(scenarios, "first-session.jsonl")), {}, async (page) => {
    const tokens = async () => (await page.texts("#rows td:nth-child(6)")).map(Number);
    const sorted = (list, sign) => [...list].sort((a, b) => sign * (a - b));
    await page.click("#by-tokens button");
    assert.equal(await page.evaluate("document.querySelector('#by-tokens').ariaSort"), "descending");
    assert.deepEqual(await tokens(), sorted(await tokens(), -1));
    await page.click("#by-tokens button");
    assert.equal(await page.evaluate("document.querySelector('#by-tokens').ariaSort"), "ascending");
    assert.deepEqual(await tokens(), sorted(await tokens(), 1));
    await page.click("#by-type button");
    assert.equal(await page.evaluate("document.querySelectorAll('th[aria-sort]').length"), 1);

    const find = (text) =>
      page.evaluate(`(() => { const find = document.querySelector("#find"); find.value = ${JSON.stringify(text)};
        find.dispatchEvent(new Event("input")); })()`);
    await find("BUILD failed");
    await page.until("document.querySelectorAll('#rows tr').length === 2");
    assert.match(await page.text("#count"), /^2 reminders, \d+ tokens$/);
    await find("no such text");
    await page.until("document.querySelector('#rows').textContent === 'Nothing was told that fits.'");
    await find("");
    await page.until("document.querySelectorAll('#rows tr').length === 6");

    const kinds = await page.texts("#kinds button");
    const place = kinds.findIndex((text) => text.startsWith("turn-event"));
    await page.click(`#kinds button:nth-child(${place + 1})`);
    assert.equal((await numbers(page)).length, 4);
    assert.equal(await page.evaluate(`document.querySelector("#kinds button:nth-child(${place + 1})").ariaPressed`), "false");
    await page.click("#quiet");
    assert.equal((await numbers(page)).length, 4 + 14 - 6);

    await page.evaluate(`(() => { const agent = document.querySelector("#agent"); agent.selectedIndex = 2;
      agent.dispatchEvent(new Event("change")); })()`);
    assert.deepEqual([...new Set(await page.texts("#rows td:nth-child(3)"))], ["/reviewer"]);
    assert.match(await page.text("#wait dl"), /\/reviewer/);
  });
});

test("everything is reached by keyboard and has a name", async () => {
  await opened(report("keyboard", join(scenarios, "first-session.jsonl")), {}, async (page) => {
    await page.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.className"), "skip");
    const focus = (selector) => page.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
    await focus("#line");
    for (const [key, wait] of [["ArrowRight", 2], ["End", 14], ["ArrowLeft", 13], ["PageDown", 3], ["Home", 1]]) {
      await page.press(key);
      assert.equal(await chosen(page), `WAIT ${wait} of 14`, key);
      assert.equal(await page.evaluate("document.querySelector('#line').getAttribute('aria-valuenow')"), String(wait));
    }
    assert.equal(
      await page.evaluate("document.querySelector('#line').getAttribute('aria-valuetext')"),
      "WAIT 1, to /, turn t1: no-push",
    );
    const shown = () => page.evaluate("document.querySelectorAll('#line svg text').length");
    const whole = await shown();
    await page.press("+");
    assert.ok((await shown()) < whole);
    await page.press("0");
    assert.equal(await shown(), whole);
    await focus("#rows tr:nth-child(2) button");
    await page.press("Enter");
    assert.equal(await chosen(page), "WAIT 3 of 14");
    await focus("summary");
    await page.press("Enter");
    assert.equal(await page.evaluate("document.querySelector('details').open"), false);
    await focus("#by-wait button");
    await page.press(" ");
    assert.deepEqual(await numbers(page), [13, 8, 7, 4, 3, 1]);

    // What a screen reader calls all that can be worked with.
    const { nodes } = await page.send("Accessibility.getFullAXTree");
    const roles = new Set(["button", "slider", "searchbox", "checkbox", "combobox", "table", "navigation"]);
    const worked = nodes.filter((node) => !node.ignored && roles.has(node.role?.value));
    assert.ok(worked.length > 20, `${worked.length}`);
    assert.deepEqual(worked.filter((node) => !node.name?.value).map((node) => node.role.value), []);
  });
});

/** How far two colours are apart, as WCAG counts it. */
function contrast(one, two) {
  const light = (colour) => {
    const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255);
    const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark, bright] = [light(one), light(two)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

test("it is readable in light, in dark, on a small screen and on paper", async () => {
  const file = report("looks", join(scenarios, "first-session.jsonl"));
  const colour = (page, selector, member) => page.evaluate(`getComputedStyle(document.querySelector("${selector}")).${member}`);
  const papers = [];
  for (const colours of ["light", "dark"]) {
    await opened(file, { colours }, async (page) => {
      const paper = await colour(page, "body", "backgroundColor");
      papers.push(paper);
      for (const selector of ["body", ".hint", "#about", "td.text", "#rows button", ".next", "th"]) {
        const ratio = contrast(await colour(page, selector, "color"), paper);
        assert.ok(ratio >= 4.5, `${colours}: ${selector} ${ratio}`);
      }
      for (const place of [0, 1, 2, 3, 4, 5, 6]) {
        const drawn = await page.evaluate(`(() => {
          const swatch = document.querySelector("#kinds .swatch");
          swatch.className = "swatch kind-${place}";
          return getComputedStyle(swatch).color;
        })()`);
        const ratio = contrast(drawn, paper);
        assert.ok(ratio >= 3, `${colours}: kind-${place} ${ratio}`);
      }
      await page.evaluate(`document.querySelector("#kinds .swatch").className = "swatch kind-0"`);
      await picture(page, `looks-${colours}`);
      await page.colours(colours, "print");
      assert.equal(await colour(page, "body", "backgroundColor"), "rgb(255, 255, 255)");
      assert.equal(await colour(page, "#find", "display"), "inline-block");
      assert.equal(await colour(page, ".search", "display"), "none");
      await picture(page, `print-${colours}`);
    });
  }
  assert.notEqual(papers[0], papers[1]);
  await opened(file, { width: 390, height: 844 }, async (page) => {
    const wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert.ok(wide <= 0, `${wide} pixels too wide`);
    await picture(page, "small");
  });
});

const HOSTILE = [
  "</script><script>window.hacked = 1</script><img src=https://example.com/x.png onerror='window.hacked = 1'>",
  "<!-- <script> --> ]]> &lt;",
  "a\u2028b\u2029c\ufeff",
  "access: \u202e}if(admin)\u2066 begin\u2069 \u200b",
  "\u0000 \u0007 \u001b[31mred\u001b[0m \u007f \u0085",
  "@data@ @nonce@ @script@ @style@ $& $1",
  "<style>* { display: none }</style>",
  "__proto__",
];

test("no text of a session is read as anything else", async () => {
  const session = "</script><script>window.hacked = 1</script>";
  const recording = saying("hostile", session, HOSTILE);
  keep(recording);
  for (const of of [recording, session]) {
    await opened(report("hostile", of), {}, async (page) => {
      assert.equal(await page.text("#session"), session);
      for (const [place, body] of HOSTILE.entries()) {
        await page.click(`#rows tr:nth-child(${place + 1})`);
        const shown = await page.text("details[open] pre");
        const hidden = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff]/g;
        const named = (c) => `U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
        assert.equal(shown, body.replace(hidden, named));
        assert.match(await page.text("#wait dl"), new RegExp(`<b>t${place}</b>`));
      }
      assert.equal(await page.evaluate("window.hacked"), undefined);
      assert.equal(await page.evaluate("document.images.length + document.querySelectorAll('#detail script, b, u, i').length"), 0);
      await picture(page, "hostile");
    });
  }
  // Not even what stands in the page itself may reach anything.
  const page = await browser.open(report("hostile", recording));
  const reached = await page.evaluate("fetch('https://example.com/').then(() => 'reached', () => 'refused')");
  assert.equal(reached, "refused");
  assert.ok(page.complaints.some((complaint) => /Content Security Policy/.test(JSON.stringify(complaint))));
});

test("text that is read from right to left stands so, with code in it", async () => {
  const bodies = [
    "יש לקרוא את `src/parse.rs` שורה 41 שוב:\nfn parse(input: &str) -> Tree {\n+ // הערה חדשה",
    "الملف `main.py` تغيّر خارج الجلسة.\nprint('مرحبا')",
    "Plain, with \u2068שלום\u2069 inside.",
  ];
  await opened(report("turned", saying("turned", "שיחה 1", bodies)), {}, async (page) => {
    const direction = (selector) => page.evaluate(`getComputedStyle(document.querySelector("${selector}")).direction`);
    assert.equal(await direction("#session"), "rtl");
    assert.equal(await direction("body"), "ltr");
    // Where the first letter of a line stands: at the right in one script, at the left in the other.
    const begins = (line) =>
      page.evaluate(`(() => {
        const pre = document.querySelector("details[open] pre");
        const text = pre.firstChild;
        const at = text.data.split("\\n").slice(0, ${line}).join("\\n").length + (${line} ? 1 : 0);
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        const [letter, box] = [range.getBoundingClientRect(), pre.getBoundingClientRect()];
        return letter.left + letter.right > box.left + box.right ? "right" : "left";
      })()`);
    assert.equal(await begins(0), "right");
    assert.equal(await begins(1), "left");
    await page.click("#rows tr:nth-child(2)");
    assert.equal(await begins(0), "right");
    assert.equal(await begins(1), "left");
    await page.click("#rows tr:nth-child(3)");
    assert.equal(await begins(0), "left");
    assert.deepEqual(await page.texts("details[open] pre bdi"), ["שלום"]);
    await page.click("#rows tr:nth-child(1)");
    await picture(page, "turned");
  });
});

test(`a session of ${MANY} WAITs stays usable`, async (context) => {
  const session = "a long day";
  const recording = script("long", (add) => {
    add({ store: true });
    add({ open: { session } });
    for (let turn = 0, wait = 0; wait < MANY; turn += 1) {
      add({ event: "turn/begin", params: { session, turn: `t${turn}` } });
      for (let step = 0; step < 1 + (turn % 9) && wait < MANY; step += 1, wait += 1) {
        const body = `Build ${wait} failed.\n${"src/parse.rs:41: expected a token, found `}`\n".repeat(wait % 7)}`;
        if (wait % 3 === 0) add({ event: "reminder/observe", params: { session, key: "k", type: "build", body } });
        if (wait % 11 === 0) add({ event: "reminder/stage", params: { session, type: "hint", body: `Hint ${wait}.` } });
        if (wait % 29 === 0) add({ event: "reminder/enqueue", params: { session, type: "job", body: `Job ${wait} ended.` } });
        if (step === 0) add({ clock: "+47s" });
        add({ wait: { session }, as: "w" });
        add({ commit: "$w.token" });
      }
      add({ event: "turn/end", params: { session, turn: `t${turn}`, outcome: "completed" } });
    }
  });
  const timed = (name, of) => {
    const began = performance.now();
    const file = report(name, of);
    context.diagnostic(`${name}: ${MANY} WAITs, page built in ${Math.round(performance.now() - began)} ms, ${statSync(file).size >> 10} KiB`);
    return file;
  };
  keep(recording);
  timed("from the store", session);
  await opened(timed("from the recording", recording), {}, async (page) => {
    const told = readFileSync(recording, "utf8").match(/"event":"reminder\//g).length;
    assert.equal(await page.text("#page"), `1–100 of ${new Intl.NumberFormat("en").format(told)}`);
    assert.equal((await numbers(page)).length, 100);
    const elements = await page.evaluate("document.querySelectorAll('*').length");
    assert.ok(elements < 4000, `${elements} elements`);
    await picture(page, "long");
    await page.click("#on");
    assert.match(await page.text("#page"), /^101–200 of/);
    await page.evaluate("document.querySelector('#line').focus()");
    await page.press("End");
    assert.equal(await chosen(page), "WAIT 2,000 of 2,000");
    for (let times = 0; times < 5; times += 1) await page.press("+");
    await picture(page, "long-close");
    for (const key of ["Home", "PageUp", "ArrowRight"]) await page.press(key);
    assert.equal(await chosen(page), "WAIT 12 of 2,000");
    const drawing = await page.evaluate(`(() => {
      const began = performance.now();
      for (let times = 0; times < 10; times += 1) document.querySelector("#whole").click(), document.querySelector("#by-text button").click();
      return (performance.now() - began) / 10;
    })()`);
    context.diagnostic(`sorted and drawn anew in ${Math.round(drawing)} ms`);
    // On paper all rows are there.
    await page.evaluate("dispatchEvent(new Event('beforeprint'))");
    assert.equal((await numbers(page)).length, told);
    await page.evaluate("dispatchEvent(new Event('afterprint'))");
    assert.equal((await numbers(page)).length, 100);
  });
});
