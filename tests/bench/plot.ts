/**
 * The plot of throughput over locks in flight: an SVG that needs nothing else, light or dark as its
 * reader's system is.
 *
 * @module
 */

/** One line of the plot. */
export interface Series {
  /** The contender's name: `ours` and `floor` are drawn in their own ways. */
  readonly name: string;
  /** What stands beside the line. */
  readonly title: string;
  /** From left to right; a rate that is NaN was not measured. */
  readonly points: readonly Point[];
}

/** One measurement. */
export interface Point {
  readonly inFlight: number;
  /** Locks acquired and released per second. */
  readonly rate: number;
}

const WIDTH = 830;
const HEIGHT = 560;
/** The lines' area; right of it stand their names. */
const LEFT = 92;
const RIGHT = 524;
const TOP = 92;
const BOTTOM = 488;
/** Least distance of two names. */
const LABEL_GAP = 28;
/** A name further away from its line than this is connected with it. */
const CONNECTED_BEYOND = 3;

/**
 * Colours by class: light, dark. The background is drawn too, because the page around may be of the
 * other kind.
 */
const COLOURS: Record<string, readonly [light: string, dark: string]> = {
  back: ["#ffffff", "#0d1117"],
  text: ["#1f2328", "#e6edf3"],
  soft: ["#59636e", "#9198a1"],
  grid: ["#d1d9e0", "#30363d"],
  ours: ["#cf3f00", "#ff8f4d"],
  floor: ["#59636e", "#9198a1"],
  peer0: ["#0969da", "#58a6ff"],
  peer1: ["#1a7f37", "#3fb950"],
  peer2: ["#8250df", "#bc8cff"],
  peer3: ["#bf3989", "#f778ba"],
  peer4: ["#1b7c83", "#39c5cf"],
};
const PEER_COLOURS = Object.keys(COLOURS).filter((name) => name.startsWith("peer")).length;

/** Draws the plot; lines without a measurement are left out. Both axes are logarithmic. */
export function throughputSvg(series: readonly Series[]): string {
  const lines = series
    .map((line) => ({ ...line, points: line.points.filter(({ rate }) => rate > 0) }))
    .filter(({ points }) => points.length > 0);
  const points = lines.flatMap(({ points }) => points);
  const x = logScale(points.map(({ inFlight }) => inFlight), [LEFT, RIGHT], [1]);
  const y = logScale(points.map(({ rate }) => rate), [BOTTOM, TOP], [1, 3]);
  const classes = classNames(lines);
  const labels = spread(lines.map(({ points }) => y.place(points.at(-1)!.rate)));
  // Drawn last, ours lies above the others.
  const order = [...lines.keys()].sort((a, b) =>
    Number(lines[a]!.name === "ours") - Number(lines[b]!.name === "ours")
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">`,
    `<title>Locks acquired and released per second</title>`,
    `<desc>${escape(describe(lines))}</desc>`,
    style(),
    `<rect class="back" width="${WIDTH}" height="${HEIGHT}" rx="8"/>`,
    `<text class="head" x="24" y="42">Locks acquired and released per second</text>`,
    `<text class="axis" x="24" y="70">five nodes, one client process, logarithmic scales</text>`,
    ...y.ticks.map((tick) => yTick(tick, y.place(tick))),
    ...x.ticks.map((tick) => xTick(tick, x.place(tick))),
    `<text class="axis" text-anchor="middle" x="${(LEFT + RIGHT) / 2}" y="${BOTTOM + 54}">` +
    `locks in flight at a time</text>`,
    ...order.map((index) => {
      const line = lines[index]!;
      const places = line.points.map((
        { inFlight, rate },
      ): Place => [x.place(inFlight), y.place(rate)]);
      return drawn(line, classes[index]!, places, labels[index]!);
    }),
    `</svg>`,
    "",
  ].join("\n");
}

type Place = readonly [x: number, y: number];

interface Scale {
  /** The numbers that are printed at it. */
  readonly ticks: readonly number[];
  place(value: number): number;
}

/**
 * A logarithmic scale over the values, with a tick where one of `digits` is followed by nothing but
 * zeros.
 */
function logScale(
  values: readonly number[],
  [start, end]: readonly [number, number],
  digits: readonly number[],
): Scale {
  const least = roundedDown(Math.min(...values));
  const greatest = -roundedDown(-Math.max(...values));
  const decades = Math.log10(greatest / least) || 1;
  const ticks: number[] = [];
  for (let unit = 10 ** Math.floor(Math.log10(least)); unit <= greatest; unit *= 10) {
    ticks.push(...digits.map((digit) => digit * unit));
  }
  return {
    ticks: ticks.filter((tick) => tick >= least && tick <= greatest),
    place: (value) => round(start + (end - start) * Math.log10(value / least) / decades),
  };
}

