/**
 * A node on one Redis server: it puts requests as commands, and answers them by the replies. Read
 * these files in this order; the first three are all that a plain lock needs.
 *
 * | file                      | its part                                                       |
 * | ------------------------- | -------------------------------------------------------------- |
 * | `operations.ts`           | which operation a request is, and its command; each operation  |
 * |                           | is in `scripts/`, whose table is in `script.ts`                |
 * | `command_sender.ts`       | what a node needs of the client that reaches the server: that  |
 * |                           | of `redis_server.ts`, or any other one, in `../nodes/`         |
 * | `redis_node.ts`           | when a command goes out, and what its reply answers            |
 * | `refusals.ts`             | what the error replies mean                                    |
 * | `request_group.ts`        | releases and extensions of one tick go out as one command      |
 * | `pending_releases.ts`     | releases that did not arrive go out again                      |
 * | `release_subscription.ts` | notifications                                                  |
 * | `restart_guard.ts`        | grants are withheld until it is known that they count          |
 * | `operated_node.ts`        | what operators ask: `inspect_key.ts`, `diagnostics.ts`         |
 *
 * A script goes out whole (`EVAL`) the first time on a connection and by its digest (`EVALSHA`)
 * from then on. So a server that does not know it needs no second round trip, in which the client's
 * next command could overtake it.
 *
 * @module
 */
import { emit, type EventListener, type RedlockEvent } from "../events.ts";
import type { KeyState } from "../quorum/lock_node.ts";
import type { ReleaseListener } from "../quorum/queue_ticket.ts";
import { FAILED, GRANTED, UNSENT } from "../quorum/outcome.ts";
import type { QuorumNode, QuorumRequest } from "../quorum/quorum_node.ts";
import type { ReplyReceiver } from "../redis/wire.ts";
import { type ConnectionError, ProtocolError, ReplyError } from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import type { CommandSender, ServerAccess } from "./command_sender.ts";
import { inspectKey } from "./inspect_key.ts";
import { PendingReleases } from "./pending_releases.ts";
import {
  acquireOperation,
  detailOf,
  extendOperation,
  releaseOperation,
  RequestCommand,
  sharedCommand,
} from "./operations.ts";
import { explained, isDemoted, isTransient, isWrongType } from "./refusals.ts";
import { Grouping, RequestGroup } from "./request_group.ts";
import { ReleaseSubscription } from "./release_subscription.ts";
import { RestartGuard, type WithheldGrant } from "./restart_guard.ts";
import { ADOPT } from "./scripts/adopt.ts";
import { RAISE } from "./scripts/fencing.ts";
import type { Operation } from "./scripts/script.ts";

/** Error prefix of a script that the server does not know. */
const UNKNOWN_SCRIPT = "NOSCRIPT";

/** One Redis server as a node. */
export class RedisNode implements QuorumNode, ReplyReceiver<Asked> {
  readonly name: string;
  readonly subscribe: QuorumNode["subscribe"];
  readonly server: ServerAccess;
  readonly connection: CommandSender;
  /** Further connections of operators, closed with the node; `undefined` once that is closed. */
  others: Set<CommandSender> | undefined = new Set();
  readonly #onEvent: EventListener | undefined;
  readonly #pendingReleases: PendingReleases;
  /** The digests of the scripts that were sent whole on this connection. */
  readonly #sentScripts: Set<string> = new Set();
  readonly #grouping: Grouping;
  #guard: RestartGuard | undefined;
  #subscription: ReleaseSubscription | undefined;

