/**
 * The checkers of what nodes have once faults are mended: all that they should, and nothing that is
 * over.
 */
import { roundTripMsOf, slowMsOf } from "./idle_checker.ts";
import { SLOW_WRITE_MS } from "./network.ts";
import type { Held, SimClient } from "./sim_client.ts";
import type { NodeSession, SimNode } from "./sim_node.ts";
import type { ValueOwner, World } from "./world.ts";

/** How often the nodes' keys are looked at, in milliseconds. */
const LOOK_MS = 500;
/**
 * How long a value may stay whose lock is over, in milliseconds: a release that a node refused is
 * sent again after a second at the most, and arrives.
 */
const RESIDUE_MS = 4_000;
/** For how long what is sent may wait at the most for slow writes before it, in milliseconds. */
const SLOW_WRITES_MS = 2 * SLOW_WRITE_MS;
/**
 * Extensions in a row by which a node has the lock that it had missed: two have gone by when the
 * third is counted.
 */
const EXTENSIONS = 3;

/** What is known of a lock on a node that does not have it. */
interface Lacking {
  extensions: number;
  readonly sinceMs: number;
  /** How many extensions, and attempts to set it again, had found another's value by then. */
  readonly blocked: number;
  /** The connection; one that led to a replica is left for another. */
  readonly session: NodeSession;
}

