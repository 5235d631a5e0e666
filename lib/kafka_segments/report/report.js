"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [NAME, PLACE, SEGMENTS, BYTES, DAMAGED, FUTURE, MTIME, OLDEST, NEWEST] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const LANES_SHOWN = 40;
const DAY_MS = 86400000;
const KINDS = [
  { name: "sound", color: "#5b8db8", line: "#2f5d85" },
  { name: "without timestamps: mtime", color: "#e0a030", line: "#a26c0d" },
  { name: "in the future", color: "#9b59b6", line: "#6c3483" },
  { name: "damaged", color: "#d9534f", line: "#912a27" },
];
const BUTTONS = ["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"];
const CONFIG = { displaylogo: false, responsive: true, modeBarButtons: [BUTTONS] };

// Plotly reads labels as a little HTML; names are text.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const short = (text, most) => (text.length <= most ? text : text.slice(0, most - 12) + "…" + text.slice(-11));
const iso = (ms) => new Date(ms).toISOString();
const count = (number) => number.toLocaleString("en-US");

function size(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return (unit ? bytes.toFixed(1) : bytes) + " " + units[unit];
}

function sizeAxis(values) {
  let unit = 1;
  const most = Math.max(1, ...values);
  while (most / unit >= 1024) unit *= 1024;
  const name = size(unit).split(" ")[1];
  return { unit, name };
}

function layout(height, more) {
  return Object.assign({
    height, margin: { l: 70, r: 20, t: 10, b: 45 }, hovermode: "closest", bargap: 0.25,
    paper_bgcolor: "#fff", plot_bgcolor: "#fff", font: { size: 13, color: "#1f2933" },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
  }, more);
}

// -- swim lanes -----------------------------------------------------------------------------

const spansOf = data.lanes.map(() => []);
for (const span of data.spans) spansOf[span[0]].push(span);

function usualRange() {
  const starts = data.spans.map((span) => span[2]).sort((a, b) => a - b);
  const ends = data.spans.map((span) => span[3]).sort((a, b) => a - b);
  if (!starts.length) return [data.now - DAY_MS, data.now];
  const at = (sorted, part) => sorted[Math.round(part * (sorted.length - 1))];
  const all = [starts[0], ends[ends.length - 1]];
  const most = [at(starts, 0.02), at(ends, 0.98)];
  const range = all[1] - all[0] > 1.5 * (most[1] - most[0]) && data.spans.length > 50 ? most : all;
  const margin = Math.max((range[1] - range[0]) * 0.02, 1000);
  return [range[0] - margin, range[1] + margin];
}

const USUAL_RANGE = usualRange();
const ORDERS = {
  size: (a, b) => b[BYTES] - a[BYTES],
  oldest: (a, b) => (a[OLDEST] ?? Infinity) - (b[OLDEST] ?? Infinity),
  newest: (a, b) => (b[NEWEST] ?? -Infinity) - (a[NEWEST] ?? -Infinity),
  name: (a, b) => (a[NAME] < b[NAME] ? -1 : a[NAME] > b[NAME] ? 1 : 0),
};
const SHOWN = {
  all: () => true,
  damaged: (lane) => lane[DAMAGED] > 0,
  future: (lane) => lane[FUTURE] > 0,
  mtime: (lane) => lane[MTIME] > 0,
};
let firstLane = 0;

