/**
 * Servers that hang one after the other for as long as a test runs, and clients that go on beside
 * that.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Redlock, RedlockOptions } from "../../mod.ts";
import type { Group, RedisServer } from "./servers.ts";
import { TTL_MS } from "./times.ts";
import { openClients } from "./waiting_clients.ts";

/** How long a server hangs, and how long servers answer in between, in milliseconds. */
const HANG_MS = 150;
const PAUSE_MS = 100;

const OPTIONS: RedlockOptions = { ttlMs: TTL_MS, waitMs: TTL_MS, nodeTimeoutMs: 300 };

/** Makes eight clients that wait no longer than a moment for a node. */
export function openEight(servers: readonly RedisServer[]): Group<Redlock> {
  return openClients(servers.map(({ url }) => url), 8, OPTIONS);
}

/**
 * Has the first two servers hang in turn until `isOver`; the second is killed in one of the turns.
 */
export async function hangInTurn(
  [first, second]: readonly RedisServer[],
  isOver: () => boolean,
  killedInTurn = Infinity,
): Promise<void> {
  for (let turn = 0; !isOver(); turn++) {
    if (turn === killedInTurn) await second.kill();
    const server = turn % 2 === 0 || turn >= killedInTurn ? first : second;
    await server.pause();
    await delay(HANG_MS);
    server.resume();
    await delay(PAUSE_MS);
  }
}
