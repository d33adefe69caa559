/**
 * Chooses the transport of the current runtime when the first connection is opened: Deno's own, and
 * elsewhere what the npm package chooses.
 *
 * Deno, Node, Bun and workers load the same source, so the choice is made at run time. The imports
 * are literal, so that bundlers find them.
 *
 * @module
 */
import { connect as connectElsewhere } from "./default_npm.ts";
import type { Connect } from "./transport.ts";

/** Opens a stream with the sockets of this runtime. */
export const connect: Connect = async (target, options) => {
  // Deno first, because it loads its emulation of Node if anybody reads `process`.
  const open = "Deno" in globalThis ? (await import("./deno.ts")).connect : connectElsewhere;
  return await open(target, options);
};
