/**
 * `hasp demo`: several workers count with a lock, while nodes fail, and without one.
 *
 * @module
 */
import process from "node:process";
import { createRedlock, type Redlock } from "../../../mod.ts";
import { startNodes, type TestNodes } from "../../testing/mod.ts";
import { pause } from "../../time/pause.ts";
import { systemRandom } from "../../time/random.ts";
import { TimerWheel } from "../../time/timer_wheel.ts";
import { PROBLEM_FOUND, SUCCESS } from "../exit_codes.ts";
import { Interrupted, Signals } from "../run/signals.ts";
import { paintOutput, print, type Style } from "../terminal.ts";
import { Chart, COUNTING, HUNG, IDLE, KILLED, UP, WAITING } from "./chart.ts";

const NODES = 5;
const WORKERS: ReadonlyMap<string, Style> = new Map([
  ["worker A", "cyan"],
  ["worker B", "magenta"],
  ["worker C", "yellow"],
  ["worker D", "blue"],
]);
const INCREMENTS = 6;
const TOTAL = WORKERS.size * INCREMENTS;
/** So long that a machine may stand still for a while. */
const TTL_MS = 10_000;
const NODE_TIMEOUT_MS = 200;
/** Far longer than it takes. */
const WAIT_MS = 30_000;
/** The pause between reading and writing, and that after writing: shortest and longest. */
const WORK_MS = [60, 110] as const;
const REST_MS = [10, 60] as const;
/** The width of the chart if the output is no terminal, and the limit of a terminal's. */
const COLUMNS_OF_FILE = 80;
const COLUMNS_MAX = 120;

/** What happens to which node, once that share of all increments is written. */
const FAULTS = [
  { share: 0.2, index: 1, state: KILLED, text: "is killed" },
  { share: 0.4, index: 3, state: HUNG, text: "hangs, its port open" },
  { share: 0.75, index: 3, state: UP, text: "goes on as if nothing had happened" },
] as const;

/** One run: with the lock, or without. */
class Run {
  readonly chart: Chart = new Chart();
  /** What the workers count. */
  counter = 0;
  /** The most workers that ever counted at one time. */
  countingMax = 0;
  #counting = 0;
  #writes = 0;
  readonly #wheel = new TimerWheel();
  readonly #signal: AbortSignal;
  readonly #nodes: TestNodes | undefined;
  readonly #faults = [...FAULTS];

  /** The nodes are missing in the run without the lock. */
  constructor(signal: AbortSignal, nodes?: TestNodes) {
    this.#signal = signal;
    this.#nodes = nodes;
    for (const name of WORKERS.keys()) this.chart.change(name, IDLE);
    nodes?.forEach((_, index) => this.chart.change(nodeName(index), UP));
  }

  /** Lets all workers count at the same time. */
  async perform(): Promise<void> {
    await Promise.all([...WORKERS.keys()].map((name) => this.#work(name)));
    this.#signal.throwIfAborted();
  }

  async #work(name: string): Promise<void> {
    await using redlock = this.#nodes && createRedlock(this.#nodes.addresses, {
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
    this.chart.change(name, WAITING);
    await redlock.using("demo:counter", () => this.#increment(name));
  }

  /** Reads the counter, pauses, and writes it back one higher. */
  async #increment(name: string): Promise<void> {
    this.chart.change(name, COUNTING);
    this.countingMax = Math.max(this.countingMax, ++this.#counting);
    const count = this.counter;
    await this.#pause(WORK_MS);
    this.counter = count + 1;
    this.#writes++;
    await this.#causeFault(name);
    this.#counting--;
    this.chart.change(name, IDLE);
  }

  async #causeFault(holder: string): Promise<void> {
    const [fault] = this.#faults;
    if (!this.#nodes || !fault || this.#writes < fault.share * TOTAL) return;
    this.#faults.shift();
    const { index, state, text } = fault;
    const node = this.#nodes.node(index);
    if (state === KILLED) await node.crash();
    else if (state === HUNG) node.hang();
    else node.resume();
    this.chart.change(nodeName(index), state);
    this.chart.note(`${nodeName(index)} ${text}, while ${holder} holds the lock`);
  }

  #pause([fromMs, toMs]: readonly [number, number]): Promise<void> {
    const delayMs = fromMs + systemRandom.fraction() * (toMs - fromMs);
    return pause(this.#wheel, delayMs, this.#signal);
  }
}

function nodeName(index: number): string {
  return `node ${index + 1}`;
}

/**
 * Runs the demo; the exit code is 0 if the lock kept every increment, and some were lost without
 * it.
 */
export async function demo(): Promise<number> {
  const signals = new Signals();
  const paint = paintOutput();
  const columns = Math.min(process.stdout.columns || COLUMNS_OF_FILE, COLUMNS_MAX);
  try {
    await using nodes = await startNodes(NODES);
    print(
      `Four workers read a counter, pause, and write it back one higher, ${INCREMENTS} times each.`,
    );
    print(`The lock is on ${NODES} servers in memory.`);
    print(
      `${COUNTING} counts  ${WAITING} waits for the lock  ` +
        `${UP} node answers  ${HUNG} hangs  ${KILLED} is dead`,
    );
    const locked = new Run(signals.waiting, nodes);
    await locked.perform();
    const widthMs = locked.chart.lengthMs;
    const show = (title: string, { chart }: Run) => {
      print(`\n  ${paint("bold", title)}`);
      chart.lines(columns, widthMs, WORKERS, paint).forEach(print);
    };
    show("With the lock, while nodes fail", locked);
    const unlocked = new Run(signals.waiting);
    await unlocked.perform();
    show("Without the lock", unlocked);
    print("");
    report("with the lock", locked);
    report("without the lock", unlocked);
    return locked.counter === TOTAL && unlocked.counter < TOTAL ? SUCCESS : PROBLEM_FOUND;
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode;
    throw error;
  } finally {
    signals.stop();
  }
}

function report(title: string, { counter, countingMax }: Run): void {
  const most = `at most ${countingMax} counting at once`;
  print(`  ${title.padEnd(16)}  ${TOTAL} increments, counter ${counter}, ${most}`);
}
