/** What the clients' callers do: they take locks, work, extend, release, and give up. */
import { slowMsOf } from "./idle_checker.ts";
import {
  type Lock,
  LockLostError,
  QuorumError,
  RedlockError,
  type RedlockEvent,
  type RedlockOptions,
} from "./library.ts";
import type { Op } from "./plan.ts";
import type { Held, SimClient } from "./sim_client.ts";
import type { World } from "./world.ts";

/** How often a holder writes to the store, in milliseconds. */
const WRITE_EVERY_MS = 50;
/**
 * Time that the event loop, promises and jitter may take beyond a bound of the library, in
 * milliseconds.
 */
const SLACK_MS = 25;
/**
 * A process that stalls between reading a clock and setting a timer sets it late, by a heartbeat at
 * the most each time.
 */
const STALLED_MS = 1_000;
/** The most attempts at adopting a lock beyond those within `waitMs`. */
const ADOPTIONS_MAX = 9;
/**
 * The most attempts of a call that does not wait, and the longest pause before each, in round
 * trips.
 */
const TRIES_MAX = 5;
const TRY_PAUSE_ROUND_TRIPS = 4;
/** The most that closing takes: two graces and a turn; and as long for releases, at the most. */
const CLOSE_MS = 600, RELEASES_MS_MAX = 2_000;

/** How long calls may take at the most, in a process's own time. */
export interface Bounds {
  readonly attemptMs: number;
  readonly tryMs: number;
  readonly acquireMs: number;
  readonly adoptMs: number;
  readonly extendMs: number;
  readonly releaseMs: number;
}

/** The bounds of an op's calls. */
export function boundsOf(world: World, client: SimClient, op: Op): Bounds {
  const { timerLateMs, stallChance } = world.plan.process;
  const slackMs = SLACK_MS + 10 * timerLateMs + (stallChance > 0 ? STALLED_MS : 0);
  const rate = world.slowestRate(client.index);
  const { connectTimeoutMs, fencing } = client.plan;
  const answerMs = connectTimeoutMs + client.nodeTimeoutMs(op.ttlMs) * (fencing ? 2 : 1);
  const attempts = op.any ? op.resources.length : 1;
  const attemptMs = attempts * answerMs / rate + slackMs;
  const { retryDelayMaxMs } = client.plan;
  const tryMs = TRIES_MAX *
    (attemptMs + TRY_PAUSE_ROUND_TRIPS * client.nodeTimeoutMs(op.ttlMs) / rate);
  return {
    attemptMs,
    tryMs,
    // Each attempt looks who has the lock, and waits, before the next.
    adoptMs: op.waitMs / rate + ADOPTIONS_MAX * (2 * attemptMs + retryDelayMaxMs / rate),
    acquireMs: op.waitMs === 0 ? tryMs : op.waitMs / rate + attemptMs,
    extendMs: Math.max(op.ttlMs, op.extendTtlMs ?? 0) / rate + attemptMs,
    releaseMs: attemptMs,
  };
}

/**
 * Does one op, or adopts a lock for it; resolves when it is over, with whether there was a lock or
 * an answer.
 */
export async function runOp(
  world: World,
  client: SimClient,
  op: Op,
  token?: string,
): Promise<boolean> {
  try {
    switch (op.kind) {
      case "inspect":
        return await inspect(world, client, op);
      case "close":
        client.closed = true;
        await client.call("close", closeMs(world, client), client.redlock.close());
        return true;
      default:
        return await takeAndWork(world, client, op, token);
    }
  } catch (error) {
    const expected = error instanceof RedlockError || error instanceof GaveUp;
    if (!expected) world.fail("unexpected-error", `${client.name} ${op.kind}: ${error}`);
    world.trace.add(client.name, `${op.kind} ${op.resources.join("+")}: ${error}`);
    return false;
  }
}

/** Each reply to what was sent before begins a grace again, as long as any are under way. */
function closeMs({ plan }: World, client: SimClient): number {
  const { timerLateMs, stallChance } = plan.process;
  const releasesMs = Math.min(client.nodeTimeoutMs(30_000), RELEASES_MS_MAX);
  return CLOSE_MS + releasesMs + SLACK_MS + slowMsOf(plan, client.index) + 10 * timerLateMs +
    (stallChance > 0 ? STALLED_MS : 0);
}

/** The reason of a caller's own signal. */
class GaveUp extends Error {
  override readonly name = "GaveUp";
}

