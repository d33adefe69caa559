/** A crowd of clients that all want one lock, while nodes die, hang and come back. */
import { setTimeout as delay } from "node:timers/promises";
import type { Lock, RedlockOptions } from "../../mod.ts";
import type { LockNode } from "../../src/nodes/mod.ts";
import { Redlock, RedlockError } from "../../mod.ts";
import { eventually } from "./eventually.ts";

/** A server that can be made to fail. */
export interface FaultyServer {
  readonly url: string;
  pause(): Promise<unknown>;
  resume(): unknown;
  kill(): Promise<unknown>;
  restart(): Promise<unknown>;
}

/** A node that a recipe made, and what closes its client. */
export interface RecipeNode {
  readonly node: LockNode;
  close(): unknown;
}

/** Makes a node for one server. */
export type Recipe = (url: string) => RecipeNode | Promise<RecipeNode>;

/** What a crowd did. */
export interface CrowdReport {
  /** How many locks were had. */
  readonly locks: number;
  /** How often two clients held the lock at one instant. */
  readonly overlaps: number;
  /** How many faults there were. */
  readonly faults: number;
  /** How many locks were lost before they were released. */
  readonly lost: number;
}

/** Options of {@linkcode runCrowd}. */
export interface CrowdOptions {
  /** How many locks are had in all, at least. */
  readonly locks: number;
  /** How many faults there are, at least. */
  readonly faults: number;
  readonly clients?: number;
}

const TTL_MS = 1_500;
const LOCK_OPTIONS: RedlockOptions = {
  ttlMs: TTL_MS,
  waitMs: 5_000,
  nodeTimeoutMs: 250,
  retryDelayMs: 10,
  retryDelayMaxMs: 100,
};
const RESOURCE = "crowded";
/** The pauses between faults, in milliseconds. */
const CALM_MS = 300;

/**
 * Has clients take turns at one lock, and two of five servers suffer faults meanwhile.
 *
 * @param recipes Make the nodes; each client has its own, and clients take recipes in turns.
 * @param servers Five servers.
 * @param options How long it goes on.
 * @throws {unknown} What a call rejects with that is no error of the lock, or a node that does not
 * answer after the faults.
 */
export async function runCrowd(
  recipes: readonly Recipe[],
  servers: readonly FaultyServer[],
  { locks: wanted, faults: faultsWanted, clients = 4 }: CrowdOptions,
): Promise<CrowdReport> {
  const report = { locks: 0, overlaps: 0, faults: 0, lost: 0 };
  const holders = new Set<Lock>();
  const calm = Promise.withResolvers<void>();
  let failure: unknown;
  const isOver = () =>
    failure !== undefined || report.locks >= wanted && report.faults >= faultsWanted;
  const lockOften = async (client: number) => {
    const recipe = recipes[client % recipes.length]!;
    const nodes = await Promise.all(servers.map(({ url }) => recipe(url)));
    try {
      await using redlock = new Redlock(nodes.map(({ node }) => node), LOCK_OPTIONS);
      while (!isOver()) {
        const lock = await redlock.acquire(RESOURCE).catch((error) => {
          // too many faults, or others were faster
          if (error instanceof RedlockError) return undefined;
          throw error;
        });
        if (!lock) continue;
        for (const other of holders) if (other.held && lock.held) report.overlaps++;
        holders.add(lock);
        await delay(1);
        if (!lock.held) report.lost++;
        holders.delete(lock);
        report.locks++;
        await lock[Symbol.asyncDispose]();
      }
      await calm.promise;
      for (const { node } of nodes) await eventually(() => node.inspect(RESOURCE));
    } catch (error) {
      failure ??= error;
    } finally {
      for (const node of nodes) await node.close();
    }
  };
  const torment = async (own: readonly FaultyServer[], turns: readonly Fault[]) => {
    for (let turn = 0; !isOver(); turn++) {
      await turns[turn % turns.length](own[turn % own.length]);
      report.faults++;
      await delay(CALM_MS);
    }
  };
  // Each of two tormentors has servers of its own, so that at any time three are well.
  const torments = Promise.all([
    torment(servers.slice(0, 2), [hang(300), dieAndForget, hang(1_000)]),
    torment(servers.slice(2, 4), [hang(100), hang(2_500), dieAndForget, hang(500)]),
  ]);
  const locking = Array.from({ length: clients }, (_, client) => lockOften(client));
  await torments.finally(calm.resolve);
  await Promise.all(locking);
  if (failure !== undefined) throw failure;
  return report;
}

type Fault = (server: FaultyServer) => Promise<void>;

/** Stops answering for a while. */
function hang(durationMs: number): Fault {
  return async (server) => {
    await server.pause();
    await delay(durationMs);
    await server.resume();
  };
}

/** Loses everything, and comes back only when every lock has run out that it had granted. */
async function dieAndForget(server: FaultyServer): Promise<void> {
  await server.kill();
  await delay(TTL_MS);
  await server.restart();
}
