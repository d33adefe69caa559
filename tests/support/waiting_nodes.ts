/**
 * Nodes in memory that put callers in line and wake them, in a test's hands.
 *
 * @module
 */
import { ReleaseNotifications } from "../../src/waiting/release_notifications.ts";
import { QueuedWaiter } from "../../src/waiting/queued_waiter.ts";
import type { RedlockEvent } from "../../src/events.ts";
import type { LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import type * as queue from "../../src/quorum/queue_ticket.ts";
import { type RedlockOptions, resolveOptions } from "../../src/options.ts";
import { askToAcquire, Round } from "../../src/quorum/round.ts";
import { type ClientState, createClientState } from "../../src/client_state.ts";
import { undo } from "../../src/lock/undo.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { SKEW_MS_MAX } from "../../src/redis_node/scripts/queue.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { advanceUntil, type FakeClock } from "./fake_clock.ts";
import { FakeCluster, FakeNode, type Operation } from "./fake_nodes.ts";

type Answer = "grant" | "grant, others wait" | "deny" | queue.QueuePosition;

/** Delays with which a caller trusts for a minute that it is woken. */
export const UNHURRIED: RedlockOptions = { retryDelayMs: 200, retryDelayMaxMs: 1_000_000 };

/** One client that a node tells of releases. */
interface Listening {
  readonly listener: queue.ReleaseListener;
  readonly nodeIndex: number;
}

/** One store of locks with a line for each, as the scripts keep it. */
export class WaitingNode extends FakeNode {
  /** How long it takes to begin to tell, in milliseconds; it never does where it is `Infinity`. */
  listenMs = 0;
  /** How long a wake-up travels, in milliseconds. */
  wakeMs = 0;
  /** What it refuses to tell with. */
  refusal: Error | undefined = undefined;
  /** What each attempt claimed, in order; "none" for one that was not to be put in line. */
  readonly claims: (queue.QueuePriority | "none")[] = [];
  /** Who left, in order. */
  readonly leaves: string[] = [];
  /** Whom it woke, in order. */
  readonly wakes: string[] = [];
  /** How often it was asked to tell, and to tell no longer. */
  listened = 0;
  unlistened = 0;
  readonly #clock: FakeClock;
  readonly #lines = new Map<string, string[]>();
  readonly #listening = new Map<string, Listening | undefined>();
  readonly #held: (() => void)[] = [];
  #own: Listening | undefined = undefined;

  constructor(name: string, clock: FakeClock) {
    super(name, clock);
    this.#clock = clock;
  }

  /** Who waits for `key`, first come first. */
  line(key = "a"): string[] {
    return [...this.#lines.get(key) ?? []];
  }

  /** Puts tickets of another client in line, which listens. */
  enqueue(key: string, ...entries: string[]): void {
    for (const entry of entries) this.#listening.set(clientOf(entry), undefined);
    this.#lines.set(key, [...this.line(key), ...entries]);
  }

  /** Takes tickets of another client out of line, without a word to anybody. */
  drop(key: string, ...entries: string[]): void {
    this.#lines.set(key, this.line(key).filter((entry) => !entries.includes(entry)));
  }

  /** Has whoever holds `key` release it. */
  free(key: string): void {
    this.set(key, "", 0);
    this.#wake(key);
  }

  /** Wakes a ticket of this client, whether or not anything is free. */
  wake(entry: string, key = "a"): void {
    this.#own!.listener.onReleased(this.#own!.nodeIndex, entry, key);
  }

  /** Tells no longer, for the time being. */
  deafen(): void {
    const { listener, nodeIndex } = this.#own!;
    this.#listening.delete(listener.id);
    listener.onUnsubscribed(nodeIndex);
  }

  /** Tells now, or again. */
  tell(): void {
    const { listener, nodeIndex } = this.#own!;
    this.#listening.set(listener.id, this.#own);
    listener.onSubscribed(nodeIndex);
  }

  /** Will never tell. */
  refuse(error: Error): void {
    const { listener, nodeIndex } = this.#own!;
    this.#listening.delete(listener.id);
    listener.onUnsupported(nodeIndex, error);
  }

  override resume(): void {
    super.resume();
    for (const act of this.#held.splice(0)) act();
  }

  override acquire(request: LockRequest, nodeIndex: number): void {
    const { ticket } = request;
    const claim = ticket?.priority;
    this.claims.push(claim ?? "none");
    request.maybeSet |= 1 << nodeIndex;
    const joins = ticket && this.#listening.has(clientOf(ticket.ticketId));
    this.#take("acquire", request, nodeIndex, () => {
      if (joins) return this.#acquireOrWait(request, ticket, claim!);
      if (request.keys.some((key) => this.holder(key))) {
        request.maybeSet &= ~(1 << nodeIndex);
        return "deny";
      }
      for (const key of request.keys) this.set(key, request.value, request.ttlMs);
      return "grant";
    });
  }

  override release(request: LockRequest, nodeIndex: number): void {
    const entry = request.ticket?.ticketId;
    this.#take("release", request, nodeIndex, () => {
      let all = true;
      let waiting = false;
      for (const key of request.keys) {
        const ours = this.holder(key) === request.value;
        if (ours) this.set(key, "", 0);
        else all = false;
        if (entry && !request.keepsTicket) this.#remove(key, entry);
        else if (entry && ours) this.#stand(key, entry, true);
        if (!this.holder(key)) {
          waiting = this.#wake(key, request.keepsTicket ? entry : undefined) || waiting;
        }
      }
      if (!all) return "deny";
      return waiting ? "grant, others wait" : "grant";
    });
  }

  subscribe(listener: queue.ReleaseListener, nodeIndex: number): void {
    this.listened++;
    this.#own = { listener, nodeIndex };
    if (this.refusal) return this.refuse(this.refusal);
    if (this.listenMs === Infinity) return;
    this.#later(this.listenMs, () => this.tell());
  }

  unsubscribe(): void {
    this.unlistened++;
    if (this.#own) this.#listening.delete(this.#own.listener.id);
  }

  leaveQueue(keys: readonly string[], entry: string): void {
    this.leaves.push(entry);
    for (const key of keys) {
      if (this.#remove(key, entry) && !this.holder(key)) this.#wake(key);
    }
  }

  /** The same server, as another client comes to it. */
  peer(): LockNode {
    let id = "";
    return {
      name: this.name,
      acquire: (request, nodeIndex) => this.acquire(request, nodeIndex),
      extend: (request, nodeIndex) => this.extend(request, nodeIndex),
      release: (request, nodeIndex) => this.release(request, nodeIndex),
      inspect: (key) => this.inspect(key),
      subscribe: (listener, nodeIndex) => {
        id = listener.id;
        this.#listening.set(id, { listener, nodeIndex });
        listener.onSubscribed(nodeIndex);
      },
      unsubscribe: () => void this.#listening.delete(id),
      leaveQueue: (keys, entry) => this.leaveQueue(keys, entry),
    };
  }

  #acquireOrWait(
    { keys, value, ttlMs }: LockRequest,
    { ticketId }: queue.QueueTicket,
    claim: queue.QueuePriority,
  ): Answer {
    const blocked = keys.find((key) => {
      return this.holder(key) || claim === "last" && this.#wake(key, ticketId);
    });
    if (blocked === undefined) {
      for (const key of keys) {
        const overtakes = claim === "overdue" && this.line(key).indexOf(ticketId) > 0;
        this.#remove(key, ticketId);
        const [first, ...others] = this.line(key);
        if (overtakes) this.#lines.set(key, [...others, first]);
        this.set(key, value, ttlMs);
      }
      return "grant";
    }
    for (const key of keys) {
      if (key !== blocked && this.#remove(key, ticketId) && !this.holder(key)) this.#wake(key);
    }
    this.#stand(blocked, ticketId, claim !== "last");
    const line = this.line(blocked);
    const remainingMs = this.keys[blocked]?.remainingMs ?? 0;
    return { remainingMs, ahead: line.indexOf(ticketId), length: line.length };
  }

  /** Puts a ticket in line: at its end or front, but for those about which the times of coming say otherwise. */
  #stand(key: string, entry: string, front: boolean): void {
    const line = this.line(key);
    if (line.includes(entry)) return;
    let place = front ? 0 : line.length;
    for (;;) {
      const other = line.at(front ? place : place - 1);
      if (other === undefined || !front && place === 0) break;
      const leadMs = since(other) - since(entry);
      const later = leadMs > 0 || leadMs === 0 && other > entry;
      if (later === front || !front && leadMs > SKEW_MS_MAX) break;
      place += front ? 1 : -1;
    }
    this.#lines.set(key, line.toSpliced(place, 0, entry));
  }

  #remove(key: string, entry: string): boolean {
    const before = this.line(key);
    this.#lines.set(key, before.filter((other) => other !== entry));
    return before.includes(entry);
  }

  /** Wakes the first in line for whom somebody listens; says whether there is one, and not `own`. */
  #wake(key: string, own?: string): boolean {
    for (const entry of this.line(key)) {
      if (entry === own) return false;
      const id = clientOf(entry);
      if (!this.#listening.has(id)) {
        this.#remove(key, entry);
        continue;
      }
      this.wakes.push(entry);
      const told = this.#listening.get(id);
      if (told) {
        this.#later(this.wakeMs, () => told.listener.onReleased(told.nodeIndex, entry, key));
      }
      return true;
    }
    return false;
  }

  #take(operation: Operation, request: LockRequest, nodeIndex: number, act: () => Answer): void {
    const { keys, value, ttlMs } = request;
    this.calls.push({ operation, keys, value, ttlMs, atMs: this.#clock.monotonicMs() });
    if (this.closed > 0) return request.fail(nodeIndex, new Error(`${this.name} is closed`));
    const mode = this.modes[operation] ?? this.mode;
    const done = () => {
      if (mode === "fail") return request.fail(nodeIndex, new Error(`${this.name} is down`));
      const answer = act();
      if (mode !== "lose-reply") this.#later(this.replyMs, () => reply(request, nodeIndex, answer));
    };
    if (mode === "hang" || this.#held.length > 0) this.#held.push(done);
    else this.#later(this.requestMs, done);
  }

  #later(ms: number, act: () => void): void {
    if (ms > 0) this.#clock.setTimer(act, ms);
    else queueMicrotask(act);
  }
}

