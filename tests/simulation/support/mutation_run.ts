/**
 * Runs seeds against a scratch copy of the library that was broken on purpose.
 *
 * @module
 */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { marksIn, mutate } from "./mutation_operators.ts";
import type { Mutation } from "./mutations.ts";
import type { SeedsOutcome } from "./seed_worker.ts";

const SUPPORT = dirname(fileURLToPath(import.meta.url));
const ROOT = join(SUPPORT, "..", "..", "..");
/** How much longer than asked for a worker may take before it counts as hanging, in milliseconds. */
const HANG_MS = 60_000;

/** Which seeds, and when it is enough. */
export interface SeedRange {
  readonly from: number;
  readonly to: number;
  /** How many seeds with violations are enough. */
  readonly enough: number;
  /** Milliseconds at the most. */
  readonly limitMs: number;
}

/** The files under `src` that each mark is in. */
export async function markedFiles(): Promise<Map<string, Set<string>>> {
  const files = new Map<string, Set<string>>();
  for (const name of await readdir(join(ROOT, "src"), { recursive: true })) {
    if (!name.endsWith(".ts")) continue;
    for (const [mark] of marksIn(await readFile(join(ROOT, "src", name), "utf8"))) {
      files.set(mark, (files.get(mark) ?? new Set()).add(name));
    }
  }
  return files;
}

/**
 * Breaks a copy of the library and runs seeds against it.
 *
 * @param mutation How to break it; left out, the copy is as good as the original.
 * @returns What came of it; a copy that hangs counts as caught.
 * @throws {Error} If the mark of the mutation is missing in the sources, its operator does not fit, or the worker fails to
 * start.
 */
export async function runMutation(
  mutation: Mutation | undefined,
  { from, to, enough, limitMs }: SeedRange,
): Promise<SeedsOutcome> {
  const copy = await mkdtemp(join(tmpdir(), "hasp-mutation-"));
  try {
    await cp(join(ROOT, "src"), join(copy, "src"), { recursive: true });
    const support = join("tests", "simulation", "support");
    await cp(SUPPORT, join(copy, support), { recursive: true });
    if (mutation) {
      const { mark, operator } = mutation;
      const marked = (await markedFiles()).get(mark);
      if (!marked) throw new Error(`There is no mark "${mark}" in src`);
      for (const name of marked) {
        const file = join(copy, "src", name);
        await writeFile(file, mutate(await readFile(file, "utf8"), mark, operator));
      }
    }
    const worker = join(copy, support, "seed_worker.ts");
    const args = [from, to, enough, limitMs, mutation?.mark ?? ""].map(String);
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-check", "--no-config", "--no-lock", worker, ...args],
      signal: AbortSignal.timeout(limitMs + HANG_MS),
      stdin: "null",
    }).output();
    const text = new TextDecoder();
    if (success) return JSON.parse(text.decode(stdout));
    if (stderr.length > 0) throw new Error(`The worker failed: ${text.decode(stderr)}`);
    const first = "it does not end";
    return { seeds: 1, caught: [from], scenarios: [], checkers: { hang: 1 }, first };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}
