/**
 * A {@linkcode LockNode} on one Redis server, over the RESP2 client.
 *
 * @module
 */
import {
  encodeAcquire,
  encodeAcquireOrWait,
  encodeExtend,
  encodeLeave,
  encodeRaise,
  encodeRelease,
} from "./commands.ts";
import type {
  Ballot,
  KeyState,
  LockNode,
  NodeDiagnosis,
  WakeListener,
} from "../quorum/lock_node.ts";
import type { RedisAddress } from "../redis/address.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import { Connection, type ConnectionOptions } from "../redis/connection.ts";
import { encodeCommand } from "../redis/encoder.ts";
import {
  type ConnectionError,
  isRefusal,
  ProtocolError,
  type RedisError,
  ReplyError,
} from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import { textReply } from "../redis/reply.ts";
import type { RedisDoctor } from "./diagnostics.ts";
import { RedisEar } from "./release_subscription.ts";
import { isGuarded, RedisGuard } from "./restart_guard.ts";
import type { Quarantine } from "./quarantine.ts";
import { waitersKey } from "./scripts.ts";
import type { Timed, TimerWheel } from "../time/timer_wheel.ts";

/** Releases kept for a node that cannot be reached; the oldest is dropped for one more, and its TTL takes over. */
const LEFTOVERS_MAX = 4_096;

/** How long a release waits, in milliseconds, for a server that said that it is busy. */
const LEFTOVER_DELAY_MS = 500;
/** What a server says that will serve later: it loads its data, or a script runs. */
const BUSY_PREFIXES: readonly string[] = ["LOADING", "BUSY"];
/** What it says where a list is none, so that nobody can stand in line there. */
const WRONG_TYPE = "WRONGTYPE";

/** Counters are above it, all other answers of scripts are not. */
const COUNT_MIN = 1_000_000;

/** What a command was, in the low bits of its tag; the seat stands above them. */
const ACQUIRE = 0, EXTEND = 1, RELEASE = 2, LEFTOVER = 3, JOIN = 4, LEAVE = 5, RAISE = 6;
/** Those that set keys. */
const SETTING: readonly number[] = [ACQUIRE, EXTEND, JOIN];
const OPERATION_MASK = 7, SCRIPT_SENT = 8, TAG_BITS = 4;

/** A release that has not reached its node. */
interface Leftover {
  readonly keys: readonly string[];
  readonly value: string;
  /** When the key would be gone by itself, by the monotonic clock. */
  readonly untilMs: number;
}

/** A ticket that is taken out of line. */
interface Leaving {
  readonly keys: readonly string[];
  readonly entry: string;
}

/** Events of the connection, for whoever made the node. */
export interface NodeObserver {
  /** The node can be asked. */
  onConnected?(node: string): void;
  /** It cannot. */
  onDisconnected?(node: string, error: ConnectionError): void;
  /** It has granted, but may have forgotten locks; told once for each cause. */
  onQuarantined?(node: string, quarantine: Quarantine): void;
}

/** One Redis server as a node. */
export class RedisNode implements LockNode, ReplyReceiver {
  readonly name: string;
  readonly #connection: Connection;
  readonly #openAnother: () => Connection;
  #doctor: RedisDoctor | undefined = undefined;
  readonly #wheel: TimerWheel;
  readonly #ear: RedisEar;
  readonly #guard: RedisGuard;
  #leftovers: Leftover[] = [];
  #leftoverTimer: Timed | undefined = undefined;

