/** The command line `hasp` as a process, for the tests of it. */

import { fileURLToPath } from "node:url";
import { eventually } from "./eventually.ts";
import { plainCommand } from "./plain_command.ts";
import { processStat } from "./processes.ts";
import { Program, type ProgramResult } from "./programs.ts";

/** How `hasp` is started: an executable and its first arguments. */
export type Edition = readonly [path: string, ...args: string[]];

/** The permissions of Deno that the manual names. */
export const DENO_PERMISSIONS = [
  ...[
    "--allow-net",
    "--allow-run",
    "--allow-read",
    "--allow-write",
    "--allow-env",
    "--allow-sys=hostname",
  ],
];

/** The source, run by this Deno. */
export const SOURCE_EDITION: Edition = [
  Deno.execPath(),
  ...["run", "--quiet", "--no-prompt", "--no-check", "--no-config"],
  ...DENO_PERMISSIONS,
  `--import-map=${pathOf("./std/import_map.json")}`,
  pathOf("../../src/cli/mod.ts"),
];

/** Options of {@linkcode startHasp}. */
export interface HaspOptions {
  /** The addresses of the nodes, for the variable `HASP_NODES`. */
  readonly urls?: readonly string[];
  /** Further variables of the environment. */
  readonly env?: Record<string, string>;
  /** @default {the source, run by this Deno} */
  readonly edition?: Edition;
}

/** Starts `hasp`; it is killed at the end of the block if it still runs. */
export function startHasp(args: readonly string[], options: HaspOptions = {}): Program {
  const { urls, env, edition: [path, ...first] = SOURCE_EDITION } = options;
  const child = plainCommand(path, {
    args: [...first, ...args],
    env: { ...urls && { HASP_NODES: urls.join(" ") }, ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  return new Program("hasp", child);
}

/** Runs `hasp` to its end, with no input. */
export async function hasp(args: readonly string[], options?: HaspOptions): Promise<ProgramResult> {
  await using program = startHasp(args, options);
  await program.closeInput();
  return await program.end();
}

/** Resolves once no process has this id any more. */
export async function processGone(pid: number): Promise<void> {
  await eventually(() => !isRunning(pid));
}

/** Whether a process runs; one that has ended and that nobody has asked for is over. */
export function isRunning(pid: number): boolean {
  return !/^[ZX]/u.test(processStat(pid)?.state ?? "Z");
}

/**
 * The ids of the processes that a process has started and that still run, and whose command lines
 * contain a text.
 */
export function childrenOf(parent: number, text: string): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((pid) => {
    if (processStat(pid)?.parent !== parent || !isRunning(pid)) return false;
    try {
      return Deno.readTextFileSync(`/proc/${pid}/cmdline`).includes(text);
    } catch {
      return false; // it has ended
    }
  });
}

/** A folder for the files of a test, which its block removes at the end. */
export async function makeFolder() {
  const path = await Deno.makeTempDir({ prefix: "hasp-" });
  return {
    path,
    /**
     * The lines of a file in it, without the last line if that is not finished; none if there is no
     * such file.
     */
    lines(name: string): string[] {
      try {
        return Deno.readTextFileSync(`${path}/${name}`).split("\n").slice(0, -1);
      } catch {
        return [];
      }
    },
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
