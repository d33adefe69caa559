/**
 * Chooses the transport of the runtime that the program runs in, when the first connection is made.
 *
 * The same source is served to Deno, Node, Bun and workers, so the choice is made at run time; the imports
 * are literal, so that bundlers see them.
 *
 * @module
 */
import type { Connect } from "./transport.ts";

/** The transport itself, never the promise of it: a worker must not wait for what another request began. */
let chosen: Connect | undefined;

/** Opens a stream with what this runtime offers. */
export const connect: Connect = async (target, options) => {
  const connect = chosen ??= await load();
  return await connect(target, options);
};

async function load(): Promise<Connect> {
  // Workers are told by their name, as they can be given an imitation of Node.
  const { navigator } = globalThis as { navigator?: { userAgent?: string } };
  const module = navigator?.userAgent === "Cloudflare-Workers"
    ? await import("./workers.ts")
    : "Deno" in globalThis
    ? await import("./deno.ts")
    : await import("./node.ts");
  return module.connect;
}