  constructor(
    address: RedisAddress,
    options: ConnectionOptions,
    wheel: TimerWheel,
    observer: NodeObserver = {},
  ) {
    this.name = address.name;
    this.#wheel = wheel;
    this.#connection = new Connection(address, {
      ...options,
      onConnected: () => {
        this.#guard.onConnected();
        this.#sendLeftovers();
        this.#ear.onCommandsPossible();
        observer.onConnected?.(this.name);
      },
      onDisconnected: (error) => {
        this.#guard.onDisconnected();
        observer.onDisconnected?.(this.name, error);
      },
    }, wheel);
    this.#guard = new RedisGuard(this.name, this.#connection, (quarantine) => {
      observer.onQuarantined?.(this.name, quarantine);
    });
    this.#ear = new RedisEar(address, options, wheel, this.#connection);
    this.#openAnother = () => new Connection(address, options, wheel);
  }

  get readyAtMs(): number {
    return this.#connection.readyAtMs;
  }

  acquire(ballot: Ballot, seat: number): void {
    const { ticket } = ballot;
    if (!ticket) {
      ballot.shared ??= encodeAcquire(ballot);
      this.#submitSetting(ballot, seat, ACQUIRE, ballot.shared as Uint8Array);
    } else if (this.#ear.listening) {
      ballot.shared ??= encodeAcquireOrWait(ballot, ticket);
      this.#submitSetting(ballot, seat, JOIN, ballot.shared as Uint8Array);
    } else {
      this.#submitSetting(ballot, seat, ACQUIRE, encodeAcquire(ballot));
    }
  }

  extend(ballot: Ballot, seat: number): void {
    ballot.shared ??= encodeExtend(ballot);
    this.#submitSetting(ballot, seat, EXTEND, ballot.shared as Uint8Array);
  }

  raise(ballot: Ballot, seat: number): void {
    ballot.shared ??= encodeRaise(ballot);
    const tag = seat << TAG_BITS | RAISE;
    this.#connection.submit(ballot.shared as Uint8Array, this, ballot, tag);
  }

  release(ballot: Ballot, seat: number): void {
    ballot.shared ??= encodeRelease(ballot);
    const tag = seat << TAG_BITS | RELEASE;
    this.#connection.submit(ballot.shared as Uint8Array, this, ballot, tag);
  }

  inspect(key: string): Promise<KeyState | undefined> {
    const { name } = this;
    return new Promise((resolve, reject) => {
      const replies: RawReply[] = [];
      const receiver: ReplyReceiver = {
        onReply(reply, _context, command) {
          replies[command] = reply;
          if (command < 2) {
            if (reply instanceof ReplyError) reject(reply);
            return;
          }
          const state = keyState(replies);
          if (state === null) {
            reject(new ProtocolError(`Cannot inspect as ${name} sent another reply`));
          } else resolve(state);
        },
        onFailure: reject,
      };
      const commands = [["GET", key], ["PTTL", key], ["LLEN", waitersKey(key)]];
      commands.forEach((command, index) => {
        this.#connection.submit(encodeCommand(command), receiver, undefined, index);
      });
    });
  }

  listen(listener: WakeListener, seat: number): void {
    this.#ear.open(listener, seat);
  }

  unlisten(): void {
    this.#ear.close();
  }

  leave(keys: readonly string[], entry: string): void {
    if (!this.#connection.open) return; // the list forgets it in time
    const leaving: Leaving = { keys, entry };
    this.#connection.submit(encodeLeave(keys, entry), this, leaving, LEAVE);
  }

  async diagnose(timeoutMs: number): Promise<NodeDiagnosis> {
    const { RedisDoctor } = await import("./diagnostics.ts");
    this.#doctor ??= new RedisDoctor(this.#connection, this.#openAnother, this.#wheel);
    return await this.#doctor.diagnose(timeoutMs);
  }

  async close(): Promise<void> {
    await Promise.all([this.#ear.close(), this.#doctor?.close(), this.#connection.close()]);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    if (reply instanceof ReplyError) return this.#onErrorReply(reply, context, tag);
    if (operation === LEFTOVER || operation === LEAVE) return; // nobody waits to hear of it
    const ballot = context as Ballot;
    const seat = tag >> TAG_BITS;
    if (reply === 1 || reply === "OK") {
      this.#grant(ballot, seat, operation);
    } else if (reply === 3 && operation === RELEASE) {
      ballot.othersWait = true;
      ballot.grant(seat, this.#connection.receivedAtMs);
    } else if (ballot.fence !== undefined && isCount(reply)) {
      this.#grant(ballot, seat, operation, reply);
    } else if (operation === JOIN && Array.isArray(reply)) {
      this.#onQueued(reply, ballot, seat);
    } else if (reply === 0 || reply === null || reply === 2) {
      ballot.deny(seat, this.#connection.receivedAtMs);
    } else {
      ballot.fail(seat, this.#strangeReply());
    }
  }

  /** What sets keys is granted only if the node cannot have forgotten others' locks. */
  #grant(ballot: Ballot, seat: number, operation: number, count?: number): void {
    const atMs = this.#connection.receivedAtMs;
    if (!SETTING.includes(operation) || !isGuarded(ballot)) return ballot.grant(seat, atMs, count);
    this.#guard.hold(ballot, atMs, count);
  }

  #strangeReply(): ProtocolError {
    return new ProtocolError(`Cannot read vote as ${this.name} sent another reply`);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: RedisError, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    if (operation === LEFTOVER) return this.#keepLeftover(context as Leftover);
    if (operation === LEAVE) return; // the list forgets it in time
    const ballot = context as Ballot;
    const seat = tag >> TAG_BITS;
    if (operation === RELEASE) {
      this.#keepRelease(ballot, seat);
    } else if ((error as ConnectionError).outcome === "not-sent") {
      ballot.mayStand &= ~(1 << seat);
    }
    ballot.fail(seat, error);
  }

  #submitSetting(ballot: Ballot, seat: number, operation: number, command: Uint8Array): void {
    const connection = this.#connection;
    // Only what sets keys is refused here: there is always room for what takes them back.
    if (connection.crowded) return ballot.fail(seat, connection.crowdedError());
    ballot.mayStand |= 1 << seat;
    if (isGuarded(ballot)) this.#guard.ahead();
    this.#submitGuarded(command, ballot, seat, operation);
  }

  #submitGuarded(command: Uint8Array, ballot: Ballot, seat: number, operation: number): void {
    this.#connection.submit(command, this, ballot, seat << TAG_BITS | operation);
    if (isGuarded(ballot)) this.#guard.behind(ballot, seat);
  }

  /** The caller stands in line: the reply says for how long the key is held, who stands before it, and how many in all. */
  #onQueued(reply: readonly RawReply[], ballot: Ballot, seat: number): void {
    if (reply.length !== 3 || !reply.every((part) => typeof part === "number")) {
      return ballot.fail(seat, this.#strangeReply());
    }
    const [pttl, ahead, length] = reply as number[];
    const remainingMs = pttl === -1 ? Infinity : Math.max(pttl, 0);
    ballot.queue!(seat, { remainingMs, ahead, length }, this.#connection.receivedAtMs);
  }

  #onErrorReply(reply: ReplyError, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    const busy = BUSY_PREFIXES.includes(reply.prefix);
    if (operation === LEFTOVER) {
      if (busy) this.#keepLeftover(context as Leftover);
      return;
    }
    if (operation === LEAVE) return this.#onLeaveRefused(reply, context as Leaving, tag);
    const ballot = context as Ballot;
    const seat = tag >> TAG_BITS;
    if (reply.prefix === "NOSCRIPT" && !(tag & SCRIPT_SENT)) {
      return this.#sendScript(ballot, seat, operation, reply);
    }
    const noLine = reply.prefix === WRONG_TYPE || isRefusal(reply);
    if (operation === JOIN && ballot.wanted && noLine) {
      return this.#doWithoutLine(ballot, seat, reply);
    }
    if (operation === RELEASE && busy) this.#keepLeftover(this.#leftoverOf(ballot));
    ballot.fail(seat, reply);
  }

  /** The node does not know the script: sends it whole, unless what it sets would outlive its release. */
  #sendScript(ballot: Ballot, seat: number, operation: number, reply: ReplyError): void {
    if (!ballot.wanted && operation !== RELEASE) return ballot.fail(seat, reply);
    const command = encodeWhole(operation, ballot);
    const tag = SCRIPT_SENT | operation;
    if (SETTING.includes(operation)) return this.#submitGuarded(command, ballot, seat, tag);
    this.#connection.submit(command, this, ballot, seat << TAG_BITS | tag);
  }

  #onLeaveRefused({ prefix }: ReplyError, { keys, entry }: Leaving, tag: number): void {
    if (prefix !== "NOSCRIPT" || tag & SCRIPT_SENT) return;
    const command = encodeLeave(keys, entry, "EVAL");
    this.#connection.submit(command, this, { keys, entry }, SCRIPT_SENT | LEAVE);
  }

  /** Nobody can stand in line: asks all the same. Where the server does not allow it callers poll from now on. */
  #doWithoutLine(ballot: Ballot, seat: number, reply: ReplyError): void {
    if (!reply.message.includes(WRONG_TYPE)) this.#ear.refuse(reply);
    this.#submitSetting(ballot, seat, ACQUIRE, encodeAcquire(ballot));
  }

  /** A release that did not reach the node is sent when it is back, if there can be anything to release. */
  #keepRelease(ballot: Ballot, seat: number): void {
    if (ballot.mayStand & 1 << seat) this.#keepLeftover(this.#leftoverOf(ballot));
  }

  #leftoverOf({ keys, value, ttlMs }: Ballot): Leftover {
    return { keys, value, untilMs: this.#wheel.clock.monotonicMs() + ttlMs };
  }

  #keepLeftover(leftover: Leftover): void {
    if (this.#leftovers.length >= LEFTOVERS_MAX) this.#leftovers.shift();
    this.#leftovers.push(leftover);
    // Where the connection is down its return is waited for, else some time.
    if (this.#connection.open) {
      this.#leftoverTimer ??= this.#wheel.after(LEFTOVER_DELAY_MS, () => this.#sendLeftovers());
    }
  }

  #sendLeftovers(): void {
    if (this.#leftoverTimer) this.#wheel.cancel(this.#leftoverTimer);
    this.#leftoverTimer = undefined;
    const leftovers = this.#leftovers;
    this.#leftovers = [];
    const nowMs = this.#wheel.clock.monotonicMs();
    for (const leftover of leftovers) {
      if (leftover.untilMs <= nowMs) continue;
      const command = encodeRelease(leftover, "EVAL");
      this.#connection.submit(command, this, leftover, LEFTOVER);
    }
  }
}

