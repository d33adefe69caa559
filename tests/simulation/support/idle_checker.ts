/**
 * The checker of idle locks: nobody has the lock, or only readers that a reader may enter beside; a
 * quorum of nodes is well; and a call that waits for it does not get it.
 */
import { SLOW_WRITE_MS } from "./network.ts";
import { type ClientPlan, type Fault, listOf, type Op, type Plan } from "./plan.ts";
import type { Held, SimClient } from "./sim_client.ts";
import type { SimNode } from "./sim_node.ts";
import type { World } from "./world.ts";

/** How often the keys are looked at while a call waits, in milliseconds. */
const LOOK_MS = 100;
/** For how long a lock may be free while a call waits that could take it, in milliseconds. */
const IDLE_MS = 1_000;
/** By how much longer if processes may be stopped, or dead with connections that stand. */
const STOPPED_MS = 1_500;
/**
 * By how many round trips longer if votes were split again and again; and the longest that counts,
 * in milliseconds.
 */
const SPLIT_ROUND_TRIPS = 24;
const ROUND_TRIP_MS_MAX = 100;
/** By how much longer if processes or writes are held up. */
const HELD_UP_MS = 1_000;
/**
 * The same if it became free while something went wrong, so that nobody may have been notified: the
 * longest pause between two asks.
 */
const POLL_MS = 65_000;
/**
 * The least TTL of a call that is looked at, in milliseconds: of a shorter one the answers of the
 * nodes may leave nothing.
 */
const TTL_MS_MIN = 1_000;
/** For how long messages and connections of before go on after the last fault, in milliseconds. */
const AFTER_FAULTS_MS = 2_000;
/** How long all may take to notice nodes that stay away, in milliseconds. */
const AWAY_MS = 15_000;
/** By how much longer a restarted node is kept out than the guard says, in milliseconds. */
const UPTIME_ERROR_MS = 2_000;

/** What happens to processes alone, which others need not wait for longer than the bound. */
const HARMLESS: readonly string[] = ["die", "pause", "stick"];
/** The longest stall of a process between two statements that is of no account, in milliseconds. */
const STALL_MS_MAX = 100;
/** So many round trips fit into a TTL; else a lock may be over before it is granted. */
const ROUND_TRIPS_MIN = 4;

/** A call that waits. */
export interface Wait {
  readonly client: SimClient;
  readonly op: Op;
  readonly sinceMs: number;
  /** What of what it waits for is free, by the names of the resources. */
  readonly frees: Map<string, Free>;
}

/** Something that a call waits for, and that is free. */
interface Free {
  /** Since when it has been free, in true time; `undefined` if it is not. */
  sinceMs: number | undefined;
  /** The same in the time of the client's process, which may be stopped. */
  sinceAwakeMs: number;
  /** Whether nothing went wrong since it was not free. */
  isNotified: boolean;
}

/** Looks at what calls wait for. */
export class IdleChecker {
  readonly #world: World;
  readonly #waits = new Set<Wait>();
  /** Node by node. */
  readonly #troubles: readonly (readonly Trouble[])[];
  readonly #idleMs: number;
  #looking = false;

  constructor(world: World) {
    this.#world = world;
    this.#troubles = troublesOf(world.plan, world.assumptions.guardMs);
    const { faults, process, network, clients } = world.plan;
    const farMs = Math.max(...clients.map((client) => roundTripMsOf(world.plan, client)));
    this.#idleMs = IDLE_MS + SPLIT_ROUND_TRIPS * Math.min(farMs, ROUND_TRIP_MS_MAX) +
      (faults.some(({ kind }) => HARMLESS.includes(kind)) ? STOPPED_MS : 0) +
      (process.stallChance > 0 || network.slowWriteChance > 0 ? HELD_UP_MS : 0);
  }

