/**
 * Cold start: from the start of a process to the first lock released and the process's end. Deno
 * runs the source, as its users do. Node and Bun run JavaScript: the package as it is published,
 * and the bench's own modules in pieces.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildNpm } from "../../../scripts/build_npm.ts";
import type { Figures } from "../measures.ts";
import { Samples } from "../table.ts";
import { runtimeCommand } from "../worker_process.ts";
import { type Bench, inRounds } from "./scenario.ts";

/** Each round is the fastest of so many starts: a start is only ever disturbed towards slower. */
const STARTS = 3;

/** Measures whole processes that take and release one lock. */
export async function start(bench: Bench): Promise<void> {
  const samples = new Samples();
  await using program = bench.runtime === "deno" ? source() : await emitted();
  await inRounds(bench, samples, "start", async ({ name }) => {
    const starts: Figures[] = [];
    for (let i = 0; i < STARTS; i++) starts.push(await once(bench, program.path, name));
    return {
      startMs: Math.min(...starts.map((it) => it.startMs!)),
      sizeMb: Math.min(...starts.map((it) => it.sizeMb!)),
    };
  });
  samples.print(`Process start to first lock released and exit, ${bench.runtime}`, [
    { figure: "startMs", title: "ms", goal: "≤ 1.2" },
    { figure: "sizeMb", title: "process MB", absolute: true, goal: "floor + 5" },
  ]);
}

/** What {@linkcode once} runs. */
interface Program extends AsyncDisposable {
  readonly path: string;
}

function source(): Program {
  return {
    path: fileURLToPath(new URL("../once.ts", import.meta.url)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/**
 * Emits JavaScript: the package, named by a variable, and the program that loads it, each contender
 * a piece.
 */
async function emitted(): Promise<Program> {
  const folder = await Deno.makeTempDir();
  const remove = async () => {
    Deno.env.delete("BENCH_ENTRY");
    await Deno.remove(folder, { recursive: true });
  };
  try {
    await buildNpm("tsc", join(folder, "package"));
    Deno.env.set("BENCH_ENTRY", `file://${join(folder, "package", "esm", "mod.js")}`);
    const bundling = new Deno.Command(Deno.execPath(), {
      args: [
        ...["bundle", "--quiet", "--platform", "deno", "--code-splitting"],
        ...["--external", "cloudflare:*"], // some contenders bring the library's source
        ...["--outdir", join(folder, "once"), source().path],
      ],
    });
    const { success, stderr } = await bundling.output();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    await Deno.writeTextFile(join(folder, "package.json"), '{ "type": "module" }');
  } catch (error) {
    await remove();
    throw error;
  }
  return { path: join(folder, "once", "once.js"), [Symbol.asyncDispose]: remove };
}

async function once(bench: Bench, path: string, name: string): Promise<Figures> {
  const startMs = performance.now();
  const child = runtimeCommand(bench.runtime, path, [name, ...bench.servers.urls]).spawn();
  await child.stdin.close();
  const printed = new Response(child.stdout).text();
  const { success } = await child.status;
  const endMs = performance.now();
  const sizeBytes = Number(await printed);
  if (!success) throw new Error(`${name} does not start`);
  return { startMs: endMs - startMs, sizeMb: sizeBytes / 2 ** 20 };
}