/** Looks at the nodes' keys from the moment on at which all faults are mended. */
export class HealingChecker {
  readonly #world: World;
  /** By value and node. */
  readonly #lacking = new Map<string, Lacking>();
  /** Since when a value that is over is on a node that its client can reach. */
  readonly #residueSinceMs = new Map<string, number>();
  #over = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** From now on nothing goes wrong any more. */
  begin(): void {
    const { loop } = this.#world;
    const look = () => {
      if (this.#over) return;
      this.#lookForResidue();
      loop.at(loop.nowMs + LOOK_MS, look);
    };
    look();
  }

  /** Clients are about to close: their values stay where their TTL lets them. */
  end(): void {
    this.#over = true;
  }

  /**
   * A lock was extended. Each node that its client can reach has it within two extensions.
   *
   * Not looked at is a key that has somebody else's value, or had it when it was extended, of a
   * node that has lost some of several keys, and a lock that two extend at the same time, because
   * its extensions are not one behind the other.
   */
  extended(held: Held): void {
    const { loop, plan, assumptions } = this.#world;
    if (loop.nowMs < plan.healAtMs || held.extendsTwice || !held.lock.held) return;
    const { client, lock: { value, resources } } = held;
    const slowMs = client.nodeTimeoutMs(this.#world.values.get(value)!.ttlMs) +
      2 * roundTripMsOf(plan, client.plan) + slowMsOf(plan, client.index) +
      (plan.network.slowWriteChance > 0 ? SLOW_WRITES_MS : 0);
    for (const node of this.#reachable(client)) {
      const session = node.hears(client.name, plan.healAtMs)!;
      const name = `${value} ${node.index}`;
      if (!lacks(node, held) || !assumptions.nodeExpiresKeys(node.index)) {
        this.#lacking.delete(name);
        continue;
      }
      const { blockers } = this.#world.ledger.of(value, node.index);
      const blocked = blockers.filter((other) => other !== held.givenBy?.lock.value).length;
      const known = this.#lacking.get(name);
      const lacking = known?.blocked === blocked && known.session === session
        ? known
        : { extensions: 0, sinceMs: loop.nowMs, blocked, session };
      this.#lacking.set(name, lacking);
      if (++lacking.extensions < EXTENSIONS || loop.nowMs - lacking.sinceMs < slowMs) continue;
      const text = `${resources.join("+")} of ${client.name} (${value.slice(0, 12)}) ` +
        `is not on ${node.name} after ${lacking.extensions} extensions`;
      this.#world.failOnce(held, true, "standing", text);
    }
  }

  /**
   * The nodes that have been asked something by a client since all was mended, over a connection
   * that still stands.
   */
  #reachable(client: SimClient): SimNode[] {
    const { nodes, plan } = this.#world;
    return nodes.filter((node) =>
      node.up && !node.hung && !plan.left.includes(node.index) &&
      node.hears(client.name, plan.healAtMs)
    );
  }

  /** No node has a value whose lock is over, if the client can reach it that is to take it back. */
  #lookForResidue(): void {
    const { values, nodes, loop, ledger } = this.#world;
    for (const node of nodes) {
      if (!node.up) continue;
      for (const { key, value } of [...node.liveKeys(), ...node.liveReaders()]) {
        const owner = values.get(value);
        if (!owner) continue; // of another program
        const name = `${node.index} ${key} ${value}`;
        const keptUntilMs = ledger.promised(value, node.index, key)?.keptUntilMs ?? 0;
        const takesBack = loop.nowMs < keptUntilMs ? undefined : this.#takesBack(owner, node);
        if (!takesBack) {
          this.#residueSinceMs.delete(name);
          continue;
        }
        const sinceMs = this.#residueSinceMs.get(name) ?? loop.nowMs;
        this.#residueSinceMs.set(name, sinceMs);
        if (loop.nowMs - sinceMs < RESIDUE_MS + this.#slowMs(takesBack, owner)) continue;
        const text = `"${key}" of ${value.slice(0, 12)} is on ${node.name}, which ` +
          `${takesBack.name} can reach, ${(loop.nowMs - sinceMs).toFixed(0)} ms after its end`;
        this.#world.failOnce(owner, true, "residue", text);
      }
    }
  }

  /** The client that is to take a value back from a node, if there is one that can. */
  #takesBack(owner: ValueOwner, node: SimNode): SimClient | undefined {
    const { ledger, assumptions } = this.#world;
    const { held } = owner;
    // One that was handed over is its adopter's to take back; until somebody adopts it, its TTL
    // does, and with `atLeastMs` also where that one has missed it.
    if (held?.handedOver && held.atLeastMs > 0) return undefined;
    const last = held?.handedOver ? held.takenBy : held;
    if (held && !(last && isOver(last, last === held))) return undefined;
    const { client } = last ?? owner;
    const { alive, stopped } = client.process;
    if (!alive || stopped || client.closed || !assumptions.reconnects(client.index)) return;
    if (!assumptions.nodeExpiresKeys(node.index) || !this.#reachable(client).includes(node)) return;
    const deeds = ledger.of(owner.value, node.index);
    if (!assumptions.releaseComesLast(deeds)) return;
    // Of two that adopted one lock, the other may give it back when this one has released it.
    if (deeds.givenBackBy !== undefined && deeds.givenBackBy !== client.name) return;
    return client;
  }

  /** How much longer an attempt may still be under way, or a lock that ran out keeps its keys. */
  #slowMs(client: SimClient, { held }: ValueOwner): number {
    const { driftFactor, process } = this.#world.plan;
    const stalledMs = process.stallChance > 0 ? 3 * process.stallMaxMs : 0;
    const ttlsMs = client.plan.ops.map(({ ttlMs, extendTtlMs = 0 }) =>
      Math.max(ttlMs, extendTtlMs)
    );
    if (held) return stalledMs + (held.released ? 0 : 2 * driftFactor * Math.max(0, ...ttlsMs));
    return stalledMs + client.plan.connectTimeoutMs + 3 * client.nodeTimeoutMs(30_000);
  }
}

/** Whether a lock has ended, and its own keys have lived for `atLeastMs`. */
function isOver(held: Held, own: boolean): boolean {
  return (held.released || held.endedAtMs !== undefined) && !(own && isKept(held));
}

/** Whether the keys of a lock are to live on although it may have ended. */
export function isKept({ client, keptUntilMs }: Held): boolean {
  return client.process.uptimeMs < keptUntilMs;
}

/**
 * Whether a node has none of a lock's keys, and no other value than the one that it was adopted
 * from.
 */
function lacks(node: SimNode, { lock, givenBy }: Held): boolean {
  return lock.resources.every((key) => {
    const found = node.holderOf(key, lock.value, lock.mode === "shared");
    return found === undefined || found === givenBy?.lock.value;
  });
}
