/**
 * Events that were written as lines of JSON, and the picture of them.
 *
 * @module
 */
import { masked, maskedName } from "../terminal.ts";
import { type Bar, counted, hueOf, type Mark, type Picture, type Row } from "./drawing.ts";

/** Most events that are drawn: a browser draws more too slowly. */
const EVENTS_MAX = 20_000;
/** Most of them that are listed below the picture. */
const LINES_MAX = 5_000;
/** The groups of rows, in their order. */
const RESOURCES = 0, NODES = 1;

/** An event as it was written. */
interface Recorded {
  /** When it was emitted, in milliseconds since 1970. */
  readonly timeMs: number;
  /** Which process has emitted it. */
  readonly process: string;
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A lock that is held, or a node that a process cannot reach. */
interface Span {
  readonly row: string;
  readonly process: string;
  readonly holder?: string | undefined;
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
    const all = this.#events.sort((a, b) => a.timeMs - b.timeMs);
    const events = all.slice(-EVENTS_MAX);
    const processes = [...new Set(events.map(({ process }) => process))].sort();
    const drawn = new Drawn(processes);
    for (const event of events) drawn.add(event);
    const lastMs = events.at(-1)?.timeMs ?? 0;
    drawn.end(lastMs);
    const rows = [...drawn.rows.values()].sort((a, b) =>
      a.group - b.group || a.name.localeCompare(b.name, "en", { numeric: true })
    );
    const startMs = rows.reduce(
      (first, { bars }) => bars.reduce((first, { fromMs }) => Math.min(first, fromMs), first),
      lastMs,
    );
    const locks = rows.filter(({ group }) => group === RESOURCES).length;
    const count = (type: string) =>
      `${events.filter((event) => event.type === type).length} ${type}`;
    const left = all.length - events.length;
    return {
      title,
      summary: `${counted(locks, "resource")}, ${
        counted(processes.length, "process", "processes")
      }: ${["acquired", "denied", "lost"].map(count).join(", ")}.${
        left > 0 ? ` The first ${counted(left, "event")} are left out.` : ""
      }`,
      startMs,
      endMs: startMs + Math.max(1, (lastMs - startMs) * 1.01),
      isClock: true,
      rows,
      marks: drawn.marks,
      lines: events.slice(-LINES_MAX).map((event) => {
        return { atMs: event.timeMs, who: event.process, what: lineText(event) };
      }),
      legend: LEGEND,
    };
  }
}

const LEGEND = [
  ["hold", "a lock that is held (a colour a process)"],
  ["wait", "a call that waits, and gets the lock at its end"],
  ["denied", "a call that waits without success"],
  ["lost", "a lock that was lost"],
  ["outage", "a node that a process could not reach"],
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

/** The rows and marks of events that are added in the order of their times. */
class Drawn {
  readonly rows: Map<string, Row & { bars: Bar[] }> = new Map();
  readonly marks: Mark[] = [];
  readonly #processes: readonly string[];
  /** The locks that have no end yet, and those that were lost: a release may follow. */
  readonly #held: Set<Span> = new Set();
  readonly #lost: Set<Span> = new Set();
  /** The nodes that cannot be reached, by the process and the node. */
  readonly #down: Map<string, Span> = new Map();

  constructor(processes: readonly string[]) {
    this.#processes = processes;
  }

  add(event: Recorded): void {
    const { type, fields, timeMs, process } = event;
    switch (type) {
      case "acquired":
        this.#wait(event, "wait", "and got it");
        this.#held.add({
          row: rowOf(fields),
          process,
          holder: textField(fields.holder),
          fromMs: timeMs,
        });
        return;
      case "denied":
        return this.#wait(event, "denied", `and did not get it: ${fields.reason}`);
      case "released":
      case "release-failed":
      case "handed-over":
      case "lost":
        this.#endHold(event);
        return type === "lost" ? this.#lose(event) : undefined;
      case "node-disconnected": {
        const name = `${process} ${fields.node}`;
        if (this.#down.has(name)) return; // for another client of the process
        this.#down.set(name, { process, row: masked(String(fields.node)), fromMs: timeMs });
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

  #draw(name: string, group: number, bar: Bar): void {
    const id = `${group} ${name}`;
    const row = this.rows.get(id) ?? { name, group, bars: [] };
    this.rows.set(id, row);
    row.bars.push(bar);
  }

  /** Draws what a process did with a lock. */
  #bar(row: string, process: string, kind: Bar["kind"], [fromMs, toMs]: number[], text: string) {
    const hue = hueOf(this.#processes.indexOf(process));
    this.#draw(row, RESOURCES, { fromMs, toMs, text, kind, hue });
  }

  /** The wait of a call, which has ended with this event. */
  #wait({ timeMs, process, fields }: Recorded, kind: "denied" | "wait", how: string): void {
    const fromMs = timeMs - (numberField(fields.elapsedMs) ?? 0);
    const text = `${process} asked for it ${how}`;
    this.#bar(rowOf(fields), process, kind, [fromMs, timeMs], text);
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
    const [span = { row, process, fromMs }] = own.sort((a, b) => distance(a) - distance(b));
    if (this.#lost.delete(span)) return;
    this.#held.delete(span);
    if (type === "lost") this.#lost.add(span);
    const how = type === "released" && fields.confirmed === false ? "it was gone" : type;
    this.#hold(span, endMs, how);
  }

  #hold({ row, process, holder, fromMs }: Span, toMs: number, end: string): void {
    const who = holder === undefined ? process : `${process} (${holder})`;
    this.#bar(row, process, "hold", [fromMs, Math.max(fromMs, toMs)], `${who}: ${end}`);
  }

  #lose({ timeMs, process, fields }: Recorded): void {
    const row = rowOf(fields);
    const why = textField(fields.cause) ?? textField(fields.reason) ?? "";
    this.#bar(row, process, "lost", [timeMs, timeMs], `${process} lost it: ${why}`);
    const checker = `${process} lost ${row}`;
    this.marks.push({ atMs: timeMs, checker, what: why, kind: "violation" });
  }

  #endOutage(name: string, timeMs: number): void {
    const outage = this.#down.get(name);
    if (!outage) return;
    this.#down.delete(name);
    const { process, row, fromMs } = outage;
    const text = `${process} could not reach it`;
    this.#draw(row, NODES, { fromMs, toMs: timeMs, text, kind: "outage" });
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