function chosenLanes() {
  const words = document.getElementById("lane-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const isShown = SHOWN[document.getElementById("lane-kind").value];
  const compare = ORDERS[document.getElementById("lane-order").value];
  const found = [];
  data.lanes.forEach((lane, number) => {
    const text = (lane[NAME] + " " + lane[PLACE]).toLowerCase();
    if (isShown(lane) && words.every((word) => text.includes(word))) found.push(number);
  });
  return found.sort((a, b) => compare(data.lanes[a], data.lanes[b]) || a - b);
}

function laneTraces(lanes) {
  const traces = KINDS.map((kind) => ({
    type: "bar", orientation: "h", width: 0.7, name: kind.name, base: [], x: [], y: [], text: [],
    textposition: "none", hovertemplate: "%{text}<extra></extra>",
    marker: { color: kind.color, line: { color: kind.line, width: 0.6 } },
  }));
  lanes.forEach((number, row) => {
    const lane = data.lanes[number];
    for (const span of spansOf[number]) {
      const [, base, start, end, segments, bytes, kind] = span;
      const trace = traces[kind];
      trace.base.push(iso(start));
      trace.x.push(end - start);
      trace.y.push(row);
      trace.text.push(
        `<b>${plain(lane[NAME])}</b> ${plain(short(lane[PLACE], 80))}<br>` +
        `${segments === 1 ? "segment" : count(segments) + " segments from"} ${base}, ${size(bytes)}<br>` +
        `${iso(start)} to<br>${iso(end)}`);
    }
  });
  return traces;
}

function drawLanes() {
  const found = chosenLanes();
  firstLane = Math.max(0, Math.min(firstLane, found.length - 1));
  const lanes = found.slice(firstLane, firstLane + LANES_SHOWN);
  const isUsual = document.getElementById("lane-range").value === "usual";
  document.getElementById("lane-back").disabled = firstLane === 0;
  document.getElementById("lane-more").disabled = firstLane + LANES_SHOWN >= found.length;
  document.getElementById("lane-count").textContent = found.length
    ? `${count(firstLane + 1)} to ${count(firstLane + lanes.length)} of ${count(found.length)} partitions`
    : "no partition found";
  Plotly.react("lanes", laneTraces(lanes), layout(Math.max(200, 134 + 20 * lanes.length), {
    barmode: "overlay",
    margin: { l: 230, r: 20, t: 34, b: 40 },
    showlegend: true,
    xaxis: Object.assign({ type: "date", gridcolor: "#e8ebee" },
      isUsual ? { range: USUAL_RANGE.map(iso) } : { autorange: true }),
    yaxis: {
      range: [Math.max(lanes.length, 1) - 0.5, -0.5], zeroline: false, fixedrange: true, gridcolor: "#f1f3f5",
      tickvals: lanes.map((_, row) => row), tickfont: { size: 12 },
      ticktext: lanes.map((number) => plain(short(data.lanes[number][NAME], 34))),
    },
    shapes: [{ type: "line", x0: iso(data.now), x1: iso(data.now), yref: "paper", y0: 0, y1: 1,
      line: { color: "#5f6c7b", width: 1, dash: "dot" } }],
  }), CONFIG);
}

function turn(lanes) {
  firstLane += lanes;
  drawLanes();
}

let waiting = null;
for (const id of ["lane-filter", "lane-kind", "lane-order", "lane-range"]) {
  document.getElementById(id).addEventListener("input", () => {
    firstLane = 0;
    clearTimeout(waiting);
    waiting = setTimeout(drawLanes, 120);
  });
}
document.getElementById("lane-form").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("lane-back").addEventListener("click", () => turn(-LANES_SHOWN));
document.getElementById("lane-more").addEventListener("click", () => turn(LANES_SHOWN));

// -- the other plots ------------------------------------------------------------------------

function drawDisk() {
  const forecast = data.forecast;
  const { unit, name } = sizeAxis([...data.disk.bytes, ...(forecast ? forecast.steady : [])]);
  const line = (label, times, bytes, style) => ({
    type: "scatter", mode: "lines", name: label, x: times.map(iso), y: bytes.map((value) => value / unit),
    hovertemplate: `%{x|%Y-%m-%d %H:%M}: %{y:.2f} ${name}<extra></extra>`, line: style,
  });
  const traces = [Object.assign(
    line("on disk", data.disk.time, data.disk.bytes, { color: "#2f5d85", shape: "hv" }),
    { fill: "tozeroy", fillcolor: "rgba(91,141,184,.25)" })];
  if (forecast) {
    traces.push(line("forecast: nothing more written", forecast.time, forecast.quiet,
      { color: "#a26c0d", dash: "dash" }));
    traces.push(line("forecast: as in the last 7 days", forecast.time, forecast.steady,
      { color: "#6c3483", dash: "dot" }));
  }
  Plotly.newPlot("disk", traces, layout(340, {
    xaxis: { type: "date", gridcolor: "#e8ebee" },
    yaxis: { title: { text: name }, rangemode: "tozero", gridcolor: "#e8ebee" },
  }), CONFIG);
}

function drawBars(id, labels, values, hover, color, title) {
  if (!document.getElementById(id)) return;
  const rows = labels.map((_, row) => row);
  Plotly.newPlot(id, [{
    type: "bar", orientation: "h", width: 0.7, x: values, y: rows, marker: { color },
    text: hover, textposition: "none", hovertemplate: "%{text}<extra></extra>",
  }], layout(90 + 26 * labels.length, {
    margin: { l: 270, r: 20, t: 10, b: 45 },
    xaxis: { title: { text: title }, rangemode: "tozero", gridcolor: "#e8ebee" },
    yaxis: { range: [labels.length - 0.5, -0.5], tickvals: rows, zeroline: false,
      ticktext: labels.map((label) => plain(short(label, 42))) },
  }), { displayModeBar: false, responsive: true });
}

function drawKinds(id, kinds, color) {
  const hover = kinds.kind.map((kind, row) =>
    `${plain(kind)}: ${count(kinds.segments[row])} segments, ${size(kinds.size_bytes[row])}`);
  drawBars(id, kinds.kind, kinds.segments, hover, color, "segments");
}

function drawBlocked() {
  const bytes = data.blocked.map((row) => row[1]);
  const { unit, name } = sizeAxis(bytes);
  const hover = data.blocked.map((row) => `${plain(row[0])}: ${count(row[2])} segments, ${size(row[1])}`);
  drawBars("blocked", data.blocked.map((row) => row[0]), bytes.map((value) => value / unit), hover,
    "#a26c0d", name);
}

function drawDensity() {
  const trace = (label, density, color) => ({
    type: "scatter", mode: "lines", name: label, x: density.bytes, y: density.segments,
    line: { color, shape: "hvh" }, hovertemplate: "about %{x:.3s} bytes an entry: %{y} segments<extra></extra>",
  });
  Plotly.newPlot("density", [
    trace(".index", data.density.offset, "#2f5d85"),
    trace(".timeindex", data.density.time, "#d98324"),
  ], layout(300, {
    xaxis: { type: "log", dtick: 1, title: { text: "bytes of log per entry" }, gridcolor: "#e8ebee" },
    yaxis: { title: { text: "segments" }, rangemode: "tozero", gridcolor: "#e8ebee" },
  }), CONFIG);
}

drawLanes();
drawDisk();
drawBlocked();
drawKinds("damage", data.damage, "#d9534f");
drawKinds("oddities", data.oddities, "#9b59b6");
drawDensity();
