/**
 * Nodes in memory that put callers in line and wake them, in a test's hands.
 *
 * @module
 */
import { Bell } from "../../src/waiting/release_notifications.ts";
import { Contender } from "../../src/waiting/queued_waiter.ts";
import type { RedlockEvent } from "../../src/events.ts";
import type {
  Ballot,
  Claim,
  LockNode,
  Place,
  Ticket,
  WakeListener,
} from "../../src/quorum/lock_node.ts";
import { type RedlockOptions, resolveOptions } from "../../src/options.ts";
import { askToAcquire, type Electorate, electorateOf, Round } from "../../src/quorum/round.ts";
import { undo } from "../../src/lock/undo.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { SKEW_MS_MAX } from "../../src/redis_node/scripts.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { advanceUntil, type FakeClock } from "./fake_clock.ts";
import { FakeCluster, FakeNode, type Operation } from "./fake_nodes.ts";

type Answer = "grant" | "grant, others wait" | "deny" | Place;

/** Delays with which a caller trusts for a minute that it is woken. */
export const UNHURRIED: RedlockOptions = { retryDelayMs: 200, retryDelayMaxMs: 1_000_000 };

/** One client that a node tells of releases. */
interface Listening {
  readonly listener: WakeListener;
  readonly seat: number;
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
  readonly claims: (Claim | "none")[] = [];
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
    this.#own!.listener.onWake(this.#own!.seat, entry, key);
  }

  /** Tells no longer, for the time being. */
  deafen(): void {
    const { listener, seat } = this.#own!;
    this.#listening.delete(listener.id);
    listener.onDeaf(seat);
  }

  /** Tells now, or again. */
  tell(): void {
    const { listener, seat } = this.#own!;
    this.#listening.set(listener.id, this.#own);
    listener.onListening(seat);
  }

  /** Will never tell. */
  refuse(error: Error): void {
    const { listener, seat } = this.#own!;
    this.#listening.delete(listener.id);
    listener.onRefused(seat, error);
  }

  override resume(): void {
    super.resume();
    for (const act of this.#held.splice(0)) act();
  }

  override acquire(ballot: Ballot, seat: number): void {
    const { ticket } = ballot;
    const claim = ticket?.claim;
    this.claims.push(claim ?? "none");
    ballot.mayStand |= 1 << seat;
    const joins = ticket && this.#listening.has(clientOf(ticket.entry));
    this.#take("acquire", ballot, seat, () => {
      if (joins) return this.#acquireOrWait(ballot, ticket, claim!);
      if (ballot.keys.some((key) => this.holder(key))) return "deny";
      for (const key of ballot.keys) this.set(key, ballot.value, ballot.ttlMs);
      return "grant";
    });
  }

  override release(ballot: Ballot, seat: number): void {
    const entry = ballot.ticket?.entry;
    this.#take("release", ballot, seat, () => {
      let all = true;
      let waiting = false;
      for (const key of ballot.keys) {
        const ours = this.holder(key) === ballot.value;
        if (ours) this.set(key, "", 0);
        else all = false;
        if (entry && !ballot.stays) this.#remove(key, entry);
        else if (entry && ours) this.#stand(key, entry, true);
        if (!this.holder(key)) {
          waiting = this.#wake(key, ballot.stays ? entry : undefined) || waiting;
        }
      }
      if (!all) return "deny";
      return waiting ? "grant, others wait" : "grant";
    });
  }

  listen(listener: WakeListener, seat: number): void {
    this.listened++;
    this.#own = { listener, seat };
    if (this.refusal) return this.refuse(this.refusal);
    if (this.listenMs === Infinity) return;
    this.#later(this.listenMs, () => this.tell());
  }

  unlisten(): void {
    this.unlistened++;
    if (this.#own) this.#listening.delete(this.#own.listener.id);
  }

  leave(keys: readonly string[], entry: string): void {
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
      acquire: (ballot, seat) => this.acquire(ballot, seat),
      extend: (ballot, seat) => this.extend(ballot, seat),
      release: (ballot, seat) => this.release(ballot, seat),
      inspect: (key) => this.inspect(key),
      listen: (listener, seat) => {
        id = listener.id;
        this.#listening.set(id, { listener, seat });
        listener.onListening(seat);
      },
      unlisten: () => void this.#listening.delete(id),
      leave: (keys, entry) => this.leave(keys, entry),
    };
  }

  #acquireOrWait({ keys, value, ttlMs }: Ballot, { entry }: Ticket, claim: Claim): Answer {
    const blocked = keys.find((key) => {
      return this.holder(key) || claim === "last" && this.#wake(key, entry);
    });
    if (blocked === undefined) {
      for (const key of keys) {
        const overtakes = claim === "overdue" && this.line(key).indexOf(entry) > 0;
        this.#remove(key, entry);
        const [first, ...others] = this.line(key);
        if (overtakes) this.#lines.set(key, [...others, first]);
        this.set(key, value, ttlMs);
      }
      return "grant";
    }
    for (const key of keys) {
      if (key !== blocked && this.#remove(key, entry) && !this.holder(key)) this.#wake(key);
    }
    this.#stand(blocked, entry, claim !== "last");
    const line = this.line(blocked);
    const remainingMs = this.keys[blocked]?.remainingMs ?? 0;
    return { remainingMs, ahead: line.indexOf(entry), length: line.length };
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
      if (told) this.#later(this.wakeMs, () => told.listener.onWake(told.seat, entry, key));
      return true;
    }
    return false;
  }

  #take(operation: Operation, ballot: Ballot, seat: number, act: () => Answer): void {
    const { keys, value, ttlMs } = ballot;
    this.calls.push({ operation, keys, value, ttlMs, atMs: this.#clock.monotonicMs() });
    if (this.closed > 0) return ballot.fail(seat, new Error(`${this.name} is closed`));
    const mode = this.modes[operation] ?? this.mode;
    const done = () => {
      if (mode === "fail") return ballot.fail(seat, new Error(`${this.name} is down`));
      const answer = act();
      if (mode !== "lose-reply") this.#later(this.replyMs, () => reply(ballot, seat, answer));
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

function reply(ballot: Ballot, seat: number, answer: Answer): void {
  if (typeof answer === "object") return ballot.queue!(seat, answer);
  if (answer === "deny") return ballot.deny(seat);
  if (answer === "grant, others wait") ballot.othersWait = true;
  ballot.grant(seat);
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
  readonly electorate: Electorate;
  readonly bell: Bell;
  readonly contender: Contender;
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
    this.electorate = electorateOf(wheel, nodes);
    this.bell = new Bell(this.electorate, (event) => void events.push(event));
    this.contender = new Contender(this.bell, this.electorate, ["a"]);
    this.contender.settings = resolveOptions("test", { ...UNHURRIED, ...options });
  }

  /** Has the nodes with these numbers wake it. */
  wake(...numbers: number[]): void {
    for (const number of numbers) this.cluster.nodes[number].wake(this.contender.entry);
  }

  /** The present, in milliseconds. */
  get nowMs(): number {
    return this.cluster.clock.monotonicMs();
  }

  /** Makes one attempt for a second's lock, and takes it back if it fails. */
  async attempt(): Promise<Round> {
    const round = this.begin();
    await advanceUntil(this.cluster.clock, this.asked!, 1_000, 1);
    if (round.decision !== "granted") undo(round, undefined, true);
    return round;
  }

  /** Begins an attempt. */
  begin(nodeTimeoutMs = 500): Round {
    const value = this.cluster.wheel.random.value();
    const round = this.latest = new Round(this.electorate, ["a"], value, 1_000);
    round.ticket = this.contender.next();
    this.asked = round.ask(askToAcquire, nodeTimeoutMs);
    return round;
  }

  /** Waits after an attempt; says for how long, in milliseconds. */
  async wait(denied: Round, limitMs = 120_000, signal?: AbortSignal): Promise<number> {
    const startMs = this.nowMs;
    const { clock } = this.cluster;
    await advanceUntil(clock, this.contender.wait(0, limitMs, signal, denied), limitMs + 1, 1);
    return this.nowMs - startMs;
  }
}
