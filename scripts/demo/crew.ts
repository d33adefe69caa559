/**
 * The workers, each a process, as the demo sees them.
 *
 * @module
 */

import { DemoProcess } from "./process.ts";
import type { State, Timeline } from "../../src/cli/demo/timeline.ts";
import type { WorkerReport, WorkerSetup, WorkerTask } from "./worker.ts";

/** What a report says of its worker's state. */
const STATES: Partial<Record<WorkerReport["type"], State>> = {
  waiting: "waiting",
  inside: "inside",
  outside: "idle",
  done: "idle",
};

/** Several workers that are told the same at the same time. */
export class Crew implements AsyncDisposable {
  readonly names: readonly string[];
  readonly #workers: readonly Worker[];

  private constructor(workers: readonly Worker[]) {
    this.#workers = workers;
    this.names = workers.map(({ name }) => name);
  }

  /** Starts a worker for each name, and resolves once all are ready. */
  static async start(
    names: readonly string[],
    setup: Omit<WorkerSetup, "name">,
  ): Promise<Crew> {
    const crew = new Crew(names.map((name) => new Worker({ ...setup, name })));
    try {
      await Promise.all(crew.#workers.map((worker) => worker.reportsUntil("ready", () => {})));
      return crew;
    } catch (error) {
      await crew[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Has all workers perform a task, and puts what they report into the timeline. */
  async perform(task: WorkerTask, timeline: Timeline, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const all = this.#workers.map((worker) => worker.perform(task, timeline));
    try {
      await Promise.race([Promise.all(all), aborted.promise]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Ends all workers. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
}

/** One worker. */
class Worker implements AsyncDisposable {
  readonly name: string;
  readonly #process: DemoProcess;
  readonly #reader: ReadableStreamDefaultReader<string>;

  constructor(setup: WorkerSetup) {
    this.name = setup.name;
    this.#process = new DemoProcess("worker.ts", [JSON.stringify(setup)]);
    this.#reader = this.#process.lines.getReader();
  }

  async perform({ locked, increments }: WorkerTask, timeline: Timeline): Promise<void> {
    await this.#process.tell(JSON.stringify({ locked, increments } satisfies WorkerTask));
    await this.reportsUntil("done", ({ type, atMs, message }) => {
      const state = STATES[type];
      if (state) timeline.change(this.name, state, atMs);
      if (type === "written") timeline.writes++;
      if (type === "trouble") timeline.note(`${this.name}: ${message}`);
    });
  }

  /** Hands on what the worker reports, up to and with the last. */
  async reportsUntil(
    last: WorkerReport["type"],
    onReport: (report: WorkerReport) => void,
  ): Promise<void> {
    for (;;) {
      const { value, done } = await this.#reader.read();
      if (done) throw new Error(`${this.name} ended before its work was done`);
      const report: WorkerReport = JSON.parse(value);
      onReport(report);
      if (report.type === last) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
    await this.#reader.cancel();
  }
}
