/** Calls for a lock that many want, on nodes in memory. */
import type { Lock } from "../../src/lock/lock.ts";
import type { RedlockOptions } from "../../src/options.ts";
import type { QueueNotice } from "../../src/quorum/queue_ticket.ts";
import { Cluster } from "./cluster.ts";
import type { KeyspaceNode } from "./keyspace_node.ts";

/** Options of calls that wait for ever, and ask by themselves after a minute at the earliest. */
const PATIENT: RedlockOptions = {
  ttlMs: 1_000_000,
  waitMs: Infinity,
  retryDelayMs: 200,
  retryDelayMaxMs: 1_000_000,
};

/** A client, and what became of its calls. */
export class Callers extends Cluster {
  /** Who has had the lock, in order. */
  readonly won: string[] = [];
  readonly locks = new Map<string, Lock>();
  readonly errors = new Map<string, Error>();

  constructor(
    options: RedlockOptions = {},
    nodeCount = 3,
    prepare?: (nodes: KeyspaceNode[]) => void,
  ) {
    super(nodeCount, { ...PATIENT, ...options }, prepare);
  }

  /** Somebody wants a lock. */
  call(
    who: string,
    options: RedlockOptions = {},
    resource: string | string[] = "a",
    redlock = this.redlock,
  ): void {
    redlock.acquire(resource, options).then((lock) => {
      this.won.push(who);
      this.locks.set(who, lock);
    }, (error) => this.errors.set(who, error));
  }

  /** Somebody releases its lock. */
  async release(who: string): Promise<void> {
    await this.settle(this.locks.get(who)!.release());
    await this.advance(0);
  }

  /** What somebody's call failed with. */
  error<T extends Error>(who: string): T {
    const error = this.errors.get(who);
    if (!error) throw new Error(`The call of ${who} has no error`);
    return error as T;
  }

  /** The ticket of this client in the queue for "a". */
  get ticket(): string {
    return this.nodes.flatMap((node) => node.queue()).find((ticket) => /^0/u.test(ticket))!;
  }

  /** Has nodes notify the ticket of this client, whether or not anything is free. */
  notify(nodes: readonly KeyspaceNode[], notice?: QueueNotice): void {
    for (const node of nodes) node.notify(this.ticket, notice);
  }

  /**
   * How long after `act` the client asks next, if it does within `limitMs`; and with which
   * priority.
   */
  async asksAfter(
    act: () => void,
    limitMs = 10_000,
  ): Promise<[waitedMs: number | undefined, priority: string | undefined]> {
    const startMs = this.nowMs;
    const { length } = this.asksMs();
    act();
    await this.advance(limitMs);
    return [this.asksMs(startMs)[length], this.priorities[length]];
  }

  /** When the first node was asked for a lock, from `startMs`, in milliseconds. */
  asksMs(startMs = 0): number[] {
    return this.nodes[0].asked("acquire").map(({ atMs }) => atMs - startMs);
  }
}

/** A client whose first call has the lock, and for which others of it wait. */
export async function held(...waiting: string[]): Promise<Callers> {
  const callers = new Callers();
  callers.call("first");
  await callers.advance(0);
  for (const who of waiting) callers.call(who);
  await callers.advance(0);
  return callers;
}

/** A client whose calls wait, in the nodes' queues, for a lock that somebody else has for ever. */
export async function blocked(
  waiting: string[] = ["first"],
  options?: RedlockOptions,
  nodeCount?: number,
  prepare?: (nodes: KeyspaceNode[]) => void,
): Promise<Callers> {
  const callers = new Callers(options, nodeCount, prepare);
  callers.occupy();
  for (const who of waiting) callers.call(who);
  await callers.advance(1_000);
  return callers;
}
