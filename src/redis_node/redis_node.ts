/**
 * A {@linkcode LockNode} on one Redis server, over the RESP2 client.
 *
 * @module
 */
import {
  acquireOperation,
  encodeOperation,
  isAcquire,
  isShared,
  OPERATION,
  type QueueLeave,
  scriptOf,
} from "./commands.ts";
import { inspectKey } from "./inspect_key.ts";
import type { KeyState, LockNode, LockRequest } from "../quorum/lock_node.ts";
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import type { ReleaseListener } from "../quorum/queue_ticket.ts";
import { type PendingRelease, PendingReleases } from "./pending_releases.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import {
  type ConnectionError,
  isRefusal,
  ProtocolError,
  type RedisError,
  ReplyError,
} from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import type { CommandSender, ServerAccess } from "./command_sender.ts";
import type { RedisDiagnostics } from "./diagnostics.ts";
import { scriptError } from "./old_server.ts";
import { ReleaseSubscription } from "./release_subscription.ts";
import { outcomeOf, queuePosition } from "./replies.ts";
import { isGuarded, RedisGuard } from "./restart_guard.ts";
import type { Quarantine } from "./quarantine.ts";
import { SentScripts } from "./sent_scripts.ts";

/** Error prefixes of a server that will serve later: it loads its data, or a script runs. */
const BUSY_PREFIXES: readonly string[] = ["LOADING", "BUSY"];
/** In the error if the queue's key, or the counter's, holds another type; older servers put other words before it. */
const WRONG_TYPE = "WRONGTYPE";
/** Error prefix of a script that the server does not know. */
const UNKNOWN_SCRIPT = "NOSCRIPT";

/** A command's tag: the operation, whether the script went out whole, whether it was sent before, the node's index. */
const OPERATION_MASK = 15, WHOLE = 16, REPEATED = 32, TAG_BITS = 6;

/** Events of the connection, for the node's owner. */
export interface NodeObserver {
  /** The node can be asked. */
  onConnected?(node: string): void;
  /** The node cannot be asked. */
  onDisconnected?(node: string, error: ConnectionError): void;
  /** The node has granted, but may have lost locks; called once for each cause. */
  onQuarantined?(node: string, quarantine: Quarantine): void;
}

/** One Redis server as a node. */
export class RedisNode implements LockNode, ReplyReceiver {
  readonly name: string;
  readonly #server: ServerAccess;
  readonly #connection: CommandSender;
  #diagnostics: RedisDiagnostics | undefined = undefined;
  readonly #subscription: ReleaseSubscription;
  readonly #guard: RedisGuard;
  readonly #scripts = new SentScripts();
  readonly #pendingReleases: PendingReleases;

