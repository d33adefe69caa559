/**
 * A picture of who held what when: one HTML file that needs nothing else, for runs of the simulator
 * and for real events.
 *
 * @module
 */

/** A bar of the picture. */
export interface Bar {
  /** In milliseconds, as the ends of the picture. */
  readonly fromMs: number;
  readonly toMs: number;
  /** As much of it as there is room for is shown. */
  readonly text: string;
  /** Its class, which gives the colour. */
  readonly kind: "denied" | "fault" | "hold" | "key" | "lost" | "outage" | "wait";
  /** The colour of the client whose it is. */
  readonly hue?: number | undefined;
}

/** What happened to one client, node or resource. */
export interface Row {
  readonly name: string;
  /** Rows of one group stand together. */
  readonly group: number;
  readonly bars: readonly Bar[];
}

/** A moment, as a line through all rows, and a line of text below them. */
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
  readonly startMs: number;
  readonly endMs: number;
  /** Whether its times are those of a clock, in milliseconds since 1970. */
  readonly isClock: boolean;
  readonly rows: readonly Row[];
  readonly marks: readonly Mark[];
  readonly lines: readonly Line[];
  /** Each class, and what it stands for. */
  readonly legend: readonly (readonly [kind: Bar["kind"] | Mark["kind"], text: string])[];
}

/** The hues of clients: from orange by green and blue to violet, because red means a loss. */
const HUE_MIN = 30, HUE_COUNT = 290;
/** Degrees between the hues of two clients: far from every simple part of the range. */
const HUE_STEP = 179;
/** The kinds of bars that share lanes, from top to bottom. */
const LANES: readonly (readonly Bar["kind"][])[] = [
  ...[["hold", "key"], ["wait", "denied"], ["lost", "outage", "fault"]] as const,
];
/** Most lanes of some kinds. */
const LANES_MAX = 16;
const LANE_PX = 15;
/** What part of the picture a bar fills at least. */
const BAR_MIN = 0.002;
/** Most columns of the names of rows. */
const NAME_MAX = 38;
/** Most marks. */
const MARKS_MAX = 30;
/** Most parts of the time axis, and how long they may be, in seconds. */
const PARTS_MAX = 14;
const PART_SECONDS = [
  ...[.001, .01, .1, .2, .5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400],
];

/** The hue of a client, of any number of them; the first one is blue. */
export function hueOf(client: number): number {
  return HUE_MIN + (180 + client * HUE_STEP) % HUE_COUNT;
}

/** `1 lock`, `2 locks`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/gu, (character) => `&#${character.charCodeAt(0)};`);
}

const CLOCK = new Intl.DateTimeFormat("sv", {
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 } as const,
});

function seconds(ms: number): string {
  return `${Number((ms / 1_000).toFixed(3))} s`;
}

/** A time as `04:05:06.789`, by this machine's time zone, or in seconds. */
function timeText({ isClock }: Picture, ms: number): string {
  return isClock ? CLOCK.format(ms).replace(",", ".") : seconds(ms);
}

/** Where a time is, as a share of the width. */
function placeOf({ startMs, endMs }: Picture, ms: number): string {
  return `${Number(((ms - startMs) / (endMs - startMs) * 100).toFixed(3))}%`;
}

/** The parts of the time axis, as lines through all rows. */
function axisHtml(picture: Picture): string {
  const { startMs, endMs, isClock } = picture;
  const lengthMs = endMs - startMs;
  const partMs = PART_SECONDS.map((seconds) => seconds * 1_000)
    .find((ms) => lengthMs / ms <= PARTS_MAX) ?? lengthMs;
  let html = "";
  for (let ms = Math.ceil(startMs / partMs) * partMs; ms <= endMs; ms += partMs) {
    const text = timeText(picture, ms).slice(0, isClock && partMs >= 1_000 ? 8 : undefined);
    html += `<s style="left:${placeOf(picture, ms)}"><u>${text}</u></s>`;
  }
  return html;
}

/** A row; bars that overlap are in lanes of their own. */
function rowHtml(picture: Picture, { name, bars }: Row): string {
  const { startMs, endMs } = picture;
  let html = "", lanes = 0;
  for (const kinds of LANES) {
    const ends: number[] = [];
    const shown = bars.filter(({ kind, fromMs }) => kinds.includes(kind) && fromMs < endMs);
    for (const bar of shown.sort((a, b) => a.fromMs - b.fromMs)) {
      let lane = ends.findIndex((endMs) => endMs <= bar.fromMs);
      if (lane < 0) lane = Math.min(ends.length, LANES_MAX - 1);
      ends[lane] = Math.max(bar.toMs, bar.fromMs + (endMs - startMs) * BAR_MIN);
      html += barHtml(picture, bar, lanes + lane);
    }
    lanes += ends.length;
  }
  const style = `height:${Math.max(lanes, 1) * LANE_PX}px`;
  return `<div style="${style}"><b title="${escapeHtml(name)}">${
    escapeHtml(name)
  }</b>${html}</div>`;
}

