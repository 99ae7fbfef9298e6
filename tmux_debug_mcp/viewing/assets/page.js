"use strict";

// Everything that a pane printed is text here: it reaches the page as text nodes, never as markup.

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const data = read("data");
const { lanes, texts, directories, results, began, took, lane, call, where, result, error, clock } = data;
const count = began.length;

const element = (id) => document.getElementById(id);
const list = element("list");
const space = element("space");
const detail = element("detail");
const timeline = element("timeline");
const tall = element("tall"); // as high as all lanes, of which the canvas shows those in view
const canvas = element("lanes");
const search = element("search");
const narrow = matchMedia("(max-width: 700px)");

// What the list shows, by time: calls, which are numbers, and lines of recordings that the search
// found, which are objects: the number of the line's `lane`, when it was printed (`at`), its
// `text`, and its `place` among the lines of its lane.
let shown = [];
let selected = -1; // a place in `shown`
let onlyFailures = false;
let words = []; // what is searched, in lower case
let pattern = null; // the same as an expression
let first = 0; // what the timeline shows, in milliseconds since the first call
let last = 1;

// Text

// Characters to show as escapes: those that are invisible or reorder others.
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

// Puts a text into an element, and marks the searched words in it.
const MOST_MARKS = 1000;
function fill(parent, text) {
  let from = 0;
  let marks = 0;
  for (const found of pattern ? text.matchAll(pattern) : []) {
    if ((marks += 1) > MOST_MARKS) break;
    parent.append(text.slice(from, found.index), make("mark", "", found[0]));
    from = found.index + found[0].length;
  }
  parent.append(text.slice(from));
  return parent;
}

// The part of a line around a word in a text.
function excerpt(text, word) {
  const at = text.toLowerCase().indexOf(word);
  const from = Math.max(text.lastIndexOf("\n", at) + 1, at - 40);
  const line = text.slice(from, at + 200).trimStart().split("\n", 1)[0];
  return visible(line.trimEnd().replace(/\s+/g, " "));
}

// For each number of digits below a second.
const timeFormats = [undefined, 1, 2, 3].map((fractionalSecondDigits) => new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits,
  hourCycle: "h23",
}));
const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const timeOf = (ms) => timeFormats[1].format(new Date(clock + ms));

const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