  constructor(server: ServerAccess, observer: NodeObserver = {}) {
    this.name = server.name;
    this.#server = server;
    this.#connection = server.open({
      onConnected: () => {
        this.#scripts.clear();
        this.#guard.onConnected();
        this.#pendingReleases.sendAll();
        this.#subscription.onCommandsPossible();
      },
      onDisconnected: () => this.#guard.onDisconnected(),
      onAvailable: () => observer.onConnected?.(this.name),
      onUnavailable: (error) => observer.onDisconnected?.(this.name, error),
    });
    this.#guard = new RedisGuard(this.name, this.#connection, (quarantine) => {
      observer.onQuarantined?.(this.name, quarantine);
    });
    this.#pendingReleases = new PendingReleases(this.#connection, server.wheel, (release) => {
      this.#send(OPERATION.pendingRelease, release, 0);
    });
    this.#subscription = new ReleaseSubscription(server, this.#connection);
  }

  get readyAtMs(): number {
    return this.#connection.readyAtMs;
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    const queues = request.ticket !== undefined && this.#subscription.listening;
    // mutation: set-sent-again
    // mutation: set-after-its-undo
    this.#ask(acquireOperation(request, queues), request, nodeIndex);
  }

  extend(request: LockRequest, nodeIndex: number): void {
    this.#ask(OPERATION.extend, request, nodeIndex);
  }

  raiseCounters(request: LockRequest, nodeIndex: number): void {
    this.#send(OPERATION.raise, request, nodeIndex);
  }

  release(request: LockRequest, nodeIndex: number): void {
    this.#send(OPERATION.release, request, nodeIndex);
  }

  inspect(key: string): Promise<KeyState | undefined> {
    return inspectKey(this.#connection, this.name, key);
  }

  subscribe(listener: ReleaseListener, nodeIndex: number): void {
    this.#subscription.open(listener, nodeIndex);
  }

  unsubscribe(): void {
    this.#subscription.close();
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    if (!this.#connection.open) return; // the next notification drops it
    this.#send(OPERATION.leave, { keys, ticketId }, 0);
  }

  async diagnose(timeoutMs: number): Promise<NodeDiagnosis> {
    const { RedisDiagnostics } = await import("./diagnostics.ts");
    this.#diagnostics ??= new RedisDiagnostics(this.#connection, this.#server);
    return await this.#diagnostics.diagnose(timeoutMs);
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
    const request = context as LockRequest;
    if (tag & WHOLE) this.#scripts.onAnswered(scriptOf(operation, request)!);
    if (reply instanceof ReplyError) return this.#onErrorReply(scriptError(reply), request, tag);
    if (operation >= OPERATION.pendingRelease) return; // nobody waits for the answer
    const nodeIndex = tag >> TAG_BITS;
    const atMs = this.#connection.receivedAtMs;
    switch (outcomeOf(operation, reply)) {
      case "contended":
        request.hasWaiters = true;
        return request.grant(nodeIndex, atMs);
      case "granted":
        return this.#grant(operation, request, nodeIndex);
      case "counted":
        return this.#grant(operation, request, nodeIndex, reply as number);
      case "denied":
        if (isAcquire(operation)) request.maybeSet &= ~(1 << nodeIndex); // it has set nothing
        return request.deny(nodeIndex, atMs);
      case "missing":
        return request.missing ? request.missing(nodeIndex, atMs) : request.deny(nodeIndex, atMs);
      case "queued":
        request.maybeSet &= ~(1 << nodeIndex);
        return request.enqueued!(nodeIndex, queuePosition(reply as number[]), atMs);
      default:
        request.fail(
          nodeIndex,
          new ProtocolError(`Cannot read vote as ${this.name} sent another reply`),
        );
    }
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: RedisError, context: unknown, tag: number): void {
    const operation = tag & OPERATION_MASK;
    if (operation === OPERATION.pendingRelease) {
      // mutation: pending-release-forgotten
      return this.#pendingReleases.addAgain(context as PendingRelease);
    }
    if (operation === OPERATION.leave) return; // the next notification drops it
    const request = context as LockRequest;
    const bit = 1 << (tag >> TAG_BITS);
    if (operation === OPERATION.release) {
      // mutation: release-forgotten
      if (request.maybeSet & bit) this.#pendingReleases.add(request);
    } else if (isAcquire(operation) && (error as ConnectionError).outcome === "not-sent") {
      request.maybeSet &= ~bit;
    }
    request.fail(tag >> TAG_BITS, error);
  }

  /** Sends what a node in quarantine must not grant. */
  #ask(operation: number, request: LockRequest, nodeIndex: number, flags = 0): void {
    const connection = this.#connection;
    // Only these are refused if there is no room: what undoes them always finds some.
    if (connection.crowded) return request.fail(nodeIndex, connection.crowdedError());
    if (isAcquire(operation)) request.maybeSet |= 1 << nodeIndex;
    if (isGuarded(request)) this.#guard.ahead();
    this.#send(operation, request, nodeIndex, flags);
    if (isGuarded(request)) this.#guard.behind(request, nodeIndex);
  }

  #send(
    operation: number,
    content: LockRequest | PendingRelease | QueueLeave,
    nodeIndex: number,
    flags = 0,
  ): void {
    const script = scriptOf(operation, content);
    const tag = nodeIndex << TAG_BITS | operation | flags;
    if (script && this.#scripts.nextCall(script) === "EVAL") {
      const whole = encodeOperation(operation, content, "EVAL");
      return this.#connection.submit(whole, this, content, tag | WHOLE);
    }
    const command = !(flags & REPEATED) && isShared(operation, content as LockRequest)
      ? (content as LockRequest).shared ??= encodeOperation(operation, content, "EVALSHA")
      : encodeOperation(operation, content, "EVALSHA");
    this.#connection.submit(command as Uint8Array, this, content, tag);
  }

  /** A grant counts only if the node cannot have lost locks of others. */
  #grant(operation: number, request: LockRequest, nodeIndex: number, count?: number): void {
    const atMs = this.#connection.receivedAtMs;
    const guarded = isAcquire(operation) || operation === OPERATION.extend;
    if (guarded && isGuarded(request)) this.#guard.hold(request, atMs, count);
    else request.grant(nodeIndex, atMs, count);
  }

  #onErrorReply(reply: ReplyError, request: LockRequest, tag: number): void {
    const operation = tag & OPERATION_MASK;
    const nodeIndex = tag >> TAG_BITS;
    // mutation: script-never-sent
    if (reply.prefix === UNKNOWN_SCRIPT && !(tag & WHOLE) && this.#repeat(request, tag)) return;
    const busy = BUSY_PREFIXES.includes(reply.prefix);
    if (operation === OPERATION.pendingRelease) {
      if (busy) this.#pendingReleases.addAgain(request as unknown as PendingRelease);
      return;
    }
    if (operation === OPERATION.leave) return;
    const queues = operation === OPERATION.queue || operation === OPERATION.queueCount;
    if (queues && request.wanted && (reply.message.includes(WRONG_TYPE) || isRefusal(reply))) {
      return this.#askWithoutQueue(request, nodeIndex, reply);
    }
    if (operation === OPERATION.release && busy) this.#pendingReleases.add(request);
    request.fail(nodeIndex, reply);
  }

  /** Sends a command again whose script the server does not know; not one that could outlive what undoes it. */
  #repeat(request: LockRequest, tag: number): boolean {
    const operation = tag & OPERATION_MASK;
    // mutation: script-sent-for-undone-attempt
    if (operation < OPERATION.release && !request.wanted) return false;
    const script = scriptOf(operation, request);
    if (!script) return false;
    this.#scripts.onUnknown(script, (tag & REPEATED) !== 0);
    const nodeIndex = tag >> TAG_BITS;
    if (operation < OPERATION.raise) this.#ask(operation, request, nodeIndex, REPEATED);
    else this.#send(operation, request, nodeIndex, REPEATED);
    return true;
  }

  /** The node cannot queue: asks it all the same. If the server does not allow it, callers poll from now on. */
  #askWithoutQueue(request: LockRequest, nodeIndex: number, reply: ReplyError): void {
    if (!reply.message.includes(WRONG_TYPE)) this.#subscription.refuse(reply);
    this.#ask(acquireOperation(request, false), request, nodeIndex, REPEATED);
  }
}
