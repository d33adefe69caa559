/**
 * Chooses the transport of a runtime by what it has, without Deno's. In the npm package this module
 * replaces `default.ts`: Deno runs a bundle of it with its Node API.
 *
 * If Deno, Node or a bundler knows the runtime beforehand, the `imports` of the package resolve to
 * the one transport that is needed, and this module is not loaded.
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
  const { navigator, process } = globalThis as Globals;
  // A worker is recognized by its user agent, because it may emulate Node.
  const module = navigator?.userAgent === "Cloudflare-Workers"
    ? await import("./workers.ts")
    : process?.versions?.node
    ? await import("./node.ts")
    : await import("./none.ts");
  return module.connect;
}