/**
 * The next number down that has one digit that is not zero; up, away from zero, for a negative
 * number.
 */
function roundedDown(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.abs(value)));
  return Math.floor(value / unit) * unit;
}

function classNames(lines: readonly Series[]): string[] {
  let peers = 0;
  return lines.map(({ name }) =>
    name === "ours" || name === "floor" ? name : `peer${peers++ % PEER_COLOURS}`
  );
}

/**
 * Moves names apart that would lie on each other, in their order, and keeps them within the area.
 */
function spread(places: readonly number[]): number[] {
  const order = [...places.keys()].sort((a, b) => places[a]! - places[b]!);
  const moved = [...places];
  for (let i = 1; i < order.length; i++) {
    const above = moved[order[i - 1]!]!;
    moved[order[i]!] = Math.max(moved[order[i]!]!, above + LABEL_GAP);
  }
  let limit = BOTTOM;
  for (const index of order.reverse()) {
    moved[index] = Math.min(moved[index]!, limit);
    limit = moved[index]! - LABEL_GAP;
  }
  return moved;
}

function drawn(
  { title, points }: Series,
  kind: string,
  places: readonly Place[],
  label: number,
): string {
  const [endX, endY] = places.at(-1)!;
  const isFar = Math.abs(label - endY) > CONNECTED_BEYOND;
  const radius = kind === "ours" ? 6 : 3.5;
  return [
    `<g class="${kind}">`,
    `<polyline points="${places.map((place) => place.join(",")).join(" ")}"/>`,
    ...places.map(([cx, cy], index) =>
      `<circle cx="${cx}" cy="${cy}" r="${radius}"><title>${escape(title)}, ` +
      `${grouped(points[index]!.inFlight)} in flight: ${
        grouped(points[index]!.rate)
      }</title></circle>`
    ),
    ...(isFar ? [`<path d="M${endX + 7},${endY} L${RIGHT + 20},${label}"/>`] : []),
    `<text x="${RIGHT + 24}" y="${label + 7}">${escape(title)}</text>`,
    `</g>`,
  ].join("\n");
}

function yTick(value: number, place: number): string {
  return `<path class="grid" d="M${LEFT},${place} H${RIGHT}"/>` +
    `<text class="axis" text-anchor="end" x="${LEFT - 12}" y="${place + 6}">${
      grouped(value)
    }</text>`;
}

function xTick(value: number, place: number): string {
  return `<path class="grid" d="M${place},${TOP} V${BOTTOM}"/>` +
    `<text class="axis" text-anchor="middle" x="${place}" y="${BOTTOM + 26}">${
      grouped(value)
    }</text>`;
}

function style(): string {
  const rules = (index: 0 | 1) =>
    Object.entries(COLOURS).map(([name, colours]) => `--${name}:${colours[index]}`).join(";");
  const lines = Object.keys(COLOURS).filter((name) => /^(ours|floor|peer\d)$/u.test(name)).map((
    name,
  ) =>
    `.${name} polyline,.${name} path{stroke:var(--${name})}` +
    `.${name} circle,.${name} text{fill:var(--${name})}`
  );
  return `<style>
svg{${rules(0)}}
@media (prefers-color-scheme:dark){svg{${rules(1)}}}
text{font:20px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.back{fill:var(--back)}
.head{font-size:25px;font-weight:600;fill:var(--text)}
.axis{font-size:18px;fill:var(--soft)}
.grid{stroke:var(--grid);fill:none}
polyline{fill:none;stroke-width:2.5;stroke-linejoin:round}
g path{stroke-width:1;opacity:.6}
${lines.join("\n")}
.floor polyline{stroke-dasharray:7 6}
.ours polyline{stroke-width:6}
.ours text{font-size:25px;font-weight:700}
</style>`;
}

/** What the plot shows, for readers who do not see it. */
function describe(lines: readonly Series[]): string {
  return lines.map(({ title, points }) =>
    `${title}: ${
      points.map(({ inFlight, rate }) => `${grouped(rate)} with ${grouped(inFlight)} in flight`)
        .join(", ")
    }`
  ).join("; ");
}

/** A whole number with its digits in groups of three. */
function grouped(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/gu, " ");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
