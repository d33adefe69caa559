/** What every scenario of the bench is given. */

import type { ServerGroup } from "../../support/servers.ts";
import type { Figures } from "../measures.ts";
import type { Samples } from "../table.ts";
import type { Runtime, WorkerProcess } from "../worker_process.ts";

/** Five servers, the contenders in processes of their own, and how long to measure. */
export interface Bench {
  readonly servers: ServerGroup;
  /** One worker a contender, the floor first. */
  readonly workers: WorkerProcess[];
  readonly runtime: Runtime;
  readonly rounds: number;
  /** Length of one measurement. */
  readonly durationMs: number;
}

/** A scenario measures and prints its table. */
export type Scenario = (bench: Bench) => Promise<void>;

/**
 * Runs `once` in each round for each contender, in an order that turns from round to round, so that
 * what disturbs the machine disturbs all of them. A contender that fails once is left out of this
 * table, because a median needs every round.
 */
export async function inRounds(
  bench: Bench,
  samples: Samples,
  scenario: string,
  once: (worker: WorkerProcess, round: number) => Promise<Figures>,
): Promise<void> {
  for (let round = 0; round < bench.rounds; round++) {
    for (let i = 0; i < bench.workers.length; i++) {
      const worker = bench.workers[(i + round) % bench.workers.length]!;
      if (samples.isLeftOut(worker.name)) continue;
      try {
        samples.add(worker.name, await once(worker, round));
      } catch (error) {
        samples.leaveOut(worker.name);
        console.error(`${scenario}: ${error instanceof Error ? error.message : error}`);
        await worker.open(bench.servers.urls); // whatever state it was left in
      }
    }
  }
}
