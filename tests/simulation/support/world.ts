/** Everything of one run in one place: machines, network, what is known, and what went wrong. */
import { Assumptions } from "./assumptions.ts";
import { Checkers } from "./checkers.ts";
import { EventLoop } from "./event_loop.ts";
import { Ledger } from "./ledger.ts";
import { MachineClock } from "./machine_clock.ts";
import { Network } from "./network.ts";
import type { Op, Plan } from "./plan.ts";
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

/** Something that must not be, and was. */
export interface Violation {
  readonly atMs: number;
  /** Which checker says so. */
  readonly checker: string;
  readonly what: string;
}

/** What is known of a value. */
export interface ValueOwner {
  readonly value: string;
  readonly client: SimClient;
  /** When it was made. */
  readonly atMs: number;
  ttlMs: number;
  held: Held | undefined;
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
  readonly assumptions: Assumptions;
  readonly checkers: Checkers;
  readonly store: Store;
  readonly turns: Turns = new Turns();
  /** Calls of the library that have not settled. */
  readonly calls = new Set<Call>();
  /** Every value that was made, and whose it is. */
  readonly values = new Map<string, ValueOwner>();
  /** Every lock that was handed over, by its token. */
  readonly givers = new Map<string, Held>();
  /** What must not be, though all assumptions hold. */
  readonly violations: Violation[] = [];
  /** What must not be, where an assumption does not hold: to be expected. */
  readonly excused: Violation[] = [];
  /** Has a client adopt a lock some time; set by the run. */
  adoptLater: (client: number, op: Op, afterMs: number, token: string) => void = () => {};
  readonly #reported = new WeakMap<object, Set<string>>();

  /**
   * @param plan What is to happen.
   * @param traced Whether to write down what does.
   */
  constructor(plan: Plan, traced: boolean) {
    this.plan = plan;
    const { loop } = this;
    this.trace = new Trace(loop, traced);
    this.ledger = new Ledger(
      (what) => this.fail("nodes", what),
      (what) => this.fail("full", what),
    );
    const rateMax = 1 + plan.driftFactor / 2;
    this.nodes = plan.nodes.map(({ rate, wallOffsetMs }, index) => {
      const clock = new MachineClock(0, WALL_MS + wallOffsetMs);
      clock.change({ wallRate: rate, monotonicRate: rate }, 0);
      return new SimNode(index, { loop, clock, ledger: this.ledger, trace: this.trace }, {
        password: plan.login && plan.login !== "open" ? PASSWORD : undefined,
        database: plan.login === "database" ? DATABASE : 0,
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
    this.processes = plan.clients.map(({ monotonicRate, wallRate, wallOffsetMs }, index) => {
      const name = `client-${index + 1}`;
      const clock = new MachineClock(1_000 * (index + 1), WALL_MS + wallOffsetMs);
      clock.change({ monotonicRate, wallRate }, 0);
      return new SimProcess(name, loop, clock, this.randomOf(name), plan.process);
    });
    for (const [index, { name }] of this.processes.entries()) {
      const { distanceMs = 0 } = plan.clients[index];
      for (const node of this.nodes.keys()) {
        this.network.link(name, node, "requests").extraMs = distanceMs;
        this.network.link(name, node, "replies").extraMs = distanceMs;
      }
    }
    this.assumptions = new Assumptions(plan);
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

  /** Something must not be. */
  fail(checker: string, what: string): void {
    this.failAssuming(true, checker, what);
  }

  /**
   * Something must not be while assumptions hold, and is to be expected else.
   *
   * @param assumed Whether they hold.
   */
  failAssuming(assumed: boolean, checker: string, what: string): void {
    const atMs = this.loop.nowMs;
    const list = assumed ? this.violations : this.excused;
    if (list.length < VIOLATIONS_MAX) list.push({ atMs, checker, what });
    this.trace.add(assumed ? "VIOLATION" : "expected", `${checker}: ${what}`);
  }

  /** The same, but once for each `about`. */
  failOnce(about: object, assumed: boolean, checker: string, what: string): void {
    const known = this.#reported.get(about) ?? new Set();
    this.#reported.set(about, known);
    if (known.has(checker)) return;
    known.add(checker);
    this.failAssuming(assumed, checker, what);
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
