"use strict";

// Everything that a pane has printed is text here: it reaches the page by textContent alone.

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const data = read("data");
const { lanes, texts, directories, results, began, took, lane, call, where, result, error, clock } = data;
const count = began.length;

const element = (id) => document.getElementById(id);
const list = element("list");
const space = element("space");
const detail = element("detail");
const canvas = element("lanes");
const search = element("search");
const narrow = matchMedia("(max-width: 700px)");

let shown = []; // the numbers of the calls that the filters leave, in order of their ends
let selected = -1; // a place in `shown`
let onlyFailures = false;
let first = 0; // what the timeline shows, in milliseconds since the first call
let last = 1;

// Text

// Characters that are not visible or that reorder others, as escapes.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const visible = (text) =>
  text.replace(INVISIBLE, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function makeButton(text, label, action) {
  const button = make("button", "", text);
  button.type = "button";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", action);
  return button;
}

const timeFormat = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 1,
  hourCycle: "h23",
});
const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const timeOf = (ms) => timeFormat.format(new Date(clock + ms));

function duration(ms) {
  if (ms < 0) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} m ${Math.round((ms % 60000) / 1000)} s`;
}

const end = (number) => began[number] + Math.max(0, took[number]);
const resultOf = (number) => results[result[number]][0];
const middleOf = (number) => (began[number] + end(number)) / 2;
const failed = (number) => results[result[number]][1];
const directoryOf = (number) => {
  const { shown: directory } = directories[where[number]];
  return directory && `, in ${directory}`;
};
const failures = result.filter((_, number) => failed(number)).length;
const laneName = (number) => lanes[lane[number]].name;

// The list: only the rows in view are in the document.

const rows = new Map(); // the rows in the document, by their places
let height = 30; // of a row, which has two lines where the list is narrow

function drawRow(place) {
  const number = shown[place];
  const row = make("div", failed(number) ? "row failed" : "row");
  row.id = `row-${place}`;
  row.setAttribute("role", "option");
  row.setAttribute("aria-selected", String(place === selected));
  row.setAttribute("aria-posinset", String(place + 1));
  row.setAttribute("aria-setsize", String(shown.length));
  row.style.top = `${place * height}px`;
  row.append(make("span", "time", timeOf(began[number])));
  row.append(make("span", "took", duration(took[number])));
  row.append(make("span", "pane", laneName(number)));
  row.append(make("span", "result", resultOf(number)));
  const words = make("span", "call", texts[call[number]] + directoryOf(number));
  if (error[number]) words.append(make("span", "error", `  ${texts[error[number]]}`));
  row.append(words);
  row.addEventListener("click", () => open(place));
  return row;
}

function drawList() {
  space.style.height = `${shown.length * height}px`;
  const from = Math.max(0, Math.floor(list.scrollTop / height) - 10);
  const to = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 10);
  for (const [place, row] of rows) {
    if (place < from || place >= to) {
      row.remove();
      rows.delete(place);
    }
  }
  for (let place = from; place < to; place += 1) {
    if (!rows.has(place)) {
      const row = drawRow(place);
      rows.set(place, row);
      space.append(row);
    }
  }
}

function fitList() {
  const isNarrow = list.clientWidth < 760;
  height = isNarrow ? 54 : 30;
  list.classList.toggle("narrow", isNarrow);
  redrawList();
  if (selected >= 0) scrollToSelected();
}

function scrollToSelected() {
  const top = selected * height;
  list.scrollTop = Math.max(top + height - list.clientHeight, Math.min(top, list.scrollTop));
}

function redrawList() {
  for (const row of rows.values()) row.remove();
  rows.clear();
  space.querySelector(".none")?.remove();
  if (!shown.length) space.append(make("p", "none", "No call matches."));
  drawList();
}

// Filters

const lowered = []; // the texts in lower case, made when they are searched first

function matches(number, words) {
  const parts = [call[number], error[number]].map((text) => (lowered[text] ??= texts[text].toLowerCase()));
  for (const part of [laneName(number), resultOf(number), directories[where[number]].path]) {
    parts.push(part.toLowerCase());
  }
  return words.every((word) => parts.some((part) => part.includes(word)));
}

function filter() {
  const before = selected >= 0 ? shown[selected] : -1;
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  shown = [];
  for (let number = 0; number < count; number += 1) {
    if (onlyFailures && !failed(number)) continue;
    if (words.length && !matches(number, words)) continue;
    shown.push(number);
  }
  selected = before < 0 ? -1 : shown.indexOf(before);
  if (selected < 0) close();
  const chosen = onlyFailures || words.length ? `${shown.length} of ` : "";
  const day = dateFormat.format(new Date(clock));
  element("summary").textContent =
    `${day} · ${chosen}${count} calls · ${failures} failed · ${lanes.length} panes` +
    (data.directory && ` · in ${data.directory}`);
  list.scrollTop = 0;
  redrawList();
  drawLanes();
}

// The selected call

function select(place, reveals = true) {
  if (!shown.length) return;
  rows.get(selected)?.setAttribute("aria-selected", "false");
  selected = Math.max(0, Math.min(shown.length - 1, place));
  scrollToSelected();
  drawList();
  rows.get(selected)?.setAttribute("aria-selected", "true");
  list.setAttribute("aria-activedescendant", `row-${selected}`);
  if (!detail.hidden) fillDetail();
  if (reveals) reveal(shown[selected]);
  drawLanes();
}

function open(place) {
  detail.hidden = false;
  select(place);
  drawList();
}

function close() {
  detail.hidden = true;
  detail.classList.remove("wide");
  detail.replaceChildren();
}

function toggleWide() {
  if (!detail.hidden) detail.classList.toggle("wide");
}

const PER_PART = data.perPart;
const parts = new Map();

function record(number) {
  const part = Math.floor(number / PER_PART);
  if (!parts.has(part)) parts.set(part, read(`part-${part}`));
  return parts.get(part)[number % PER_PART];
}

// A record may have any type anywhere.
function fact(facts, name, value) {
  if (value === undefined) return;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  facts.append(make("dt", "", name), make("dd", "", visible(text)));
}

function fillDetail() {
  const number = shown[selected];
  const fields = record(number);
  const facts = make("dl");
  fact(facts, "pane", laneName(number));
  fact(facts, "at", `${dateFormat.format(new Date(clock + began[number]))} ${timeOf(began[number])}`);
  if (took[number] >= 0) fact(facts, "took", duration(took[number]));
  fact(facts, "directory", fields.cwd);
  for (const name of ["caller", "cursor", "reason", "exit_code", "signal"]) {
    fact(facts, name.replace("_", " "), fields[name]);
  }
  const buttons = make("div", "buttons");
  buttons.append(
    makeButton("⤢", "Whole window", toggleWide),
    makeButton("×", "Close", () => { close(); drawList(); list.focus(); }),
  );
  const parts = [buttons, make("h2", "", texts[call[number]]), facts];
  if (failed(number)) parts.push(make("p", "failed", texts[error[number]] || resultOf(number)));
  const capture = data.captures[number];
  if (capture !== undefined) {
    parts.push(make("h3", "", `What it returned (${fields.capture})`));
    parts.push(make("pre", "", visible(read(`capture-${capture}`))));
  }
  const cast = lanes[lane[number]].cast;
  if (cast !== undefined) parts.push(playerFor(number, cast));
  parts.push(...printedMeanwhile(number));
  parts.push(make("h3", "", "The record"), make("pre", "", visible(JSON.stringify(fields, null, 2))));
  detail.replaceChildren(...parts);
  detail.scrollTop = 0;
}

// What the panes whose logs were kept have printed from a call to its answer. Their output was looked
// at every 250 ms.
const LATE = 250;
const MOST = 4000;
const SEQUENCES = /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b\[[0-?]*[ -/]*[@-~]|\u001b[ -/]*[0-~]|\r(?=\n)/g;

function printedMeanwhile(number) {
  const from = clock + began[number];
  const to = clock + end(number) + LATE;
  const found = [];
  for (const one of lanes) {
    if (!one.printed?.some((at) => at >= from && at <= to)) continue;
    const { text, began_at: start } = read(`cast-${one.cast}`);
    let printed = "";
    for (const line of text.split("\n").slice(1)) {
      if (!line) continue;
      const [at, kind, output] = JSON.parse(line);
      const ms = (start + at) * 1000;
      if (kind === "o" && ms >= from && ms <= to) printed += output;
      if (ms > to || printed.length > 20 * MOST) break;
    }
    const plain = printed.replace(SEQUENCES, "").trim();
    if (!plain) continue;
    const cut = plain.length > MOST ? `${plain.slice(0, MOST)}…` : plain;
    found.push(make("h3", "", `Printed meanwhile in ${one.name}`), make("pre", "", visible(cut)));
  }
  return found;
}

function playerFor(number, cast) {
  const box = make("div", "player");
  const label = "Play the pane from here";
  const button = makeButton(label, label, () => {
    const { text, began_at: start } = read(`cast-${cast}`);
    const startAt = Math.max(0, (clock + began[number]) / 1000 - start);
    const screen = make("div", "screen");
    screen.style.setProperty("--columns", columnsOf(text));
    button.replaceWith(screen);
    const options = { startAt, autoPlay: true, fit: "width", preload: true };
    AsciinemaPlayer.create({ data: text }, screen, options);
    box.scrollIntoView({ block: "nearest" });
  });
  box.append(make("h3", "", "The pane's terminal"), button);
  return box;
}

// How wide the terminal of a recording ever was.
function columnsOf(text) {
  let { width } = JSON.parse(text.split("\n", 1)[0]);
  for (const [, columns] of text.matchAll(/^\[[^,]+,"r","(\d+)x/gm)) width = Math.max(width, columns);
  return width;
}

// The timeline

const AXIS = 22;
const laneHeight = () => (narrow.matches ? 34 : 24);
const barTop = (number) => AXIS + number * laneHeight() + (narrow.matches ? 16 : 5);
const BAR = 14;
const duration_ms = Math.max(1, data.duration);

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const labelWidth = () => (narrow.matches ? 0 : 140);
const xOf = (ms, width) => labelWidth() + ((ms - first) / (last - first)) * (width - labelWidth());
const msOf = (x, width) => first + ((x - labelWidth()) / (width - labelWidth())) * (last - first);

let isDrawing = false;
function drawLanes() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    paint();
  });
}

function paint() {
  const width = canvas.parentElement.clientWidth;
  const height = AXIS + lanes.length * laneHeight() + 6;
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  paintAxis(pen, width, height);
  paintBars(pen, width);
  paintLabels(pen, width);
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5];

function paintAxis(pen, width, height) {
  const wanted = ((last - first) / Math.max(1, width - labelWidth())) * 110;
  const step = STEPS.find((candidate) => candidate >= wanted) ?? Math.ceil(wanted / 864e5) * 864e5;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.lineWidth = 1;
  const offset = clock % step;
  let free = 0; // where the last label ends
  for (let at = Math.ceil((first + offset) / step) * step - offset; at < last; at += step) {
    const x = Math.round(xOf(at, width)) + 0.5;
    pen.strokeStyle = colour("--line");
    pen.beginPath();
    pen.moveTo(x, AXIS - 4);
    pen.lineTo(x, height);
    pen.stroke();
    pen.fillStyle = colour("--faint");
    const text = step >= 1000 ? timeOf(at).replace(/[.,]\d$/, "") : timeOf(at);
    const size = pen.measureText(text).width;
    const left = Math.min(x + 4, width - size - 4);
    if (left < free) continue;
    pen.fillText(text, left, AXIS / 2);
    free = left + size + 8;
  }
}

function paintBars(pen, width) {
  const normal = colour("--bar");
  const bad = colour("--fail");
  const drawn = new Float64Array(lanes.length * 2).fill(-1e9); // how far bars reach already
  pen.save();
  pen.beginPath();
  pen.rect(labelWidth(), 0, width, canvas.height);
  pen.clip();
  paintMarks(pen, width);
  for (const number of shown) {
    if (began[number] > last || end(number) < first) continue;
    const kind = lane[number] * 2 + Number(failed(number));
    const left = xOf(began[number], width);
    const right = Math.max(left + 2, xOf(end(number), width));
    if (right <= drawn[kind] + 0.5) continue;
    drawn[kind] = right;
    pen.fillStyle = failed(number) ? bad : normal;
    pen.fillRect(left, barTop(lane[number]), right - left, BAR);
  }
  if (selected >= 0) {
    const number = shown[selected];
    const left = xOf(began[number], width);
    const right = Math.max(left + 2, xOf(end(number), width));
    pen.strokeStyle = colour("--text");
    pen.lineWidth = 2;
    pen.strokeRect(left - 2, barTop(lane[number]) - 2, right - left + 4, BAR + 4);
  }
  pen.restore();
}

// When a pane has printed something, below its calls.
function paintMarks(pen, width) {
  pen.fillStyle = colour("--faint");
  lanes.forEach((one, number) => {
    for (const at of one.printed ?? []) {
      const ms = at - clock;
      if (ms >= first && ms <= last) pen.fillRect(xOf(ms, width), barTop(number) + BAR + 1, 1.5, 3);
    }
  });
}

function paintLabels(pen) {
  pen.font = narrow.matches ? "10px system-ui, sans-serif" : "12px system-ui, sans-serif";
  lanes.forEach((one, number) => {
    const middle = narrow.matches ? barTop(number) - 8 : barTop(number) + BAR / 2;
    pen.fillStyle = colour(narrow.matches ? "--faint" : "--text");
    const text = one.name.length > 20 ? `${one.name.slice(0, 19)}…` : one.name;
    pen.fillText(text, narrow.matches ? 4 : 16, middle);
  });
}

function show(from, to) {
  const span = Math.min(duration_ms * 1.04, Math.max(1, to - from));
  const margin = duration_ms * 0.02;
  first = Math.max(-margin, Math.min(from, duration_ms + margin - span));
  last = first + span;
  drawLanes();
}

const showAll = () => show(-duration_ms * 0.02, duration_ms * 1.02);

function zoom(factor, around = (first + last) / 2) {
  show(around - (around - first) * factor, around + (last - around) * factor);
}

// The selected call stays in the middle.
function zoomToSelected(factor) {
  if (selected < 0) return zoom(factor);
  const half = ((last - first) * factor) / 2;
  const middle = middleOf(shown[selected]);
  show(middle - half, middle + half);
  revealLane(shown[selected]);
}

function reveal(number) {
  revealLane(number);
  if (began[number] >= first && end(number) <= last) return;
  const half = Math.max(last - first, (end(number) - began[number]) * 1.2) / 2;
  show(middleOf(number) - half, middleOf(number) + half);
}

function revealLane(number) {
  const box = canvas.parentElement;
  const above = lane[number] * laneHeight(); // the axis stays in view, if there is room
  const bottom = AXIS + above + laneHeight();
  box.scrollTop = Math.max(bottom - box.clientHeight, Math.min(above, box.scrollTop));
}

function hit(x, y) {
  const row = Math.floor((y - AXIS) / laneHeight());
  const width = canvas.clientWidth;
  let best = -1;
  let nearest = 6;
  shown.forEach((number, place) => {
    if (lane[number] !== row) return;
    const left = xOf(began[number], width);
    const right = Math.max(left + 2, xOf(end(number), width));
    const away = x < left ? left - x : Math.max(0, x - right);
    if (away < nearest || (away === nearest && best >= 0)) {
      nearest = away;
      best = place;
    }
  });
  return best;
}

canvas.addEventListener("wheel", (event) => {
  if (event.shiftKey) return;
  event.preventDefault();
  zoom(Math.exp(event.deltaY / 400), msOf(event.offsetX, canvas.clientWidth));
}, { passive: false });

const pointers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event.offsetX);
  moved = 0;
});
canvas.addEventListener("pointermove", (event) => {
  if (!pointers.has(event.pointerId)) return;
  const width = canvas.clientWidth - labelWidth();
  const before = [...pointers.values()];
  const step = event.offsetX - pointers.get(event.pointerId);
  pointers.set(event.pointerId, event.offsetX);
  moved += Math.abs(step);
  if (pointers.size === 1) {
    const shift = (step / width) * (last - first);
    show(first - shift, last - shift);
    return;
  }
  const after = [...pointers.values()];
  const ratio = Math.abs(before[0] - before[1]) / Math.max(8, Math.abs(after[0] - after[1]));
  zoom(ratio, msOf((after[0] + after[1]) / 2, canvas.clientWidth));
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
    if (name === "pointerup" && moved < 4) {
      const place = hit(event.offsetX, event.offsetY);
      if (place >= 0) open(place);
    }
  });
}

// Keys

const KEYS = {
  j: () => select(selected + 1),
  k: () => select(selected - 1),
  ArrowDown: () => select(selected + 1),
  ArrowUp: () => select(selected - 1),
  PageDown: () => select(selected + Math.floor(list.clientHeight / height)),
  PageUp: () => select(selected - Math.floor(list.clientHeight / height)),
  Home: () => select(0),
  End: () => select(shown.length - 1),
  Enter: () => open(Math.max(0, selected)),
  "/": () => search.focus(),
  f: () => element("failures").click(),
  "+": () => zoomToSelected(0.6),
  "=": () => zoomToSelected(0.6),
  "-": () => zoomToSelected(1 / 0.6),
  0: showAll,
  h: () => show(first - (last - first) / 5, last - (last - first) / 5),
  l: () => show(first + (last - first) / 5, last + (last - first) / 5),
  ArrowLeft: () => KEYS.h(),
  ArrowRight: () => KEYS.l(),
  w: toggleWide,
  "?": () => element("help").showModal(),
  Escape: () => {
    if (!detail.hidden) {
      close();
      drawList();
    } else if (search.value) {
      search.value = "";
      filter();
    }
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || element("help").open) return;
  if (event.target.closest(".ap-player, .ap-wrapper")) return;
  if (event.target === search) {
    if (event.key === "Escape" || event.key === "Enter") {
      if (event.key === "Escape") search.value = "";
      filter();
      list.focus();
      event.preventDefault();
    }
    return;
  }
  if (event.target.closest("button") && event.key === "Enter") return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

search.addEventListener("input", filter);
element("failures").addEventListener("click", () => {
  onlyFailures = !onlyFailures;
  element("failures").setAttribute("aria-pressed", String(onlyFailures));
  filter();
});
element("help-button").addEventListener("click", () => element("help").showModal());
list.addEventListener("scroll", drawList);
new ResizeObserver(fitList).observe(list);
addEventListener("resize", drawLanes);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawLanes);

showAll();
filter();
