/**
 * A picture of who held what when: one HTML file that needs nothing else, for runs of the simulator
 * and for real events.
 *
 * @module
 */

/** A bar of the picture. */
export interface Bar {
  /** From the start of the picture, in milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly text: string;
  /** The same in a word, where there is little room. */
  readonly short: string;
  /** Its class, which gives the colour. */
  readonly kind: "denied" | "fault" | "hold" | "key" | "lost" | "outage" | "wait";
  /** The colour of the client whose it is. */
  readonly hue?: number | undefined;
}

/** What happened to one client, node or resource. */
export interface Row {
  readonly name: string;
  /** Rows of one group stand together. */
  readonly group: string;
  readonly bars: readonly Bar[];
}

/** A moment, as a line through all rows with a text below them. */
export interface Mark {
  readonly atMs: number;
  readonly checker: string;
  readonly what: string;
  readonly kind: "expected" | "mended" | "violation";
}

/** A line of the table below the picture. */
export interface Line {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
}

/** What is drawn. */
export interface Picture {
  readonly title: string;
  /** One sentence below the title. */
  readonly summary: string;
  readonly endMs: number;
  /** When it begins, in milliseconds since 1970, if its times are to be those of a clock. */
  readonly originMs?: number;
  readonly rows: readonly Row[];
  readonly marks: readonly Mark[];
  readonly lines: readonly Line[];
  /** Each colour in CSS, and what it stands for. */
  readonly legend: readonly (readonly [style: string, text: string])[];
}

/** The hues of clients: from orange by green and blue to violet, because red means a loss. */
const HUE_MIN = 30, HUE_COUNT = 290;
/** Degrees between the hues of two clients: far from every simple part of the range. */
const HUE_STEP = 179;

/** The hue of a client, of any number of them; the first one is blue. */
export function hueOf(client: number): number {
  return HUE_MIN + (180 + client * HUE_STEP) % HUE_COUNT;
}

/** Makes the page. */
export function drawPicture({ title, summary, legend, ...data }: Picture): string {
  const samples = legend.map(([style, text]) => `<span><i style="${style}"></i>${text}</span>`);
  return PAGE.replaceAll("__TITLE__", () => escapeHtml(title))
    .replace("__SUMMARY__", () => escapeHtml(summary))
    .replace("__LEGEND__", () => samples.join(""))
    .replace("__DATA__", () => JSON.stringify(data).replaceAll("<", "\\u003c"));
}

/** `1 lock`, `2 locks`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
  };
  return text.replace(/[&<>"]/gu, (character) => entities[character]);
}

const PAGE = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>__TITLE__</title>
<style>
:root { color-scheme: light dark; --ink: #1c2330; --paper: #fbfbf9; --line: #d9dbe0; --soft: #6b7280; --bad: #c81e3a; --outage: #4b5563; --fault: #d97706; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ee; --paper: #14171d; --line: #333945; --soft: #9aa3b2; --bad: #ff5d73; --outage: #8b93a3; --fault: #f2a33a; } }
body { margin: 1.5rem 2rem; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.25rem; margin: 0; }
p { margin: .2rem 0 .8rem; color: var(--soft); }
svg { display: block; width: 100%; font: 11px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .soft { fill: var(--soft); }
svg .grid { stroke: var(--line); }
svg .name { font-weight: 600; font-size: 13px; }
.hold { fill: hsl(var(--hue) 60% 42%); }
.key { fill: hsl(var(--hue) 45% 62%); opacity: .75; }
.wait { fill: hsl(var(--hue) 60% 50% / .18); stroke: hsl(var(--hue) 60% 50%); stroke-dasharray: 3 2; }
.denied { fill: none; stroke: var(--soft); stroke-dasharray: 3 2; }
.lost { fill: var(--bad); }
.outage { fill: var(--outage); opacity: .8; }
.fault { fill: var(--fault); opacity: .8; }
.mark { stroke-width: 1.5; }
.violation { stroke: var(--bad); fill: var(--bad); }
.expected { stroke: var(--bad); fill: var(--bad); stroke-dasharray: 4 3; }
.mended { stroke: var(--soft); fill: var(--soft); stroke-dasharray: 2 3; }
#legend span { display: inline-block; margin-right: 1.4em; }
#legend i { display: inline-block; width: 1.6em; height: .75em; margin-right: .45em; vertical-align: baseline; border-radius: 2px; }
table { border-collapse: collapse; margin-top: 1rem; font-size: 12px; }
td { padding: .12rem .8rem .12rem 0; vertical-align: top; border-top: 1px solid var(--line); }
td:first-child { font-variant-numeric: tabular-nums; text-align: right; }
summary { cursor: pointer; margin-top: 1rem; color: var(--soft); }
</style>
</head>
<body>
<h1>__TITLE__</h1>
<p>__SUMMARY__</p>
<div id="legend">__LEGEND__</div>
<div id="picture"></div>
<details><summary>What happened, line by line</summary><table id="lines"></table></details>
<script type="application/json" id="data">__DATA__</script>
<script>
"use strict";
const { endMs, originMs, rows, marks, lines } = JSON.parse(document.getElementById("data").textContent);
const WIDTH = 1300, RIGHT = 20, LANE = 15, GAP = 10, TOP = 26, NAME_MAX = 38, LANES_MAX = 16;
const cut = (name) => name.length > NAME_MAX ? name.slice(0, NAME_MAX - 1) + "…" : name;
const LEFT = Math.max(80, 7.2 * Math.max(0, ...rows.map(({ name }) => cut(name).length)) + 12);
const scale = (ms) => LEFT + Math.min(ms, endMs) / endMs * (WIDTH - LEFT - RIGHT);
const svg = [];
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => "&#" + c.charCodeAt(0) + ";");
const seconds = (ms) => (ms / 1000).toFixed(3).replace(/\\.?0+$/, "") + " s";
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 };
const clock = (ms) => new Date(originMs + ms).toLocaleTimeString("sv", CLOCK).replace(",", ".");
const time = originMs === undefined ? seconds : clock;
const axis = (ms) => originMs === undefined ? ms / 1000 + " s" : clock(ms).slice(0, step < 1000 ? 12 : 8);

/** Puts bars that overlap into lanes of their own. */
function lanesOf(bars) {
  const lanes = [];
  for (const bar of [...bars].sort((a, b) => a.fromMs - b.fromMs)) {
    let lane = lanes.findIndex((ends) => ends <= scale(bar.fromMs));
    if (lane < 0) lane = lanes.length < LANES_MAX ? lanes.push(0) - 1 : LANES_MAX - 1;
    lanes[lane] = Math.max(scale(bar.toMs), scale(bar.fromMs) + 3) + 1;
    bar.lane = lane;
  }
  return lanes.length;
}

