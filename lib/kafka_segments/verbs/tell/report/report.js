"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [TOPIC, PARTITION, PLACE, SEGMENTS, BYTES, DAMAGED, FUTURE, MTIME, OLDEST, NEWEST] =
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const LANES_SHOWN = 40;
const LEAST_GAP = 4; // pixels between the texts of two marks
const SHORT = 20; // text of so few characters is not broken where there is room
const LEAST_WIDTH = 0.05; // a rectangle without any is not drawn, nor its edge
const LONG = 20; // rows that are more than a screen
const UNITS = {
  KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50,
  ms: 0.001, s: 1, min: 60, h: 3600, d: 86400,
};
const END_MS = 253402300800000;
const KINDS = [
  { name: "no damage found", css: "sound" },
  { name: "without timestamps: mtime", css: "mtime" },
  { name: "in the future", css: "future" },
  { name: "damaged", css: "damaged" },
];
const ORDERS = {
  size: (a, b) => b[BYTES] - a[BYTES],
  oldest: (a, b) => (a[OLDEST] ?? Infinity) - (b[OLDEST] ?? Infinity),
  newest: (a, b) => (b[NEWEST] ?? -Infinity) - (a[NEWEST] ?? -Infinity),
  name: (a, b) => compareText(data.topics[a[TOPIC]], data.topics[b[TOPIC]]) || a[PARTITION] - b[PARTITION],
};
const SHOWN = {
  all: () => true,
  damaged: (lane) => lane[DAMAGED] > 0,
  future: (lane) => lane[FUTURE] > 0,
  mtime: (lane) => lane[MTIME] > 0,
};

const byId = (id) => document.getElementById(id);
const count = (number) => Number(number).toLocaleString("en-US");
const many = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;
const nameOf = (lane) => `${data.topics[lane[TOPIC]]}-${lane[PARTITION]}`;
const compareText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function moment(ms) {
  if (ms === null || ms < 0) return "-";
  return ms < END_MS ? new Date(ms).toISOString().replace("T", " ").replace(".000Z", "").replace("Z", "") : `${ms} ms`;
}

function size(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return (unit ? bytes.toFixed(1) : bytes) + " " + units[unit];
}

// Names are text: nothing here is ever parsed as HTML.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawing(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function table(headings, rows) {
  const isNumber = (column) => headings[column].endsWith(">");
  const names = headings.map((name) => name.replace(/>$/, ""));
  const head = element("tr", { role: "row" }, ...names.map((name, column) =>
    element("th", { role: "columnheader", scope: "col", class: isNumber(column) ? "n" : "" }, name)));
  const body = rows.map((row) => element("tr", { role: "row" }, ...row.map((cell, column) =>
    element("td", { role: "cell", class: isNumber(column) ? "n" : cell.length <= SHORT ? "s" : "",
      "data-name": names[column] }, cell))));
  return madeUseful(element("table", { role: "table" }, element("thead", { role: "rowgroup" }, head),
    element("tbody", { role: "rowgroup" }, ...body)));
}

// Numbers as the page writes them: "1,234", "12.3 MiB", "2 h 5 min"; what has none comes last.
function numberOf(text) {
  const parts = [...text.replaceAll(",", "").matchAll(/(-?\d+(?:\.\d+)?) ?([A-Za-z]*)/g)];
  return parts.length ? parts.reduce((sum, [, value, unit]) => sum + value * (UNITS[unit] ?? 1), 0) : -Infinity;
}

function sortBy(heading, body) {
  const column = heading.cellIndex;
  const isNumber = heading.classList.contains("n");
  const text = (row) => row.cells[column].textContent;
  const isDown = heading.getAttribute("aria-sort") === (isNumber ? null : "ascending");
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", isDown ? "descending" : "ascending");
  const ordered = [...body.rows].sort((a, b) => isNumber
    ? compareText(numberOf(text(a)), numberOf(text(b)))
    : text(a).localeCompare(text(b), "en", { numeric: true }));
  body.append(...(isDown ? ordered.reverse() : ordered));
}