// As the table has it.
function duration(ms) {
  if (ms < 0) return "";
  if (ms < 99.5) return `${ms.toFixed(0)} ms`;
  if (ms < 99950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const two = (number) => String(number % 60).padStart(2, "0");
  if (minutes < 60) return `${minutes}m ${two(seconds)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 100) return `${hours}h ${two(minutes)}m`;
  return `${Number((ms / 864e5).toPrecision(3))} d`;
}

const isCall = (item) => typeof item === "number";
// Lists are in the order of the ends, and show these: when a call was answered, as `ts` in its record.
const begin = (item) => (isCall(item) ? began[item] : item.at);
const end = (item) => (isCall(item) ? began[item] + Math.max(0, took[item]) : item.at);
const middleOf = (item) => (begin(item) + end(item)) / 2;
const laneOf = (item) => (isCall(item) ? lane[item] : item.lane);
const laneName = (item) => lanes[laneOf(item)].name;
const failed = (item) => isCall(item) && results[result[item]][1];
const resultOf = (number) => results[result[number]][0];
const directoryOf = (number) => {
  const { shown: directory } = directories[where[number]];
  return directory && `, in ${directory}`;
};
const failures = result.filter((_, number) => failed(number)).length;

// The list: only the rows in view are in the document.

const rows = new Map(); // the rows in the document, by their places
let isNarrow = false; // then a call takes two lines
let room = 0; // for the reason of a failed call, in pixels
let tops = [0]; // where each row begins, and where the last one ends

const heightOf = (item) => {
  const call = isNarrow ? 54 : 30;
  if (!isCall(item) || !error[item]) return call;
  return call + (texts[error[item]].length * 7 > room ? 38 : 19);
};
// The place of the row that is so many pixels below the first one's top.
const placeAt = (y) => Math.max(0, tops.findIndex((top) => top > y) - 1);

function drawRow(place) {
  const item = shown[place];
  const row = make("div", "row");
  row.classList.toggle("failed", failed(item));
  row.id = `row-${place}`;
  row.setAttribute("role", "option");
  row.setAttribute("aria-selected", String(place === selected));
  row.setAttribute("aria-posinset", String(place + 1));
  row.setAttribute("aria-setsize", String(shown.length));
  row.style.top = `${tops[place]}px`;
  row.style.height = `${heightOf(item)}px`;
  row.append(make("span", "time", timeOf(end(item))));
  row.append(make("span", "took", isCall(item) ? duration(took[item]) : ""));
  row.append(make("span", "pane", laneName(item)));
  row.append(make("span", "result", isCall(item) ? resultOf(item) : "printed"));
  const told = make("span", "call");
  if (isCall(item)) {
    fill(told, texts[call[item]] + directoryOf(item));
    if (returned.has(item)) told.append(fill(make("span", "output", "  "), returned.get(item)));
  } else {
    fill(told, excerpt(item.text, words.find((word) => item.text.toLowerCase().includes(word))));
    told.classList.add("output");
  }
  row.append(told);
  if (isCall(item) && error[item]) row.append(fill(make("span", "error"), texts[error[item]]));
  row.addEventListener("click", () => open(place));
  return row;
}

function drawList() {
  const from = Math.max(0, placeAt(list.scrollTop) - 10);
  const to = Math.min(shown.length, from + 20 + Math.ceil(list.clientHeight / 30));
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
  isNarrow = list.clientWidth < 820;
  room = list.clientWidth - (isNarrow ? 32 : 500);
  list.classList.toggle("narrow", isNarrow);
  redrawList();
  if (selected >= 0) scrollToSelected();
}

function scrollToSelected() {
  list.scrollTop = Math.max(tops[selected + 1] - list.clientHeight, Math.min(tops[selected], list.scrollTop));
}

function redrawList() {
  for (const row of rows.values()) row.remove();
  rows.clear();
  tops = [0];
  for (const item of shown) tops.push(tops.at(-1) + heightOf(item));
  space.style.height = `${tops.at(-1)}px`;
  space.querySelector(".none")?.remove();
  if (!shown.length) space.append(make("p", "none", list.ariaBusy === "true" ? "Searching the output…" : "Nothing matches."));
  drawList();
}

// Filters

const lowered = []; // the texts in lower case, made when they are first searched

// The searched words that are neither in a call's row nor in the path of its directory.
function missing(number) {
  const parts = [call[number], error[number]].map((text) => (lowered[text] ??= texts[text].toLowerCase()));
  for (const part of [laneName(number), resultOf(number), directories[where[number]].path]) {
    parts.push(part.toLowerCase());
  }
  return words.filter((word) => !parts.some((part) => part.includes(word)));
}

function filter() {
  words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const escaped = words.map((word) => word.replace(/[^\p{L}\p{N}]/gu, "\\$&"));
  pattern = words.length ? new RegExp(escaped.join("|"), "gi") : null;
  returned = new Map();
  printed = [];
  list.scrollTop = 0;
  list.ariaBusy = String(words.length > 0);
  update();
  searchOutput();
}

// Lists what passes the filters.
function update() {
  const before = selected >= 0 ? shown[selected] : null;
  const lines = onlyFailures ? [] : printed;
  let line = 0;
  let calls = 0;
  shown = [];
  for (let number = 0; number < count; number += 1) {
    while (line < lines.length && lines[line].at <= end(number)) shown.push(lines[line++]);
    if (onlyFailures && !failed(number)) continue;
    if (words.length && !returned.has(number) && missing(number).length) continue;
    shown.push(number);
    calls += 1;
  }
  shown = shown.concat(lines.slice(line));
  selected = before === null ? -1 : shown.indexOf(before);
  if (selected < 0) close();
  const facts = [
    dateFormat.format(new Date(clock)),
    (onlyFailures || words.length ? `${calls} of ` : "") + counted(count, "call"),
    `${failures} failed`,
    counted(data.panes, "pane"),
  ];
  if (list.ariaBusy === "true") facts.push("searching the output…");
  else if (words.length && !onlyFailures && lanes.some((one) => one.cast !== undefined)) {
    facts.push(`${counted(lines.length, "line")} of output`);
  }
  if (data.directory) facts.push(`in ${data.directory}`);
  element("summary").textContent = facts.join(" · ");
  redrawList();
  drawLanes();
}

// The search of output. It runs between the page's other work, until the next search.

let returned = new Map(); // what was found in captures, by the numbers of their calls
let printed = []; // the lines that were found in recordings
let searches = 0;
const SLICE = 20; // milliseconds
const MOST_LINES = 1000; // of each pane

async function searchOutput() {
  searches += 1;
  const mine = searches;
  if (!words.length) return;
  let until = 0;
  for (const _ of finding()) {
    if (performance.now() < until) continue;
    await new Promise((resolve) => { setTimeout(resolve); });
    if (mine !== searches) return;
    until = performance.now() + SLICE;
  }
  list.ariaBusy = "false";
  update();
}

// Searches captures and recordings, and yields now and then.
function* finding() {
  yield;
  for (const [key, capture] of Object.entries(data.captures)) {
    yield;
    const number = Number(key);
    const wanted = missing(number);
    if (!wanted.length) continue;
    const text = read(`capture-${capture}`);
    const low = text.toLowerCase();
    if (wanted.every((word) => low.includes(word))) returned.set(number, excerpt(text, wanted[0]));
  }
  for (let number = 0; number < lanes.length; number += 1) {
    if (lanes[number].cast === undefined) continue;
    yield* reading(number);
    yield* findingLines(number);
  }
  printed.sort((one, other) => one.at - other.at);
}

function* findingLines(number) {
  const name = lanes[number].name.toLowerCase();
  let isFound = false;
  let found = 0;
  for (const [place, line] of linesOf(number).entries()) {
    if (place % 500 === 0) yield;
    const low = line.text.toLowerCase();
    const has = (word) => low.includes(word);
    const wasFound = line.grows && isFound;
    isFound = words.some(has) && words.every((word) => has(word) || name.includes(word));
    if (!isFound || wasFound) continue;
    printed.push({ lane: number, place, ...line });
    if ((found += 1) === MOST_LINES) return;
  }
}

// The lines of a recording as text, each with its time. A line that later output continues appears
// again, and that one `grows`.

const FORWARD = /\u001b\[[0-9]*C/g;
// The end of a line, or a move to another one. Lines that are empty because of it are left out.
const BREAKS = /[\r\n]|\u001b\[[0-9;]*[ABE-HJdf]|\u001b\[\?1049[hl]/g;
const SEQUENCES = /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b\[[0-?]*[ -/]*[@-~]|\u001b[ -/]*[0-~]/g;
// What the next piece of output may continue. It is limited, or each piece would make it longer.
const BEGUN = /\u001b(?:\[[0-?]{0,4096}[ -/]{0,16}|\][^\u0007\u001b]{0,4096}\u001b?|[ -/]{0,16})?$/;
const LONGEST = 1000;
const recordings = new Map(); // lines that were read, by the numbers of their lanes

function* reading(number) {
  if (recordings.has(number)) return;
  const { text, began_at: start } = read(`cast-${lanes[number].cast}`);
  const lines = [];
  let begun = "";
  let unfinished = "";
  for (const [count, event] of text.split("\n").entries()) {
    if (count % 500 === 0) yield;
    if (!count || !event) continue; // the head, and the end
    const [seconds, kind, output] = JSON.parse(event);
    if (kind !== "o") continue;
    const at = (start + seconds) * 1000 - clock;
    const raw = begun + output;
    begun = raw.match(BEGUN)?.[0] ?? "";
    const plain = raw.slice(0, raw.length - begun.length).replace(FORWARD, " ").replace(BREAKS, "\n");
    const pieces = plain.replace(SEQUENCES, "").split("\n");
    const grows = unfinished.trim() !== "";
    const before = unfinished;
    pieces[0] = before + pieces[0];
    unfinished = pieces.at(-1).length > LONGEST ? "" : pieces.at(-1);
    for (const [place, line] of pieces.entries()) {
      if (!line.trim() || (!place && line === before)) continue;
      lines.push({ at, text: line, grows: !place && grows });
    }
  }
  recordings.set(number, lines);
}

function linesOf(number) {
  for (const _ of reading(number));
  return recordings.get(number);
}

const textOf = (lines) =>
  lines.filter((_, place) => !lines[place + 1]?.grows).map((line) => line.text).join("\n");

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
  if (!isCall(shown[selected])) detail.querySelector(".player button").click();
}

function close() {
  detail.hidden = true;
  detail.classList.remove("wide");
  showDetail();
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

// Any value in a record may be of any type.
function fact(facts, name, value) {
  if (value === undefined) return;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  facts.append(make("dt", "", name), make("dd", "", visible(text)));
}

function fillDetail() {
  const item = shown[selected];
  const facts = make("dl");
  const at = `${dateFormat.format(new Date(clock + end(item)))} ${timeOf(end(item))}`;
  const bar = make("div", "bar");
  bar.append(
    make("span", "", `${laneName(item)} · ${at}`),
    makeButton("⤢", "Whole window", toggleWide),
    makeButton("×", "Close", () => { close(); drawList(); list.focus(); }),
  );
  if (isCall(item)) showDetail(bar, make("h2", "", texts[call[item]]), facts, ...aboutCall(item, facts));
  else showDetail(bar, make("h2", "", visible(item.text.trim())), facts, ...aboutLine(item));
  if (returned.has(item)) detail.querySelector("mark")?.scrollIntoView({ block: "nearest" });
}

let player = null;
function showDetail(...parts) {
  player?.dispose();
  player = null;
  detail.replaceChildren(...parts);
  detail.scrollTop = 0;
}

function aboutCall(number, facts) {
  const fields = record(number);
  if (took[number] >= 0) fact(facts, "took", duration(took[number]));
  fact(facts, "directory", fields.cwd);
  for (const name of ["caller", "cursor", "reason", "exit_code", "signal"]) {
    fact(facts, name.replace("_", " "), fields[name]);
  }
  const parts = [];
  if (failed(number)) parts.push(make("p", "failed", texts[error[number]] || resultOf(number)));
  const capture = data.captures[number];
  if (capture !== undefined) {
    parts.push(...output(`What it returned (${fields.capture})`, read(`capture-${capture}`)));
  }
  if (lanes[lane[number]].cast !== undefined) {
    parts.push(...playerFor(lane[number], began[number], "Play the pane from here", true));
  }
  parts.push(...printedMeanwhile(number));
  parts.push(make("h3", "", "The record"), make("pre", "", visible(JSON.stringify(fields, null, 2))));
  return parts;
}

function aboutLine(line) {
  const around = linesOf(line.lane).slice(Math.max(0, line.place - 20), line.place + 20);
  return [
    ...playerFor(line.lane, line.at, "Show the screen then", false),
    ...output("Printed around it", textOf(around)),
  ];
}

const output = (title, text) => [make("h3", "", visible(title)), fill(make("pre"), visible(text))];

// What panes with kept logs printed from a call to its answer. The output of a lone pane was looked
// at every 250 ms, at first, that of several every 5 ms.
const LATE = 250;
const LATE_BESIDE_OTHERS = 5;
const MOST = 4000;

function printedMeanwhile(number) {
  return lanes.flatMap((one, place) => {
    const until = end(number) + (place === lane[number] ? LATE : LATE_BESIDE_OTHERS);
    const isMeanwhile = (at) => at >= began[number] && at <= until;
    if (!one.printed?.some((at) => isMeanwhile(at - clock))) return [];
    const text = textOf(linesOf(place).filter((line) => isMeanwhile(line.at)));
    if (!text) return [];
    const cut = text.length > MOST ? `${text.slice(0, MOST)}…` : text;
    return output(`Printed meanwhile in ${one.name}`, cut);
  });
}

function playerFor(number, at, label, autoPlay) {
  const box = make("div", "player");
  const button = makeButton(label, label, () => {
    const { text, began_at: start } = read(`cast-${lanes[number].cast}`);
    // A little later, so that what was printed at that time is there.
    const startAt = Math.max(0, (clock + at) / 1000 - start + 0.001);
    const screen = make("div", "screen");
    screen.style.setProperty("--columns", columnsOf(text));
    button.replaceWith(screen);
    const options = { startAt, autoPlay, poster: `npt:${startAt}`, fit: "width", preload: true };
    player = AsciinemaPlayer.create({ data: text }, screen, options);
    box.scrollIntoView({ block: "nearest" });
  });
  box.append(button);
  return [make("h3", "", "The pane's terminal"), box];
}

// The greatest width of a recording's terminal.
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
  tall.style.height = `${AXIS + lanes.length * laneHeight() + 6}px`;
  const width = timeline.clientWidth;
  const height = timeline.clientHeight;
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
  pen.save();
  pen.beginPath();
  pen.rect(0, AXIS, width, height);
  pen.clip();
  pen.translate(0, -timeline.scrollTop);
  const from = Math.floor(timeline.scrollTop / laneHeight());
  const to = Math.ceil((timeline.scrollTop + height) / laneHeight());
  const isInView = (number) => number >= from && number < to;
  paintLabels(pen, isInView);
  paintBars(pen, width, isInView);
  pen.restore();
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5];

function paintAxis(pen, width, height) {
  const wanted = ((last - first) / Math.max(1, width - labelWidth())) * 110;
  const step = STEPS.find((candidate) => candidate >= wanted) ?? Math.ceil(wanted / 864e5) * 864e5;
  const digits = [1000, 100, 10, 1].findIndex((least) => step >= least);
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
    const text = timeFormats[digits].format(new Date(Math.round(clock + at)));
    const size = pen.measureText(text).width;
    const left = Math.min(x + 4, width - size - 4);
    if (left < free) continue;
    pen.fillText(text, left, AXIS / 2);
    free = left + size + 8;
  }
}

function paintBars(pen, width, isInView) {
  const colours = ["--bar", "--fail", "--found"].map(colour); // calls, failures, and lines of output
  const drawn = new Float64Array(lanes.length * 3).fill(-1e9); // how far bars reach so far
  pen.beginPath();
  pen.rect(labelWidth(), timeline.scrollTop, width, timeline.clientHeight);
  pen.clip();
  paintMarks(pen, width, isInView);
  for (const item of shown) {
    if (begin(item) > last || end(item) < first || !isInView(laneOf(item))) continue;
    const kind = laneOf(item) * 3 + (isCall(item) ? Number(failed(item)) : 2);
    const left = xOf(begin(item), width);
    const right = Math.max(left + 2, xOf(end(item), width));
    if (right <= drawn[kind] + 0.5) continue;
    drawn[kind] = right;
    pen.fillStyle = colours[kind % 3];
    pen.fillRect(left, barTop(laneOf(item)), right - left, BAR);
  }
  if (selected >= 0) {
    const item = shown[selected];
    const left = xOf(begin(item), width);
    const right = Math.max(left + 2, xOf(end(item), width));
    pen.strokeStyle = colour("--text");
    pen.lineWidth = 2;
    pen.strokeRect(left - 2, barTop(laneOf(item)) - 2, right - left + 4, BAR + 4);
  }
}

// Marks when a pane printed something, below its calls.
function paintMarks(pen, width, isInView) {
  pen.fillStyle = colour("--faint");
  lanes.forEach((one, number) => {
    if (!isInView(number)) return;
    for (const at of one.printed ?? []) {
      const ms = at - clock;
      if (ms >= first && ms <= last) pen.fillRect(xOf(ms, width), barTop(number) + BAR + 1, 1.5, 3);
    }
  });
}

function paintLabels(pen, isInView) {
  pen.font = narrow.matches ? "10px system-ui, sans-serif" : "12px system-ui, sans-serif";
  lanes.forEach((one, number) => {
    if (!isInView(number)) return;
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

// Puts the selected item in the middle.
function zoomToSelected(factor) {
  if (selected < 0) return zoom(factor);
  const half = ((last - first) * factor) / 2;
  const middle = middleOf(shown[selected]);
  show(middle - half, middle + half);
  revealLane(shown[selected]);
}

function reveal(item) {
  revealLane(item);
  if (begin(item) >= first && end(item) <= last) return;
  const half = Math.max(last - first, (end(item) - begin(item)) * 1.2) / 2;
  show(middleOf(item) - half, middleOf(item) + half);
}

function revealLane(item) {
  const above = laneOf(item) * laneHeight(); // the axis stays in view
  const bottom = AXIS + above + laneHeight();
  timeline.scrollTop = Math.max(bottom - timeline.clientHeight, Math.min(above, timeline.scrollTop));
}

function hit(x, y) {
  if (y < AXIS) return -1;
  const row = Math.floor((timeline.scrollTop + y - AXIS) / laneHeight());
  const width = canvas.clientWidth;
  let best = -1;
  let nearest = 6;
  shown.forEach((item, place) => {
    if (laneOf(item) !== row) return;
    const left = xOf(begin(item), width);
    const right = Math.max(left + 2, xOf(end(item), width));
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
  PageDown: () => select(placeAt(tops[Math.max(0, selected)] + list.clientHeight)),
  PageUp: () => select(placeAt(tops[Math.max(0, selected)] - list.clientHeight)),
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
      if (event.key === "Escape") {
        search.value = "";
        filter();
      }
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
  list.scrollTop = 0;
  update();
});
element("help-button").addEventListener("click", () => element("help").showModal());
list.addEventListener("scroll", drawList);
timeline.addEventListener("scroll", drawLanes);
new ResizeObserver(fitList).observe(list);
addEventListener("resize", drawLanes);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawLanes);

// What isn't in the page, and how to have it there next time.
const missingOutput = [];
if (!lanes.some((one) => one.cast !== undefined)) {
  element("printed").remove();
  missingOutput.push("To see what panes print: --log-dir DIR for the server and for the page.");
}
if (!Object.keys(data.captures).length) {
  missingOutput.push("To see what calls return: --audit-full DIR for the server, --captures DIR for the page.");
}
element("legend").append(missingOutput.join(" "));

showAll();
filter();