  /** A call wants a lock from now on. */
  begin(client: SimClient, op: Op): Wait {
    const wait = { client, op, sinceMs: this.#world.loop.nowMs, frees: new Map() };
    this.#waits.add(wait);
    if (!this.#looking) this.#lookAt(wait.sinceMs);
    return wait;
  }

  /** Since when nothing goes wrong around a node, or until when something does. */
  #calmMsOf(node: number): number {
    const begun = this.#troubles[node].filter(({ fromMs }) => fromMs <= this.#world.loop.nowMs);
    return Math.max(0, ...begun.map(({ untilMs }) => untilMs));
  }

  /** Whether a call is to get what is free, and nothing else decides when it asks. */
  #isNotified({ client: { plan: { notify, cooldownMs } }, op }: Wait): boolean {
    return op.waitMs > 0 && op.kind !== "tryAcquire" && op.ttlMs >= TTL_MS_MIN &&
      notify !== false && cooldownMs === undefined;
  }

  /** The longest time that an attempt of those who wait may wait for a node that is silent. */
  get #nodeTimeoutMs(): number {
    return Math.max(...[...this.#waits].map(({ client, op }) => client.nodeTimeoutMs(op.ttlMs)));
  }

  /** Whether a call may get nothing, and keep others waiting, because nodes answer too late. */
  #isImpatient({ client, op: { ttlMs } }: Wait): boolean {
    const { plan } = this.#world;
    const roundTripMs = roundTripMsOf(plan, client.plan);
    const writeMs = plan.network.slowWriteChance > 0 ? SLOW_WRITE_MS : 0;
    return ttlMs < ROUND_TRIPS_MIN * roundTripMs ||
      client.nodeTimeoutMs(ttlMs) < Math.max(2 * roundTripMs, writeMs);
  }

  /** It waits no longer. */
  end(wait: Wait | undefined): void {
    if (wait) this.#waits.delete(wait);
  }

  /** Somebody has a lock: its resources were not free, even if nobody looked in time. */
  taken({ lock }: Held): void {
    for (const wait of this.#waits) {
      if (lock.mode === "shared" && reads(wait)) continue;
      for (const [name, free] of wait.frees) {
        if (lock.resources.some((resource) => name.split("+").includes(resource))) {
          this.#taken(free);
        }
      }
    }
  }

