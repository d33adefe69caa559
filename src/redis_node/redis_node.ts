/**
 * A node on one Redis server, over the RESP2 client.
 *
 * A script goes out whole (`EVAL`) the first time on a connection and by its digest (`EVALSHA`) from then on. So a
 * server that does not know it needs no second round trip, in which the client's next command could overtake it.
 *
 * @module
 */
import { emit, type EventListener, type RedlockEvent } from "../events.ts";
import type { KeyState } from "../quorum/lock_node.ts";
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import { POOL_SUFFIX, type ReleaseListener } from "../quorum/queue_ticket.ts";
import type { QuorumNode, QuorumRequest } from "../quorum/quorum_node.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import {
  type ConnectionError,
  ProtocolError,
  type RedisError,
  ReplyError,
} from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import { ADOPT_KEYS, GIVE_BACK_KEYS } from "./adopt_operations.ts";
import type { CommandSender, LockCommand, ServerAccess } from "./command_sender.ts";
import { COUNT_KEY, COUNT_KEYS, COUNT_OR_QUEUE, RAISE_COUNTERS } from "./count_operations.ts";
import { RedisDiagnostics } from "./diagnostics.ts";
import { EXTEND_KEYS } from "./extend_operation.ts";
import { inspectKey } from "./inspect_key.ts";
import { type Call, type Operation, type Release, RELEASE_KEY, SET_KEY } from "./operation.ts";
import { NativeRelease, type NativeReleaseOwner } from "./native_release.ts";
import { type PendingRelease, PendingReleases, type QueueLeave } from "./pending_releases.ts";
import {
  LEAVE_POOL,
  poolPosition,
  RELEASE_ANY_KEY,
  SET_ANY,
  SET_ANY_OR_QUEUE,
} from "./pool_operations.ts";
import {
  LEAVE_QUEUE,
  queuePosition,
  RELEASE_KEYS,
  SET_KEYS,
  SET_OR_QUEUE,
} from "./queue_operations.ts";
import { ReleaseSubscription } from "./release_subscription.ts";
import { RedisGuard } from "./restart_guard.ts";
import { scanKeys } from "./scan_keys.ts";
import { QUEUE_TTL_MS } from "./scripts/queue.ts";
import type { Script } from "./scripts/script.ts";

/** In the error if the queue's key, or the counter's, holds another type; older servers put other words before it. */
const WRONG_TYPE = "WRONGTYPE";
/** Error prefix of a script that the server does not know. */
const UNKNOWN_SCRIPT = "NOSCRIPT";

/**
 * A command's tag: the operation's code, whether the script went out whole, whether it was sent before, whether it is a
 * release that did not reach the node before, and the node's index.
 */
const CODE_MASK = 31, WHOLE = 32, REPEATED = 64, PENDING = 128, TAG_BITS = 8;

type Content = QuorumRequest | PendingRelease | QueueLeave;
/** One Redis server as a node. */
export class RedisNode implements QuorumNode, NativeReleaseOwner, ReplyReceiver {
  readonly name: string;
  readonly subscribe: QuorumNode["subscribe"];
  readonly #server: ServerAccess;
  readonly #onEvent: EventListener | undefined;
  readonly #connection: CommandSender;
  readonly #pendingReleases: PendingReleases;
  /** The operations in use, by their codes. */
  readonly #operations: Operation[] = [];
  /** The scripts that were sent whole on this connection, and whether that was answered. */
  readonly #scripts: Map<Script, boolean> = new Map();
  /** Missing if replies may come in another order. */
  readonly #native: NativeRelease | undefined;
  #guard: RedisGuard | undefined = undefined;
  #subscription: ReleaseSubscription | undefined = undefined;
  #diagnostics: RedisDiagnostics | undefined = undefined;

