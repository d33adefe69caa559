/**
 * A {@linkcode LockNode} on one Redis server, over the RESP2 client.
 *
 * What a lock on one key needs is here; the rest is loaded when a request first needs it. While it is loaded, later
 * requests stay behind that one, so that all of them reach the server in their order.
 *
 * A script goes out whole (`EVAL`) the first time on a connection and by its digest (`EVALSHA`) from then on. So a
 * server that does not know it needs no second round trip, in which the client's next command could overtake it.
 *
 * @module
 */
import { emit, type EventListener, type RedlockEvent } from "../events.ts";
import type { Part } from "../part.ts";
import type { KeyState, LockNode, LockRequest } from "../quorum/lock_node.ts";
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import type { ReleaseListener } from "../quorum/queue_ticket.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import {
  type ConnectionError,
  ProtocolError,
  type RedisError,
  ReplyError,
} from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import type { CommandSender, ServerAccess } from "./command_sender.ts";
import type { RedisDiagnostics } from "./diagnostics.ts";
import { type Operation, type Release, RELEASE_KEY, SET_KEY } from "./operation.ts";
import * as parts from "./parts.ts";
import { type PendingRelease, PendingReleases } from "./pending_releases.ts";
import type { QueueLeave } from "./queue_operations.ts";
import type { ReleaseSubscription } from "./release_subscription.ts";
import type { RedisGuard } from "./restart_guard.ts";
import type { Script } from "./scripts/script.ts";
import { settledWithin } from "../time/settled_within.ts";

/** In the error if the queue's key, or the counter's, holds another type; older servers put other words before it. */
const WRONG_TYPE = "WRONGTYPE";
/** Error prefix of a script that the server does not know. */
const UNKNOWN_SCRIPT = "NOSCRIPT";
/** How long `close` waits for requests whose parts are being loaded, in milliseconds. */
const LOADING_MS_MAX = 500;

/**
 * A command's tag: the operation's code, whether the script went out whole, whether it was sent before, whether it is a
 * release that did not reach the node before, and the node's index.
 */
const CODE_MASK = 15, WHOLE = 16, REPEATED = 32, PENDING = 64, TAG_BITS = 7;

type Content = LockRequest | PendingRelease | QueueLeave;
/** One Redis server as a node. */
export class RedisNode implements LockNode, ReplyReceiver {
  readonly name: string;
  readonly #server: ServerAccess;
  readonly #onEvent: EventListener | undefined;
  readonly #connection: CommandSender;
  readonly #pendingReleases: PendingReleases;
  /** The operations in use, by their codes. */
  readonly #operations: Operation[] = [];
  /** The scripts that were sent whole on this connection, and whether that was answered. */
  readonly #scripts: Map<Script, boolean> = new Map();
  /** Settles when no request waits for a part any more. */
  #loading: Promise<void> | undefined = undefined;
  #guard: RedisGuard | undefined = undefined;
  #listener: ReleaseListener | undefined = undefined;
  #subscription: ReleaseSubscription | undefined = undefined;
  #diagnostics: RedisDiagnostics | undefined = undefined;

