/** Runs seeds against a scratch copy of the library that was broken on purpose. */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { marksIn, mutate, type Operator } from "./mutation_operators.ts";
import type { Mutation, ScriptEdit } from "./mutations.ts";
import type { SeedsOutcome } from "./seed_worker.ts";

const SUPPORT = dirname(fileURLToPath(import.meta.url));
const ROOT = join(SUPPORT, "..", "..", "..");
/** Where the Lua scripts are, under `src`. */
export const SCRIPTS = join("redis_node", "scripts");
/**
 * How much longer than asked for a worker may take before it counts as hanging, in milliseconds.
 */
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

/** Breaks what has a mark. */
async function breakCode(src: string, mark: string, operator: Operator): Promise<void> {
  const marked = (await markedFiles()).get(mark);
  if (!marked) throw new Error(`There is no mark "${mark}" in src`);
  for (const name of marked) {
    const file = join(src, name);
    await writeFile(file, mutate(await readFile(file, "utf8"), mark, operator));
  }
}

/** Breaks Lua scripts, and gives those that changed their new digests. */
async function breakScripts(folder: string, edits: readonly ScriptEdit[]): Promise<void> {
  const files = (await readdir(folder)).map((name) => join(folder, name));
  for (const file of files) await writeFile(file, edited(await readFile(file, "utf8"), edits));
  for (const file of files) {
    const scripts = Object.values(await import(pathToFileURL(file).href)).filter(isScript);
    let text = await readFile(file, "utf8");
    for (const { source, sha1 } of scripts) text = text.replace(sha1, await digestOf(source));
    await writeFile(file, text);
  }
}

/** A text with all edits that are for it. */
export function edited(text: string, edits: readonly ScriptEdit[]): string {
  return edits.reduce((text, [from, to]) => text.replace(from, () => to), text);
}

function isScript(exported: unknown): exported is Script {
  return typeof exported === "object" && exported !== null && "sha1" in exported;
}

async function digestOf(source: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(source));
  return new Uint8Array(digest).toHex();
}

/**
 * Breaks a copy of the library and runs seeds against it.
 *
 * @param mutation How to break it; left out, the copy is as good as the original.
 * @returns What came of it; a copy that hangs counts as caught.
 * @throws {Error} If the mark of the mutation is missing in the sources, its operator does not fit,
 * or the worker fails to start.
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
      const { mark, operator, edits } = mutation;
      if (operator) await breakCode(join(copy, "src"), mark, operator);
      if (edits) await breakScripts(join(copy, "src", SCRIPTS), edits);
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