function clientOf(entry: string): string {
  return entry.slice(0, entry.indexOf(":"));
}

function since(entry: string): number {
  return Number(entry.slice(entry.lastIndexOf(":") + 1));
}

function reply(request: LockRequest, nodeIndex: number, answer: Answer): void {
  if (typeof answer === "object") return request.enqueued!(nodeIndex, answer);
  if (answer === "deny") return request.deny(nodeIndex);
  if (answer === "grant, others wait") request.hasWaiters = true;
  request.grant(nodeIndex);
}

/** A lock client over nodes in memory that put callers in line, on faked time. */
export class WaitingCluster extends FakeCluster {
  override readonly nodes: WaitingNode[];
  override readonly redlock: Redlock;
  #clients = 0;

  constructor(nodeCount = 3, options: RedlockOptions = {}) {
    super(nodeCount, options);
    this.nodes = Array.from({ length: nodeCount }, (_, index) => {
      return new WaitingNode(`node${index}`, this.clock);
    });
    const onEvent = (event: RedlockEvent) => void this.events.push(event);
    this.redlock = redlockOn(this.wheel, this.nodes, { onEvent, ...options });
  }

  /** Has somebody else hold `key` on every node. */
  occupy(key = "a", ttlMs = Infinity): void {
    for (const node of this.nodes) node.set(key, "other", ttlMs);
  }

