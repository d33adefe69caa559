/**
 * Everything of one run in one place: machines, network, what is known, and what went wrong.
 *
 * @module
 */
import { Checkers } from "./checkers.ts";
import { EventLoop } from "./event_loop.ts";
import { Ledger } from "./ledger.ts";
import { MachineClock } from "./machine_clock.ts";
import { Network } from "./network.ts";
import type { Plan } from "./plan.ts";
import { SeededRandom } from "./seeded_random.ts";
import { type Call, DATABASE, type Held, PASSWORD, SimClient } from "./sim_client.ts";
import { SimNode } from "./sim_node.ts";
import { SimProcess } from "./sim_process.ts";
import { Trace } from "./trace.ts";
import { Turns } from "./turns.ts";
import { Store } from "./workload.ts";

/** What the wall clocks show at the beginning: any day will do. */
export const WALL_MS = 1_700_000_000_000;
/** Violations after which a run is not looked at further. */
const VIOLATIONS_MAX = 20;
/** By how much the library proposes counters ahead of its clock, in milliseconds. */
const HINT_LEAD_MS = 1_000;
/** By how much a proposal may differ from a node's clock and still be taken, in milliseconds; clocks drift a little. */
const HINT_TOLERANCE_MS = 61_000;

/** Something that must not be, and was. */
export interface Violation {
  readonly atMs: number;
  /** Which checker says so. */
  readonly checker: string;
  readonly what: string;
}

/** What is known of a value. */
export interface ValueOwner {
  readonly client: SimClient;
  /** When it was made. */
  readonly atMs: number;
  ttlMs: number;
  held: Held | undefined;
}

/** What has happened to a client's clocks. */
interface ClockHistory {
  steppedBack: boolean;
  jumped: boolean;
  suspended: boolean;
  tooSlow: boolean;
}

/** One run's world. */
export class World {
  readonly plan: Plan;
  readonly loop = new EventLoop();
  readonly trace: Trace;
  readonly ledger: Ledger;
  readonly nodes: readonly SimNode[];
  readonly network: Network;
  readonly processes: readonly SimProcess[];
  readonly clients: readonly SimClient[];
  readonly checkers: Checkers;
  readonly store: Store;
  readonly turns: Turns = new Turns();
  /** Calls of the library that have not settled. */
  readonly calls = new Set<Call>();
  /** Every value that was made, and whose it is. */
  readonly values = new Map<string, ValueOwner>();
  /** What must not be, though all assumptions hold. */
  readonly violations: Violation[] = [];
  /** What must not be, where an assumption does not hold: to be expected. */
  readonly excused: Violation[] = [];
  /**
   * Whether a node has lost a live key without being kept out for it, or misread the time beyond the drift allowance.
   */
  nodesForgot = false;
  /** Whether a node has lost anything, be it kept out for it. */
  dataLost = false;
  readonly #clocks: ClockHistory[];
  readonly #told = new WeakMap<object, Set<string>>();

