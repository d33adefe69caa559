/**
 * Cold start: from the start of a process to the first lock released and the process's end.
 *
 * @module
 */

import type { Figures } from "../measures.ts";
import { Samples } from "../table.ts";
import { runtimeCommand } from "../worker_process.ts";
import { type Bench, inRounds } from "./scenario.ts";

/** Each round is the fastest of so many starts: a start is only ever disturbed towards slower. */
const STARTS = 3;

/** Measures whole processes that take and release one lock. */
export async function start(bench: Bench): Promise<void> {
  const samples = new Samples();
  await inRounds(bench, samples, "start", async ({ name }) => {
    const starts: Figures[] = [];
    for (let i = 0; i < STARTS; i++) starts.push(await once(bench, name));
    return {
      startMs: Math.min(...starts.map((it) => it.startMs!)),
      sizeMb: Math.min(...starts.map((it) => it.sizeMb!)),
    };
  });
  samples.print(`Process start to first lock released and exit, ${bench.runtime}`, [
    { figure: "startMs", title: "ms", goal: "≤ 1.3" },
    { figure: "sizeMb", title: "process MB", absolute: true, goal: "floor + 5" },
  ]);
}

async function once(bench: Bench, name: string): Promise<Figures> {
  const startMs = performance.now();
  const child = runtimeCommand(bench.runtime, "./once.ts", [name, ...bench.servers.urls]).spawn();
  await child.stdin.close();
  const printed = new Response(child.stdout).text();
  const { success } = await child.status;
  const endMs = performance.now();
  const sizeBytes = Number(await printed);
  if (!success) throw new Error(`${name} does not start`);
  return { startMs: endMs - startMs, sizeMb: sizeBytes / 2 ** 20 };
}
