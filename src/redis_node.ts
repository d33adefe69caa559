/**
 * A {@linkcode LockNode} on one Redis server, over the RESP2 client.
 *
 * @module
 */
import type { Ballot, KeyState, LockNode } from "./node.ts";
import type { RedisAddress } from "./redis/address.ts";
import type { ReplyReceiver } from "./redis/command_queue.ts";
import { Connection, type ConnectionOptions } from "./redis/connection.ts";
import {
  bytesMax,
  CommandWriter,
  encodeCommand,
  encodeConstant,
  encodeHead,
} from "./redis/encoder.ts";
import {
  type ConnectionError,
  ProtocolError,
  type RedisError,
  ReplyError,
} from "./redis/errors.ts";
import type { RawReply } from "./redis/reply.ts";
import { textReply } from "./redis/reply.ts";
import { ACQUIRE_ALL, EXTEND, RELEASE, type Script } from "./scripts.ts";
import type { Timed, TimerWheel } from "./timer_wheel.ts";

/** Releases kept for a node that cannot be reached; the oldest is dropped for one more, and its TTL takes over. */
const LEFTOVERS_MAX = 4_096;

/** How long a release waits, in milliseconds, for a server that said that it is busy. */
const LEFTOVER_DELAY_MS = 500;
/** What a server says that will serve later: it loads its data, or a script runs. */
const BUSY_PREFIXES: readonly string[] = ["LOADING", "BUSY"];

/** What a command was, in the low bits of its tag; the seat stands above them. */
const ACQUIRE = 0, EXTEND_TAG = 1, RELEASE_TAG = 2, LEFTOVER = 3, SCRIPT_SENT = 4, TAG_BITS = 3;
const OPERATION_MASK = 3;

const SET_HEAD = encodeHead(6, "SET");
const SET_TAIL = encodeConstant("$2\r\nNX\r\n$2\r\nPX\r\n");
const EXTEND_HEAD = encodeHead(6, "EVALSHA", EXTEND.sha1, "1");
const RELEASE_HEAD = encodeHead(5, "EVALSHA", RELEASE.sha1, "1");

/** A release that has not reached its node. */
interface Leftover {
  readonly keys: readonly string[];
  readonly value: string;
  /** When the key would be gone by itself, by the monotonic clock. */
  readonly untilMs: number;
}

/** Events of the connection, for whoever made the node. */
export interface NodeObserver {
  /** The node can be asked. */
  onConnected?(node: string): void;
  /** It cannot. */
  onDisconnected?(node: string, error: ConnectionError): void;
}

