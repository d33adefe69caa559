/**
 * Chooses the transport of the runtime that the program runs in, when the first connection is made.
 *
 * The same source is served to Deno, Node, Bun and workers, so the choice is made at run time; the imports
 * are literal, so that bundlers see them.
 *
 * @module
 */
import type { Connect } from "./transport.ts";

let chosen: Promise<Connect> | undefined;

/** Opens a stream with what this runtime offers. */
export const connect: Connect = async (target, options) => {
  chosen ??= load();
  return await (await chosen)(target, options);
};

async function load(): Promise<Connect> {
  const module = "Deno" in globalThis ? await import("./deno.ts") : await import("./node.ts");
  return module.connect;
}