  /** Has whoever holds `key` release it. */
  free(key = "a"): void {
    for (const node of this.nodes) node.free(key);
  }

  /** Another client of the same servers, which they put in line as well. */
  override contender(options: RedlockOptions = {}): Redlock {
    const prefix = `c${++this.#clients}`;
    let drawn = 0;
    const value = () => prefix + (++drawn).toString(16).padStart(40 - prefix.length, "-");
    const wheel = new TimerWheel(this.clock, { value, fraction: () => this.fraction });
    return redlockOn(wheel, this.nodes.map((node) => node.peer()), options);
  }

  /** What the attempts claimed on the first node. */
  get claims(): string[] {
    return [...this.nodes[0].claims];
  }

  /** Who waits on each node. */
  get lines(): string[][] {
    return this.nodes.map((node) => node.line());
  }
}

/** One client's stand in the line for "a", below the calls. */
export class Stand {
  readonly cluster: WaitingCluster;
  readonly client: ClientState;
  readonly notifications: ReleaseNotifications;
  readonly waiter: QueuedWaiter;
  /** The last attempt, and a promise that resolves once it is decided. */
  latest: Round | undefined = undefined;
  asked: Promise<void> | undefined = undefined;

  /**
   * @param nodeCount How many nodes there are.
   * @param prepare Sees to them before they are asked to tell.
   */
  constructor(
    nodeCount = 3,
    prepare: (cluster: WaitingCluster) => void = () => {},
    options: RedlockOptions = {},
  ) {
    this.cluster = new WaitingCluster(nodeCount);
    prepare(this.cluster);
    const { wheel, nodes, events } = this.cluster;
    this.client = createClientState(wheel, nodes);
    this.notifications = new ReleaseNotifications(this.client, (event) => void events.push(event));
    this.waiter = new QueuedWaiter(this.notifications, this.client, ["a"]);
    this.waiter.settings = resolveOptions("test", { ...UNHURRIED, ...options });
  }

  /** Has the nodes with these numbers wake it. */
  wake(...numbers: number[]): void {
    for (const number of numbers) this.cluster.nodes[number].wake(this.waiter.ticketId);
  }

  /** The present, in milliseconds. */
  get nowMs(): number {
    return this.cluster.clock.monotonicMs();
  }

  /** Makes one attempt for a second's lock, and takes it back if it fails. */
  async attempt(): Promise<Round> {
    const round = this.begin();
    await advanceUntil(this.cluster.clock, this.asked!, 1_000, 1);
    if (round.decision !== "granted") undo(round, true);
    return round;
  }

  /** Begins an attempt. */
  begin(nodeTimeoutMs = 500): Round {
    const value = this.cluster.wheel.random.value();
    const round = this.latest = new Round(this.client, ["a"], value, 1_000);
    round.ticket = this.waiter.next();
    this.asked = round.ask(askToAcquire, nodeTimeoutMs);
    return round;
  }

  /** Waits after an attempt; says for how long, in milliseconds. */
  async wait(denied: Round, limitMs = 120_000, signal?: AbortSignal): Promise<number> {
    const startMs = this.nowMs;
    const { clock } = this.cluster;
    await advanceUntil(clock, this.waiter.wait(0, limitMs, signal, denied), limitMs + 1, 1);
    return this.nowMs - startMs;
  }
}