  constructor(server: ServerAccess, onEvent?: EventListener) {
    this.name = server.name;
    this.#server = server;
    this.#onEvent = onEvent;
    this.#connection = server.open({
      onConnected: () => {
        this.#scripts.clear();
        this.#guard?.onConnected();
        this.#pendingReleases.sendAll();
        this.#subscription?.onCommandsPossible();
      },
      onDisconnected: () => this.#guard?.onDisconnected(),
      onAvailable: () => this.#emit({ type: "node-connected", node: this.name }),
      onUnavailable: (error) => this.#emit({ type: "node-disconnected", node: this.name, error }),
    });
    this.#pendingReleases = new PendingReleases(this.#connection, server.wheel, (release) => {
      this.#send(releaseOperation(release), release, 0, PENDING);
    });
  }

  get readyAtMs(): number {
    return this.#connection.readyAtMs;
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    const missing = missingParts(request);
    if (!missing && !this.#loading) return this.#acquire(request, nodeIndex);
    this.#later(missing, request, nodeIndex, false);
  }

  extend(request: LockRequest, nodeIndex: number): void {
    const extend = () => this.#ask(parts.extending.loaded!.EXTEND_KEYS, request, nodeIndex);
    const missing = missingParts(request);
    if (!missing && !this.#loading && parts.extending.loaded) return extend();
    this.#putOff([parts.extending, ...missing ?? []], request, nodeIndex, extend);
  }

  raiseCounters(request: LockRequest, nodeIndex: number): void {
    const raise = () => this.#send(parts.counting.loaded!.RAISE_COUNTERS, request, nodeIndex);
    if (!this.#loading && parts.counting.loaded) return raise();
    this.#putOff([parts.counting], request, nodeIndex, raise);
  }

  release(request: LockRequest, nodeIndex: number): void {
    const missing = request.keys.length > 1 && !parts.queueing.loaded;
    if (!missing && !this.#loading) return this.#release(request, nodeIndex);
    this.#later(missing ? [parts.queueing] : undefined, request, nodeIndex, true);
  }

  async inspect(key: string): Promise<KeyState | undefined> {
    const { inspectKey } = parts.inspecting.loaded ?? await parts.inspecting.load();
    return await inspectKey(this.#connection, this.name, key);
  }

  subscribe(listener: ReleaseListener, nodeIndex: number): void {
    if (this.#listener) return;
    this.#listener = listener;
    const open = () => {
      if (this.#listener !== listener) return; // it was ended meanwhile
      const { ReleaseSubscription } = parts.notifying.loaded!;
      this.#subscription ??= new ReleaseSubscription(this.#server, this.#connection);
      this.#subscription.open(listener, nodeIndex);
    };
    if (parts.notifying.loaded && parts.queueing.loaded) return open();
    Promise.all([parts.notifying.load(), parts.queueing.load()])
      .then(open, (error) => listener.onUnsupported(nodeIndex, error));
  }

  unsubscribe(): void {
    this.#listener = undefined;
    this.#subscription?.close();
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    // The next notification drops it. Without this part the node has put no ticket in its queues.
    if (!this.#connection.open || !parts.queueing.loaded) return;
    this.#send(parts.queueing.loaded.LEAVE_QUEUE, { keys, ticketId }, 0);
  }

  async diagnose(timeoutMs: number, key: string): Promise<NodeDiagnosis> {
    const { RedisDiagnostics } = parts.diagnosing.loaded ?? await parts.diagnosing.load();
    this.#diagnostics ??= new RedisDiagnostics(this.#connection, this.#server);
    return await this.#diagnostics.diagnose(timeoutMs, key);
  }

  async close(): Promise<void> {
    this.#listener = undefined;
    if (this.#loading) await settledWithin(this.#server.wheel, this.#loading, LOADING_MS_MAX);
    this.#pendingReleases.sendAll(); // for the last time
    await Promise.all([
      this.#subscription?.close(),
      this.#diagnostics?.close(),
      this.#connection.close(),
    ]);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, context: unknown, tag: number): void {
    const operation = this.#operations[tag & CODE_MASK];
    const request = context as LockRequest;
    if (tag & WHOLE) this.#scripts.set(operation.script!, true); // the server knows it from here on
    if (reply instanceof ReplyError) {
      return this.#onErrorReply(operation.explain?.(reply) ?? reply, operation, request, tag);
    }
    const { kind } = operation;
    if (tag & PENDING) return this.#pendingReleases.sendAll();
    if (kind === "leave") return; // nobody waits for the answer
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
        if (kind === "acquire") request.maybeSet &= ~(1 << nodeIndex); // it has set nothing
        return request.deny(nodeIndex, atMs);
      case "missing":
        return request.missing ? request.missing(nodeIndex, atMs) : request.deny(nodeIndex, atMs);
      case "queued": {
        const { queuePosition } = parts.queueing.loaded!;
        request.maybeSet &= ~(1 << nodeIndex);
        return request.enqueued!(nodeIndex, queuePosition(reply as number[]), atMs);
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
      return this.#pendingReleases.addAgain(context as PendingRelease);
    }
    const { kind } = this.#operations[tag & CODE_MASK];
    if (kind === "leave") return; // the next notification drops it
    const request = context as LockRequest;
    const bit = 1 << (tag >> TAG_BITS);
    if (kind === "release") {
      // mutation: release-forgotten
      if (request.maybeSet & bit) this.#pendingReleases.add(request);
    } else if (kind === "acquire" && (error as ConnectionError).outcome === "not-sent") {
      request.maybeSet &= ~bit;
    }
    request.fail(tag >> TAG_BITS, error);
  }

  #acquire(request: LockRequest, nodeIndex: number): void {
    const queues = request.ticket !== undefined && this.#subscription?.listening === true;
    // mutation: set-sent-again
    // mutation: set-after-its-undo
    this.#ask(acquireOperation(request, queues), request, nodeIndex);
  }

  #release(request: LockRequest, nodeIndex: number): void {
    this.#send(releaseOperation(request), request, nodeIndex);
  }

  /** A method of its own: a method with a closure costs memory by each call, even if it makes none. */
  #later(missing: Missing, request: LockRequest, nodeIndex: number, releases: boolean): void {
    const ask = releases ? this.#release : this.#acquire;
    this.#putOff(missing, request, nodeIndex, () => ask.call(this, request, nodeIndex), releases);
  }

  /** Asks once the parts are loaded, and behind everything that was put off before. */
  #putOff(
    missing: Missing,
    request: LockRequest,
    nodeIndex: number,
    ask: () => void,
    releases = false,
  ): void {
    const fail = (error: Error) => request.fail(nodeIndex, error);
    const before = this.#loading ?? Promise.resolve();
    const loading = this.#loading = before
      .then(() => Promise.all(missing?.map((part) => part.load()) ?? []))
      // What undoes the request may have been sent meanwhile.
      .then(() => releases || request.wanted ? ask() : fail(new Error("it was given up")), fail)
      .then(() => {
        if (this.#loading === loading) this.#loading = undefined;
      });
  }

  /** Sends what a node in quarantine must not grant. */
  #ask(operation: Operation, request: LockRequest, nodeIndex: number, flags = 0): void {
    if (!isGuarded(request)) return this.#send(operation, request, nodeIndex, flags);
    const connection = this.#connection;
    if (connection.crowded) return request.fail(nodeIndex, connection.crowdedError());
    const guard = this.#guard ??= this.#newGuard();
    guard.ahead();
    this.#send(operation, request, nodeIndex, flags);
    guard.behind(request, nodeIndex);
  }

  #emit(event: RedlockEvent): void {
    if (this.#onEvent) emit(this.#onEvent, event);
  }

  #newGuard(): RedisGuard {
    const { RedisGuard } = parts.guarding.loaded!;
    return new RedisGuard(this.name, this.#connection, ({ reason, remainingMs }) => {
      this.#emit({ type: "node-quarantined", node: this.name, reason, remainingMs });
    });
  }

  #send(
    operation: Operation<LockRequest & QueueLeave>,
    content: Content,
    nodeIndex: number,
    flags = 0,
  ): void {
    const { code, kind, script } = operation;
    const connection = this.#connection;
    const request = content as LockRequest & QueueLeave;
    const whole = script !== undefined && !this.#scripts.has(script);
    // All nodes share one command; but if there is a ticket, some nodes may put it in a queue and others cannot.
    const shared = flags === 0 && !whole && kind !== "leave" &&
      (request.ticket === undefined || operation.queues || kind !== "acquire");
    const command = shared
      ? request.shared ??= operation.encode(request, "EVALSHA")
      : operation.encode(request, whole ? "EVAL" : "EVALSHA");
    if (kind === "acquire" || kind === "extend") {
      // Only these are refused if there is no room: what undoes them always finds some.
      if (connection.crowded) return request.fail(nodeIndex, connection.crowdedError());
      if (kind === "acquire") request.maybeSet |= 1 << nodeIndex;
    }
    this.#operations[code] = operation;
    if (whole) this.#scripts.set(script, false);
    const tag = nodeIndex << TAG_BITS | code | flags | (whole ? WHOLE : 0);
    connection.submit(command as Uint8Array, this, content, tag);
  }

  #onErrorReply(
    reply: ReplyError,
    operation: Operation,
    request: LockRequest,
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
    if (kind === "leave") return;
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
  #repeat(operation: Operation, request: LockRequest, tag: number): boolean {
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

/** The parts to load, if any. */
type Missing = readonly Part<unknown>[] | undefined;

/** Whether grants of this request are guarded. */
function isGuarded({ guardMs }: LockRequest): boolean {
  return guardMs !== undefined && guardMs > 0;
}

/** The parts that an acquisition or an extension needs and that are not loaded. */
function missingParts(request: LockRequest): Missing {
  const { keys, counterFloor } = request;
  const guarded = isGuarded(request);
  if (keys.length === 1 && counterFloor === undefined && !guarded) return undefined;
  const needed = [
    keys.length > 1 && parts.queueing,
    counterFloor !== undefined && parts.counting,
    guarded && parts.guarding,
  ].filter((part) => part && !part.loaded) as Part<unknown>[];
  return needed.length > 0 ? needed : undefined;
}

/** How a request for a lock is put to a node; `queues` if that is to put the request's ticket in the queue. */
export function acquireOperation({ keys, counterFloor }: LockRequest, queues: boolean): Operation {
  if (counterFloor !== undefined) {
    const { COUNT_KEY, COUNT_KEYS, COUNT_OR_QUEUE } = parts.counting.loaded!;
    return queues ? COUNT_OR_QUEUE : keys.length > 1 ? COUNT_KEYS : COUNT_KEY;
  }
  if (queues) return parts.queueing.loaded!.SET_OR_QUEUE;
  return keys.length > 1 ? parts.queueing.loaded!.SET_KEYS : SET_KEY;
}

/** How a release is put to a node. Without the part for queues the node has put no ticket in them. */
export function releaseOperation({ keys, ticket }: Release): Operation<Release> {
  const queued = keys.length > 1 || ticket !== undefined;
  return queued && parts.queueing.loaded ? parts.queueing.loaded.RELEASE_KEYS : RELEASE_KEY;
}