/** One Redis server as a node. */
export class RedisNode implements LockNode, ReplyReceiver {
  readonly name: string;
  readonly #connection: Connection;
  readonly #wheel: TimerWheel;
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
        this.#sendLeftovers();
        observer.onConnected?.(this.name);
      },
      onDisconnected: (error) => observer.onDisconnected?.(this.name, error),
    }, wheel);
  }

  get readyAtMs(): number {
    return this.#connection.readyAtMs;
  }

  acquire(ballot: Ballot, seat: number): void {
    ballot.shared ??= encodeAcquire(ballot);
    this.#submitSetting(ballot, seat, ACQUIRE);
  }

  extend(ballot: Ballot, seat: number): void {
    ballot.shared ??= encodeExtend(ballot);
    this.#submitSetting(ballot, seat, EXTEND_TAG);
  }

  release(ballot: Ballot, seat: number): void {
    ballot.shared ??= encodeRelease(ballot);
    const tag = seat << TAG_BITS | RELEASE_TAG;
    this.#connection.submit(ballot.shared as Uint8Array, this, ballot, tag);
  }

  inspect(key: string): Promise<KeyState | undefined> {
    const { name } = this;
    return new Promise((resolve, reject) => {
      let value: RawReply = null;
      const receiver: ReplyReceiver = {
        onReply(reply, _context, last) {
          if (reply instanceof ReplyError) return reject(reply);
          if (!last) return void (value = reply);
          const state = keyState(value, reply);
          if (state === null) {
            reject(new ProtocolError(`Cannot inspect as ${name} sent another reply`));
          } else resolve(state);
        },
        onFailure: reject,
      };
      this.#connection.submit(encodeCommand(["GET", key]), receiver, undefined, 0);
      this.#connection.submit(encodeCommand(["PTTL", key]), receiver, undefined, 1);
    });
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    if (reply instanceof ReplyError) return this.#onErrorReply(reply, context, tag);
    if (operation === LEFTOVER) return; // it is gone, and nobody waits to hear of it
    const ballot = context as Ballot;
    const seat = tag >> TAG_BITS;
    if (reply === 1 || reply === "OK") {
      ballot.grant(seat, this.#connection.receivedAtMs);
    } else if (reply === 0 || reply === null || reply === 2) {
      ballot.deny(seat, this.#connection.receivedAtMs);
    } else {
      ballot.fail(seat, new ProtocolError(`Cannot read vote as ${this.name} sent another reply`));
    }
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: RedisError, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    if (operation === LEFTOVER) return this.#keepLeftover(context as Leftover);
    const ballot = context as Ballot;
    const seat = tag >> TAG_BITS;
    if (operation === RELEASE_TAG) {
      this.#keepRelease(ballot, seat);
    } else if ((error as ConnectionError).outcome === "not-sent") {
      ballot.mayStand &= ~(1 << seat);
    }
    ballot.fail(seat, error);
  }

  #submitSetting(ballot: Ballot, seat: number, operation: number): void {
    const connection = this.#connection;
    // Only what sets keys is refused here: there is always room for what takes them back.
    if (connection.crowded) return ballot.fail(seat, connection.crowdedError());
    ballot.mayStand |= 1 << seat;
    connection.submit(ballot.shared as Uint8Array, this, ballot, seat << TAG_BITS | operation);
  }

  #onErrorReply(reply: ReplyError, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    const busy = BUSY_PREFIXES.includes(reply.prefix);
    if (operation === LEFTOVER) {
      if (busy) this.#keepLeftover(context as Leftover);
      return;
    }
    const ballot = context as Ballot;
    const seat = tag >> TAG_BITS;
    if (reply.prefix === "NOSCRIPT" && !(tag & SCRIPT_SENT)) {
      return this.#sendScript(ballot, seat, operation, reply);
    }
    if (operation === RELEASE_TAG && busy) this.#keepLeftover(this.#leftoverOf(ballot));
    ballot.fail(seat, reply);
  }

  /** The node does not know the script: sends it whole, unless what it sets would outlive its release. */
  #sendScript(ballot: Ballot, seat: number, operation: number, reply: ReplyError): void {
    if (!ballot.wanted && operation !== RELEASE_TAG) return ballot.fail(seat, reply);
    const tag = seat << TAG_BITS | SCRIPT_SENT | operation;
    this.#connection.submit(encodeScript(operation, ballot), this, ballot, tag);
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
      const command = encodeEval(RELEASE, leftover.keys, [leftover.value]);
      this.#connection.submit(command, this, leftover, LEFTOVER);
    }
  }
}

/** Room for the constant parts, the value and the TTL of any command about a single key. */
const SINGLE_KEY_BYTES = 256;

function encodeAcquire({ keys, value, ttlMs }: Ballot): Uint8Array {
  if (keys.length > 1) return encodeEvalSha(ACQUIRE_ALL, keys, [value, String(ttlMs)]);
  return singleKey(keys[0], SET_HEAD).text(value).constant(SET_TAIL).text(String(ttlMs)).end();
}

function encodeExtend({ keys, value, ttlMs }: Ballot): Uint8Array {
  if (keys.length > 1) return encodeEvalSha(EXTEND, keys, [value, String(ttlMs)]);
  return singleKey(keys[0], EXTEND_HEAD).text(value).text(String(ttlMs)).end();
}

function encodeRelease({ keys, value }: Ballot): Uint8Array {
  if (keys.length > 1) return encodeEvalSha(RELEASE, keys, [value]);
  return singleKey(keys[0], RELEASE_HEAD).text(value).end();
}

function singleKey(key: string, head: Uint8Array): CommandWriter {
  return new CommandWriter(bytesMax(key) + SINGLE_KEY_BYTES).constant(head).text(key);
}

function encodeEvalSha(
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): Uint8Array {
  return encodeCommand(["EVALSHA", script.sha1, keys.length, ...keys, ...args]);
}

function encodeEval(script: Script, keys: readonly string[], args: readonly string[]): Uint8Array {
  return encodeCommand(["EVAL", script.source, keys.length, ...keys, ...args]);
}

function encodeScript(operation: number, { keys, value, ttlMs }: Ballot): Uint8Array {
  if (operation === RELEASE_TAG) return encodeEval(RELEASE, keys, [value]);
  return encodeEval(operation === ACQUIRE ? ACQUIRE_ALL : EXTEND, keys, [value, String(ttlMs)]);
}

/** What the replies to `GET` and `PTTL` say of a key; `null` where they are no replies to these. */
function keyState(value: RawReply, pttl: RawReply): KeyState | undefined | null {
  if (typeof pttl !== "number") return null;
  if (value === null || pttl === -2) return undefined;
  if (!(value instanceof Uint8Array)) return null;
  return { value: textReply(value) as string, remainingMs: pttl === -1 ? Infinity : pttl };
}
