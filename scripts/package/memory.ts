/**
 * What a client costs a Node process in memory.
 *
 * @module
 */

import { join } from "node:path";
import { startServers } from "../../tests/support/servers.ts";
import type { Consumer } from "./consumer.ts";
import { nodePath, succeed } from "./tools.ts";

/** Clients that are measured together, and servers of each. */
const [CLIENTS, SERVERS] = [1_000, 3];

/**
 * The most that a client may add to the resident set, in bytes: two thirds of it are Node's
 * sockets.
 */
const CLIENT_BYTES_MAX = 75_000;

/** Says how many bytes a client adds once it has had a lock. */
const PROGRAM = `
import { createRedlock } from "@hasp/redlock";
import { setTimeout } from "node:timers/promises";
const [count, ...urls] = process.argv.slice(2);
const clients = [];
const add = async () => {
  const client = createRedlock(urls, { onEvent: () => {} }); // without it, many clients warn
  clients.push(client);
  await client.using("memory:" + clients.length, () => {});
};
const resident = async () => {
  for (let turn = 0; turn < 4; turn++) {
    gc();
    await setTimeout(50);
  }
  return process.memoryUsage().rss;
};
await add();
const before = await resident();
for (let index = 0; index < count; index++) await add();
console.log(Math.round((await resident() - before) / count));
process.exit();
`;

/**
 * Measures the memory of a client.
 *
 * @returns The bytes, as one line.
 * @throws {Error} If they are too many.
 */
export async function measureMemory({ folder }: Consumer): Promise<string> {
  await using servers = await startServers(SERVERS);
  const script = join(folder, "memory.mjs");
  await Deno.writeTextFile(script, PROGRAM);
  const args = ["--expose-gc", script, String(CLIENTS), ...servers.urls];
  const bytes = Number(await succeed(await nodePath("node22"), args, { cwd: folder }));
  if (!(bytes <= CLIENT_BYTES_MAX)) throw new Error(`a client takes ${bytes} bytes`);
  return `${bytes} bytes of the resident set, on ${SERVERS} servers, of ${CLIENTS}`;
}
