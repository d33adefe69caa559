/**
 * A run as a picture: who held what when, what went wrong meanwhile, and who had a key where. One HTML file that
 * needs nothing else.
 *
 * @module
 */
import { describeFault } from "./faults.ts";
import type { Fault } from "./plan.ts";
import type { Outcome } from "./run.ts";

/** A bar of the picture. */
export interface Bar {
  readonly fromMs: number;
  readonly toMs: number;
  readonly text: string;
  /** The same in a word, where there is little room. */
  readonly short: string;
  /** Its class, which gives the colour. */
  readonly kind: string;
  /** The colour of the client whose it is. */
  readonly hue?: number;
}

/** What happened to one client or node. */
export interface Row {
  readonly name: string;
  readonly group: "client" | "node";
  readonly bars: readonly Bar[];
}

/** Degrees between the colours of two clients: far from every simple part of a circle. */
const HUE_STEP = 137;

/** Makes the page. */
export function timelineHtml(outcome: Outcome, title: string): string {
  const { world, plan } = outcome;
  const endMs = Math.ceil(lastMs(outcome));
  const rows = rowsOf(outcome);
  const marks = [
    ...world.violations.map((violation) => ({ ...violation, kind: "violation" })),
    ...world.excused.map((violation) => ({ ...violation, kind: "expected" })),
    ...world.store.late.map(({ atMs, what }) => ({
      atMs,
      checker: what,
      what: "",
      kind: "expected",
    })),
    { atMs: plan.healAtMs, checker: "all faults are mended", what: "", kind: "mended" },
  ];
  const data = { title, endMs, rows, marks, lines: outcome.world.trace.lines };
  const verdict = world.violations.length > 0
    ? counted(world.violations.length, "violation")
    : world.excused.length > 0
    ? `${counted(world.excused.length, "violation")}, as expected outside the assumptions`
    : "no violation";
  const summary =
    `${counted(plan.nodes.length, "node")}, ${counted(plan.clients.length, "client")}, ` +
    `${counted(plan.faults.length, "fault")}, ${counted(outcome.locks, "lock")}: ${verdict}`;
  return PAGE.replace("__TITLE__", () => escapeHtml(title))
    .replace("__HEADING__", () => escapeHtml(title))
    .replace("__SUMMARY__", () => escapeHtml(summary))
    .replace("__DATA__", () => JSON.stringify(data).replaceAll("<", "\\u003c"));
}

/** What happened to each client and each node. */
export function rowsOf(outcome: Outcome): Row[] {
  const { plan } = outcome;
  return [
    ...plan.clients.map((_, client): Row => ({
      name: `client-${client + 1}`,
      group: "client",
      bars: [...holdBars(outcome, client), ...faultBars(plan.faults, { client })],
    })),
    ...plan.nodes.map((_, node): Row => ({
      name: `node-${node + 1}`,
      group: "node",
      bars: [...keyBars(outcome, node), ...faultBars(plan.faults, { node })],
    })),
  ];
}

/** Where the picture ends: the faults, and a little of what came after. */
function lastMs({ world, plan }: Outcome): number {
  const ends = world.checkers.all.filter(({ sinceMs }) => sinceMs < plan.healAtMs)
    .flatMap(({ spans }) => spans.map(([, toMs]) => toMs))
    .filter((toMs) => toMs < Infinity);
  const faultMs = plan.faults.map((fault) => fault.atMs + ("forMs" in fault ? fault.forMs : 0));
  return 1.03 * Math.min(Math.max(1_000, ...ends, ...faultMs), 3 * plan.healAtMs);
}

function holdBars({ world }: Outcome, client: number): Bar[] {
  return world.checkers.all.filter((held) => held.client.index === client).flatMap((held) =>
    held.spans.map(([fromMs, toMs]): Bar => ({
      fromMs,
      toMs: toMs === Infinity ? world.loop.nowMs : toMs,
      text: `${held.lock.resources.join("+")} held (${held.lock.value.slice(0, 8)})`,
      short: held.lock.resources.join("+"),
      kind: "hold",
      hue: client * HUE_STEP,
    }))
  );
}

function keyBars({ world }: Outcome, node: number): Bar[] {
  return world.nodes[node].lives.map(({ key, value, fromMs, toMs }): Bar => {
    const client = world.values.get(value)?.client.index;
    return {
      fromMs,
      toMs,
      text: `${key} = ${value.slice(0, 8)}`,
      short: key,
      kind: "key",
      hue: client === undefined ? undefined : client * HUE_STEP,
    };
  });
}

