/**
 * A whole process with one lock in it: imports a contender, connects, acquires, releases, ends. Arguments:
 * the contender's name and the addresses. Prints the process's size in bytes. Imports nothing of the runtime
 * itself, as that would be measured.
 *
 * @module
 */

import { contenders } from "./contenders/contender.ts";

const { Deno: deno, process } = globalThis as unknown as {
  Deno?: { args: string[]; memoryUsage(): { rss: number } };
  process?: { argv: string[]; memoryUsage: { rss(): number } };
};
const [name = "floor", ...urls] = deno?.args ?? process!.argv.slice(2);
const contender = await contenders[name]!();
await contender.open(urls);
await contender.pair(`once:${crypto.randomUUID()}`);
await contender.close();
console.log(deno?.memoryUsage().rss ?? process!.memoryUsage.rss());
