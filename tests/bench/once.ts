/**
 * A whole process with one lock in it: imports a contender, connects, acquires, releases, ends.
 * Arguments: the contender's name and the addresses. Prints the process's size in bytes. Imports
 * nothing of the runtime itself, and does not read `process` in Deno, as that would be measured.
 */

import { contenders } from "./contenders/contender.ts";

interface Globals {
  readonly Deno?: { args: string[]; memoryUsage(): { rss: number } };
  readonly process: { argv: string[]; memoryUsage: { rss(): number } };
}

const globals = globalThis as unknown as Globals;
const [name = "floor", ...urls] = globals.Deno?.args ?? globals.process.argv.slice(2);
const contender = await contenders[name]!();
await contender.open(urls);
await contender.pair(`once:${crypto.randomUUID()}`);
await contender.close();
console.log(globals.Deno?.memoryUsage().rss ?? globals.process.memoryUsage.rss());