function barHtml(picture: Picture, { kind, fromMs, toMs, hue = 0, text }: Bar, lane: number) {
  const { endMs } = picture;
  const [from, to] = [fromMs, toMs].map((ms) => timeText(picture, ms));
  const title = `${escapeHtml(text)}\n${from} to ${to} (${seconds(toMs - fromMs)})`;
  const right = placeOf(picture, endMs - Math.min(toMs, endMs) + picture.startMs);
  const style = `left:${placeOf(picture, fromMs)};right:${right};top:${lane * LANE_PX}px`;
  return `<i class="${kind}" style="${style};--hue:${hue}" title="${title}">${
    escapeHtml(text)
  }</i>`;
}

/** Makes the page. The browser does the layout: what stands where in time is a share of a width. */
export function drawPicture(picture: Picture): string {
  const { rows, endMs } = picture;
  const marks = picture.marks.filter(({ atMs }) => atMs <= endMs).slice(0, MARKS_MAX);
  const markText = ({ atMs, checker, what }: Mark) =>
    escapeHtml(`${timeText(picture, atMs)}: ${checker}${what && `: ${what}`}`);
  const markLine = (mark: Mark) => {
    const style = `left:${placeOf(picture, mark.atMs)}`;
    return `<s class="${mark.kind}" style="${style}" title="${markText(mark)}"></s>`;
  };
  const rowsText = rows.map((row, index) => {
    const isFirst = index > 0 && row.group !== rows[index - 1].group;
    return (isFirst ? "<hr>" : "") + rowHtml(picture, row);
  });
  const columns = Math.min(NAME_MAX, Math.max(0, ...rows.map(({ name }) => name.length)));
  const [title, summary] = [picture.title, picture.summary].map(escapeHtml);
  const legend = picture.legend.map(([kind, text]) => `<span><i class="${kind}"></i>${text}</span>`)
    .join("\n");
  const lines = picture.lines.map(({ atMs, who, what }) =>
    `<tr><td>${timeText(picture, atMs)}<td>${escapeHtml(who)}<td>${escapeHtml(what)}\n`
  );
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${title}</h1>
<p>${summary}</p>
<div id="legend">${legend}</div>
<div id="picture" style="--names:${columns}ch">
${axisHtml(picture)}${marks.map(markLine).join("")}
${rowsText.join("\n")}
${marks.map((mark) => `<p class="${mark.kind}">${markText(mark)}</p>`).join("\n")}
</div>
<details><summary>What happened, line by line</summary><table>
${lines.join("")}</table></details>
</body>
</html>
`;
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2330; --paper: #fbfbf9; --line: #d9dbe0; --soft: #6b7280; --bad: #c81e3a; --outage: #4b5563; --fault: #d97706; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ee; --paper: #14171d; --line: #333945; --soft: #9aa3b2; --bad: #ff5d73; --outage: #8b93a3; --fault: #f2a33a; } }
body { margin: 1.5rem 2rem; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.25rem; margin: 0; }
p { margin: .2rem 0 .8rem; color: var(--soft); }
#picture { position: relative; margin: 3rem 2rem 0 calc(var(--names) + 12px); }
#picture > div { position: relative; margin-bottom: 10px; }
#picture > hr { margin: 14px 0; border: 0; }
#picture > p { margin: 0; font-size: 11px; }
#picture b { position: absolute; right: calc(100% + 12px); text-overflow: ellipsis; width: var(--names); font-size: 13px; font-weight: 600; }
#picture b, #picture i, #picture p { overflow: hidden; white-space: nowrap; }
#picture i { position: absolute; height: 13px; min-width: 3px; font: 11px/13px system-ui, sans-serif; text-indent: 3px; border-radius: 2px; box-sizing: border-box; }
s { position: absolute; top: -6px; bottom: 0; border-left: 1px solid var(--line); text-decoration: none; }
u { position: absolute; bottom: 100%; transform: translateX(-50%); white-space: nowrap; font-size: 11px; color: var(--soft); text-decoration: none; }
.hold { background: hsl(var(--hue) 60% 42%); color: #fff; }
.key { background: hsl(var(--hue) 45% 62% / .75); color: #fff; }
.wait { background: hsl(var(--hue) 60% 50% / .18); border: 1px dashed hsl(var(--hue) 60% 50%); }
.denied { border: 1px dashed var(--soft); }
.lost { background: var(--bad); color: #fff; }
.outage { background: var(--outage); color: #fff; }
.fault { background: var(--fault); color: #fff; }
.violation, .expected { border-color: var(--bad); color: var(--bad); }
s.expected { border-left-style: dashed; }
s.mended { border-left-style: dotted; border-color: var(--soft); }
#legend span { display: inline-block; margin-right: 1.4em; }
#legend i { --hue: 210; display: inline-block; width: 1.6em; height: .75em; margin-right: .45em; border-radius: 2px; }
#legend i.violation { height: 2px; vertical-align: middle; background: var(--bad); }
table { border-collapse: collapse; margin-top: 1rem; font-size: 12px; }
td { padding: .12rem .8rem .12rem 0; vertical-align: top; border-top: 1px solid var(--line); }
td:first-child { font-variant-numeric: tabular-nums; text-align: right; }
summary { cursor: pointer; margin-top: 1rem; color: var(--soft); }
`;