async function inspect(world: World, client: SimClient, op: Op): Promise<boolean> {
  const bounds = boundsOf(world, client, op);
  const [resource] = op.resources;
  const holders = world.checkers.holdersOf(resource);
  const inspection = await client.call(
    "inspect",
    bounds.attemptMs,
    client.redlock.inspect(resource, { ttlMs: op.ttlMs }),
  );
  const held = holders.find(({ lock }) => lock.held);
  if (held && !inspection.held) {
    const text =
      `${client.name} learns that ${resource} is free, which ${held.client.name} held all the while`;
    const { assumptions } = world;
    const assumed = assumptions.nodesLoseNothing && assumptions.nodeClocksKeepSpeed &&
      assumptions.clientClockKeepsSpeed(held.client.index);
    world.failAssuming(assumed, "inspect", text);
  }
  const what = `inspects ${resource}: ${inspection.held ? "held" : "free"}`;
  world.trace.add(client.name, what);
  return true;
}

async function takeAndWork(
  world: World,
  client: SimClient,
  op: Op,
  token?: string,
): Promise<boolean> {
  const { redlock, process } = client;
  const bounds = boundsOf(world, client, op);
  const controller = new AbortController();
  if (op.abortAfterMs !== undefined) {
    process.setTimer(() => controller.abort(new GaveUp("gave up")), op.abortAfterMs);
  }
  const options: RedlockOptions = {
    ttlMs: op.ttlMs,
    waitMs: op.waitMs,
    any: op.any,
    mode: op.shared && !client.plan.fencing ? "shared" : "exclusive",
    autoExtend: op.autoExtend,
    atLeastMs: op.atLeastMs,
    extensionsMax: op.extensionsMax,
    signal: op.abortAfterMs === undefined ? undefined : controller.signal,
  };
  const listener = new Listener(world, client, op, bounds);
  options.onEvent = listener.onEvent;
  const wait = token === undefined ? world.checkers.idle.begin(client, op) : undefined;
  const waited = () => world.checkers.idle.end(wait);
  if (op.kind === "using" && token === undefined) {
    const bound = bounds.acquireMs + op.holdMs * 2 + bounds.extendMs + bounds.releaseMs;
    await client.call(
      "using",
      bound,
      redlock.using(op.resources, options, async (lock) => {
        waited();
        const held = client.track(lock, op);
        listener.held = held;
        await work(world, held, op, bounds);
        if (op.handsTo) handOver(world, held, op);
        held.released = true;
      }),
    ).finally(waited);
    return true;
  }
  const lock = token !== undefined
    ? await client.call("adopt", bounds.adoptMs, redlock.adopt(token, options))
    : op.kind === "acquire"
    ? await client.call("acquire", bounds.acquireMs, redlock.acquire(op.resources, options))
      .finally(waited)
    : await client.call(
      "tryAcquire",
      bounds.tryMs,
      redlock.tryAcquire(op.resources, options).finally(waited),
    );
  if (!lock) return false;
  const held = client.track(lock, op, token);
  listener.held = held;
  try {
    await work(world, held, op, bounds);
    await end(world, held, op, bounds);
  } catch (error) {
    if (!(error instanceof RedlockError)) throw error;
    world.trace.add(client.name, String(error));
  }
  return true;
}

/**
 * A caller whose listener closes the client or releases the lock, from inside whatever calls the
 * listener.
 */
class Listener {
  readonly #world: World;
  readonly #client: SimClient;
  readonly #op: Op;
  readonly #bounds: Bounds;
  #held: Held | undefined = undefined;
  #done = false;

  constructor(world: World, client: SimClient, op: Op, bounds: Bounds) {
    this.#world = world;
    this.#client = client;
    this.#op = op;
    this.#bounds = bounds;
  }

  /** The lock, once the caller has it. */
  get held(): Held | undefined {
    return this.#held;
  }

