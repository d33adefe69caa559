/**
 * Whether the package builds and runs where there are no TCP sockets: at the edge, and in a
 * browser.
 *
 * @module
 */

import { join } from "node:path";
import { bundle } from "./bundle.ts";
import type { Consumer } from "./consumer.ts";
import { findTools, nodePath, succeed } from "./tools.ts";

/** Locks by a node that needs no sockets, and sees what says a client that needs them. */
const PROGRAM = `
import { createRedlock, Redlock } from "@hasp/redlock";
import { commandNode } from "@hasp/redlock/nodes";
import { connect } from "@hasp/redlock/redis";
import { MemoryRedis, startNodes } from "@hasp/redlock/testing";
globalThis.outcome = (async () => {
  const client = await connect("redis://a", { connect: new MemoryRedis().connect });
  const redlock = new Redlock([commandNode({ name: "a", send: (args) => client.send(args) })]);
  const locked = await redlock.using("resource", (lock) => lock.held);
  const unreachable = createRedlock(["redis://10.0.0.1"]);
  const { message } = await unreachable.acquire("resource", { waitMs: 0 }).catch((error) => error);
  const { message: listening } = await startNodes(1).catch((error) => error);
  await Promise.all([redlock.close(), unreachable.close(), client.close()]);
  return [locked, message, listening].join("\\n");
})();
`;

/** Runs a program in Vercel's edge runtime, which has neither modules of Node nor sockets. */
const HOST = `
import { EdgeVM } from "@edge-runtime/vm";
import { readFileSync } from "node:fs";
console.log(await new EdgeVM().evaluate(readFileSync(process.argv[2], "utf8") + ";globalThis.outcome"));
`;

const SAID = [
  "true",
  'Cannot acquire lock "resource": the node failed; permanent error: ' +
  "Connection to redis://10.0.0.1:6379 could not be made: Cannot connect as this runtime has no " +
  "TCP sockets: use a node over fetch, by upstashNode() of @hasp/redlock/upstash",
  "Cannot listen as this runtime has no TCP sockets: use 'connect' of a MemoryRedis",
].join("\n");

/**
 * Bundles a program for the edge and for browsers, and runs it.
 *
 * @returns What was bundled.
 * @throws {Error} If a bundle cannot be made, names a module that is not there, or says something
 * else.
 */
export async function checkEdge({ folder }: Consumer): Promise<string> {
  const [packages, tools] = [join(folder, "node_modules"), await findTools("edge")];
  const [host, entry, outfile] = ["edge_host.mjs", "edge.js", "edge_bundle.js"].map((name) =>
    join(folder, name)
  );
  const vm = join(tools, "@edge-runtime/vm/dist/index.js");
  await Deno.writeTextFile(host, HOST.replace("@edge-runtime/vm", vm));
  await Deno.writeTextFile(entry, PROGRAM);
  for (const platform of ["edge", "browser"] as const) {
    await bundle(entry, outfile, { platform, packages });
    const said = await succeed(await nodePath("node22"), [host, outfile], { cwd: folder });
    if (said.trim() !== SAID) throw new Error(`the bundle for ${platform} says ${said}`);
  }
  return "bundles for edge-light and browser, in Vercel's edge runtime";
}
