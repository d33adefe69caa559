/**
 * Replaces `default.ts` in the npm package: the same choice without Deno, which runs npm packages with its Node API.
 *
 * If Node or a bundler knows the runtime beforehand, the `imports` of the package resolve to the one transport that is
 * needed, and this module is not loaded.
 *
 * @module
 */
import type { Connect } from "./transport.ts";

/** The transport itself, not its promise: a worker must not wait for a promise of another request. */
let chosen: Connect | undefined;

/** Opens a stream with the sockets of this runtime. */
export const connect: Connect = async (target, options) => {
  const connect = chosen ??= await load();
  return await connect(target, options);
};

async function load(): Promise<Connect> {
  const { navigator } = globalThis as { navigator?: { userAgent?: string } };
  const module = navigator?.userAgent === "Cloudflare-Workers"
    ? await import("./workers.ts")
    : await import("./node.ts");
  return module.connect;
}