// A table of several rows is ordered by its headings; a long one has a box that finds rows.
function madeUseful(made) {
  const [body] = made.tBodies;
  if (!made.tHead || body.rows.length < 2) return made;
  for (const heading of made.tHead.rows[0].cells) {
    const button = element("button", { type: "button" }, heading.textContent);
    button.addEventListener("click", () => sortBy(heading, body));
    heading.replaceChildren(button);
  }
  return made;
}

function findBox(made) {
  const box = element("input", { type: "search", placeholder: "words of a row", autocomplete: "off" });
  const found = element("output");
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of made.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    found.textContent = words.length ? `${count(shown)} of ${many(made.tBodies[0].rows.length, "row")}` : "";
  });
  return element("p", { class: "find" }, element("label", {}, "Find ", box), " ", found);
}

for (const made of document.querySelectorAll("table:not(.bars)")) {
  madeUseful(made);
  if (made.tHead && made.tBodies[0].rows.length > LONG) made.before(findBox(made));
}

let firstLane = 0;
let shownLanes = [];

function chosenLanes() {
  const words = byId("lane-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const isShown = SHOWN[byId("lane-kind").value];
  const compare = ORDERS[byId("lane-order").value];
  const found = [];
  data.lanes.forEach((lane, number) => {
    const text = `${nameOf(lane)} ${data.places[lane[PLACE]]}`.toLowerCase();
    if (isShown(lane) && words.every((word) => text.includes(word))) found.push(number);
  });
  return found.sort((a, b) => compare(data.lanes[a], data.lanes[b]) || a - b);
}

function saysOf(lane) {
  const parts = [many(lane[SEGMENTS], "segment"), size(lane[BYTES])];
  if (lane[OLDEST] !== null) parts.push(`from ${moment(lane[OLDEST])} to ${moment(lane[NEWEST])}`);
  if (lane[DAMAGED]) parts.push(`${count(lane[DAMAGED])} damaged`);
  if (lane[FUTURE]) parts.push(`${count(lane[FUTURE])} in the future`);
  if (lane[MTIME]) parts.push(`${count(lane[MTIME])} without timestamps`);
  return parts.join(", ");
}

const range = () => data.ranges[byId("lane-range").value];
const place = (ms, { from, to }) => Math.min(Math.max((ms - from) / (to - from), 0), 1) * 100;

function drawnSpans(number) {
  const lane = data.lanes[number];
  const shown = range();
  const svg = drawing("svg", { role: "img", "aria-label": `${nameOf(lane)}: ${saysOf(lane)}` });
  for (const [at] of shown.marks) {
    const x = `${place(at, shown)}%`;
    svg.append(drawing("line", { class: "grid", x1: x, x2: x, y1: 0, y2: "100%" }));
  }
  for (const [base, start, length, segments, bytes, kind] of data.spans[number]) {
    if (start > shown.to || start + length < shown.from) continue;
    const x = place(start, shown);
    const title = `${segments === 1 ? "segment" : `${count(segments)} segments from`} ${base}, ${size(bytes)}, ` +
      `${KINDS[kind].name}\n${moment(start)} to\n${moment(start + length)}`;
    svg.append(drawing("rect", { class: `span ${KINDS[kind].css}`, x: `${x}%`, y: "20%",
      width: `${Math.max(place(start + length, shown) - x, LEAST_WIDTH)}%`, height: "60%" }, drawing("title", {}, title)));
  }
  if (data.now > shown.from && data.now < shown.to) {
    const x = `${place(data.now, shown)}%`;
    svg.append(drawing("line", { class: "now", x1: x, x2: x, y1: 0, y2: "100%" }));
  }
  return svg;
}

function spanTable(number) {
  const lane = data.lanes[number];
  const rows = data.spans[number].map(([base, start, length, segments, bytes, kind]) =>
    [String(base), count(segments), size(bytes), moment(start), moment(start + length), KINDS[kind].name]);
  return element("div", { class: "lane-spans", tabindex: "0", role: "group", "aria-label": nameOf(lane) },
    element("p", {}, `${data.places[lane[PLACE]]}: ${saysOf(lane)}`),
    table(["base offset>", "segments>", "size>", "from (UTC)", "to (UTC)", "kind"], rows));
}

function laneRow(number) {
  const lane = data.lanes[number];
  const button = element("button", { type: "button", "aria-expanded": "false", title: nameOf(lane) },
    element("span", {}, nameOf(lane)), element("small", {}, size(lane[BYTES])));
  const row = element("div", { class: "lane" }, button, drawnSpans(number));
  button.addEventListener("click", () => {
    const open = row.querySelector(".lane-spans");
    if (open) open.remove();
    else row.append(spanTable(number));
    button.setAttribute("aria-expanded", String(!open));
  });
  return row;
}

function axis() {
  const shown = range();
  const marks = shown.marks.map(([at, text]) => {
    const x = place(at, shown);
    return element("span", { class: x < 9 ? "begin" : x > 91 ? "end" : "", style: `left:${x}%` }, text);
  });
  return element("div", { class: "lane", "aria-hidden": "true" }, element("span"),
    element("div", { class: "axis" }, ...marks));
}

// Marks of an axis that would cover the one before them are left out.
function thinMarks() {
  for (const marks of document.querySelectorAll(".axis, .across")) {
    let end = -Infinity;
    for (const mark of marks.children) {
      const { left, right } = mark.getBoundingClientRect();
      mark.style.visibility = left < end ? "hidden" : "";
      if (left >= end) end = right + LEAST_GAP;
    }
  }
}

function outside() {
  const { from, to } = range();
  const beyond = shownLanes.flatMap((number) => data.spans[number])
    .filter(([, start, length]) => start < from || start + length > to).length;
  return beyond ? `; not wholly in the picture: ${many(beyond, "bar")} (Time: all of it)` : "";
}

function drawLanes() {
  const found = chosenLanes();
  firstLane = Math.max(0, Math.min(firstLane, found.length - 1));
  shownLanes = found.slice(firstLane, firstLane + LANES_SHOWN);
  byId("lane-back").disabled = firstLane === 0;
  byId("lane-more").disabled = firstLane + LANES_SHOWN >= found.length;
  byId("lane-count").textContent = found.length
    ? `${count(firstLane + 1)} to ${count(firstLane + shownLanes.length)} of ${many(found.length, "partition")}${outside()}`
    : "no partition found";
  byId("lanes").replaceChildren(...(shownLanes.length ? [axis(), ...shownLanes.map(laneRow), axis()] : []));
  thinMarks();
  drawTable();
}

function drawTable() {
  const details = byId("lane-table");
  if (!details.open) return;
  const rows = shownLanes.map((number) => data.lanes[number]).map((lane) => [
    nameOf(lane), data.places[lane[PLACE]], count(lane[SEGMENTS]), size(lane[BYTES]), count(lane[DAMAGED]),
    count(lane[FUTURE]), count(lane[MTIME]), moment(lane[OLDEST]), moment(lane[NEWEST])]);
  details.lastElementChild.replaceChildren(table(["partition", "cluster / broker / log directory", "segments>",
    "size>", "damaged>", "in the future>", "without timestamps>", "oldest (UTC)", "newest (UTC)"], rows));
}

function turn(lanes) {
  firstLane += lanes;
  drawLanes();
}

let waiting = null;
for (const id of ["lane-filter", "lane-kind", "lane-order", "lane-range"]) {
  byId(id).addEventListener("input", () => {
    firstLane = 0;
    clearTimeout(waiting);
    waiting = setTimeout(drawLanes, 120);
  });
}
byId("lane-form").addEventListener("submit", (event) => event.preventDefault());
byId("lane-back").addEventListener("click", () => turn(-LANES_SHOWN));
byId("lane-more").addEventListener("click", () => turn(LANES_SHOWN));
byId("lane-table").addEventListener("toggle", drawTable);
window.addEventListener("resize", thinMarks);
drawLanes();

// Paper has no folds: what they hide is printed, and folded again.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });
