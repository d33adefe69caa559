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
import type { KeyState, LockNode, LockRequest } from "../quorum/lock_node.ts";
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import type { ReleaseListener } from "../quorum/queue_ticket.ts";
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
import { type RawReply, textReply } from "../redis/reply.ts";
import type { RedisDiagnostics } from "./diagnostics.ts";
import { ReleaseSubscription } from "./release_subscription.ts";
import { scriptError } from "./old_server.ts";
import { isGuarded, RedisGuard } from "./restart_guard.ts";
import type { Quarantine } from "./quarantine.ts";
import { queueOf } from "./scripts/queue.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";

/** Releases kept for a node that cannot be reached; the oldest is dropped for one more, and its TTL takes over. */
const PENDING_RELEASES_MAX = 4_096;

/** How long a release waits, in milliseconds, for a server that said that it is busy. */
const PENDING_RELEASE_DELAY_MS = 500;
/** What a server says that will serve later: it loads its data, or a script runs. */
const BUSY_PREFIXES: readonly string[] = ["LOADING", "BUSY"];
/** The error if something else stands under a queue's key, so that there is no queue. */
const WRONG_TYPE = "WRONGTYPE";

/** Counters are above it, all other answers of scripts are not. */
const COUNT_MIN = 1_000_000;

/** What a command was, in the low bits of its tag; the seat stands above them. */
const ACQUIRE = 0, EXTEND = 1, RELEASE = 2, PENDING_RELEASE = 3, JOIN = 4, LEAVE = 5, RAISE = 6;
/** Those that set keys. */
const SETTING: readonly number[] = [ACQUIRE, EXTEND, JOIN];
const OPERATION_MASK = 7, SCRIPT_SENT = 8, TAG_BITS = 4;

/** A release that has not reached its node. */
interface PendingRelease {
  readonly keys: readonly string[];
  readonly value: string;
  /** When the key would be gone by itself, by the monotonic clock. */
  readonly untilMs: number;
}