function faultBars(faults: readonly Fault[], where: { client?: number; node?: number }): Bar[] {
  const bars: Bar[] = [];
  for (const fault of faults) {
    const touchesClient = "client" in fault && fault.client === where.client ||
      "clients" in fault && where.client !== undefined && fault.clients.includes(where.client);
    const touchesNode = "node" in fault && fault.node === where.node ||
      "nodes" in fault && where.node !== undefined && fault.nodes.includes(where.node);
    if (!touchesClient && !touchesNode) continue;
    const toMs = fault.atMs + ("forMs" in fault ? fault.forMs : 0);
    const kind = ["pause", "suspend", "crash", "hang", "die"].includes(fault.kind)
      ? "outage"
      : "fault";
    bars.push({ fromMs: fault.atMs, toMs, text: describeFault(fault), short: fault.kind, kind });
  }
  return bars;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
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
.hold { fill: hsl(var(--hue) 60% 48%); }
.key { fill: hsl(var(--hue) 45% 62%); opacity: .75; }
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
<h1>__HEADING__</h1>
<p>__SUMMARY__</p>
<div id="legend"></div>
<div id="picture"></div>
<details><summary>What happened, line by line</summary><table id="lines"></table></details>
<script type="application/json" id="data">__DATA__</script>
<script>
"use strict";
const { endMs, rows, marks, lines } = JSON.parse(document.getElementById("data").textContent);
const WIDTH = 1300, LEFT = 80, RIGHT = 20, LANE = 15, GAP = 10, TOP = 26;
const scale = (ms) => LEFT + Math.min(ms, endMs) / endMs * (WIDTH - LEFT - RIGHT);
const svg = [];
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => "&#" + c.charCodeAt(0) + ";");
const time = (ms) => (ms / 1000).toFixed(3).replace(/\\.?0+$/, "") + " s";

/** Puts bars that overlap into lanes of their own. */
function lanesOf(bars) {
  const lanes = [];
  for (const bar of [...bars].sort((a, b) => a.fromMs - b.fromMs)) {
    let lane = lanes.findIndex((ends) => ends <= scale(bar.fromMs));
    if (lane < 0) lane = lanes.push(0) - 1;
    lanes[lane] = Math.max(scale(bar.toMs), scale(bar.fromMs) + 3) + 1;
    bar.lane = lane;
  }
  return lanes.length;
}

function drawBar(bar, y) {
  const x = scale(bar.fromMs), width = Math.max(scale(bar.toMs) - x, 3);
  const words = [bar.text, bar.short].find((text) => width > 6 * text.length + 6);
  const label = words
    ? '<text x="' + (x + 4) + '" y="' + (y + LANE - 5) + '" style="fill:#fff;pointer-events:none">' + escaped(words) + "</text>"
    : "";
  svg.push('<rect class="' + bar.kind + '" x="' + x + '" y="' + y + '" width="' + width + '" height="' + (LANE - 2) +
    '" rx="2"' + (bar.hue === undefined ? ' style="--hue:0"' : ' style="--hue:' + bar.hue % 360 + '"') + "><title>" +
    escaped(bar.text + "\\n" + time(bar.fromMs) + " to " + time(bar.toMs)) + "</title></rect>" + label);
}

let y = TOP;
let group = "";
for (const row of rows) {
  if (row.group !== group) y += group ? 14 : 0;
  group = row.group;
  const bars = row.bars.filter((bar) => bar.fromMs < endMs);
  const own = bars.filter((bar) => bar.hue !== undefined), wrong = bars.filter((bar) => bar.hue === undefined);
  const top = y;
  for (const part of [own, wrong]) {
    const lanes = lanesOf(part);
    for (const bar of part) drawBar(bar, y + bar.lane * LANE);
    y += lanes * LANE;
  }
  y = Math.max(y, top + LANE) + GAP;
  svg.push('<text class="name" x="0" y="' + (top + 12) + '">' + row.name + "</text>");
  svg.push('<line class="grid" x1="0" x2="' + WIDTH + '" y1="' + (y - GAP / 2) + '" y2="' + (y - GAP / 2) + '"/>');
}
const step = [.1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 1000].find((s) => endMs / 1000 / s <= 14) * 1000 || endMs;
for (let ms = 0; ms <= endMs; ms += step) {
  svg.unshift('<line class="grid" x1="' + scale(ms) + '" x2="' + scale(ms) + '" y1="' + (TOP - 6) + '" y2="' + y + '"/>' +
    '<text class="soft" text-anchor="middle" x="' + scale(ms) + '" y="' + (TOP - 11) + '">' + ms / 1000 + " s</text>");
}
marks.filter((mark) => mark.atMs <= endMs).slice(0, 30).forEach((mark, index) => {
  const x = scale(mark.atMs), textY = y + 14 + index * 14;
  const end = x > WIDTH * .6 ? ' text-anchor="end"' : "";
  svg.push('<line class="mark ' + mark.kind + '" x1="' + x + '" x2="' + x + '" y1="' + (TOP - 6) + '" y2="' + textY + '"/>' +
    '<text' + end + ' x="' + (x + (end ? -4 : 4)) + '" y="' + textY + '">' + escaped(mark.checker + (mark.what ? ": " + mark.what : "")) + "</text>");
});
y += 24 + Math.min(marks.length, 30) * 14;
document.getElementById("picture").innerHTML = '<svg viewBox="0 0 ' + WIDTH + " " + y + '">' + svg.join("") + "</svg>";
const sample = (style, text) => '<span><i style="' + style + '"></i>' + text + "</span>";
document.getElementById("legend").innerHTML = sample("background:hsl(0 60% 48%)", "a lock in hand (a colour a client)") +
  sample("background:hsl(0 45% 62%)", "its key on a node") + sample("background:var(--outage)", "stopped, down or dead") +
  sample("background:var(--fault)", "another fault") + sample("background:var(--bad);height:2px;vertical-align:middle", "a violation");
document.getElementById("lines").innerHTML = lines.slice(0, 5000).map((line) =>
  "<tr><td>" + line.atMs.toFixed(3) + "</td><td>" + escaped(line.who) + "</td><td>" + escaped(line.what) + "</td></tr>").join("");
document.body.dataset.drawn = String(document.querySelectorAll("svg rect").length);
</script>
</body>
</html>
`;
