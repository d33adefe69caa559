/**
 * Chooses the transport of the current runtime when the first connection is opened.
 *
 * Deno, Node, Bun and workers load the same source, so the choice is made at run time. The imports
 * are literal, so that bundlers find them.
 *
 * @module
 */
import type { Connect } from "./transport.ts";

/** The globals by which runtimes are recognized. */
interface Globals {
  readonly navigator?: { readonly userAgent?: string };
  readonly process?: { readonly versions?: { readonly node?: string } };
}

/**
 * The transport itself, not its promise: a worker must not wait for a promise of another request.
 */
let chosen: Connect | undefined;

/** Opens a stream with the sockets of this runtime. */
export const connect: Connect = async (target, options) => {
  const connect = chosen ??= await load();
  return await connect(target, options);
};

async function load(): Promise<Connect> {
  const global = globalThis as Globals;
  // Deno first, because it loads its emulation of Node if anybody reads `process`. A worker is
  // recognized by its user agent, because it may emulate Node.
  const module = "Deno" in global
    ? await import("./deno.ts")
    : global.navigator?.userAgent === "Cloudflare-Workers"
    ? await import("./workers.ts")
    : global.process?.versions?.node
    ? await import("./node.ts")
    : await import("./none.ts");
  return module.connect;
}