/** A ticket that leaves its queues. */
interface Leaving {
  readonly keys: readonly string[];
  readonly ticketId: string;
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
  readonly #password: string | undefined;
  #diagnostics: RedisDiagnostics | undefined = undefined;
  readonly #wheel: TimerWheel;
  readonly #subscription: ReleaseSubscription;
  readonly #guard: RedisGuard;
  #pendingReleases: PendingRelease[] = [];
  #pendingTimer: TimerEntry | undefined = undefined;

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
        this.#sendPendingReleases();
        this.#subscription.onCommandsPossible();
      },
      onDisconnected: () => this.#guard.onDisconnected(),
      onAvailable: () => observer.onConnected?.(this.name),
      onUnavailable: (error) => observer.onDisconnected?.(this.name, error),
    }, wheel);
    this.#guard = new RedisGuard(this.name, this.#connection, (quarantine) => {
      observer.onQuarantined?.(this.name, quarantine);
    });
    this.#subscription = new ReleaseSubscription(address, options, wheel, this.#connection);
    this.#openAnother = () => new Connection(address, options, wheel);
    this.#password = address.password;
  }

  get readyAtMs(): number {
    return this.#connection.readyAtMs;
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    const { ticket } = request;
    if (!ticket) {
      request.shared ??= encodeAcquire(request);
      this.#submitSetting(request, nodeIndex, ACQUIRE, request.shared as Uint8Array);
    } else if (this.#subscription.listening) {
      request.shared ??= encodeAcquireOrWait(request, ticket);
      this.#submitSetting(request, nodeIndex, JOIN, request.shared as Uint8Array);
    } else {
      this.#submitSetting(request, nodeIndex, ACQUIRE, encodeAcquire(request));
    }
  }

  extend(request: LockRequest, nodeIndex: number): void {
    request.shared ??= encodeExtend(request);
    this.#submitSetting(request, nodeIndex, EXTEND, request.shared as Uint8Array);
  }

  raiseCounters(request: LockRequest, nodeIndex: number): void {
    request.shared ??= encodeRaise(request);
    const tag = nodeIndex << TAG_BITS | RAISE;
    this.#connection.submit(request.shared as Uint8Array, this, request, tag);
  }

  release(request: LockRequest, nodeIndex: number): void {
    request.shared ??= encodeRelease(request);
    const tag = nodeIndex << TAG_BITS | RELEASE;
    this.#connection.submit(request.shared as Uint8Array, this, request, tag);
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
      const commands = [["GET", key], ["PTTL", key], ["ZCARD", queueOf(key)]];
      commands.forEach((command, index) => {
        this.#connection.submit(encodeCommand(command), receiver, undefined, index);
      });
    });
  }

  subscribe(listener: ReleaseListener, nodeIndex: number): void {
    this.#subscription.open(listener, nodeIndex);
  }

  unsubscribe(): void {
    this.#subscription.close();
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    if (!this.#connection.open) return; // the next notification drops it
    this.#connection.submit(encodeLeave(keys, ticketId), this, { keys, ticketId }, LEAVE);
  }

  async diagnose(timeoutMs: number): Promise<NodeDiagnosis> {
    const { RedisDiagnostics } = await import("./diagnostics.ts");
    this.#diagnostics ??= new RedisDiagnostics(this.#connection, this.#openAnother, this.#wheel);
    return await this.#diagnostics.diagnose(timeoutMs, this.#password);
  }

  async close(): Promise<void> {
    await Promise.all([
      this.#subscription.close(),
      this.#diagnostics?.close(),
      this.#connection.close(),
    ]);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    if (reply instanceof ReplyError) return this.#onErrorReply(scriptError(reply), context, tag);
    if (operation === PENDING_RELEASE || operation === LEAVE) return; // nobody waits to hear of it
    const request = context as LockRequest;
    const nodeIndex = tag >> TAG_BITS;
    if (reply === 1 || reply === "OK") {
      this.#grant(request, nodeIndex, operation);
    } else if (reply === 3 && operation === RELEASE) {
      request.hasWaiters = true;
      request.grant(nodeIndex, this.#connection.receivedAtMs);
    } else if (request.counterFloor !== undefined && isCount(reply)) {
      this.#grant(request, nodeIndex, operation, reply);
    } else if (operation === JOIN && Array.isArray(reply)) {
      this.#onQueued(reply, request, nodeIndex);
    } else if (reply === 0 || reply === null || reply === 2) {
      request.deny(nodeIndex, this.#connection.receivedAtMs);
    } else {
      request.fail(nodeIndex, this.#strangeReply());
    }
  }

  /** What sets keys is granted only if the node cannot have forgotten others' locks. */
  #grant(request: LockRequest, nodeIndex: number, operation: number, count?: number): void {
    const atMs = this.#connection.receivedAtMs;
    if (!SETTING.includes(operation) || !isGuarded(request)) {
      return request.grant(nodeIndex, atMs, count);
    }
    this.#guard.hold(request, atMs, count);
  }

  #strangeReply(): ProtocolError {
    return new ProtocolError(`Cannot read vote as ${this.name} sent another reply`);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: RedisError, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    if (operation === PENDING_RELEASE) return this.#deferRelease(context as PendingRelease);
    if (operation === LEAVE) return; // the next notification drops it
    const request = context as LockRequest;
    const nodeIndex = tag >> TAG_BITS;
    if (operation === RELEASE) {
      this.#keepRelease(request, nodeIndex);
    } else if ((error as ConnectionError).outcome === "not-sent") {
      request.maybeSet &= ~(1 << nodeIndex);
    }
    request.fail(nodeIndex, error);
  }

  #submitSetting(
    request: LockRequest,
    nodeIndex: number,
    operation: number,
    command: Uint8Array,
  ): void {
    const connection = this.#connection;
    // Only what sets keys is refused here: there is always room for what takes them back.
    if (connection.crowded) return request.fail(nodeIndex, connection.crowdedError());
    request.maybeSet |= 1 << nodeIndex;
    if (isGuarded(request)) this.#guard.ahead();
    this.#submitGuarded(command, request, nodeIndex, operation);
  }

  #submitGuarded(
    command: Uint8Array,
    request: LockRequest,
    nodeIndex: number,
    operation: number,
  ): void {
    this.#connection.submit(command, this, request, nodeIndex << TAG_BITS | operation);
    if (isGuarded(request)) this.#guard.behind(request, nodeIndex);
  }

  /** The caller is in the queue: see {@linkcode ACQUIRE_OR_WAIT} for the reply. */
  #onQueued(reply: readonly RawReply[], request: LockRequest, nodeIndex: number): void {
    if (reply.length !== 5 || !reply.every((part) => typeof part === "number")) {
      return request.fail(nodeIndex, this.#strangeReply());
    }
    const [pttl, ahead, length, score, timeUs] = reply as number[];
    const remainingMs = pttl === -1 ? Infinity : Math.max(pttl + 1, 0); // -2 for a free key
    const position = { remainingMs, ahead, length, score, timeMs: timeUs / 1_000 };
    request.enqueued!(nodeIndex, position, this.#connection.receivedAtMs);
  }

  #onErrorReply(reply: ReplyError, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    const busy = BUSY_PREFIXES.includes(reply.prefix);
    if (operation === PENDING_RELEASE) {
      if (busy) this.#deferRelease(context as PendingRelease);
      return;
    }
    if (operation === LEAVE) return this.#onLeaveRefused(reply, context as Leaving, tag);
    const request = context as LockRequest;
    const nodeIndex = tag >> TAG_BITS;
    if (reply.prefix === "NOSCRIPT" && !(tag & SCRIPT_SENT)) {
      return this.#sendScript(request, nodeIndex, operation, reply);
    }
    const noQueue = reply.message.includes(WRONG_TYPE) || isRefusal(reply);
    if (operation === JOIN && request.wanted && noQueue) {
      return this.#acquirePlainly(request, nodeIndex, reply);
    }
    if (operation === RELEASE && busy) this.#deferRelease(this.#pendingReleaseOf(request));
    request.fail(nodeIndex, reply);
  }

  /** The node does not know the script: sends it whole, unless what it sets would outlive its release. */
  #sendScript(request: LockRequest, nodeIndex: number, operation: number, reply: ReplyError): void {
    if (!request.wanted && operation !== RELEASE) return request.fail(nodeIndex, reply);
    const command = encodeWhole(operation, request);
    const tag = SCRIPT_SENT | operation;
    if (SETTING.includes(operation)) return this.#submitGuarded(command, request, nodeIndex, tag);
    this.#connection.submit(command, this, request, nodeIndex << TAG_BITS | tag);
  }

  #onLeaveRefused({ prefix }: ReplyError, leaving: Leaving, tag: number): void {
    if (prefix !== "NOSCRIPT" || tag & SCRIPT_SENT) return;
    const command = encodeLeave(leaving.keys, leaving.ticketId, "EVAL");
    this.#connection.submit(command, this, leaving, SCRIPT_SENT | LEAVE);
  }

  /** The node has no queue: asks for the keys alone. If the server does not allow queues, callers poll from now on. */
  #acquirePlainly(request: LockRequest, nodeIndex: number, reply: ReplyError): void {
    if (!reply.message.includes(WRONG_TYPE)) this.#subscription.refuse(reply);
    this.#submitSetting(request, nodeIndex, ACQUIRE, encodeAcquire(request));
  }

  /** A release that did not reach the node is sent when it is back, if there can be anything to release. */
  #keepRelease(request: LockRequest, nodeIndex: number): void {
    if (request.maybeSet & 1 << nodeIndex) this.#deferRelease(this.#pendingReleaseOf(request));
  }

  #pendingReleaseOf({ keys, value, ttlMs }: LockRequest): PendingRelease {
    return { keys, value, untilMs: this.#wheel.clock.monotonicMs() + ttlMs };
  }

  #deferRelease(pending: PendingRelease): void {
    if (this.#pendingReleases.length >= PENDING_RELEASES_MAX) this.#pendingReleases.shift();
    this.#pendingReleases.push(pending);
    // Where the connection is down its return is waited for, else some time.
    if (this.#connection.open) {
      this.#pendingTimer ??= this.#wheel.after(
        PENDING_RELEASE_DELAY_MS,
        () => this.#sendPendingReleases(),
      );
    }
  }

  #sendPendingReleases(): void {
    if (this.#pendingTimer) this.#wheel.cancel(this.#pendingTimer);
    this.#pendingTimer = undefined;
    const pendings = this.#pendingReleases;
    this.#pendingReleases = [];
    const nowMs = this.#wheel.clock.monotonicMs();
    for (const pending of pendings) {
      if (pending.untilMs <= nowMs) continue;
      const command = encodeRelease(pending, "EVAL");
      this.#connection.submit(command, this, pending, PENDING_RELEASE);
    }
  }
}