/** Counters of fencing tokens are microseconds since long ago: none is as small as the other answers. */
function isCount(reply: RawReply): reply is number {
  return typeof reply === "number" && reply > COUNT_MIN && Number.isSafeInteger(reply);
}

/** A command whose script the server does not know, with the script itself. */
function encodeWhole(operation: number, ballot: Ballot): Uint8Array {
  switch (operation) {
    case RELEASE:
      return encodeRelease(ballot, "EVAL");
    case RAISE:
      return encodeRaise(ballot, "EVAL");
    case EXTEND:
      return encodeExtend(ballot, "EVAL");
    case JOIN:
      return encodeAcquireOrWait(ballot, ballot.ticket!, "EVAL");
    default:
      return encodeAcquire(ballot, "EVAL");
  }
}

/** What the replies to `GET`, `PTTL` and `LLEN` say of a key; `null` where they are no replies to these. */
function keyState([value, pttl, length]: readonly RawReply[]): KeyState | undefined | null {
  if (typeof pttl !== "number") return null;
  if (value === null || pttl === -2) return undefined;
  if (!(value instanceof Uint8Array)) return null;
  const remainingMs = pttl === -1 ? Infinity : pttl;
  const state = { value: textReply(value) as string, remainingMs };
  return typeof length === "number" ? { ...state, waiters: length } : state; // it may not be allowed to tell
}