  constructor(server: ServerAccess, onEvent?: EventListener) {
    this.name = server.name;
    this.server = server;
    this.#onEvent = onEvent;
    this.subscribe = server.subscribe && this.#subscribe.bind(this);
    this.#grouping = new Grouping((operation, request, nodeIndex) => {
      this.#send(operation, request, nodeIndex);
    });
    this.connection = server.newSender({
      onOpen: () => {
        this.#sentScripts.clear();
        this.#grouping.connection = this.connection;
        this.#guard?.onOpen();
        this.#pendingReleases.sendAll();
        this.#subscription?.onOpen();
      },
      onAccepted: () => this.#emit({ type: "node-connected", node: this.name }),
      onLost: (error) => {
        this.#grouping.flush(); // so that it fails
        this.#emit({ type: "node-disconnected", node: this.name, error });
      },
      onWriting: this.#grouping.flush,
    });
    this.#pendingReleases = new PendingReleases(this.connection, server.wheel, (pending) => {
      this.#grouping.ask(releaseOperation(pending), pending, 0); // its answer is for no index
    });
  }

  get readyAtMs(): number {
    return this.connection.readyAtMs;
  }

  get resends(): boolean {
    return this.server.resends === true;
  }

  acquire(request: QuorumRequest, nodeIndex: number): void {
    const queues = request.ticket !== undefined && this.#subscription?.listening === true;
    // mutation: set-sent-again
    // mutation: set-after-its-undo
    this.#send(acquireOperation(request, queues), request, nodeIndex);
  }

  adopt(request: QuorumRequest, nodeIndex: number): void {
    this.#send(ADOPT, request, nodeIndex);
  }

  extend(request: QuorumRequest, nodeIndex: number): void {
    this.#grouping.ask(extendOperation(request), request, nodeIndex);
  }

  raiseCounters(request: QuorumRequest, nodeIndex: number): void {
    this.#send(RAISE, request, nodeIndex);
  }

  release(request: QuorumRequest, nodeIndex: number): void {
    const { crowded } = this.connection;
    // No key of it is there, and a server that hangs should not get one more command for each lock.
    if (crowded && !request.mayHaveKeys!(nodeIndex)) {
      return request.answer(nodeIndex, UNSENT, crowded);
    }
    this.#grouping.ask(releaseOperation(request), request, nodeIndex);
  }

  inspect(key: string): Promise<KeyState | undefined> {
    this.#grouping.flushFor({ keys: [key] });
    return inspectKey(this.connection, this.name, key);
  }

  unsubscribe(): void {
    this.#subscription?.close();
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    this.#pendingReleases.leaveQueues(keys, ticketId);
  }

  async close(): Promise<void> {
    this.#pendingReleases.sendAll(); // for the last time
    this.#grouping.flush();
    const others = [...this.others ?? []];
    this.others = undefined;
    const closing = [this.connection, ...others].map((connection) => connection.close());
    await Promise.all([this.#subscription?.close(), ...closing]);
    this.server.close?.();
  }

  /** @param whole Whether the script goes out whole although the server should know it. */
  #send(
    operation: Operation,
    request: QuorumRequest,
    nodeIndex: number,
    whole = false,
  ): void {
    const { kind, sha1 } = operation;
    const { connection } = this;
    this.#grouping.flushFor(request);
    const command = whole || sha1 !== undefined && !this.#sentScripts.has(sha1)
      ? new RequestCommand(operation, request, true)
      : sharedCommand(operation, request);
    // Only what sets or extends keys is refused if there is no room, and withheld by the guard.
    const setsOrExtends = kind === "acquire" || kind === "extend";
    const { crowded } = connection;
    if (setsOrExtends && crowded) return request.answer(nodeIndex, UNSENT, crowded);
    const guard = setsOrExtends && request.guardMs ? this.#guard ??= this.#newGuard() : undefined;
    const withheld = guard && { request, nodeIndex, atMs: undefined, count: undefined };
    if (sha1 !== undefined) this.#sentScripts.add(sha1);
    // Several nodes may send the command, so what one of them withholds is kept beside it.
    const asked: Asked = withheld
      ? { operation, request, whole: command.whole, withheld }
      : command;
    connection.submit(command, this, asked, nodeIndex);
    guard?.askBehind(withheld);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, asked: Asked, nodeIndex: number): void {
    const { operation: { sha1 }, request, whole } = asked;
    // as `#send` did; but `onOpen`, which forgets scripts, comes after the first commands were sent
    if (sha1 !== undefined && whole) this.#sentScripts.add(sha1);
    if (reply instanceof ReplyError) this.#onErrorReply(explained(reply), asked, nodeIndex);
    else if (request instanceof RequestGroup) this.#onGroupAnswer(reply, request, nodeIndex);
    else this.#onAnswer(reply, asked, nodeIndex);
  }

  #onGroupAnswer(reply: RawReply, { single, requests }: RequestGroup, nodeIndex: number): void {
    const replies = Array.isArray(reply) ? reply : [];
    for (let index = 0; index < requests.length; index++) {
      // mutation: group-answers-the-neighbour
      const answer: RawReply = replies[index] ?? null;
      const request = requests[index];
      if (answer instanceof ReplyError) this.#onRequestRefused(answer, single, request, nodeIndex);
      else this.#onAnswer(answer, { operation: single, request }, nodeIndex);
    }
  }

  #onAnswer(
    reply: RawReply,
    { operation, request, withheld }: Omit<Asked, "whole">,
    nodeIndex: number,
  ): void {
    const atMs = this.connection.receivedAtMs;
    const outcome = operation.read(reply, request);
    if (outcome === undefined) {
      const text = `Cannot read vote as ${this.name} sent an unexpected reply`;
      return request.answer(nodeIndex, FAILED, new ProtocolError(text), atMs);
    }
    const detail = detailOf(outcome, reply, operation, request);
    if (withheld && outcome === GRANTED) {
      withheld.atMs = atMs;
      withheld.count = detail as number | undefined;
    } else {
      request.answer(nodeIndex, outcome, detail, atMs);
    }
  }

  #onErrorReply(reply: ReplyError, asked: Asked, nodeIndex: number): void {
    const { operation, request } = asked;
    // mutation: script-never-sent
    if (reply.prefix === UNKNOWN_SCRIPT && isRepeatable(asked)) {
      this.#send(operation, request, nodeIndex, true);
    } else if (request instanceof RequestGroup) {
      this.#onGroupRefused(reply, request, nodeIndex);
    } else {
      this.#onRequestRefused(reply, operation, request, nodeIndex);
    }
  }

  #onGroupRefused(
    reply: ReplyError,
    { single, requests }: RequestGroup,
    nodeIndex: number,
  ): void {
    // Each alone may be allowed: it needs no MGET, and in a cluster its key is in one slot.
    if (reply.permanent) this.#grouping.connection = undefined;
    for (const request of requests) {
      if (reply.permanent) this.#send(single, request, nodeIndex);
      else this.#onRequestRefused(reply, single, request, nodeIndex);
    }
  }

  #onRequestRefused(
    reply: ReplyError,
    { kind, queues }: Operation,
    request: QuorumRequest,
    nodeIndex: number,
  ): void {
    const wrongType = isWrongType(reply);
    if (queues && request.wanted && (wrongType || reply.commandRefused)) {
      // The node cannot queue, so it is asked without a queue. If that is because the server does
      // not allow it, callers poll from then on.
      if (!wrongType) this.#subscription?.onRefused(reply);
      return this.#send(acquireOperation(request, false), request, nodeIndex, true);
    }
    const demoted = isDemoted(reply);
    if (kind === "release" && isTransient(reply)) this.#pendingReleases.add(request);
    request.answer(nodeIndex, demoted ? UNSENT : FAILED, reply); // a replica sets nothing
    if (demoted) this.connection.leave?.(reply);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: ConnectionError, { operation, request }: Asked, nodeIndex: number): void {
    const outcome = error.outcome === "not-sent" ? UNSENT : FAILED;
    if (operation.kind !== "release") return request.answer(nodeIndex, outcome, error);
    for (const release of request instanceof RequestGroup ? request.requests : [request]) {
      // mutation: release-forgotten
      if (release.mayHaveKeys!(nodeIndex)) this.#pendingReleases.add(release);
      release.answer(nodeIndex, outcome, error);
    }
  }

  #newGuard(): RestartGuard {
    const { clock } = this.server.wheel;
    return new RestartGuard(this.name, this.connection, clock, ({ reason, remainingMs }) => {
      this.#emit({ type: "node-quarantined", node: this.name, reason, remainingMs });
    });
  }

  #subscribe(listener: ReleaseListener, nodeIndex: number): void {
    this.#subscription ??= new ReleaseSubscription(this.server, this.connection);
    this.#subscription.subscribe(listener, nodeIndex);
  }

  #emit(event: RedlockEvent): void {
    if (this.#onEvent) emit(this.#onEvent, event);
  }
}

/** What a reply answers. */
interface Asked extends Pick<RequestCommand, "operation" | "request" | "whole"> {
  /** Only under the restart guard. */
  readonly withheld?: WithheldGrant | undefined;
}

/**
 * Whether a command may go out again whose script the server does not know: not one that could
 * outlive what undoes it.
 */
function isRepeatable({ operation: { kind, sha1 }, request, whole }: Asked): boolean {
  if (sha1 === undefined || whole) return false;
  // mutation: script-sent-for-undone-attempt
  return kind === "release" || request.wanted && !request.undone;
}
