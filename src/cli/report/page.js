"use strict";
// Everything here is made of text nodes and attributes, never of markup: no text of a session is read
// as HTML. The data are those of `src/cli/report/page.rs`.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE_ROWS = 100;
  const BARS = 160;
  const COLOURS = 6;
  const byId = (id) => document.getElementById(id);
  const integer = new Intl.NumberFormat("en");

  /** An element with members and children; text becomes text. */
  function element(name, members, ...children) {
    const made = document.createElement(name);
    for (const [member, value] of Object.entries(members ?? {})) {
      if (member in made) made[member] = value;
      else made.setAttribute(member, value);
    }
    made.append(...children);
    return made;
  }

  function drawn(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [attribute, value] of Object.entries(attributes ?? {})) made.setAttribute(attribute, value);
    made.append(...children);
    return made;
  }

  // What would turn text around, hide in it, or not show at all is named. Joiners and marks of
  // direction belong to the spelling of some languages and stay.
  const HIDDEN =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

  /** A text as nodes: isolates that close on their line isolate, other hidden characters show. */
  function legible(text) {
    const nodes = [];
    let end = 0;
    for (const piece of text.matchAll(/\u2068([^\u2066-\u2069\n]*)\u2069/g)) {
      nodes.push(...shown(text.slice(end, piece.index)));
      nodes.push(element("bdi", { dir: "auto" }, ...shown(piece[1])));
      end = piece.index + piece[0].length;
    }
    nodes.push(...shown(text.slice(end)));
    return nodes;
  }

  function shown(text) {
    const nodes = [];
    let end = 0;
    for (const hidden of text.matchAll(HIDDEN)) {
      if (hidden.index > end) nodes.push(text.slice(end, hidden.index));
      const code = hidden[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      nodes.push(element("span", { className: "escape" }, `U+${code}`));
      end = hidden.index + hidden[0].length;
    }
    if (end < text.length) nodes.push(text.slice(end));
    return nodes;
  }

  /** A name within other words. */
  const name = (text, className = "") => element("bdi", { dir: "auto", className }, ...legible(text));
  const plain = (number, thing) => `${integer.format(number)} ${thing}${number === 1 ? "" : "s"}`;
  const to = (agent) => agent || "/";

  function time(at) {
    const two = (number) => String(number).padStart(2, "0");
    const when = new Date(at);
    if (Number.isNaN(when.getTime())) return "?";
    const day = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
    return `${day} ${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
  }

  /** A moment as the table has it: without what is the same in all of them. */
  const isOneDay = new Set(data.waits.map((wait) => time(wait.at).slice(0, 10))).size === 1;
  const shortTime = (at) => time(at).slice(isOneDay ? 11 : 5);

  // --- What there is -----------------------------------------------------------------------------

  const waits = data.waits;
  const rows = [];
  const kinds = new Map();
  waits.forEach((wait, place) => {
    wait.place = place;
    wait.tokens = 0;
    wait.entries.forEach((entry, index) => {
      wait.tokens += entry.tokens;
      const kind = kinds.get(entry.kind) ?? { name: entry.kind, count: 0, tokens: 0, isShown: true };
      kind.count += 1;
      kind.tokens += entry.tokens;
      kinds.set(entry.kind, kind);
      const text = entry.body.split("\n").find((line) => line.trim()) ?? "";
      rows.push({ wait, entry, index, text: text.trim().slice(0, 240) });
    });
    if (wait.entries.length === 0) rows.push({ wait, entry: null, index: 0, text: "" });
  });
  // The kinds that cost most have a colour of their own, the others share the last one.
  const dearest = [...kinds.values()].sort((a, b) => b.tokens - a.tokens || (a.name < b.name ? -1 : 1));
  dearest.forEach((kind, place) => {
    kind.colour = `kind-${Math.min(place, COLOURS)}`;
  });
  const swatch = (kind) => element("span", { className: `swatch ${kinds.get(kind)?.colour ?? "kind-6"}`, ariaHidden: "true" });

  const state = { agent: null, chosen: 0, entry: 0, view: null, sort: "wait", isDown: false, page: 0, find: "", quiet: false };
  let line = waits; // The WAITs along the line: all, or those of one agent.

  const isShown = (entry) => kinds.get(entry.kind).isShown;

  // --- Head ----------------------------------------------------------------------------------------

  function head() {
    document.title = `${data.session} – reminderd report`;
    byId("session").append(...legible(data.session));
    const about = [];
    if (data.root) about.push(name(data.root));
    if (waits.length) about.push(` ${about.length ? "· " : ""}${time(waits[0].at)} – ${time(waits[waits.length - 1].at)}`);
    byId("about").append(...about);
    const turns = new Set(waits.filter((wait) => wait.turn !== null).map((wait) => `${wait.agent}\n${wait.turn}`));
    const spoke = waits.filter((wait) => wait.entries.length).length;
    const told = rows.filter((row) => row.entry);
    const sums = [
      ["turns", turns.size],
      ["WAITs", waits.length],
      ["of them told something", spoke],
      ["reminders", told.length],
      ["tokens", told.reduce((sum, row) => sum + row.entry.tokens, 0)],
    ];
    for (const [term, number] of sums) {
      byId("sums").append(element("div", {}, element("dt", {}, term), element("dd", {}, integer.format(number))));
    }
    if (data.source === "store") {
      byId("note").hidden = false;
      byId("note").append(
        "This page is made from the store, which keeps what was told. What stayed silent and why, and what was never " +
          "committed, is known from a recording only; the turn of a WAIT that told nothing is known only in part.",
      );
    }
    byId("made").append(
      `Made by reminderd ${data.version} on ${time(data.made)}. ` +
        `Times are ${data.source === "recording" ? "of the recording's own clock, shown" : "shown"} in the zone of this machine. Tokens are estimates.`,
    );
    const agents = [...new Set(waits.map((wait) => wait.agent))].sort();
    if (agents.length > 1) {
      byId("agents").hidden = false;
      const select = byId("agent");
      select.append(element("option", { value: "*" }, "all"));
      agents.forEach((agent, place) => select.append(element("option", { value: String(place) }, ...shownText(to(agent)))));
      select.addEventListener("change", () => {
        state.agent = select.value === "*" ? null : agents[Number(select.value)];
        line = state.agent === null ? waits : waits.filter((wait) => wait.agent === state.agent);
        state.view = null;
        state.page = 0;
        if (!line.includes(waits[state.chosen])) choose(line[0].place);
        draw();
        list();
      });
    }
    for (const kind of dearest) {
      const button = element(
        "button",
        { type: "button", ariaPressed: "true", title: `${plain(kind.count, "reminder")}, ${plain(kind.tokens, "token")}` },
        swatch(kind.name),
        name(kind.name),
        element("small", {}, integer.format(kind.count)),
      );
      button.addEventListener("click", () => {
        kind.isShown = !kind.isShown;
        button.ariaPressed = String(kind.isShown);
        state.page = 0;
        draw();
        list();
      });
      byId("kinds").append(button);
    }
  }

  /** For places that take text only, such as options. */
  const shownText = (text) => legible(text).map((node) => (typeof node === "string" ? node : node.textContent));

  // --- Time line -------------------------------------------------------------------------------------

  const GUTTER = 150;
  const CHART = 96;
  const LANE = 18;

  function view() {
    return state.view ?? [0, Math.max(line.length, 1)];
  }

  function zoom(factor) {
    const [from, end] = view();
    const length = Math.min(line.length, Math.max(10, Math.round((end - from) * factor)));
    if (length >= line.length) state.view = null;
    else {
      const at = Math.max(0, line.indexOf(waits[state.chosen]));
      const start = Math.min(Math.max(0, Math.round(at - length / 2)), line.length - length);
      state.view = [start, start + length];
    }
    draw();
  }

  function follow() {
    const at = line.indexOf(waits[state.chosen]);
    const [from, end] = view();
    if (at >= 0 && (at < from || at >= end)) {
      const start = Math.min(Math.max(0, at - Math.round((end - from) / 2)), line.length - (end - from));
      state.view = [start, start + (end - from)];
    }
  }

  /** As much of a text as fits, in letters of about six pixels: its beginning and its end. */
  const cut = (text, width) => {
    const letters = [...text];
    const fit = Math.floor(width / 6.2);
    if (letters.length <= fit) return text;
    if (fit < 3) return "";
    const end = Math.floor((fit - 1) / 2);
    return `${letters.slice(0, fit - 1 - end).join("")}…${letters.slice(letters.length - end).join("")}`;
  };

  function draw() {
    const holder = byId("line");
    const width = Math.max(holder.clientWidth, 320);
    const lanes = dearest.filter((kind) => kind.isShown);
    const gutter = Math.min(GUTTER, width * 0.3);
    const [from, end] = view();
    const step = (width - gutter - 8) / Math.max(end - from, 1);
    const x = (at) => gutter + (at - from) * step;
    const top = CHART + 14;
    const bottom = top + LANE + 6 + lanes.length * LANE;
    const height = bottom + 22;
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" });

    // Turns, as bands behind everything while they can be told apart.
    let dark = false;
    const shownLine = line.slice(from, end);
    const isOther = (wait, at) => at === 0 || wait.turn !== shownLine[at - 1].turn || wait.agent !== shownLine[at - 1].agent;
    const isBanded = (width - gutter) / Math.max(1, shownLine.filter(isOther).length) > 12;
    for (let start = from; start < end && start < line.length; ) {
      const { agent, turn } = line[start];
      let next = start + 1;
      while (next < end && next < line.length && line[next].turn === turn && line[next].agent === agent) next += 1;
      const [left, right] = [x(start), x(next)];
      if (dark && isBanded) svg.append(drawn("rect", { class: "band", x: left, y: 0, width: right - left, height: bottom }));
      dark = !dark;
      const label = turn === null ? "" : (agent && state.agent === null ? `${agent} ` : "") + turn;
      if (right - left > 18 && label) {
        const shortened = cut(shownText(label).join(""), right - left - 8);
        svg.append(drawn("text", { x: left + 4, y: top + 12, direction: "ltr" }, `\u2068${shortened}\u2069`));
      }
      start = next;
    }
    svg.append(drawn("text", { x: 0, y: top + 12 }, "turns"));

    // Tokens by kind, in as many bars as can be told apart.
    const per = Math.max(1, Math.ceil((end - from) / BARS));
    const bars = [];
    for (let start = from; start < Math.min(end, line.length); start += per) {
      const sums = new Map();
      for (const wait of line.slice(start, Math.min(start + per, end))) {
        for (const entry of wait.entries) if (isShown(entry)) sums.set(entry.kind, (sums.get(entry.kind) ?? 0) + entry.tokens);
      }
      bars.push([start, sums]);
    }
    const most = Math.max(1, ...bars.map(([, sums]) => [...sums.values()].reduce((a, b) => a + b, 0)));
    const unit = 10 ** Math.floor(Math.log10(most));
    const ceiling = [1, 2, 5, 10].map((times) => times * unit).find((number) => number >= most);
    const y = (tokens) => CHART - (tokens / ceiling) * (CHART - 12);
    for (const tokens of [0, ceiling / 2, ceiling]) {
      svg.append(drawn("line", { class: "rule", x1: gutter, x2: width - 8, y1: y(tokens), y2: y(tokens) }));
      svg.append(drawn("text", { x: gutter - 8, y: y(tokens) + 4, "text-anchor": "end" }, integer.format(tokens)));
    }
    svg.append(drawn("text", { x: 0, y: y(ceiling) + 4 }, "tokens"));
    if (per > 1) svg.append(drawn("text", { x: 0, y: y(ceiling) + 18 }, `in ${integer.format(per)} WAITs`));
    const columns = new Map(lanes.map((kind) => [kind.name, ""]));
    const thick = Math.min(28, Math.max(1, step * per - Math.min(2, step * per * 0.2)));
    for (const [start, sums] of bars) {
      let below = 0;
      const left = x(start) + (step * Math.min(per, end - start) - thick) / 2;
      for (const kind of lanes) {
        const tokens = sums.get(kind.name);
        if (!tokens) continue;
        const [low, high] = [y(below), y(below + tokens)];
        columns.set(kind.name, `${columns.get(kind.name)}M${left.toFixed(1)} ${low.toFixed(1)}h${thick.toFixed(1)}V${high.toFixed(1)}h-${thick.toFixed(1)}z`);
        below += tokens;
      }
    }
    for (const kind of lanes) svg.append(drawn("path", { class: `mark ${kind.colour}`, d: columns.get(kind.name) }));

    // Where each kind spoke.
    const mark = Math.min(10, Math.max(1.5, step - 1));
    const places = new Map(lanes.map((kind) => [kind.name, new Set()]));
    for (let at = from; at < Math.min(end, line.length); at += 1) {
      for (const entry of line[at].entries) places.get(entry.kind)?.add(at);
    }
    lanes.forEach((kind, number) => {
      const middle = top + LANE + 6 + number * LANE + LANE / 2;
      svg.append(drawn("line", { class: "rule", x1: gutter, x2: width - 8, y1: middle, y2: middle }));
      svg.append(drawn("text", { class: "ink", x: 0, y: middle + 4 }, `\u2068${cut(shownText(kind.name).join(""), gutter - 10)}\u2069`));
      const path = [...places.get(kind.name)]
        .map((at) => `M${(x(at) + (step - mark) / 2).toFixed(1)} ${middle - 5}h${mark.toFixed(1)}v10h-${mark.toFixed(1)}z`)
        .join("");
      svg.append(drawn("path", { class: `mark ${kind.colour}`, d: path }));
    });

    // Numbers of WAITs, and the chosen one.
    const shownCount = Math.min(end, line.length) - from;
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((number) => number * step >= 44) ?? 10000;
    for (let at = from; at < from + shownCount; at += 1) {
      const number = line[at].place + 1;
      if ((at + 1) % every === 0 || (every === 1 && step > 24)) {
        const middle = Math.min(x(at) + step / 2, width - 20);
        svg.append(drawn("text", { x: middle, y: bottom + 16, "text-anchor": "middle" }, integer.format(number)));
      }
    }
    svg.append(drawn("text", { x: 0, y: bottom + 16 }, "WAIT"));
    const chosen = line.indexOf(waits[state.chosen]);
    if (chosen >= from && chosen < end) {
      const middle = x(chosen) + step / 2;
      if (step > 6) svg.append(drawn("rect", { class: "halo", x: x(chosen), y: 0, width: step, height: bottom }));
      svg.append(drawn("line", { class: "cursor", x1: middle, x2: middle, y1: 0, y2: bottom + 4 }));
    }
    holder.replaceChildren(svg);
    holder.setAttribute("aria-valuemin", "1");
    holder.setAttribute("aria-valuemax", String(Math.max(waits.length, 1)));
    holder.setAttribute("aria-valuenow", String(state.chosen + 1));
    holder.setAttribute("aria-valuetext", spoken(waits[state.chosen]));
    byId("farther").disabled = byId("whole").disabled = state.view === null;
    byId("closer").disabled = end - from <= 10;
    holder.onclick = (event) => {
      if (!line.length) return;
      const place = Math.floor((event.clientX - holder.getBoundingClientRect().left - gutter) / step) + from;
      choose(line[Math.min(Math.max(place, from), Math.min(end, line.length) - 1)].place);
    };
  }

  function spoken(wait) {
    if (!wait) return "none";
    const says = wait.entries.length ? wait.entries.map((entry) => entry.type).join(", ") : "nothing";
    return `WAIT ${wait.place + 1}, to ${to(wait.agent)}${wait.turn === null ? "" : `, turn ${wait.turn}`}: ${says}`;
  }

  function move(by) {
    const at = line.indexOf(waits[state.chosen]);
    const place = Math.min(Math.max(0, at + by), line.length - 1);
    if (line.length) choose(line[place].place);
  }

  // --- Table -------------------------------------------------------------------------------------------

  const COLUMNS = [
    ["wait", "WAIT", "number", (row) => row.wait.place],
    ["time", "Time", "", (row) => row.wait.at],
    ["to", "To", "", (row) => to(row.wait.agent)],
    ["turn", "Turn", "", (row) => row.wait.turn ?? ""],
    ["type", "Type", "", (row) => row.entry?.type ?? ""],
    ["tokens", "Tokens", "number", (row) => row.entry?.tokens ?? 0],
    ["text", "Text", "", (row) => row.text],
  ];
  const hasAgents = waits.some((wait) => wait.agent);
  const columns = COLUMNS.filter(([id]) => id !== "to" || hasAgents);
  const collator = new Intl.Collator(undefined, { numeric: true });

  function headings() {
    for (const [id, title, className] of columns) {
      const button = element("button", { type: "button" }, title);
      button.addEventListener("click", () => {
        state.isDown = state.sort === id ? !state.isDown : id === "tokens";
        state.sort = id;
        state.page = 0;
        list();
      });
      byId("headings").append(element("th", { scope: "col", id: `by-${id}`, className }, button));
    }
  }

  function fitting() {
    const words = state.find.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = ({ wait, entry }) => {
      if (entry ? !isShown(entry) : !state.quiet) return false;
      if (state.agent !== null && wait.agent !== state.agent) return false;
      if (!words.length) return true;
      const parts = entry ? [entry.type, entry.kind, entry.key ?? "", entry.label, entry.body] : [];
      const text = [...parts, wait.turn ?? "", to(wait.agent)].join("\n").toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const value = COLUMNS.find(([id]) => id === state.sort)[3];
    const order = (a, b) => {
      const [one, two] = [value(a), value(b)];
      return typeof one === "number" ? one - two : collator.compare(one, two);
    };
    const sign = state.isDown ? -1 : 1;
    return rows.filter(fits).sort((a, b) => sign * order(a, b) || a.wait.place - b.wait.place || a.index - b.index);
  }

  function list(isWhole = false) {
    const all = fitting();
    const pages = Math.max(1, Math.ceil(all.length / PAGE_ROWS));
    state.page = Math.min(state.page, pages - 1);
    const start = isWhole ? 0 : state.page * PAGE_ROWS;
    const some = isWhole ? all : all.slice(start, start + PAGE_ROWS);
    byId("rows").replaceChildren(...some.map(tableRow));
    if (!all.length) {
      const empty = waits.length ? "Nothing was told that fits." : "Nothing was told yet.";
      byId("rows").append(element("tr", {}, element("td", { className: "empty", colSpan: columns.length }, empty)));
    }
    for (const [id] of columns) {
      const heading = byId(`by-${id}`);
      if (state.sort === id) heading.setAttribute("aria-sort", state.isDown ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    }
    const told = all.filter((row) => row.entry);
    const tokens = told.reduce((sum, row) => sum + row.entry.tokens, 0);
    const quiet = all.length - told.length;
    byId("count").textContent =
      `${plain(told.length, "reminder")}, ${plain(tokens, "token")}` + (state.quiet ? `; ${plain(quiet, "WAIT")} told nothing` : "");
    byId("pages").hidden = pages === 1;
    byId("page").textContent = `${integer.format(start + 1)}–${integer.format(start + some.length)} of ${integer.format(all.length)}`;
    byId("back").disabled = state.page === 0;
    byId("on").disabled = state.page === pages - 1;
  }

  function tableRow(row) {
    const { wait, entry, index, text } = row;
    const open = element("button", { type: "button", ariaLabel: `Show WAIT ${wait.place + 1}` }, integer.format(wait.place + 1));
    const type = entry
      ? [swatch(entry.kind), name(entry.type)]
      : [element("span", { className: "key" }, wait.outcome === "committed" ? "nothing" : wait.outcome)];
    const cells = {
      wait: element("td", { className: "number" }, open),
      time: element("td", { className: "time", title: time(wait.at) }, shortTime(wait.at)),
      to: element("td", { className: "name" }, name(to(wait.agent))),
      turn: element("td", { className: "name" }, name(wait.turn ?? "")),
      type: element("td", { className: "type" }, ...type),
      tokens: element("td", { className: "number" }, entry ? integer.format(entry.tokens) : ""),
      text: element("td", { className: "text" }, name(text)),
    };
    const made = element("tr", { className: wait.place === state.chosen ? "chosen" : "" }, ...columns.map(([id]) => cells[id]));
    made.dataset.wait = String(wait.place);
    made.addEventListener("click", () => choose(wait.place, index));
    return made;
  }

  // --- The chosen WAIT ---------------------------------------------------------------------------------

  function choose(place, entry = 0) {
    state.chosen = place;
    state.entry = entry;
    follow();
    draw();
    detail();
    for (const row of byId("rows").children) row.classList.toggle("chosen", row.dataset.wait === String(place));
    try {
      history.replaceState(null, "", `#${place + 1}`);
    } catch {
      // Where a page has no address of its own there is nothing to remember it by.
    }
  }

  const OUTCOMES = { committed: "told", offered: "never committed", released: "released" };

  function detail() {
    const wait = waits[state.chosen];
    const holder = byId("detail");
    byId("earlier").disabled = !wait || line.indexOf(wait) <= 0;
    byId("later").disabled = !wait || line.indexOf(wait) === line.length - 1;
    if (!wait) {
      holder.replaceChildren(element("p", { className: "empty" }, "There was none yet."));
      return;
    }
    byId("wait-title").textContent = `WAIT ${integer.format(wait.place + 1)} of ${integer.format(waits.length)}`;
    const facts = [["Time", time(wait.at)]];
    if (wait.turn !== null) facts.push(["Turn", name(wait.turn)]);
    facts.push(["To", name(to(wait.agent))]);
    if (wait.phase) facts.push(["Phase", wait.phase === "turn-start" ? "start of the turn" : "within the turn"]);
    if (wait.outcome !== "committed") facts.push(["Outcome", OUTCOMES[wait.outcome]]);
    if (wait.placement) facts.push(["Placement", name(wait.placement)]);
    if (wait.record) facts.push(["Record", element("code", {}, wait.record)]);
    const terms = element("dl");
    for (const [term, value] of facts) terms.append(element("dt", {}, term), element("dd", {}, value));

    const parts = [terms];
    const title = wait.outcome === "committed" ? "Told" : "Offered";
    const sum = wait.entries.length ? `${plain(wait.entries.length, "reminder")}, ${plain(wait.tokens, "token")}` : "nothing";
    parts.push(element("h3", {}, `${title} `, element("small", {}, sum)));
    wait.entries.forEach((entry, index) => {
      const summary = element("summary", {}, swatch(entry.kind), name(entry.type));
      if (entry.key) summary.append(name(entry.key, "key"));
      summary.append(element("span", { className: "number" }, plain(entry.tokens, "token")));
      const body = element("pre", { dir: "auto", tabIndex: 0 }, ...legible(entry.body));
      parts.push(element("details", { open: index === state.entry }, summary, body));
    });
    if (wait.held.length) {
      parts.push(element("h3", { id: "held" }, "Held back"));
      const held = element("tbody");
      for (const one of wait.held) held.append(element("tr", {}, element("td", {}, name(one.type)), element("td", {}, name(one.reason))));
      parts.push(element("table", { className: "why", "aria-labelledby": "held" }, held));
    }
    if (wait.rows) {
      const silent = wait.rows.map((number) => data.explanations[number]).filter((row) => !row.speaks);
      parts.push(element("h3", { id: "silent" }, "Silent, and why ", element("small", {}, plain(silent.length, "reminder"))));
      const why = element("tbody");
      for (const row of silent) {
        const reason = element("td", {}, name(row.reason));
        if (row.next) reason.append(element("span", { className: "next" }, "; next ", name(row.next)));
        why.append(element("tr", {}, element("td", {}, name(row.id)), reason));
      }
      parts.push(element("table", { className: "why", "aria-labelledby": "silent" }, why));
    } else if (data.source === "store") {
      parts.push(element("p", { className: "hint" }, "What else stayed silent, and why, is not kept in the store: a recording says it."));
    }
    holder.replaceChildren(...parts);
  }

  // --- Begin -----------------------------------------------------------------------------------------------

  head();
  headings();
  byId("closer").addEventListener("click", () => zoom(0.5));
  byId("farther").addEventListener("click", () => zoom(2));
  byId("whole").addEventListener("click", () => zoom(Infinity));
  byId("earlier").addEventListener("click", () => move(-1));
  byId("later").addEventListener("click", () => move(1));
  byId("back").addEventListener("click", () => turnTo(state.page - 1));
  byId("on").addEventListener("click", () => turnTo(state.page + 1));
  byId("quiet").addEventListener("change", (event) => {
    state.quiet = event.target.checked;
    state.page = 0;
    list();
  });
  let typing = 0;
  byId("find").addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      state.find = event.target.value;
      state.page = 0;
      list();
    }, 100);
  });
  byId("line").addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) move(steps[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") zoom(Infinity);
    else return;
    event.preventDefault();
  });
  function turnTo(page) {
    state.page = page;
    list();
    byId("told").scrollIntoView();
  }
  addEventListener("beforeprint", () => list(true));
  addEventListener("afterprint", () => list());
  new ResizeObserver(() => draw()).observe(byId("line"));
  const asked = Number.parseInt(location.hash.slice(1), 10) - 1;
  const first = waits.findIndex((wait) => wait.entries.length);
  state.chosen = asked >= 0 && asked < waits.length ? asked : Math.max(0, first);
  draw();
  list();
  detail();
})();
