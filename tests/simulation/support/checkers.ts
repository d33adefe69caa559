/** The checkers: what must hold whatever goes wrong, as callers and nodes see it. */
import { AtLeastChecker } from "./at_least_checker.ts";
import { CooldownChecker } from "./cooldown_checker.ts";
import { HealingChecker, isKept } from "./healing_checker.ts";
import { IdleChecker } from "./idle_checker.ts";
import type { Call, Held, SimClient } from "./sim_client.ts";
import type { Lock } from "./library.ts";
import type { World } from "./world.ts";

/**
 * For how long a lock that is over is looked at further, in milliseconds: it must not come back.
 */
const AFTERLIFE_MS = 5_000;
/** The library looks for jumps of the wall clock so often, in milliseconds. */
const HEARTBEAT_MS = 250;
/** By how much numbers with a fraction may differ though they mean the same, in milliseconds. */
const ROUNDING_MS = 0.01;
/** What the validity is shorter than the TTL beside the drift, in milliseconds. */
const DRIFT_ALLOWANCE_MS = 2;
/** A runtime's timers are set in whole milliseconds. */
const TIMER_PRECISION_MS = 1;
/**
 * By how much the wall clock gains on the monotonic one before the library counts it, with the
 * rounding of one look.
 */
const CLOCK_LUMP_MS = 3;

/**
 * Looks after every event at every lock in hand, and at those that are over if the event may have
 * changed them.
 */
