/**
 * Cold start: from the start of a Node process to a lock that was taken and released and the
 * process's end, beside `redlock` with `ioredis`.
 *
 * @module
 */

import { join } from "node:path";
import { startServers } from "../../tests/support/servers.ts";
import type { Consumer } from "./consumer.ts";
import { findTools, succeed } from "./tools.ts";

/** How often each is started; the median of the starts counts. */
const ROUNDS = 9;

const OURS = `
import { createRedlock } from "@hasp/redlock";
const redlock = createRedlock(process.argv.slice(2));
const lock = await redlock.acquire("start:" + process.pid);
await lock.release();
await redlock.close();
`;

const PEER = `
import { createRequire } from "node:module";
const require = createRequire(process.env.PEERS + "/");
const { Redis } = require("ioredis");
const { default: Redlock } = require("redlock");
const clients = process.argv.slice(2).map((url) => new Redis(url));
const redlock = new Redlock(clients);
const lock = await redlock.acquire(["start:" + process.pid], 30_000);
await lock.release();
for (const client of clients) client.disconnect();
`;

/** Nothing but Node itself. */
const EMPTY = "";

/** Measures, and returns the medians in milliseconds with their ratio, as one line. */
export async function measureStart(consumer: Consumer): Promise<string> {
  const peers = await findTools("peers");
  await using servers = await startServers(5);
  const programs = { ours: OURS, peer: PEER, empty: EMPTY };
  const samples: Record<string, number[]> = {};
  for (const [name, text] of Object.entries(programs)) {
    await Deno.writeTextFile(join(consumer.folder, `${name}.mjs`), text);
    samples[name] = [];
  }
  for (let round = 0; round <= ROUNDS; round++) {
    for (const name of Object.keys(programs)) {
      const startMs = performance.now();
      await succeed("node", [`${name}.mjs`, ...servers.urls], {
        cwd: consumer.folder,
        env: { PEERS: peers },
      });
      if (round > 0) samples[name]!.push(performance.now() - startMs);
    }
  }
  const [ours, peer, empty] = Object.values(samples).map(median);
  return `${ours.toFixed(0)} ms, redlock with ioredis ${peer.toFixed(0)} ms: ` +
    `${(ours / peer).toFixed(2)} of it; beyond Node's own ${empty.toFixed(0)} ms ` +
    `${((ours - empty) / (peer - empty)).toFixed(2)} of it`;
}

function median(samples: number[]): number {
  return samples.sort((a, b) => a - b)[Math.floor(samples.length / 2)]!;
}
