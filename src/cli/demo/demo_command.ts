/**
 * `hasp demo`: several workers count with a lock, while nodes fail, and without one.
 *
 * @module
 */
import process from "node:process";
import { createRedlock, type Redlock } from "../../../mod.ts";
import { pause } from "../../time/pause.ts";
import { systemRandom } from "../../time/random.ts";
import { TimerWheel } from "../../time/timer_wheel.ts";
import { PROBLEM_FOUND, SUCCESS } from "../exit_codes.ts";
import { Interrupted, Signals } from "../run/signals.ts";
import { type Paint, paintOutput, print, type Style } from "../terminal.ts";
import { axisRow, label, nodeRow, type Scale, scaleFor, workerRow } from "./chart.ts";
import { type DemoNode, startDemoNodes } from "./nodes.ts";
import { Timeline } from "./timeline.ts";

const NODES = 5;
const WORKERS: readonly (readonly [name: string, colour: Style])[] = [
  ["worker A", "cyan"],
  ["worker B", "magenta"],
  ["worker C", "yellow"],
  ["worker D", "blue"],
];
const INCREMENTS = 6;
/** So long that a machine may stand still for a while. */
const TTL_MS = 10_000;
const NODE_TIMEOUT_MS = 200;
/** Far longer than it takes. */
const WAIT_MS = 30_000;
/** The pause between reading and writing, and that after writing: shortest and longest. */
const WORK_MS = [60, 110] as const;
const REST_MS = [10, 60] as const;
/** The width of the timeline if the output is no terminal, and the limits of a terminal's. */
const COLUMNS_OF_FILE = 80;
const COLUMNS_MAX = 120;

/** What happens to which node, once that share of all increments is written. */
const FAULTS = [
  { share: 0.2, index: 1, state: "killed", text: "is killed" },
  { share: 0.4, index: 3, state: "hung", text: "hangs, its port open" },
  { share: 0.75, index: 3, state: "up", text: "goes on as if nothing had happened" },
] as const;

/** One run: with the lock, or without. */
class Run {
  readonly timeline: Timeline = new Timeline();
  #count = 0;
  readonly #wheel = new TimerWheel();
  readonly #signal: AbortSignal;
  readonly #nodes: readonly DemoNode[] | undefined;
  readonly #faults = [...FAULTS];

  /** The nodes are missing in the run without the lock. */
  constructor(signal: AbortSignal, nodes?: readonly DemoNode[]) {
    this.#signal = signal;
    this.#nodes = nodes;
    nodes?.forEach((_, index) => this.timeline.change(nodeName(index), "up"));
  }

  /** Lets all workers count at the same time; returns how far they came. */
  async perform(): Promise<number> {
    await Promise.all(WORKERS.map(([name]) => this.#work(name)));
    this.timeline.end();
    this.#signal.throwIfAborted();
    return this.#count;
  }

  async #work(name: string): Promise<void> {
    await using redlock = this.#nodes && createRedlock(this.#nodes.map(({ address }) => address), {
      ttlMs: TTL_MS,
      waitMs: WAIT_MS,
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      signal: this.#signal,
      onEvent: () => {}, // no warnings on the console
    });
    for (let done = 0; done < INCREMENTS; done++) {
      this.#signal.throwIfAborted();
      await this.#locked(name, redlock);
      await this.#pause(REST_MS);
    }
  }

  async #locked(name: string, redlock: Redlock | undefined): Promise<void> {
    if (!redlock) return await this.#increment(name);
    this.timeline.change(name, "waiting");
    await redlock.using("demo:counter", () => this.#increment(name));
  }

  /** Reads the counter, pauses, and writes it back one higher. */
  async #increment(name: string): Promise<void> {
    this.timeline.change(name, "inside");
    const count = this.#count;
    await this.#pause(WORK_MS);
    this.#count = count + 1;
    this.timeline.writes++;
    await this.#causeFault(name);
    this.timeline.change(name, "idle");
  }

  async #causeFault(holder: string): Promise<void> {
    const [fault] = this.#faults;
    if (!this.#nodes || !fault || this.timeline.writes < fault.share * total()) return;
    this.#faults.shift();
    const node = this.#nodes[fault.index]!;
    if (fault.state === "killed") await node.crash();
    else if (fault.state === "hung") node.hang();
    else node.resume();
    this.timeline.change(nodeName(fault.index), fault.state);
    this.timeline.note(`${nodeName(fault.index)} ${fault.text}, while ${holder} holds the lock`);
  }

  #pause([fromMs, toMs]: readonly [number, number]): Promise<void> {
    const delayMs = fromMs + systemRandom.fraction() * (toMs - fromMs);
    return pause(this.#wheel, delayMs, this.#signal);
  }
}

function nodeName(index: number): string {
  return `node ${index + 1}`;
}

function total(): number {
  return WORKERS.length * INCREMENTS;
}

/**
 * Runs the demo; the exit code is 0 if the lock kept every increment, and some were lost without
 * it.
 */
export async function demo(): Promise<number> {
  const signals = new Signals();
  const paint = paintOutput();
  try {
    await using started = await startDemoNodes(NODES);
    print(
      `Four workers read a counter, pause, and write it back one higher, ${INCREMENTS} times each.`,
    );
    print(`Nodes: ${started.description}`);
    print("█ between reading and writing  · waiting for the lock  ━ node answers");
    const locked = new Run(signals.waiting, started.nodes);
    const kept = await locked.perform();
    const scale = scaleFor(locked.timeline.lengthMs, columns());
    show("With the lock, while nodes fail", locked.timeline, scale, paint);
    const unlocked = new Run(signals.waiting);
    const left = await unlocked.perform();
    show("Without the lock", unlocked.timeline, scale, paint);
    print("");
    report("with the lock", locked.timeline, kept);
    report("without the lock", unlocked.timeline, left);
    return kept === total() && left < total() ? SUCCESS : PROBLEM_FOUND;
  } catch (error) {
    // a terminal's Ctrl-C ends the servers too, which may be noticed first
    const { reason } = signals.waiting;
    if (reason instanceof Interrupted) return reason.exitCode;
    throw error;
  } finally {
    signals.stop();
  }
}

function show(title: string, timeline: Timeline, scale: Scale, paint: Paint): void {
  print(`\n  ${paint("bold", title)}`);
  for (const [name, colour] of WORKERS) print(workerRow(timeline, name, colour, scale, paint));
  const nodes = timeline.notes.length > 0 ? [...Array(NODES).keys()].map(nodeName) : [];
  for (const name of nodes) print(nodeRow(timeline, name, scale, paint));
  print(axisRow(scale, timeline.lengthMs, paint));
  for (const { atMs, text } of timeline.notes) {
    const time = `${(atMs / 1_000).toFixed(2)} s`;
    print(label(time, time.length) + text);
  }
}

function report(title: string, timeline: Timeline, count: number): void {
  const most = `at most ${timeline.insideAtOnce()} inside at once`;
  print(`  ${title.padEnd(16)}  ${total()} increments, counter ${count}, ${most}`);
}

function columns(): number {
  return Math.min(process.stdout.columns || COLUMNS_OF_FILE, COLUMNS_MAX);
}
