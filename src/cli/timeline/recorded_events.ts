/**
 * Events that were written as lines of JSON, and the picture of them.
 *
 * @module
 */
import { masked, maskedName } from "../terminal.ts";
import {
  type Bar,
  counted,
  hueOf,
  type Line,
  type Mark,
  type Picture,
  type Row,
} from "./drawing.ts";

/** Most bars of a picture: a browser draws more too slowly. */
const BARS_MAX = 20_000;
/** Most lines below it. */
const LINES_MAX = 5_000;
/** The groups of rows. */
const RESOURCES = "resource", NODES = "node";

/** An event as it was written. */
interface Recorded {
  /** When it was emitted, in milliseconds since 1970. */
  readonly timeMs: number;
  /** Which process has emitted it. */
  readonly process: string;
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A lock that was held, or a call that waited for one. */
interface Span {
  readonly row: string;
  readonly process: string;
  readonly holder: string | undefined;
  readonly fromMs: number;
}

/** A node that a process cannot reach. */
interface Outage {
  readonly process: string;
  readonly node: string;
  readonly fromMs: number;
}

/** The events of all files, in the order of their times. */
export class RecordedEvents {
  readonly #events: Recorded[] = [];
  /** How many lines are no events. */
  skipped = 0;

  /**
   * Reads lines.
   *
   * @param text One JSON object a line, with `type` and the other fields of an event, and with its
   * time: `timeMs`, or `time` in milliseconds or as a date.
   * @param source The name of the process, if the lines have none.
   */
  read(text: string, source: string): void {
    for (const line of text.split("\n")) {
      if (line.trim() === "") continue;
      const event = recorded(line, source);
      if (event) this.#events.push(event);
      else this.skipped++;
    }
  }

  /** How many events there are. */
  get count(): number {
    return this.#events.length;
  }

  /** The picture of all of them. */
  picture(title: string): Picture {
    const events = this.#events.sort((a, b) => a.timeMs - b.timeMs);
    const processes = [...new Set(events.map(({ process }) => process))].sort();
    const hues = new Map(processes.map((process, index) => [process, hueOf(index)]));
    const drawn = new Drawn(hues);
    for (const event of events) drawn.add(event);
    const lastMs = events.at(-1)?.timeMs ?? 0;
    drawn.end(lastMs);
    const { originMs, rows, marks, counts, dropped } = drawn.finish();
    const at = ({ timeMs }: Recorded) => timeMs - originMs;
    const locks = rows.filter(({ group }) => group === RESOURCES).length;
    const more = dropped > 0 ? ` The first ${dropped} bars are left out.` : "";
    return {
      title,
      summary: `${counted(locks, "resource")}, ${
        counted(processes.length, "process", "processes")
      }: ${counts}.${more}`,
      endMs: Math.max(1, (lastMs - originMs) * 1.01),
      originMs,
      rows,
      marks,
      lines: events.slice(-LINES_MAX).map((event): Line => {
        return { atMs: at(event), who: event.process, what: lineText(event) };
      }),
      legend: LEGEND,
    };
  }
}

const LEGEND = [
  ["background:hsl(210 60% 42%)", "a lock that is held (a colour a process)"],
  [
    "background:hsl(210 60% 50% / .18);outline:1px dashed hsl(210 60% 50%)",
    "a call that waits, and gets the lock at its end",
  ],
  ["outline:1px dashed var(--soft)", "a call that waits without success"],
  ["background:var(--bad)", "a lock that was lost"],
  ["background:var(--outage)", "a node that a process could not reach"],
] as const;

function recorded(line: string, source: string): Recorded | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null) return undefined;
  const fields = parsed as Record<string, unknown>;
  const { type, timeMs, time, process, hostname, pid } = fields;
  const atMs = [timeMs, time].map(millisecondsOf).find((ms) => ms !== undefined);
  if (typeof type !== "string" || atMs === undefined) return undefined;
  const host = typeof hostname === "string" ? `${hostname}:${pid}` : source; // as pino writes it
  return { timeMs: atMs, process: typeof process === "string" ? process : host, type, fields };
}

function millisecondsOf(time: unknown): number | undefined {
  const ms = typeof time === "string" ? Date.parse(time) : time;
  return typeof ms === "number" && Number.isFinite(ms) ? ms : undefined;
}

/** The bars and marks of events that are added in the order of their times. */
class Drawn {
  readonly #hues: ReadonlyMap<string, number>;
  readonly #bars: { readonly row: string; readonly group: string; readonly bar: Bar }[] = [];
  readonly #marks: Mark[] = [];
  /** The locks that have no end yet, and those that were lost: a release may follow. */
  readonly #held: Set<Span> = new Set();
  readonly #lost: Set<Span> = new Set();
  /** The nodes that cannot be reached, by the process and the node. */
  readonly #down: Map<string, Outage> = new Map();
  readonly #counts = { acquired: 0, denied: 0, lost: 0 };

  constructor(hues: ReadonlyMap<string, number>) {
    this.#hues = hues;
  }

