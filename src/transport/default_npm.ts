/**
 * What the npm package has in place of `default.ts`: the same choice without Deno, which runs npm packages on
 * its Node API.
 *
 * Where Node or a bundler knows the runtime beforehand, the package's `imports` lead it to the one transport that
 * is needed, and this module is left out.
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
  const { navigator } = globalThis as { navigator?: { userAgent?: string } };
  const module = navigator?.userAgent === "Cloudflare-Workers"
    ? await import("./workers.ts")
    : await import("./node.ts");
  return module.connect;
}