  constructor(server: ServerAccess, onEvent?: EventListener) {
    this.name = server.name;
    this.#server = server;
    this.#onEvent = onEvent;
    this.subscribe = server.subscribe && this.#subscribe.bind(this);
    this.#connection = server.open({
      onConnected: () => {
        this.#scripts.clear();
        this.#native?.onConnected();
        this.#guard?.onConnected();
        this.#pendingReleases.sendAll();
        this.#subscription?.onCommandsPossible();
      },
      onDisconnected: () => this.#guard?.onDisconnected(),
      onAvailable: () => this.#emit({ type: "node-connected", node: this.name }),
      onUnavailable: (error) => this.#emit({ type: "node-disconnected", node: this.name, error }),
    });
    if (server.inOrder) this.#native = new NativeRelease(this.#connection, this);
    this.#pendingReleases = new PendingReleases(this.#connection, server.wheel, (pending) => {
      const operation = "ticketId" in pending
        ? leaveOperation(pending.ticketId)
        : releaseOperation(pending);
      this.#send(operation, pending, 0, PENDING);
    });
  }

  get readyAtMs(): number {
    return this.#connection.readyAtMs;
  }

  get resends(): boolean {
    return this.#server.resends === true;
  }

  acquire(request: QuorumRequest, nodeIndex: number): void {
    const queues = request.ticket !== undefined && this.#subscription?.listening === true;
    // mutation: set-sent-again
    // mutation: set-after-its-undo
    this.#ask(acquireOperation(request, queues), request, nodeIndex);
  }

  adopt(request: QuorumRequest, nodeIndex: number): void {
    this.#ask(ADOPT_KEYS, request, nodeIndex);
  }

  extend(request: QuorumRequest, nodeIndex: number): void {
    this.#ask(EXTEND_KEYS, request, nodeIndex);
  }

  raiseCounters(request: QuorumRequest, nodeIndex: number): void {
    this.#send(RAISE_COUNTERS, request, nodeIndex);
  }

  release(request: QuorumRequest, nodeIndex: number): void {
    const operation = releaseOperation(request);
    if (operation === RELEASE_KEY && this.#native?.release(request, nodeIndex)) return;
    this.#send(operation, request, nodeIndex);
  }

  /** Part of {@linkcode NativeReleaseOwner}. */
  onReleased(request: QuorumRequest, nodeIndex: number, deleted: boolean): void {
    const atMs = this.#connection.receivedAtMs;
    if (deleted) request.grant(nodeIndex, atMs);
    else request.deny(nodeIndex, atMs);
  }

  /** Part of {@linkcode NativeReleaseOwner}. */
  onScriptNeeded(request: QuorumRequest, nodeIndex: number, deleted: boolean): void {
    if (!deleted) return this.#send(releaseOperation(request), request, nodeIndex);
    const { keys, value, ttlMs } = request;
    const untilMs = this.#server.wheel.clock.monotonicMs() + ttlMs;
    this.#send(RELEASE_KEY, { keys, value, untilMs }, 0, PENDING); // notifies the first in the queue
    request.hasWaiters = true;
    request.grant(nodeIndex, this.#connection.receivedAtMs);
  }

  /** Part of {@linkcode NativeReleaseOwner}. */
  onReleaseFailed(request: QuorumRequest, nodeIndex: number, error: RedisError): void {
    // mutation: release-forgotten
    if (request.maySet!(nodeIndex)) this.#pendingReleases.add(request);
    request.fail(nodeIndex, error, (error as ConnectionError).outcome === "not-sent");
  }

  inspect(key: string): Promise<KeyState | undefined> {
    return inspectKey(this.#connection, this.name, key);
  }

  keys(prefix: string): AsyncIterable<readonly string[]> {
    return scanKeys(this.#connection, this.name, prefix);
  }

  unsubscribe(): void {
    this.#subscription?.close();
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    const untilMs = this.#server.wheel.clock.monotonicMs() + QUEUE_TTL_MS;
    const leave = { keys, ticketId, untilMs };
    if (this.#connection.open) this.#send(leaveOperation(ticketId), leave, 0, PENDING);
    else this.#pendingReleases.addAgain(leave);
  }

  async diagnose(timeoutMs: number, key: string): Promise<NodeDiagnosis> {
    this.#diagnostics ??= new RedisDiagnostics(this.#connection, this.#server);
    const asked = this.#diagnostics.diagnose(timeoutMs, key);
    this.#native?.find();
    const diagnosis = await asked;
    const releasedBy = this.#native?.command;
    return releasedBy === undefined ? diagnosis : { ...diagnosis, releasedBy };
  }

  async close(): Promise<void> {
    this.#pendingReleases.sendAll(); // for the last time
    await Promise.all([
      this.#subscription?.close(),
      this.#diagnostics?.close(),
      this.#connection.close(),
    ]);
    this.#server.close?.();
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, context: unknown, tag: number): void {
    const operation = this.#operations[tag & CODE_MASK];
    const request = context as QuorumRequest;
    if (tag & WHOLE) this.#scripts.set(operation.script!, true); // the server knows it from here on
    if (reply instanceof ReplyError) {
      return this.#onErrorReply(operation.explain?.(reply) ?? reply, operation, request, tag);
    }
    const { kind } = operation;
    if (tag & PENDING) return this.#pendingReleases.sendAll();
    const nodeIndex = tag >> TAG_BITS;
    const atMs = this.#connection.receivedAtMs;
    const outcome = operation.read(reply);
    switch (outcome) {
      case "contended":
        request.hasWaiters = true;
        return request.grant(nodeIndex, atMs);
      case "granted":
      case "counted": {
        const count = outcome === "counted" ? reply as number : undefined;
        // A grant counts only if the node cannot have lost locks of others.
        const guarded = request.guardMs! > 0 && (kind === "acquire" || kind === "extend");
        if (guarded) return this.#guard!.hold(request, atMs, count);
        return request.grant(nodeIndex, atMs, count);
      }
      case "denied":
        return request.deny(nodeIndex, atMs, Array.isArray(reply) ? reply[0] as number : undefined);
      case "missing":
        return request.missing ? request.missing(nodeIndex, atMs) : request.deny(nodeIndex, atMs);
      case "queued": {
        const position = request.pool ? poolPosition(reply) : queuePosition(reply);
        return request.enqueued!(nodeIndex, position, atMs);
      }
      default: {
        const text = `Cannot read vote as ${this.name} sent an unexpected reply`;
        request.fail(nodeIndex, new ProtocolError(text));
      }
    }
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: RedisError, context: unknown, tag: number): void {
    if (tag & PENDING) {
      // mutation: pending-release-forgotten
      return this.#pendingReleases.addAgain(context as PendingRelease | QueueLeave);
    }
    const { kind } = this.#operations[tag & CODE_MASK];
    const request = context as QuorumRequest;
    const nodeIndex = tag >> TAG_BITS;
    if (kind === "release") return this.onReleaseFailed(request, nodeIndex, error);
    request.fail(nodeIndex, error, (error as ConnectionError).outcome === "not-sent");
  }

  /** Sends what a node in quarantine must not grant. */
  #ask(operation: Operation, request: QuorumRequest, nodeIndex: number, flags = 0): void {
    if (!isGuarded(request)) return this.#send(operation, request, nodeIndex, flags);
    const connection = this.#connection;
    if (connection.crowded) return request.fail(nodeIndex, connection.crowdedError(), true);
    const guard = this.#guard ??= this.#newGuard();
    guard.ahead();
    this.#send(operation, request, nodeIndex, flags);
    guard.behind(request, nodeIndex);
  }

  #subscribe(listener: ReleaseListener, nodeIndex: number): void {
    this.#subscription ??= new ReleaseSubscription(this.#server, this.#connection);
    this.#subscription.open(listener, nodeIndex);
  }

  #emit(event: RedlockEvent): void {
    if (this.#onEvent) emit(this.#onEvent, event);
  }

  #newGuard(): RedisGuard {
    return new RedisGuard(this.name, this.#connection, ({ reason, remainingMs }) => {
      this.#emit({ type: "node-quarantined", node: this.name, reason, remainingMs });
    });
  }

  #send(
    operation: Operation<QuorumRequest & QueueLeave>,
    content: Content,
    nodeIndex: number,
    flags = 0,
  ): void {
    const { code, kind, script } = operation;
    const connection = this.#connection;
    const request = content as QuorumRequest & QueueLeave;
    const whole = script !== undefined && !this.#scripts.has(script);
    // All nodes share one command; but if there is a ticket, some nodes may put it in a queue and others cannot.
    const shared = flags === 0 && !whole &&
      (request.ticket === undefined || operation.queues || kind !== "acquire");
    const command = shared
      ? request.shared ??= commandOf(operation, request, "EVALSHA")
      : commandOf(operation, request, whole ? "EVAL" : "EVALSHA");
    if (kind === "acquire" || kind === "extend") {
      // Only these are refused if there is no room: what undoes them always finds some.
      if (connection.crowded) return request.fail(nodeIndex, connection.crowdedError(), true);
    }
    this.#operations[code] = operation;
    if (whole) this.#scripts.set(script, false);
    const tag = nodeIndex << TAG_BITS | code | flags | (whole ? WHOLE : 0);
    connection.submit(command as LockCommand, this, content, tag);
    if (whole) this.#native?.find();
  }

  #onErrorReply(
    reply: ReplyError,
    operation: Operation,
    request: QuorumRequest,
    tag: number,
  ): void {
    const nodeIndex = tag >> TAG_BITS;
    const { kind, queues } = operation;
    // mutation: script-never-sent
    if (
      reply.prefix === UNKNOWN_SCRIPT && !(tag & WHOLE) && this.#repeat(operation, request, tag)
    ) return;
    const wrongType = reply.message.includes(WRONG_TYPE);
    const passes = !wrongType && !reply.permanent;
    if (tag & PENDING) {
      if (passes) this.#pendingReleases.addAgain(request as unknown as PendingRelease);
      return;
    }
    if (queues && request.wanted && (wrongType || reply.commandRefused)) {
      // The node cannot queue: asks it all the same. If the server does not allow it, callers poll from now on.
      if (!wrongType) this.#subscription?.refuse(reply);
      return this.#ask(acquireOperation(request, false), request, nodeIndex, REPEATED);
    }
    if (kind === "release" && passes) this.#pendingReleases.add(request);
    request.fail(nodeIndex, reply);
  }

  /**
   * Sends a command again whose script the server does not know; not one that could outlive what undoes it. The script
   * goes out whole unless that was done behind the command: many calls in flight cause one whole script, not one each.
   */
  #repeat(operation: Operation, request: QuorumRequest, tag: number): boolean {
    const { kind, script } = operation;
    const undoes = kind === "release" || kind === "leave";
    // mutation: script-sent-for-undone-attempt
    if (!undoes && !request.wanted) return false;
    if (!script) return false;
    if (tag & REPEATED || this.#scripts.get(script)) this.#scripts.delete(script);
    const nodeIndex = tag >> TAG_BITS;
    const flags = tag & PENDING | REPEATED;
    if (undoes || kind === "raise") this.#send(operation, request, nodeIndex, flags);
    else this.#ask(operation, request, nodeIndex, flags);
    return true;
  }
}