function drawBar(bar, y) {
  const x = scale(bar.fromMs), width = Math.max(scale(bar.toMs) - x, 3);
  const words = [bar.text, bar.short].find((text) => width > 6 * text.length + 6);
  const label = words
    ? '<text x="' + (x + 4) + '" y="' + (y + LANE - 5) + (/^(hold|key|outage|fault)$/.test(bar.kind) ? '" style="fill:#fff;' : '" style="') + 'pointer-events:none">' + escaped(words) + "</text>"
    : "";
  svg.push('<rect class="' + bar.kind + '" x="' + x + '" y="' + y + '" width="' + width + '" height="' + (LANE - 2) +
    '" rx="2"' + (bar.hue === undefined ? ' style="--hue:0"' : ' style="--hue:' + bar.hue + '"') + "><title>" +
    escaped(bar.text + "\\n" + time(bar.fromMs) + " to " + time(bar.toMs) + " (" + seconds(bar.toMs - bar.fromMs) + ")") + "</title></rect>" + label);
}

let y = TOP;
let group = "";
for (const row of rows) {
  if (row.group !== group) y += group ? 14 : 0;
  group = row.group;
  const bars = row.bars.filter((bar) => bar.fromMs < endMs);
  const top = y;
  for (const kinds of [["hold", "key"], ["wait", "denied"], ["lost", "outage", "fault"]]) {
    const part = bars.filter((bar) => kinds.includes(bar.kind));
    const lanes = lanesOf(part);
    for (const bar of part) drawBar(bar, y + bar.lane * LANE);
    y += lanes * LANE;
  }
  y = Math.max(y, top + LANE) + GAP;
  svg.push('<text class="name" x="0" y="' + (top + 12) + '"><title>' + escaped(row.name) + "</title>" + escaped(cut(row.name)) + "</text>");
  svg.push('<line class="grid" x1="0" x2="' + WIDTH + '" y1="' + (y - GAP / 2) + '" y2="' + (y - GAP / 2) + '"/>');
}
const step = [.001, .01, .1, .2, .5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400].find((s) => endMs / 1000 / s <= 14) * 1000 || endMs;
for (let ms = originMs === undefined ? 0 : step - originMs % step; ms <= endMs; ms += step) {
  svg.unshift('<line class="grid" x1="' + scale(ms) + '" x2="' + scale(ms) + '" y1="' + (TOP - 6) + '" y2="' + y + '"/>' +
    '<text class="soft" text-anchor="middle" x="' + scale(ms) + '" y="' + (TOP - 11) + '">' + axis(ms) + "</text>");
}
marks.filter((mark) => mark.atMs <= endMs).slice(0, 30).forEach((mark, index) => {
  const x = scale(mark.atMs), textY = y + 14 + index * 14;
  const end = x > WIDTH * .6 ? ' text-anchor="end"' : "";
  const words = mark.checker + (mark.what ? ": " + mark.what : "");
  const fits = Math.floor((end ? x - 4 : WIDTH - x - 4) / 5.6);
  svg.push('<line class="mark ' + mark.kind + '" x1="' + x + '" x2="' + x + '" y1="' + (TOP - 6) + '" y2="' + textY + '"/>' +
    '<text' + end + ' x="' + (x + (end ? -4 : 4)) + '" y="' + textY + '"><title>' + escaped(words) +
    "</title>" + escaped(words.length > fits ? words.slice(0, fits - 1) + "…" : words) + "</text>");
});
y += 24 + Math.min(marks.length, 30) * 14;
document.getElementById("picture").innerHTML = '<svg viewBox="0 0 ' + WIDTH + " " + y + '">' + svg.join("") + "</svg>";
document.getElementById("lines").innerHTML = lines.slice(0, 5000).map((line) =>
  "<tr><td>" + (originMs === undefined ? line.atMs.toFixed(3) : escaped(time(line.atMs))) + "</td><td>" + escaped(line.who) + "</td><td>" + escaped(line.what) + "</td></tr>").join("");
document.body.dataset.drawn = String(document.querySelectorAll("svg rect").length);
</script>
</body>
</html>
`;
