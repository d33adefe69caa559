/**
 * Runs seeds against a scratch copy of the library that was broken on purpose.
 *
 * @module
 */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { mutate, type Mutation } from "./mutations.ts";
import type { SeedsOutcome } from "./seed_worker.ts";

const SUPPORT = dirname(fileURLToPath(import.meta.url));
const ROOT = join(SUPPORT, "..", "..", "..");
/** How much longer than asked for a worker may take before it counts as hanging, in milliseconds. */
const HANG_MS = 10_000;

/** Which seeds, and when it is enough. */
export interface SeedRange {
  readonly from: number;
  readonly to: number;
  /** How many seeds with violations are enough. */
  readonly enough: number;
  /** Milliseconds at the most. */
  readonly limitMs: number;
}

/**
 * Breaks a copy of the library and runs seeds against it.
 *
 * @param mutation How to break it; left out, the copy is as good as the original.
 * @returns What came of it; a copy that hangs counts as caught.
 * @throws {Error} If the text of the mutation is not in the source any more, or the worker fails to start.
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
      const file = join(copy, "src", mutation.file);
      await writeFile(file, mutate(await readFile(file, "utf8"), mutation));
    }
    const worker = join(copy, support, "seed_worker.ts");
    const args = [from, to, enough, limitMs].map(String);
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
