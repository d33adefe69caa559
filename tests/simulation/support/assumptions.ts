/**
 * What the library assumes of its surroundings, one predicate for each assumption. What a checker
 * finds while one of them does not hold is to be expected; `../README.md` says which checker asks
 * which.
 */
import type { Deeds } from "./ledger.ts";
import { listOf, type Plan } from "./plan.ts";

/** By how much the library proposes counters ahead of its clock, in milliseconds. */
const HINT_LEAD_MS = 1_000;
/**
 * By how much a proposal may differ from a node's clock and still be taken, in milliseconds; clocks
 * drift a little.
 */
const HINT_TOLERANCE_MS = 61_000;

/** What has happened to a client's clocks. */
interface ClockHistory {
  steppedAhead: boolean;
  suspended: boolean;
  hidSleep: boolean;
  tooSlow: boolean;
}

/** The assumptions of one run, and what has become of them so far. */
export class Assumptions {
  /** For how long all clients keep out a node that may have forgotten, in milliseconds. */
  readonly guardMs: number;
  readonly #plan: Plan;
  readonly #clocks: readonly ClockHistory[];
  #fastNode = false;
  #lostData = false;
  #lostKeys = false;

  /** @param plan What is to happen. */
  constructor(plan: Plan) {
    this.#plan = plan;
    this.guardMs = Math.min(...plan.clients.map(({ restartGuardMs }) => restartGuardMs ?? 0));
    this.#clocks = plan.clients.map(() => ({
      steppedAhead: false,
      suspended: false,
      hidSleep: false,
      tooSlow: false,
    }));
  }

  /** Something has happened to the clocks of a client. */
  noteClock(client: number, change: Partial<ClockHistory>): void {
    Object.assign(this.#clocks[client], change);
  }

  /** A node's clock has counted more than the drift factor allows. */
  noteFastNode(): void {
    this.#fastNode = true;
  }

  /** A node has lost everything, or its last moments, in a way that the restart guard sees. */
  noteDataLost(): void {
    this.#lostData = true;
    const ttlsMs = this.#plan.clients.flatMap(({ ops }) =>
      ops.map(({ ttlMs, extendTtlMs = 0 }) => Math.max(ttlMs, extendTtlMs))
    );
    if (this.guardMs < Math.max(...ttlsMs)) this.#lostKeys = true;
  }

  /** A node has lost one key, which the restart guard does not see. */
  noteEvicted(): void {
    this.#lostData = this.#lostKeys = true;
  }

  /**
   * Clocks run at about the same speed, on the client's side: between two looks at least one of its
   * two clocks counts all the time that passes, within half of the drift factor. The wall clock may
   * step back, and the monotonic one stand still while the machine is suspended, but not both
   * between the same two looks.
   */
  clientClockKeepsSpeed(client: number): boolean {
    const { hidSleep, tooSlow } = this.#clocks[client];
    return !tooSlow && !hidSleep;
  }

  /**
   * Clocks run at about the same speed, on the nodes' side: none is faster than half of the drift
   * factor allows.
   */
  get nodeClocksKeepSpeed(): boolean {
    return !this.#fastNode;
  }

  /**
   * Nodes keep their data: one that loses some is kept out for the longest TTL (`restartGuardMs`).
   */
  get nodesKeepTheirData(): boolean {
    return !this.#lostKeys;
  }

  /**
   * All clients list the same nodes. How a list is changed all the same without harm,
   * `replacement.ts` has.
   */
  get clientsListTheSameNodes(): boolean {
    const lists = this.#plan.clients.map((_, client) => listOf(this.#plan, client).join());
    return new Set(lists).size === 1;
  }

  /**
   * No node loses anything, whether or not it is kept out for it: `inspect()` knows no restart
   * guard.
   */
  get nodesLoseNothing(): boolean {
    return !this.#lostData;
  }

  /**
   * A client's two clocks show the same time to pass: a leap is noticed only when the one timer
   * wakes up next.
   */
  clientClocksAgree(client: number): boolean {
    return !this.#clocks[client].steppedAhead && !this.#clocks[client].suspended;
  }

  /** A node deletes keys when their TTL is over: its clock is not set back or slowed down. */
  nodeExpiresKeys(node: number): boolean {
    return !this.#plan.faults.some((fault) =>
      (fault.kind === "node-step" && fault.node === node && fault.stepMs < 0) ||
      (fault.kind === "node-rate" && fault.node === node && fault.rate < 1)
    );
  }

  /**
   * Counters never fall: one that is lost resumes above what it was, because the clocks that count
   * are apart by less than the guard. A client's clock does not count if it is far from that of
   * every node.
   */
  get countersNeverFall(): boolean {
    if (!this.nodesKeepTheirData || !this.nodeClocksKeepSpeed) return false;
    if (!this.#lostData) return true;
    const { clients, nodes, faults } = this.#plan;
    const heeded = clients.filter((client) =>
      nodes.some(({ wallOffsetMs }) =>
        Math.abs(client.wallOffsetMs + HINT_LEAD_MS - wallOffsetMs) <= HINT_TOLERANCE_MS
      )
    );
    const offsets = [...heeded, ...nodes].map(({ wallOffsetMs }) => wallOffsetMs);
    const stepped = faults.some(({ kind }) =>
      ["wall-step", "node-step", "node-rate", "suspend"].includes(kind)
    );
    return !stepped && Math.max(...offsets) - Math.min(...offsets) < this.guardMs - HINT_LEAD_MS;
  }

  /** A node runs the release of a value, and nothing about that value behind it. */
  releaseComesLast({ releaseRefused, reordered }: Deeds): boolean {
    return !releaseRefused && !reordered;
  }

  /**
   * A client reconnects in time: a stall does not take as long as connecting may. Otherwise attempt
   * after attempt may be given up because the process stalled, until the TTLs of the keys are over.
   */
  reconnects(client: number): boolean {
    const { process, clients } = this.#plan;
    return process.stallMaxMs < clients[client].connectTimeoutMs;
  }

  /**
   * All waiting clients are notified of releases, no node has refused what that takes, and no
   * process or write is held up.
   */
  get waitersAreNotified(): boolean {
    const { process, network, clients, faults } = this.#plan;
    const heldUp = process.stallChance > 0 || network.slowWriteChance > 0;
    return !heldUp && clients.every(({ notify }) => notify !== false) &&
      !faults.some((fault) => fault.kind === "errors" && /^(?:NOPERM|ERR)/u.test(fault.text));
  }
}