  /**
   * @param plan What is to happen.
   * @param traced Whether to write down what does.
   */
  constructor(plan: Plan, traced: boolean) {
    this.plan = plan;
    const { loop } = this;
    this.trace = new Trace(loop, traced);
    this.ledger = new Ledger((what) => this.fail("nodes", what));
    const rateMax = 1 + plan.driftFactor / 2;
    this.nodes = plan.nodes.map(({ rate, wallOffsetMs }, index) => {
      const clock = new MachineClock(0, WALL_MS + wallOffsetMs);
      clock.change({ wallRate: rate, monotonicRate: rate }, 0);
      return new SimNode(index, { loop, clock, ledger: this.ledger, trace: this.trace }, {
        password: plan.login ? PASSWORD : undefined,
        database: plan.login ? DATABASE : 0,
        rateMax,
        messages: {
          manners: plan.messages,
          random: this.randomOf(`messages of node ${index}`),
          untilMs: plan.healAtMs,
        },
      });
    });
    this.network = new Network(
      loop,
      this.randomOf("network"),
      plan.network,
      this.nodes,
      this.trace,
    );
    this.#clocks = plan.clients.map(() => ({
      steppedBack: false,
      jumped: false,
      suspended: false,
      tooSlow: false,
    }));
    this.processes = plan.clients.map(({ monotonicRate, wallRate, wallOffsetMs }, index) => {
      const name = `client-${index + 1}`;
      const clock = new MachineClock(1_000 * (index + 1), WALL_MS + wallOffsetMs);
      clock.change({ monotonicRate, wallRate }, 0);
      return new SimProcess(name, loop, clock, this.randomOf(name), plan.process);
    });
    this.checkers = new Checkers(this);
    this.store = new Store(this);
    this.clients = this.processes.map((process, index) =>
      new SimClient(this, index, process, plan)
    );
  }

  /** The process whose client has a ticket. */
  processOf(ticket: string | undefined): SimProcess | undefined {
    const id = ticket?.split(":", 1)[0];
    const value = id && this.values.keys().find((value) => value.startsWith(id));
    return value ? this.values.get(value)!.client.process : undefined;
  }

  /** Randomness for one purpose, so that a change of one does not change the others. */
  randomOf(purpose: string): SeededRandom {
    return new SeededRandom(`${this.plan.seed} ${purpose}`);
  }

  /** The same, but once for each `about`. */
  failOnce(about: object, excused: boolean, checker: string, what: string): void {
    const known = this.#told.get(about) ?? new Set();
    this.#told.set(about, known);
    if (known.has(checker)) return;
    known.add(checker);
    this.failUnless(excused, checker, what);
  }

  /** Something must not be. */
  fail(checker: string, what: string): void {
    this.failUnless(false, checker, what);
  }

  /** Something must not be, but may be expected. */
  failUnless(excused: boolean, checker: string, what: string): void {
    const atMs = this.loop.nowMs;
    const list = excused ? this.excused : this.violations;
    if (list.length < VIOLATIONS_MAX) list.push({ atMs, checker, what });
    this.trace.add(excused ? "expected" : "VIOLATION", `${checker}: ${what}`);
  }

  /** Notes what happens to the clocks of a client. */
  noteClock(client: number, change: Partial<ClockHistory>): void {
    Object.assign(this.#clocks[client], change);
  }

  /** Whether a client's wall clock was ever stepped back. */
  stepsBack(client: number): boolean {
    return this.#clocks[client].steppedBack;
  }

  /** Whether a client's wall clock ever leapt ahead of its monotonic one. */
  jumps(client: number): boolean {
    return this.#clocks[client].jumped || this.#clocks[client].suspended;
  }

  /** Whether both clocks of a client may have counted too little: then nothing can be promised. */
  clockLies(client: number): boolean {
    const { suspended, steppedBack, tooSlow } = this.#clocks[client];
    return tooSlow || (suspended && steppedBack);
  }

  /** A node has lost everything, or its last moments, in a way that the restart guard sees. */
  noteForgotten(): void {
    this.dataLost = true;
    const ttlsMs = this.plan.clients.flatMap(({ ops }) =>
      ops.map(({ ttlMs, extendTtlMs = 0 }) => Math.max(ttlMs, extendTtlMs))
    );
    if (this.guardMs < Math.max(...ttlsMs)) this.nodesForgot = true;
  }

  /** For how long all clients keep out a node that may have forgotten, in milliseconds. */
  get guardMs(): number {
    return Math.min(...this.plan.clients.map(({ restartGuardMs }) => restartGuardMs ?? 0));
  }

  /**
   * Whether counters that are lost may resume below what they were: clocks that count are apart by more than the guard.
   * A client's clock does not count if it is far from that of every node.
   */
  get countersMayFall(): boolean {
    if (this.nodesForgot || !this.dataLost) return this.nodesForgot;
    const { clients, nodes, faults } = this.plan;
    const heeded = clients.filter((client) =>
      nodes.some(({ wallOffsetMs }) =>
        Math.abs(client.wallOffsetMs + HINT_LEAD_MS - wallOffsetMs) <= HINT_TOLERANCE_MS
      )
    );
    const offsets = [...heeded, ...nodes].map(({ wallOffsetMs }) => wallOffsetMs);
    const stepped = faults.some(({ kind }) =>
      ["wall-step", "node-step", "node-rate", "suspend"].includes(kind)
    );
    return stepped || Math.max(...offsets) - Math.min(...offsets) >= this.guardMs - HINT_LEAD_MS;
  }

  /** Whether a node's keys outlive their TTL, as its clock was set back or slowed down. */
  keepsTooLong(node: number): boolean {
    return this.plan.faults.some((fault) =>
      (fault.kind === "node-step" && fault.node === node && fault.stepMs < 0) ||
      (fault.kind === "node-rate" && fault.node === node && fault.rate < 1)
    );
  }

  /** The slowest that a client's timers ever run. */
  slowestRate(client: number): number {
    let rate = Math.min(this.plan.clients[client].monotonicRate, 1);
    for (const fault of this.plan.faults) {
      if (fault.kind === "client-rate" && fault.client === client) {
        rate = Math.min(rate, fault.rate);
      }
    }
    return rate;
  }
}
