/**
 * Draws the pictures of the manual: what happened in scenarios of the simulator, each in one SVG file for light and
 * dark. Run it after a change of the lock that the pictures should show: `deno run -A scripts/docs/pictures.ts`.
 *
 * @module
 */

import { join } from "node:path";
import { type Outcome, run } from "../../tests/simulation/support/run.ts";
import { SCENARIOS } from "../../tests/simulation/support/scenarios.ts";
import { type Bar, type Row, rowsOf } from "../../tests/simulation/support/timeline.ts";
import { ROOT } from "../package/tools.ts";

/** One picture. */
export interface Picture {
  /** The scenario that it shows. */
  readonly scenario: string;
  /** Where it ends, in milliseconds of simulated time. */
  readonly endMs: number;
  /** What stands beside the first moment at which something went wrong. */
  readonly mark?: string;
}

/** The pictures, by their files in `docs/pictures`. */
export const PICTURES: Readonly<Record<string, Picture>> = {
  "paused_holder.svg": {
    scenario: "a process that is paused between its look at the lock and its write writes late",
    endMs: 4_000,
    mark: "client 1 continues, and writes although client 2 holds the lock",
  },
  "forgetful_node.svg": {
    scenario: "a node that restarts empty where a bare quorum granted lets another in",
    endMs: 4_000,
    mark: "from here on, both clients hold the lock",
  },
  "restart_guard.svg": {
    scenario: "with the guard a node that restarts empty under a bare quorum lets nobody in",
    endMs: 8_000,
  },
};

/** What is written on a bar, by its kind or its fault. */
const WORDS: Readonly<Record<string, string>> = {
  hold: "holds the lock",
  key: "key",
  pause: "paused",
  crash: "restarts empty",
  partition: "cut off from node 3",
};

const WIDTH = 560;
const LEFT = 66;
const TOP = 24;
const LANE = 20;
const GAP = 8;
/** Bars that are shorter belong to attempts that failed at once, in milliseconds. */
const BAR_MS_MIN = 50;
/** About how wide a letter is, in pixels. */
const LETTER = 7;

const STYLE = `
svg { color-scheme: light dark; font: 13px system-ui, sans-serif; --ink: #1c2330; --line: #d9dbe0; }
text { fill: var(--ink); }
line { stroke: var(--line); }
.name { font-weight: 600; }
.on { fill: #fff; }
.client-1 { fill: #1d6fb8; }
.client-2 { fill: #0f7b4f; }
.key { opacity: .7; }
.outage { fill: #4b5563; }
.fault { fill: #b45309; }
.mark { stroke: #d11a3a; stroke-width: 2; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) { svg { --ink: #e7e9ee; --line: #3a4150; } }`;

/** Draws what happened up to the end of the picture. */
export function svgOf(outcome: Outcome, { scenario, endMs, mark }: Picture): string {
  const scale = (ms: number) => Math.round(LEFT + Math.min(ms, endMs) / endMs * (WIDTH - LEFT - 4));
  const rows = rowsOf(outcome);
  const parts: string[] = [];
  let y = TOP;
  for (const row of rows) {
    parts.push(`<text class="name" x="0" y="${y + 14}">${row.name.replace("-", " ")}</text>`);
    for (const lane of lanesOf(row, endMs)) {
      parts.push(...lane.map((bar) => drawBar(bar, rows, scale, y)));
      y += LANE;
    }
    y += GAP;
    parts.push(`<line x1="0" x2="${WIDTH}" y1="${y - GAP / 2}" y2="${y - GAP / 2}"/>`);
  }
  const grid = Array.from({ length: endMs / 1_000 }, (_, at) => {
    const x = scale(1_000 * at);
    return `<line x1="${x}" x2="${x}" y1="${TOP - 6}" y2="${y}"/>` +
      `<text x="${x}" y="12">${at} s</text>`;
  });
  const { world } = outcome;
  const wrongMs = [...world.store.late, ...world.violations, ...world.excused]
    .reduce((least, { atMs }) => Math.min(least, atMs), Infinity);
  if (mark !== undefined) {
    const x = scale(wrongMs);
    parts.unshift(
      `<line class="mark" x1="${x}" x2="${x}" y1="${TOP - 6}" y2="${y + 8}"/>`,
      `<text text-anchor="${x > WIDTH / 2 ? "end" : "start"}" x="${x}" y="${
        y + 22
      }">${mark}</text>`,
    );
  }
  const height = y + (mark === undefined ? 0 : 30);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${scenario}</title>
<style>${STYLE}
</style>
${[...grid, ...parts].join("\n")}
</svg>
`;
}

/** The bars of a row: its own, and what went wrong below them. */
function lanesOf({ group, bars }: Row, endMs: number): Bar[][] {
  const shown = bars.filter(({ fromMs, toMs, text }) =>
    fromMs < endMs && toMs - fromMs >= BAR_MS_MIN && !text.startsWith("hasp:")
  );
  const own = shown.filter(({ hue }) => hue !== undefined);
  const wrong = shown.filter(({ hue, short }) =>
    hue === undefined && (group === "client" || short !== "partition") // drawn once, at the client
  );
  return wrong.length === 0 ? [own] : [own, wrong];
}

function drawBar(
  { fromMs, toMs, kind, short, hue }: Bar,
  rows: readonly Row[],
  scale: (ms: number) => number,
  y: number,
): string {
  const [x, end] = [scale(fromMs), scale(toMs)];
  const owner = rows.find(({ group, bars }) =>
    group === "client" && hue !== undefined && bars.some((bar) => bar.hue === hue)
  );
  const text = WORDS[kind] ?? WORDS[short] ?? short;
  const room = end - x > LETTER * text.length + 8;
  const label = room
    ? `<text class="on" x="${x + 5}" y="${y + 14}">${text}</text>`
    : `<text x="${end + 5}" y="${y + 14}">${text}</text>`;
  return `<rect class="${kind} ${owner?.name ?? ""}" x="${x}" y="${y}" width="${end - x}" ` +
    `height="${LANE - 2}" rx="3"/>${label}`;
}

async function drawAll(): Promise<void> {
  const folder = join(ROOT, "docs/pictures");
  await Deno.mkdir(folder, { recursive: true });
  for (const [file, picture] of Object.entries(PICTURES)) {
    const { plan } = SCENARIOS.find(({ name }) => name === picture.scenario)!;
    await Deno.writeTextFile(join(folder, file), svgOf(await run(plan, true), picture));
  }
}

if (import.meta.main) await drawAll();