  set held(held: Held) {
    this.#held = held;
    if (this.#op.listener?.on === "abort") held.signal?.addEventListener("abort", this.#act);
  }

  readonly onEvent = (event: RedlockEvent): void => {
    this.#client.onEvent(event);
    if (event.type === this.#op.listener?.on) this.#act();
  };

  readonly #act = (): void => {
    const client = this.#client;
    // Later on everybody has to make progress, who is not closed by then.
    if (this.#done || this.#world.loop.nowMs >= this.#world.plan.healAtMs) return;
    if (this.#op.listener!.does === "close") {
      this.#done = client.closed = true;
      client.call("close", closeMs(this.#world, client), client.redlock.close());
    } else if (this.#held) {
      this.#done = true;
      release(this.#world, this.#held, this.#bounds).catch(() => {});
    }
  };
}

/** Works with the lock until the time is over or the lock is. */
async function work(world: World, held: Held, op: Op, bounds: Bounds): Promise<void> {
  const { client, lock } = held;
  const { process } = client;
  const endMs = process.awakeMs + op.holdMs;
  const lastBlockMs = process.trueMs + op.holdMs; // a process is not awake while it is blocked
  let extendAtMs = process.awakeMs + (op.extendEveryMs ?? Infinity);
  while (process.awakeMs < endMs && !held.aborted) {
    await process.sleep(Math.min(WRITE_EVERY_MS, Math.ceil(endMs - process.awakeMs)));
    if (op.blockMs !== undefined && process.trueMs < lastBlockMs) process.block(op.blockMs);
    if (op.asksSignal) world.checkers.askSignal(held);
    if (lock.held) await write(world, held);
    if (process.awakeMs < extendAtMs) continue;
    extendAtMs = process.awakeMs + op.extendEveryMs!;
    await client.gathered();
    try {
      await client.call("extend", bounds.extendMs, lock.extend({ ttlMs: op.extendTtlMs }));
    } catch (error) {
      if (error instanceof QuorumError) continue; // the lock extends itself
      if (!(error instanceof LockLostError)) throw error;
      return;
    }
  }
}

/** Looks at the lock, then writes: what a pause in between does no lock can prevent. */
async function write(world: World, { client, lock }: Held): Promise<void> {
  await client.process.sleep(0);
  world.store.write(lock, client);
}

async function end(world: World, held: Held, op: Op, bounds: Bounds): Promise<void> {
  if (op.handsTo) return handOver(world, held, op);
  if (op.end === "abandon") return;
  const releases = [release(world, held, bounds)];
  if (op.end === "twice") releases.push(release(world, held, bounds));
  await Promise.all(releases);
}

/** Hands the lock over to those who are to adopt it, each for work as long as its own was. */
function handOver(world: World, held: Held, op: Op): void {
  const { client, lock } = held;
  if (op.extendsMeanwhile) lock.extend({ ttlMs: op.extendTtlMs }).catch(() => {});
  const token = lock.handOver();
  held.released = held.handedOver = true;
  world.givers.set(token, held);
  world.trace.add(client.name, `hands over ${lock.resources.join("+")}`);
  const { handsTo = [], ...rest } = op;
  for (const { client, afterMs } of handsTo) {
    world.adoptLater(client, { ...rest, kind: "acquire", abortAfterMs: undefined }, afterMs, token);
  }
}

async function release(world: World, held: Held, { releaseMs }: Bounds): Promise<void> {
  const { client, lock } = held;
  await client.gathered();
  const { cooldowns } = world.checkers;
  const { held: wasHeld } = lock; // else the cooldown began when it ended
  const { uptimeMs } = client.process; // it may stall before it sees that the release has failed
  held.released = true;
  let confirmed = false;
  try {
    confirmed = await client.call("release", releaseMs, lock.release());
  } finally {
    if (!confirmed && wasHeld) cooldowns.begin(held, uptimeMs);
  }
}

/**
 * What everybody's locks protect. It notes who else held the lock when something was written. What
 * carries a fencing token is refused where a higher one was there before; everything else is taken.
 */
export class Store {
  /** Writes by one while another held the lock. */
  readonly late: { atMs: number; what: string }[] = [];
  /** Writes that their tokens showed to be late. */
  refused = 0;
  readonly #world: World;
  readonly #highest = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A write, which arrives at once. */
  write(lock: Lock, client: SimClient): void {
    this.#world.loop.at(client.process.trueMs, () => {
      if (!this.#passes(lock)) return void this.refused++;
      const holder = this.#world.checkers.otherHolder(lock);
      if (!holder) return;
      const text = `writes to ${lock.resources.join("+")}, which ${holder.client.name} holds`;
      this.#world.trace.add(client.name, text);
      this.late.push({ atMs: this.#world.loop.nowMs, what: `${client.name} ${text}` });
    });
  }

  #passes({ resources, fencingToken }: Lock): boolean {
    if (fencingToken === undefined) return true;
    if (resources.some((name) => fencingToken < (this.#highest.get(name) ?? 0))) return false;
    for (const name of resources) this.#highest.set(name, fencingToken);
    return true;
  }
}