  add(event: Recorded): void {
    const { type, fields, timeMs, process } = event;
    switch (type) {
      case "acquired":
        this.#counts.acquired++;
        this.#wait(event, "wait");
        this.#held.add({
          row: rowOf(fields),
          process,
          holder: textField(fields.holder),
          fromMs: timeMs,
        });
        return;
      case "denied":
        this.#counts.denied++;
        return this.#wait(event, "denied");
      case "released":
      case "release-failed":
      case "handed-over":
        return this.#endHold(event);
      case "lost":
        this.#counts.lost++;
        this.#endHold(event);
        return this.#lose(event);
      case "node-disconnected": {
        const name = `${process} ${fields.node}`;
        if (this.#down.has(name)) return; // for another client of the process
        this.#down.set(name, { process, node: masked(String(fields.node)), fromMs: timeMs });
        return;
      }
      case "node-connected":
        return this.#endOutage(`${process} ${fields.node}`, timeMs);
    }
  }

  /** Ends what has no end, at the last event. */
  end(lastMs: number): void {
    for (const span of this.#held) this.#hold(span, lastMs, "still held");
    for (const name of this.#down.keys()) this.#endOutage(name, lastMs);
  }

  finish() {
    const bars = this.#bars.slice(-BARS_MAX);
    const originMs = bars.reduce((first, { bar }) => Math.min(first, bar.fromMs), Infinity);
    const rows = new Map<string, { name: string; group: string; bars: Bar[] }>();
    for (const { row, group, bar } of bars) {
      const name = `${group} ${row}`;
      const found = rows.get(name) ?? { name: row, group, bars: [] };
      rows.set(name, found);
      found.bars.push({ ...bar, fromMs: bar.fromMs - originMs, toMs: bar.toMs - originMs });
    }
    const order = ({ group }: Row) => group === RESOURCES ? 0 : 1;
    const sorted = [...rows.values()].sort((a, b) =>
      order(a) - order(b) || a.name.localeCompare(b.name, "en", { numeric: true })
    );
    const { acquired, denied, lost } = this.#counts;
    return {
      originMs: originMs === Infinity ? 0 : originMs,
      rows: sorted,
      marks: this.#marks.map((mark) => ({ ...mark, atMs: mark.atMs - originMs })),
      counts: `${acquired} acquired, ${denied} denied, ${lost} lost`,
      dropped: this.#bars.length - bars.length,
    };
  }

  #draw(row: string, group: string, bar: Bar): void {
    this.#bars.push({ row, group, bar });
  }

  /** The wait of a call, which has ended with this event. */
  #wait({ timeMs, process, fields }: Recorded, kind: "denied" | "wait"): void {
    const elapsedMs = numberField(fields.elapsedMs) ?? 0;
    const how = kind === "wait" ? "and got it" : `and did not get it: ${fields.reason}`;
    this.#draw(rowOf(fields), RESOURCES, {
      fromMs: timeMs - elapsedMs,
      toMs: timeMs,
      text: `${process} asked for it ${how}`,
      short: process,
      kind,
      hue: this.#hues.get(process),
    });
  }

  /**
   * Ends the lock that this event is about: that of the process which began when the event says.
   */
  #endHold({ timeMs, process, type, fields }: Recorded): void {
    const row = rowOf(fields);
    const fromMs = timeMs - (numberField(fields.heldMs) ?? 0);
    // a release is emitted when it is over
    const endMs = timeMs - (numberField(fields.elapsedMs) ?? 0);
    const own = [...this.#held, ...this.#lost].filter((span) =>
      span.row === row && span.process === process
    );
    const distance = (span: Span) => Math.abs(span.fromMs - fromMs);
    const [span = { row, process, holder: undefined, fromMs }] = own.sort((a, b) =>
      distance(a) - distance(b)
    );
    if (this.#lost.delete(span)) return;
    this.#held.delete(span);
    if (type === "lost") this.#lost.add(span);
    const how = type === "released" && fields.confirmed === false ? "it was gone" : type;
    this.#hold(span, endMs, how);
  }

  #hold({ row, process, holder, fromMs }: Span, toMs: number, end: string): void {
    const who = holder === undefined ? process : `${process} (${holder})`;
    this.#draw(row, RESOURCES, {
      fromMs,
      toMs: Math.max(fromMs, toMs),
      text: `${who}: ${end}`,
      short: process,
      kind: "hold",
      hue: this.#hues.get(process),
    });
  }

  #lose({ timeMs, process, fields }: Recorded): void {
    const row = rowOf(fields);
    const why = textField(fields.cause) ?? textField(fields.reason) ?? "";
    const text = `${process} lost it: ${why}`;
    this.#draw(row, RESOURCES, { fromMs: timeMs, toMs: timeMs, text, short: "lost", kind: "lost" });
    this.#marks.push({
      atMs: timeMs,
      checker: `${process} lost ${row}`,
      what: why,
      kind: "violation",
    });
  }

  #endOutage(name: string, timeMs: number): void {
    const outage = this.#down.get(name);
    if (!outage) return;
    this.#down.delete(name);
    const { process, node, fromMs } = outage;
    const text = `${process} could not reach it`;
    this.#draw(node, NODES, { fromMs, toMs: timeMs, text, short: process, kind: "outage" });
  }
}

/** The row of an event about a lock. */
function rowOf({ resources }: Recorded["fields"]): string {
  return Array.isArray(resources) ? resources.map(String).map(maskedName).join(" + ") : "?";
}

function textField(field: unknown): string | undefined {
  // as loggers write errors
  const message = (field as { message?: unknown } | null | undefined)?.message;
  const text = typeof field === "string" ? field : message;
  return typeof text === "string" ? masked(text) : undefined;
}

function numberField(field: unknown): number | undefined {
  return typeof field === "number" && Number.isFinite(field) ? field : undefined;
}

/** An event as a line: its type, and its fields that are short. */
function lineText({ type, fields }: Recorded): string {
  const parts = Object.entries(fields).flatMap(([name, value]) => {
    const text = textField(value) ?? (typeof value === "object" ? undefined : String(value));
    return text === undefined || LEFT_OUT.includes(name) ? [] : [`${name} ${text}`];
  });
  const row = "resources" in fields ? ` ${rowOf(fields)}` : "";
  return `${type}${row}: ${parts.join(", ")}`;
}

/** Fields that say what stands in the line already, and when and where an event was emitted. */
const LEFT_OUT = ["type", "timeMs", "time", "process", "hostname", "pid", "level"];