/** Counters of fencing tokens are microseconds since long ago: none is as small as the other answers. */
function isCount(reply: RawReply): reply is number {
  return typeof reply === "number" && reply > COUNT_MIN && Number.isSafeInteger(reply);
}

/** A command whose script the server does not know, with the script itself. */
function encodeWhole(operation: number, request: LockRequest): Uint8Array {
  switch (operation) {
    case RELEASE:
      return encodeRelease(request, "EVAL");
    case RAISE:
      return encodeRaise(request, "EVAL");
    case EXTEND:
      return encodeExtend(request, "EVAL");
    case JOIN:
      return encodeAcquireOrWait(request, request.ticket!, "EVAL");
    default:
      return encodeAcquire(request, "EVAL");
  }
}

/** What the replies to `GET`, `PTTL` and `ZCARD` say of a key; `null` where they are no replies to these. */
function keyState([value, pttl, length]: readonly RawReply[]): KeyState | undefined | null {
  if (typeof pttl !== "number") return null;
  if (value === null || pttl === -2) return undefined;
  if (!(value instanceof Uint8Array)) return null;
  const remainingMs = pttl === -1 ? Infinity : pttl;
  const state = { value: textReply(value) as string, remainingMs };
  return typeof length === "number" ? { ...state, waiters: length } : state; // it may not be allowed to tell
}
