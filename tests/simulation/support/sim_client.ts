/**
 * A client of the simulation: the library as it is, on a simulated process and network, and what
 * its callers see.
 */
import {
  Gate,
  insideOf,
  type Lock,
  LockOptions,
  parseAddress,
  RedisNode,
  redisServer,
  type Redlock,
  type RedlockEvent,
  redlockOn,
  resolveClientOptions,
  TimerWheel,
} from "./library.ts";
import { type ClientPlan, listOf, type Op, type Plan } from "./plan.ts";
import type { SeededRandom } from "./seeded_random.ts";
import type { SimProcess } from "./sim_process.ts";
import type { World } from "./world.ts";

/** The shortest silence after which the preset replaces a connection, in milliseconds. */
const STALL_TIMEOUT_MS_MIN = 2_000;
/** How long a value is. */
const VALUE_LENGTH = 40;

/** The password and the database where nodes ask for a login. */
export const PASSWORD = "secret";
/** See {@linkcode PASSWORD}. */
export const DATABASE = 3;

/** A lock that a caller has in hand. */
export interface Held {
  readonly client: SimClient;
  readonly lock: Lock;
  readonly signal: AbortSignal | undefined;
  /**
   * Whether the signal has called its listeners. Looking at the signal itself would have it look at
   * the clock.
   */
  aborted: boolean;
  /** When the caller got it. */
  readonly sinceMs: number;
  /** What it said was left of it then, in milliseconds. */
  readonly claimMs: number;
  /** Whether the caller has begun to release it, or has handed it over. */
  released: boolean;
  /** Whether the caller has handed it over: its keys stay. */
  handedOver: boolean;
  /** The token by which it was adopted, if it was, and the lock that was handed over. */
  readonly token: string | undefined;
  readonly givenBy: Held | undefined;
  /** The lock that has adopted this one. */
  takenBy: Held | undefined;
  /** For how long its keys are to be kept at least. */
  readonly atLeastMs: number;
  /** Until when its keys are kept at least, by the process's monotonic clock. */
  readonly keptUntilMs: number;
  /** When it was first seen not to be held any more. */
  endedAtMs: number | undefined;
  /** The process's {@linkcode SimProcess.changes} when it was last looked at. */
  lookedAt: number;
  /**
   * From when on its signal should have been aborted, in the process's own time; Infinity once it
   * has been.
   */
  lateSinceMs: number | undefined;
  /** The shortest TTL that it may get, in milliseconds. */
  readonly shortestTtlMs: number;
  /** Whether its caller extends it beside its own timer. */
  readonly extendsTwice: boolean;
  /** How many extensions it had, and since when the next is looked for. */
  extensions: number;
  extendedAtMs: number;
  /** Spans of true time in which it was held, for the picture. */
  readonly spans: [number, number][];
}

/** A call that has to settle. */
export interface Call {
  readonly what: string;
  readonly client: SimClient;
  readonly sinceAwakeMs: number;
  readonly boundMs: number;
}

/** One client. */
export class SimClient {
  readonly index: number;
  readonly name: string;
  readonly process: SimProcess;
  readonly plan: ClientPlan;
  readonly redlock: Redlock;
  readonly nodeTimeoutMs: (ttlMs: number) => number;
  /** Whether it was closed by its caller. */
  closed = false;
  readonly #world: World;
  readonly #gatherMs: number | undefined;
  #gathering: Promise<void> | undefined = undefined;
  #values = 0;

  constructor(world: World, index: number, process: SimProcess, plan: Plan) {
    this.#world = world;
    this.index = index;
    this.name = process.name;
    this.process = process;
    this.plan = plan.clients[index];
    this.#gatherMs = plan.gatherMs;
    const { driftFactor, login } = plan;
    const { connectTimeoutMs, nodeTimeoutMs, retryDelayMs, retryDelayMaxMs } = this.plan;
    const random = world.randomOf(`${this.name} library`);
    const fraction = () => random.fraction();
    const wheel = new TimerWheel(process, {
      value: (suffix = "") => this.#value(random, suffix),
      fraction,
    });
    const { continuous } = wheel;
    const look = continuous.look.bind(continuous);
    continuous.look = () => {
      const nowMs = look();
      process.noteLook();
      return nowMs;
    };
    const { notify, fencing, restartGuardMs, cooldownMs } = this.plan;
    const delays = { nodeTimeoutMs, retryDelayMs, retryDelayMaxMs };
    const options = { driftFactor, ...delays, notify, fencing, cooldownMs };
    this.nodeTimeoutMs = (ttlMs) =>
      new LockOptions("acquire lock", { ...options, ttlMs }).defaults.nodeTimeoutMs;
    // The guard must not be shorter than the client's own TTL, which every op replaces by another.
    const guard = restartGuardMs === undefined ? {} : { restartGuardMs, ttlMs: restartGuardMs };
    const connection = resolveClientOptions({
      connectTimeoutMs,
      stallTimeoutMs: Math.max(STALL_TIMEOUT_MS_MIN, 2 * this.nodeTimeoutMs(30_000)),
      clientName: login ? this.name : undefined,
      connect: world.network.connectOf(process),
    });
    const onNodeEvent = (event: RedlockEvent) => {
      if (event.type === "node-connected") this.#trace(`connected to ${event.node}`);
      if (event.type === "node-disconnected") this.#trace(event.error.message);
      if (event.type === "node-quarantined") {
        this.#trace(`keeps out ${event.node}: ${event.reason}`);
      }
    };
    const credentials = login ? `default:${PASSWORD}@` : "";
    const nodes = listOf(plan, index).map((node) => {
      const address = `redis://${credentials}node-${node + 1}${
        login === "database" ? `/${DATABASE}` : ""
      }`;
      const server = redisServer(parseAddress(address), connection, wheel);
      return new RedisNode(server, onNodeEvent);
    });
    // A listener reads the clocks, and each reading may stall the process: it is there whether or
    // not it writes.
    const onEvent = (event: RedlockEvent) => this.onEvent(event);
    this.redlock = redlockOn(wheel, nodes, { ...options, ...guard, onEvent });
    const { roundsMax } = plan;
    if (roundsMax === undefined) return;
    const gates = ["attemptGate", "extensionGate", "releaseGate"].map((kind) => {
      return [kind, new Gate(wheel, roundsMax)];
    });
    Object.assign(insideOf(this.redlock, "acquire lock"), Object.fromEntries(gates));
  }