  #taken(free: Free): void {
    free.sinceMs = undefined;
    free.isNotified = true;
  }

  #lookAt(atMs: number): void {
    this.#looking = this.#waits.size > 0;
    if (this.#looking) this.#world.loop.at(atMs, () => this.#look());
  }

  #look(): void {
    const { process } = this.#world.plan;
    for (const wait of this.#waits) {
      if (!wait.client.process.alive || wait.client.closed) this.#waits.delete(wait);
    }
    const waits = [...this.#waits];
    const isHindered = process.stallMaxMs > STALL_MS_MAX ||
      waits.some((wait) => this.#isImpatient(wait));
    for (const wait of waits) {
      if (isHindered) wait.frees.clear();
      else if (this.#isNotified(wait)) {
        const { any, resources } = wait.op;
        for (const names of any ? resources.map((each) => [each]) : [resources]) {
          this.#lookFor(wait, names);
        }
      }
    }
    this.#lookAt(this.#world.loop.nowMs + LOOK_MS);
  }

  #lookFor(wait: Wait, names: readonly string[]): void {
    const { client, frees } = wait;
    const { nowMs } = this.#world.loop;
    const name = names.join("+");
    const nodes = this.#calmNodes(client);
    if (nodes.length === 0) return void frees.delete(name);
    const calmMs = Math.max(...nodes.map(({ index }) => this.#calmMsOf(index)));
    const free = frees.get(name) ??
      { sinceMs: undefined, sinceAwakeMs: 0, isNotified: wait.sinceMs >= calmMs };
    frees.set(name, free);
    if (!this.#isFree(wait, names, nodes)) return this.#taken(free);
    const { awakeMs, stopped } = client.process;
    const awayMs = nowMs - (free.sinceMs ?? nowMs) - (awakeMs - free.sinceAwakeMs);
    if (free.sinceMs === undefined || stopped || awayMs > 1) {
      free.sinceMs = nowMs;
      free.sinceAwakeMs = awakeMs;
      return;
    }
    const idleMs = nowMs - free.sinceMs;
    if (idleMs <= this.#idleMs + this.#nodeTimeoutMs) return;
    if (!free.isNotified && idleMs <= POLL_MS) return;
    const text = `${name} has been ${reads(wait) ? "open to readers" : "free"} for ` +
      `${idleMs.toFixed(0)} ms while ${client.name} waits`;
    this.#world.failOnce(wait, true, "idle", text);
  }

  /** The nodes that are well, if they are a quorum, and the client reaches all of them. */
  #calmNodes(client: SimClient): SimNode[] {
    const { nodes, plan, loop } = this.#world;
    const listed = listOf(plan, client.index);
    const calm = listed.filter((index) => this.#calmMsOf(index) <= loop.nowMs)
      .map((index) => nodes[index]);
    // a connection that has died unnoticed keeps an attempt waiting for the time of a node
    const reaches = calm.every((node) => node.hears(client.name, this.#calmMsOf(node.index)));
    return reaches && calm.length > listed.length / 2 ? calm : [];
  }

  /**
   * Whether a quorum of nodes that can notify a client has nothing in its way, and nobody holds it:
   * a node whose clock was set forward deletes keys early.
   */
  #isFree(wait: Wait, names: readonly string[], nodes: readonly SimNode[]): boolean {
    const { plan, checkers } = this.#world;
    const { client } = wait;
    const isShared = reads(wait);
    const isHeld = (name: string) =>
      checkers.seesHolder(name, isShared) || isShared && this.#hasWriter(name);
    const free = nodes.filter((node) =>
      node.notifies(client.name) && names.every((name) => node.admits(name, isShared))
    );
    return free.length > listOf(plan, client.index).length / 2 && !names.some(isHeld);
  }

  /** Whether a call waits that readers have to wait for. */
  #hasWriter(name: string): boolean {
    return [...this.#waits].some((wait) => !reads(wait) && wait.op.resources.includes(name));
  }
}

/** Whether a call may get what it waits for beside others. */
function reads({ client, op }: Wait): boolean {
  return op.shared === true && !client.plan.fencing;
}

/** The longest round trip between a client and the nodes, in milliseconds. */
export function roundTripMsOf({ network }: Plan, { distanceMs = 0 }: ClientPlan): number {
  return 2 * (network.delayMs + network.jitterMs + distanceMs);
}

/** How late a reply may be that a client was due while a link was slow, in milliseconds. */
export function slowMsOf({ faults }: Plan, client: number): number {
  const slow = faults.filter((each) => each.kind === "slow" && each.client === client);
  return Math.max(0, ...slow.map((each) => (each as { extraMs: number }).extraMs));
}

/** A time in which something goes wrong, by true time. */
interface Trouble {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** When something goes wrong around each node, or what comes of it goes on. */
function troublesOf(plan: Plan, guardMs: number): Trouble[][] {
  const { nodes, faults, messages, healAtMs, left } = plan;
  const laterMs = AFTER_FAULTS_MS + (guardMs > 0 ? 1.1 * guardMs + UPTIME_ERROR_MS : 0);
  return nodes.map((_, index) => {
    const troubles = faults.filter((fault) => disturbs(fault, index)).map((fault) => {
      // that a node was emptied shows when it is next asked; a clock set ahead deletes its keys
      const empties = fault.kind === "flush" || fault.kind === "node-step" && fault.stepMs > 0;
      const forMs = empties ? healAtMs : "forMs" in fault ? fault.forMs : 0;
      return { fromMs: fault.atMs, untilMs: fault.atMs + forMs + laterMs };
    });
    if (messages) troubles.push({ fromMs: 0, untilMs: healAtMs + laterMs });
    const awayMs = left.includes(index) ? Infinity : AWAY_MS + laterMs;
    if (left.length > 0) troubles.push({ fromMs: healAtMs, untilMs: healAtMs + awayMs });
    return troubles;
  });
}

/** Whether a fault may keep others waiting at a node. */
function disturbs(fault: Fault, node: number): boolean {
  if (HARMLESS.includes(fault.kind)) return false;
  if ("nodes" in fault) return fault.nodes.includes(node);
  return !("node" in fault) || fault.node === node;
}