/** The command of an operation. */
function commandOf(
  operation: Operation<QuorumRequest & QueueLeave>,
  request: QuorumRequest & QueueLeave,
  call: Call,
): LockCommand {
  const { kind } = operation;
  return {
    args: operation.args(request, call),
    keys: request.pool?.keys ?? request.keys, // what else is sent about one of them keeps its order
    sets: kind === "acquire" ? request : undefined,
    releases: kind === "release" ? request : undefined,
    bytes: undefined,
  };
}

/** Whether grants of this request are guarded. */
function isGuarded({ guardMs }: QuorumRequest): boolean {
  return guardMs !== undefined && guardMs > 0;
}

/** How a request for a lock is put to a node; `queues` if that is to put the request's ticket in the queue. */
export function acquireOperation(
  { keys, counterFloor, pool }: QuorumRequest,
  queues: boolean,
): Operation {
  if (pool) return queues ? SET_ANY_OR_QUEUE : SET_ANY;
  if (counterFloor !== undefined) {
    return queues ? COUNT_OR_QUEUE : keys.length > 1 ? COUNT_KEYS : COUNT_KEY;
  }
  if (queues) return SET_OR_QUEUE;
  return keys.length > 1 ? SET_KEYS : SET_KEY;
}

/** How a ticket that leaves its queues is put to a node. */
export function leaveOperation(ticketId: string): Operation<Pick<QueueLeave, "keys" | "ticketId">> {
  return ticketId.endsWith(POOL_SUFFIX) ? LEAVE_POOL : LEAVE_QUEUE;
}

/** How a release is put to a node. */
export function releaseOperation({ keys, replaces, ticket, pool }: Release): Operation<Release> {
  if (replaces !== undefined) return GIVE_BACK_KEYS;
  if (pool && ticket) return RELEASE_ANY_KEY;
  return keys.length > 1 || ticket !== undefined ? RELEASE_KEYS : RELEASE_KEY;
}