export class Checkers {
  readonly #world: World;
  readonly #watched = new Set<Held>();
  /** Every lock there was, for the picture and for the keys that are left. */
  readonly all: Held[] = [];
  readonly cooldowns: CooldownChecker = new CooldownChecker();
  readonly healing: HealingChecker;
  readonly atLeast: AtLeastChecker;
  readonly idle: IdleChecker;
  readonly #overlaps = new Set<string>();
  /** What was adopted by each token. */
  readonly #adopted = new Map<string, Held>();
  /** The highest token there was of each resource. */
  readonly #tokens = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
    this.healing = new HealingChecker(world);
    this.atLeast = new AtLeastChecker(world);
    this.idle = new IdleChecker(world);
  }

  /** A caller has a lock in hand from now on. */
  begin(held: Held): void {
    this.#watched.add(held);
    this.all.push(held);
    held.extendedAtMs = held.sinceMs;
    this.#world.values.get(held.lock.value)!.held = held;
    this.#world.trace.add(held.client.name, `has ${nameOf(held)}`);
    if (held.token === undefined) {
      this.#checkCooldown(held);
      this.#checkTurn(held);
    } else {
      if (held.givenBy) held.givenBy.takenBy ??= held;
      this.#checkAdopted(held, held.token);
    }
    this.#checkToken(held);
    this.atLeast.begin(held);
    this.idle.taken(held);
    // Another caller's listener may close the client before this caller goes on.
    const ended = held.client.closed || this.#world.plan.process.stallChance > 0;
    if (held.claimMs <= 0 && !ended) {
      this.#world.fail("handle-truth", `${nameOf(held)} was handed out though it is over`);
    }
  }

  /** The other lock that holds a resource of `lock`, if there is one. */
  otherHolder(lock: Lock): Held | undefined {
    for (const held of this.#watched) {
      if (held.lock === lock || !held.client.process.alive || !held.lock.held) continue;
      if (areShared(held.lock, lock)) continue;
      if (held.lock.resources.some((resource) => lock.resources.includes(resource))) return held;
    }
    return undefined;
  }

  /** Every lock on a resource that is held now, by anybody who lives. */
  holdersOf(resource: string): Held[] {
    return [...this.#watched].filter(({ lock, client }) =>
      lock.resources.includes(resource) && client.process.alive && lock.held
    );
  }

  /** Whether somebody who lives was seen to hold a resource last: a writer, if it `isShared`. */
  seesHolder(resource: string, isShared: boolean): boolean {
    return [...this.#watched].some(({ lock, client, spans }) =>
      spans.at(-1)?.[1] === Infinity && client.process.alive &&
      lock.resources.includes(resource) && !(isShared && lock.mode === "shared")
    );
  }

  /** Looks at everything; called after each event. */
  readonly check = (): void => {
    if (this.#watched.size === 0) return;
    const holders: Held[] = [];
    for (const held of this.#watched) {
      const { process } = held.client;
      if (!process.alive) this.#watched.delete(held);
      else if (!isPast(held) || held.lookedAt !== process.changes) {
        held.lookedAt = process.changes;
        if (this.#checkHeld(held)) holders.push(held);
      }
    }
    for (let one = 0; one < holders.length; one++) {
      for (let other = one + 1; other < holders.length; other++) {
        this.#checkExclusion(holders[one], holders[other]);
      }
    }
  };

  /**
   * A call has settled: not too late? If the process was stopped meanwhile, connecting may take
   * twice as long.
   */
  checkSettled({ client, what, sinceAwakeMs, boundMs }: Call): void {
    const tookMs = client.process.awakeMs - sinceAwakeMs;
    const againMs = client.process.wasStopped ? client.plan.connectTimeoutMs : 0;
    const allowedMs = boundMs + againMs / this.#world.slowestRate(client.index);
    if (tookMs <= allowedMs) return;
    const text = `${client.name} ${what} took ${tookMs.toFixed(1)} ms, ` +
      `${allowedMs.toFixed(1)} are allowed`;
    this.#world.fail("settles", text);
  }

  /**
   * Keys that nobody will take back though their locks are over.
   *
   * @param sinceMs Since when they must have been over, or no more than an attempt.
   */
  checkOrphans(sinceMs = Infinity): void {
    const { nodes, values, ledger, assumptions } = this.#world;
    for (const node of nodes) {
      if (!node.up || node.hung || this.#world.plan.left.includes(node.index)) continue;
      if (!assumptions.nodeExpiresKeys(node.index)) continue;
      for (const { key, value, remainingMs } of [...node.liveKeys(), ...node.liveReaders()]) {
        const owner = values.get(value);
        if (!owner?.client.process.alive || owner.client.closed) continue;
        if (!assumptions.reconnects(owner.client.index)) continue;
        const deeds = ledger.of(value, node.index);
        if (!assumptions.releaseComesLast(deeds) || stillHeld(owner.held)) continue;
        if (owner.held?.handedOver) continue; // until somebody adopts it, or its TTL is over
        if (owner.held && isKept(owner.held)) continue;
        if ((deeds.promised.get(key)?.keptUntilMs ?? 0) > this.#world.loop.nowMs) continue;
        // A lock whose end nobody has looked at yet has just ended.
        const endedAtMs = owner.held ? owner.held.endedAtMs ?? Infinity : owner.atMs;
        if (endedAtMs > sinceMs) continue;
        const text = `"${key}" of ${value} stays on ${node.name} for another ` +
          `${remainingMs} ms though nobody holds it`;
        this.#world.fail("orphan", text);
      }
    }
  }

  /**
   * Tokens rise from lock to lock, resource by resource, in the order in which locks are handed
   * out. One that was over before its caller had it, in a process that was paused, is one that the
   * store refuses.
   */
  #checkToken(held: Held): void {
    const { fencingToken, resources } = held.lock;
    const { plan, assumptions } = this.#world;
    if (!plan.clients[held.client.index].fencing || held.claimMs <= 0) return;
    // before a process that stalled had it in hand: adopters have later tokens by now
    if (held.handedOver) return;
    for (const resource of resources) {
      const highest = this.#tokens.get(resource) ?? 0;
      if (fencingToken !== undefined && fencingToken > highest) {
        this.#tokens.set(resource, fencingToken);
        continue;
      }
      const assumed = assumptions.countersNeverFall && assumptions.clientsListTheSameNodes &&
        assumptions.clientClockKeepsSpeed(held.client.index);
      const text = `${nameOf(held)} has token ${fencingToken}, ${highest} was there before`;
      this.#world.failAssuming(assumed, "fencing", text);
    }
  }

  /**
   * A lock that was handed over is adopted once. A node that runs an old request again, or forgets,
   * may bring it back.
   */
  #checkAdopted(held: Held, token: string): void {
    const first = this.#adopted.get(token);
    if (!first) return void this.#adopted.set(token, held);
    const { nodes, values, ledger, assumptions } = this.#world;
    const assumed = assumptions.nodesLoseNothing &&
      [...values.keys()].every((value) =>
        nodes.every(({ index }) => !ledger.of(value, index).reordered)
      );
    const text = `${nameOf(held)} was adopted though ${nameOf(first)} was before`;
    this.#world.failAssuming(assumed, "hand-over", text);
  }

  /** A client does not have a resource again before its cooldown is over. */
  #checkCooldown(held: Held): void {
    const leftMs = this.cooldowns.leftMs(held);
    if (leftMs === 0) return;
    const text = `${nameOf(held)} was handed out in its cooldown, ${leftMs.toFixed(3)} ms too soon`;
    this.#world.fail("cooldown", text);
  }

  /**
   * Code that asks the signal of a lock that is over sees that it has aborted, however late timers
   * are.
   */
  askSignal(held: Held): void {
    const { lock, signal, released } = held;
    if (lock.held || released || !signal || signal.aborted) return;
    this.#world.fail(
      "signal",
      `${nameOf(held)} is over, and its signal says that it has not aborted`,
    );
  }

  /** While somebody waits others have had so many turns at the most. */
  #checkTurn({ client, lock }: Held): void {
    if (lock.mode === "shared") return; // others may have theirs beside it
    const { turns } = this.#world;
    const passed = turns.take(client.name, lock.resources[0]);
    if (passed <= turns.allowed(client.name)) return;
    const text = `${client.name} waited for ${lock.resources[0]} while others had ${passed} turns`;
    this.#world.fail("fairness", text);
  }

  /** Says whether the lock is held; whatever it says must be true. */
  #checkHeld(held: Held): boolean {
    const { lock, client } = held;
    const { nowMs } = this.#world.loop;
    const remainingMs = lock.remainingMs();
    const isHeld = lock.held;
    if (isHeld !== remainingMs > 0) {
      this.#world.fail("handle-truth", `${nameOf(held)}: held and remainingMs() disagree`);
    }
    if (isHeld) {
      this.#checkClaim(held, remainingMs);
      if (held.released) {
        const text = `${nameOf(held)} is held after its release`;
        this.#world.failOnce(held, true, "held-after-end", text);
      }
      if (held.endedAtMs !== undefined) {
        this.#world.fail("held-after-end", `${nameOf(held)} is held again`);
        held.endedAtMs = undefined;
      }
      const span = held.spans.at(-1);
      if (span && span[1] === Infinity) return true;
      held.spans.push([nowMs, Infinity]);
      return true;
    }
    const span = held.spans.at(-1);
    if (span?.[1] === Infinity) span[1] = nowMs;
    if (held.endedAtMs === undefined) {
      held.endedAtMs = nowMs;
      this.#world.trace.add(client.name, `no longer holds ${nameOf(held)}`);
    }
    // The client notices the end when its timer fires: before that, nothing has begun.
    if (held.aborted && !held.released && held.spans.length > 0) this.cooldowns.begin(held);
    this.#checkAbort(held);
    if (nowMs - held.endedAtMs > AFTERLIFE_MS && (held.released || held.aborted)) {
      this.#watched.delete(held);
    }
    return false;
  }

  /** `held` and `remainingMs()` never claim more than a quorum of nodes has promised. */
  #checkClaim(held: Held, remainingMs: number): void {
    const { ledger, loop, plan } = this.#world;
    const { value, resources, extensions } = held.lock;
    const untilMs = loop.nowMs + remainingMs / (1 - plan.driftFactor / 2) -
      this.#unseenMs(held.client);
    const keeping = ledger.keepingUntil(value, resources, plan.nodes.length, untilMs);
    if (keeping < this.#quorumOf(held)) {
      const text = `${nameOf(held)} claims ${remainingMs.toFixed(3)} ms, for which only ` +
        `${keeping} nodes promised to keep its keys`;
      const assumed = this.#world.assumptions.clientClockKeepsSpeed(held.client.index);
      this.#world.failOnce(held, assumed, "handle-truth", text);
    }
    if (extensions > held.extensions) {
      const nodes = plan.nodes.length;
      const found = ledger.extendedWithin(value, resources, nodes, held.extendedAtMs);
      if (found < this.#quorumOf(held) && !held.extendsTwice) {
        const text = `${nameOf(held)} was extended though only ${found} nodes still held it`;
        this.#world.fail("extension", text);
      }
      this.healing.extended(held);
      held.extensions = extensions;
      held.extendedAtMs = loop.nowMs;
    }
  }

  /**
   * What a client may have missed of a wall clock that gains on the monotonic one, beyond what the
   * drift allowance covers: less than the library counts, and the rounding of a reading.
   */
  #unseenMs({ index, plan: { monotonicRate, wallRate } }: SimClient): number {
    const gains = wallRate > monotonicRate || !this.#world.assumptions.clientClocksAgree(index);
    return gains ? CLOCK_LUMP_MS - DRIFT_ALLOWANCE_MS : ROUNDING_MS;
  }

  /** The signal aborts no later than the validity ends. */
  #checkAbort(held: Held): void {
    const { signal, aborted, client } = held;
    const { process } = client;
    if (!signal || held.released || process.stopped) return;
    const sinceMs = held.lateSinceMs ?? process.awakeMs;
    const lateMs = process.awakeMs - sinceMs;
    const isLate = lateMs > this.#abortMayBeLateMs(held);
    if (isLate) {
      this.#world.fail("abort", `${nameOf(held)}: its signal is ${lateMs.toFixed(3)} ms late`);
    }
    held.lateSinceMs = isLate || aborted ? Infinity : sinceMs;
  }

  /**
   * The library aborts early by a margin, so that a timer may be late by as much. A wall clock that
   * gains slowly on the monotonic one counts in lumps, of which the one before the end may have
   * come to light by a look at the lock.
   */
  #abortMayBeLateMs({ client, shortestTtlMs }: Held): number {
    const { process: { timerLateMs, stallChance }, driftFactor } = this.#world.plan;
    const timerMs = TIMER_PRECISION_MS + timerLateMs;
    const marginMs = abortMarginMs(shortestTtlMs * (1 - driftFactor) - DRIFT_ALLOWANCE_MS);
    // a process that stalls twice in one look at its clocks sees a step that there was not
    if (!this.#world.assumptions.clientClocksAgree(client.index) || stallChance > 0) {
      return 2 * (HEARTBEAT_MS + timerMs);
    }
    // What a fast wall clock gains from one heartbeat to the end counts only when the timer fires.
    const { monotonicRate, wallRate } = client.plan;
    const gainMs = (HEARTBEAT_MS + timerMs) * (wallRate - monotonicRate);
    const lumpMs = gainMs > 0 ? CLOCK_LUMP_MS + gainMs : 0;
    if (client.process.wasStopped) return 2 * timerMs + lumpMs;
    return Math.max(timerMs + lumpMs - marginMs, 0) + ROUNDING_MS;
  }

  /**
   * How many nodes make a quorum of the holder's list; not the library's number, because that is
   * what is checked.
   */
  #quorumOf({ client }: Held): number {
    const listed = client.plan.nodes ?? this.#world.plan.nodes;
    return Math.floor(listed.length / 2) + 1;
  }

  /** Two locks on one resource are never held at one instant, unless both are in shared mode. */
  #checkExclusion(one: Held, other: Held): void {
    const common = one.lock.resources.find((name) => other.lock.resources.includes(name));
    if (common === undefined || areShared(one.lock, other.lock)) return;
    const pair = `${one.lock.value} ${other.lock.value}`;
    if (this.#overlaps.has(pair)) return;
    this.#overlaps.add(pair);
    const { ledger, loop, plan, assumptions } = this.#world;
    const promisedTwice = [one, other].every((held) =>
      ledger.keepingUntil(held.lock.value, held.lock.resources, plan.nodes.length, loop.nowMs) >=
        this.#quorumOf(held)
    );
    const nodesPromiseTruly = assumptions.nodesKeepTheirData && assumptions.nodeClocksKeepSpeed &&
      assumptions.clientsListTheSameNodes;
    const assumed = (nodesPromiseTruly || !promisedTwice) &&
      [one, other].every(({ client }) => assumptions.clientClockKeepsSpeed(client.index));
    const text = `${nameOf(one)} and ${nameOf(other)} are both held`;
    this.#world.failAssuming(assumed, "mutual-exclusion", text);
  }
}

/**
 * Whether a lock is over and its signal needs no look: only its own process can bring it back, not
 * time.
 */
function isPast({ endedAtMs, signal, released, lateSinceMs }: Held): boolean {
  return endedAtMs !== undefined && (!signal || released || lateSinceMs === Infinity);
}

/** Whether two locks may be held together. */
function areShared(one: Lock, other: Lock): boolean {
  return one.mode === "shared" && other.mode === "shared";
}

/**
 * By how much the signal aborts early: a twentieth of the validity, from 2 to 25 ms, and never more
 * than half of it.
 */
function abortMarginMs(validityMs: number): number {
  return Math.min(Math.max(validityMs / 20, 2), 25, validityMs / 2);
}

/** Whether the lock is not over: its keys are not to be taken back yet. */
function stillHeld(held: Held | undefined): boolean {
  return held !== undefined && !held.released && held.lock.held;
}

function nameOf({ client, lock }: Held): string {
  return `${lock.resources.join("+")} of ${client.name} (${lock.value.slice(0, 12)})`;
}
