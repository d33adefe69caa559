/**
 * A node that keeps its locks in a map, and can be made to break one rule.
 *
 * @module
 */
import type { KeyState, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import type { QueueTicket, ReleaseListener } from "../../src/quorum/queue_ticket.ts";

/** One way to be wrong. */
export type Defect =
  | "acquires what is held"
  | "sets some of several keys"
  | "never expires"
  | "extends another's key"
  | "shortens"
  | "sets what it extends"
  | "deletes another's key"
  | "releases first"
  | "answers twice"
  | "answers with another index"
  | "loses releases in a hang"
  | "grants late what it does not set"
  | "counts alike"
  | "lets anybody raise counters"
  | "lowers counters"
  | "ignores the queue"
  | "notifies the last"
  | "keeps tickets that leave"
  | "notifies after unsubscribe"
  | "never closes while hanging";

interface Key {
  readonly value: string;
  expiresMs: number;
}

interface Waiting {
  readonly ticketId: string;
  readonly score: number;
}

/** See the module. */
export class MapNode implements LockNode {
  readonly name = "map";
  readonly #defect: Defect | undefined;
  readonly #keys = new Map<string, Key>();
  readonly #counters = new Map<string, number>();
  readonly #queues = new Map<string, Waiting[]>();
  #listener: { readonly to: ReleaseListener; readonly nodeIndex: number } | undefined = undefined;
  /** What was asked while it hangs. */
  #hanging: (() => void)[] | undefined = undefined;

  constructor(defect?: Defect) {
    this.#defect = defect;
  }

  hang(): void {
    this.#hanging = [];
  }

  resume(): void {
    const asked = this.#hanging ?? [];
    this.#hanging = undefined;
    for (const run of asked) run();
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    request.maybeSet |= 1 << nodeIndex;
    if (this.#hanging && this.#defect === "grants late what it does not set") {
      return this.#run(() => request.grant(nodeIndex));
    }
    if (this.#defect !== "releases first") {
      return this.#run(() => this.#acquire(request, nodeIndex));
    }
    queueMicrotask(() => this.#run(() => this.#acquire(request, nodeIndex)));
  }

  extend(request: LockRequest, nodeIndex: number): void {
    this.#run(() => {
      const { keys, value, ttlMs } = request;
      const found = keys.map((key) => this.#find(key));
      if (this.#defect === "sets what it extends") {
        for (const key of keys) if (!this.#find(key)) this.#set(key, request);
      }
      const foreign = found.some((key) => key && key.value !== value);
      if (foreign && this.#defect !== "extends another's key") return request.deny(nodeIndex);
      const expiresMs = performance.now() + ttlMs;
      for (const key of found) {
        if (!key) continue;
        const shortens = this.#defect === "shortens";
        key.expiresMs = shortens ? expiresMs : Math.max(key.expiresMs, expiresMs);
      }
      if (foreign) request.deny(nodeIndex);
      else if (found.includes(undefined)) request.missing!(nodeIndex);
      else request.grant(nodeIndex);
    });
  }

  release(request: LockRequest, nodeIndex: number): void {
    if (this.#hanging && this.#defect === "loses releases in a hang") {
      return this.#run(() => request.grant(nodeIndex));
    }
    this.#run(() => {
      const { keys, value, ticket } = request;
      const ours = keys.filter((key) => this.#find(key)?.value === value);
      for (const key of this.#defect === "deletes another's key" ? keys : ours) {
        this.#keys.delete(key);
        if (ticket) this.#leave(key, ticket.ticketId);
        this.#notify(key);
      }
      if (ours.length === keys.length) request.grant(nodeIndex);
      else request.deny(nodeIndex);
    });
  }

  raiseCounters(request: LockRequest, nodeIndex: number): void {
    this.#run(() => {
      const { keys, value, counterFloor } = request;
      const ours = keys.every((key) => this.#find(key)?.value === value);
      if (!ours && this.#defect !== "lets anybody raise counters") return request.deny(nodeIndex);
      const counts = keys.map((key) => this.#counters.get(key) ?? 0);
      const lowers = this.#defect === "lowers counters";
      const highest = lowers ? counterFloor! : Math.max(counterFloor!, ...counts);
      for (const key of keys) this.#counters.set(key, highest);
      if (ours) request.grant(nodeIndex, undefined, highest);
      else request.deny(nodeIndex);
    });
  }

  inspect(key: string): Promise<KeyState | undefined> {
    return new Promise((resolve) => {
      this.#run(() => {
        const found = this.#find(key);
        const remainingMs = (found?.expiresMs ?? 0) - performance.now();
        resolve(found && { value: found.value, remainingMs });
      });
    });
  }

  subscribe(to: ReleaseListener, nodeIndex: number): void {
    this.#listener = { to, nodeIndex };
    to.onSubscribed(nodeIndex);
  }

  unsubscribe(): void {
    if (this.#defect !== "notifies after unsubscribe") this.#listener = undefined;
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    if (this.#defect === "keeps tickets that leave") return;
    for (const key of keys) {
      const wasFirst = this.#queues.get(key)?.[0].ticketId === ticketId;
      this.#leave(key, ticketId);
      if (wasFirst && !this.#find(key)) this.#notify(key);
    }
  }

  close(): Promise<void> {
    if (!this.#hanging || this.#defect !== "never closes while hanging") return Promise.resolve();
    return new Promise(() => {});
  }

  #run(run: () => void): void {
    if (this.#hanging) this.#hanging.push(run);
    else run();
  }

  #acquire(request: LockRequest, nodeIndex: number): void {
    const { keys, ticket, counterFloor } = request;
    const isHeld = (key: string) => this.#find(key) !== undefined;
    const held = keys.filter(isHeld);
    const ignoresKeys = this.#defect === "acquires what is held";
    const ahead = ticket ? Math.max(...keys.map((key) => this.#ahead(key, ticket))) : 0;
    const waits = ahead > 0 && ticket?.priority !== "overdue" &&
      this.#defect !== "ignores the queue";
    if (!ignoresKeys && held.length > 0 || waits) {
      if (this.#defect === "sets some of several keys") {
        for (const key of keys) if (!isHeld(key)) this.#set(key, request);
      }
      return ticket ? this.#enqueue(request, ticket, nodeIndex) : request.deny(nodeIndex);
    }
    for (const key of keys) {
      this.#set(key, request);
      if (ticket) this.#leave(key, ticket.ticketId);
    }
    const index = this.#defect === "answers with another index" ? nodeIndex + 1 : nodeIndex;
    request.grant(index, undefined, counterFloor === undefined ? undefined : this.#count(request));
    if (this.#defect === "answers twice") request.grant(index);
  }

  #count({ keys, counterFloor }: LockRequest): number {
    const counts = keys.map((key) => this.#counters.get(key) ?? counterFloor!);
    const next = Math.max(...counts) + (this.#defect === "counts alike" ? 0 : 1);
    for (const key of keys) this.#counters.set(key, next);
    return next;
  }

  #enqueue(request: LockRequest, ticket: QueueTicket, nodeIndex: number): void {
    let remainingMs = 0, ahead = 0, length = 0;
    for (const key of request.keys) {
      const queue = this.#queues.get(key) ?? [];
      if (!queue.some(({ ticketId }) => ticketId === ticket.ticketId)) queue.push(ticket);
      queue.sort((one, other) => one.score - other.score);
      this.#queues.set(key, queue);
      ahead = Math.max(ahead, this.#ahead(key, ticket));
      length = Math.max(length, queue.length);
      remainingMs = Math.max(remainingMs, (this.#find(key)?.expiresMs ?? 0) - performance.now());
    }
    request.enqueued!(nodeIndex, { remainingMs: Math.max(remainingMs, 0), ahead, length });
  }

  /** How many tickets are ahead of one in a queue. */
  #ahead(key: string, { ticketId }: QueueTicket): number {
    const queue = this.#queues.get(key) ?? [];
    const place = queue.findIndex((waiting) => waiting.ticketId === ticketId);
    return place === -1 ? queue.length : place;
  }

  #leave(key: string, ticketId: string): void {
    const queue = this.#queues.get(key) ?? [];
    this.#queues.set(key, queue.filter((waiting) => waiting.ticketId !== ticketId));
  }

  #notify(key: string): void {
    const queue = this.#queues.get(key) ?? [];
    const waiting = queue.at(this.#defect === "notifies the last" ? -1 : 0);
    if (!waiting || !this.#listener) return;
    const { to, nodeIndex } = this.#listener;
    to.onReleased(nodeIndex, waiting.ticketId, "first");
  }

  #set(key: string, { value, ttlMs }: LockRequest): void {
    this.#keys.set(key, { value, expiresMs: performance.now() + ttlMs });
  }

  #find(key: string): Key | undefined {
    const found = this.#keys.get(key);
    const expires = this.#defect !== "never expires";
    return found && expires && found.expiresMs <= performance.now() ? undefined : found;
  }
}