  /** Puts off what it sends until others of its locks send theirs, if the plan says so. */
  async gathered(): Promise<void> {
    if (this.#gatherMs === undefined) return;
    await (this.#gathering ??= this.#gather(this.#gatherMs));
  }

  async #gather(forMs: number): Promise<void> {
    await this.process.sleep(forMs);
    this.#gathering = undefined;
  }

  /** Has the checkers look at a lock from the moment on at which the caller has it. */
  track(lock: Lock, op: Op, token?: string): Held {
    const signal = op.ignoresSignal ? undefined : lock.signal;
    this.#world.values.get(lock.value)!.ttlMs = op.ttlMs;
    const held: Held = {
      client: this,
      lock,
      signal,
      aborted: signal?.aborted ?? false,
      shortestTtlMs: Math.min(op.ttlMs, op.extendTtlMs ?? Infinity),
      sinceMs: this.process.trueMs,
      claimMs: lock.remainingMs(),
      released: false,
      handedOver: false,
      token,
      givenBy: this.#world.givers.get(token ?? ""),
      takenBy: undefined,
      atLeastMs: op.atLeastMs ?? 0,
      keptUntilMs: this.process.uptimeMs + (op.atLeastMs ?? 0),
      endedAtMs: undefined,
      lookedAt: 0,
      lateSinceMs: undefined,
      extendsTwice: op.extendEveryMs !== undefined && (op.autoExtend ?? op.kind === "using"),
      extensions: lock.extensions,
      extendedAtMs: 0,
      spans: [],
    };
    signal?.addEventListener("abort", () => held.aborted = true);
    if (this.process.trueMs > this.#world.loop.nowMs) {
      this.#world.loop.at(this.process.trueMs, () => this.#world.checkers.begin(held));
    } else {
      this.#world.checkers.begin(held);
    }
    return held;
  }

  /**
   * Waits for a call of the library, which has to settle within `boundMs` of this process's own
   * time.
   */
  async call<T>(what: string, boundMs: number, promise: Promise<T>): Promise<T> {
    const call = { what, client: this, sinceAwakeMs: this.process.awakeMs, boundMs };
    this.#world.calls.add(call);
    try {
      return await promise;
    } finally {
      this.#world.calls.delete(call);
      this.#world.checkers.checkSettled(call);
    }
  }

  /** A value that shows in traces whose it is and of which attempt. */
  #value(random: SeededRandom, suffix: string): string {
    const head = `c${(this.index + 1).toString(16)}a${(++this.#values).toString(16)}`;
    let value = `${head}00000000`.slice(0, 8);
    while (value.length < VALUE_LENGTH) {
      value += random.integer(0, 0xffff).toString(16).padStart(4, "0");
    }
    value += suffix;
    const { nowMs: atMs } = this.#world.loop;
    this.#world.values.set(value, { value, client: this, atMs, ttlMs: 0, held: undefined });
    return value;
  }

  /** Notes an event in the trace. */
  onEvent(event: RedlockEvent): void {
    if (!this.#world.trace.on) return;
    const about = "resources" in event ? event.resources.join("+") : event.node;
    const votes = "votes" in event
      ? event.votes.map(({ node, outcome }) => `${node.match(/node-(\d+)/u)![1]}:${outcome}`)
        .join(" ")
      : "";
    const cause = "cause" in event ? event.cause.message : "";
    this.#trace(`${event.type} ${about} ${votes}${cause}`.trim());
  }

  #trace(what: string): void {
    this.#world.trace.add(this.name, what, this.process.trueMs);
  }
}
