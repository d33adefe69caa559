/**
 * A node on one Redis server: it puts requests as commands, and answers them by the replies. Read
 * these files in this order; the first three are all that a plain lock needs.
 *
 * | file                      | its part                                                       |
 * | ------------------------- | -------------------------------------------------------------- |
 * | `scripts/script.ts`       | what an operation is, and the table of all                     |
 * | `command_sender.ts`       | what a node needs of the client that reaches the server: that  |
 * |                           | of `redis_server.ts`, or any other one, in `../nodes/`         |
 * | `redis_node.ts`           | which operation a request is, when its command goes out, and   |
 * |                           | what the reply answers                                         |
 * | `refusals.ts`             | what the error replies mean                                    |
 * | `pending_releases.ts`     | releases that did not arrive go out again                      |
 * | `release_subscription.ts` | notifications                                                  |
 * | `restart_guard.ts`        | votes are withheld until it is known that they count           |
 * | `inspect_key.ts`          | what a key holds                                               |
 * | `operated_node.ts`        | what operators ask: the keys, and a diagnosis of the server    |
 *
 * A script goes out whole (`EVAL`) the first time on a connection and by its digest (`EVALSHA`)
 * from then on. So a server that does not know it needs no second round trip, in which the client's
 * next command could overtake it. A script with a ticket has up to ten kilobytes, and most servers
 * know it from those who waited before: so it goes out by its digest at once, and whole if the
 * server does not know it. But what undoes an attempt whose caller asks again goes out whole at
 * first: sent again, it could take effect behind the next attempt. What the server refuses for its
 * script, or for the group that it is in, is asked again, but not an acquisition whose release was
 * asked for meanwhile: it could take effect behind that (`isRepeatable`).
 *
 * Until a request is answered, it is in one place: in the group of this tick; then, with its
 * command, in the queue of the connection, which calls `onReply` or `onFailure` once for it; and if
 * its vote is withheld, with the guard. A release that failed is answered, and a copy of it, whose
 * answer nobody waits for, is in `pending_releases.ts`.
 *
 * Releases that follow each other in one tick are a *group*, and so are extensions: one command for
 * many keys costs a server far less than one each. Plain acquisitions are a group, too: each is a
 * command, but the queue of the connection has one entry for all, which saves a client up to a
 * tenth of its CPU. A group goes out at the end of its tick, or before any other request to the
 * node. So what undoes a command stays behind it on the connection.
 *
 * @module
 */
import { emit, type EventListener } from "../events.ts";
import type { KeyState } from "../quorum/lock_node.ts";
import type { QueuePosition, QueueTicket } from "../quorum/queue_ticket.ts";
import { DENIED, FAILED, GRANTED, type Outcome, QUEUED, UNSENT } from "../quorum/outcome.ts";
import {
  type Question,
  type QuorumNode,
  type QuorumRequest,
  UNREAD,
} from "../quorum/quorum_node.ts";
import { beforeWrites, type ReplyReceiver } from "../redis/wire.ts";
import { type ConnectionError, ProtocolError, ReplyError } from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import type { CommandSender, LockCommand, ServerAccess } from "./command_sender.ts";
import { inspectKey } from "./inspect_key.ts";
import { PendingReleases } from "./pending_releases.ts";
import { explained, isDemoted, isWrongType, UNKNOWN_SCRIPT } from "./refusals.ts";
import { ReleaseSubscription } from "./release_subscription.ts";
import { RestartGuard } from "./restart_guard.ts";
import { ACQUIRE_OR_WAIT } from "./scripts/acquire.ts";
import { ADOPT, GIVE_BACK } from "./scripts/adopt.ts";
import { EXTEND } from "./scripts/extend.ts";
import { ACQUIRE_COUNTED, RAISE } from "./scripts/fencing.ts";
import { ACQUIRE_ANY } from "./scripts/pool.ts";
import { QUEUE_TTL_MS, queued, queuePosition } from "./scripts/queue.ts";
import { ACQUIRE_SHARED, EXTEND_SHARED, KEEP } from "./scripts/readers.ts";
import { RELEASE, RELEASE_QUEUED } from "./scripts/release.ts";
import { isNumber, type Operation, type Release } from "./scripts/script.ts";

/**
 * Most requests of a group: it holds a server for a third of a millisecond at most, and its keys
 * fit the stack of Lua.
 */
const GROUP_LENGTH_MAX = 256;

/** One Redis server as a node. */
export class RedisNode implements QuorumNode, ReplyReceiver<RequestCommand> {
  readonly name: string;
  readonly subscribe: QuorumNode["subscribe"];
  /** What operators ask, once they do: see `operated_node.ts`. */
  declare keys?: QuorumNode["keys"];
  declare diagnose?: QuorumNode["diagnose"];
  readonly server: ServerAccess;
  readonly connection: CommandSender;
  /** Further connections of operators, closed with the node; `undefined` once that is closed. */
  further: Set<CommandSender> | undefined = new Set();
  readonly #onEvent: EventListener | undefined;
  readonly #pendingReleases: PendingReleases;
  /**
   * Of scripts, by their digests: `true` for one that was sent whole on this connection, `false`
   * for one that the server has said it does not know.
   */
  readonly #known: Map<string, boolean> = new Map();
  /**
   * Whether requests are grouped: not before there is a connection, nor if its server refuses, nor
   * with another client.
   */
  #groups = false;
  /** The requests of this tick's group: most have one. */
  readonly #group: QuorumRequest[] = [];
  /** Their operation, and the index that answers name: it is 0 for the node's own releases. */
  #groupOperation: Operation | undefined;
  #groupIndex = 0;
  #guard: RestartGuard | undefined;
  readonly #subscription: ReleaseSubscription | undefined;

  constructor(server: ServerAccess, onEvent?: EventListener) {
    this.name = server.name;
    this.server = server;
    this.#onEvent = onEvent;
    this.connection = server.newSender({
      onOpen: () => {
        this.#known.clear();
        // the sender of another client would hold a group back until each of its keys is idle
        this.#groups = !server.thirdParty;
        this.#guard?.onOpen();
        this.#pendingReleases.sendAll();
        this.#subscription?.onOpen();
      },
      onAccepted: () => emit(onEvent, { type: "node-connected", node: this.name }),
      onLost: (error) => emit(onEvent, { type: "node-disconnected", node: this.name, error }),
    });
    this.#pendingReleases = new PendingReleases(this);
    this.#subscription = server.subscribe && new ReleaseSubscription(server, this.connection);
    this.subscribe = this.#subscription?.subscribe.bind(this.#subscription);
  }

  get readyAtMs(): number {
    return this.connection.readyAtMs;
  }

  get resends(): boolean {
    return this.server.resends === true;
  }

  ask(question: Question, request: QuorumRequest, nodeIndex: number): void {
    const queues = request.ticket !== undefined && this.#subscription?.listening === true;
    // mutation: set-sent-again
    // mutation: set-after-its-undo
    this.#put(operationOf(question, request, queues), request, nodeIndex);
  }

  inspect(key: string): Promise<KeyState | undefined> {
    return inspectKey(this.connection, this.name, key);
  }

  unsubscribe(): void {
    this.#subscription?.close();
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    const ticket = { ticketId } as QueueTicket; // nothing else of it is read
    // no key has that value
    this.ask("release", { ...UNREAD, keys, value: ticketId, ttlMs: QUEUE_TTL_MS, ticket }, 0);
  }

  async close(): Promise<void> {
    this.#pendingReleases.sendAll(); // for the last time
    this.#sendGroup();
    const connections = [this.connection, ...this.further ?? []];
    this.further = undefined;
    const closing = connections.map((connection) => connection.close());
    await Promise.all([this.#subscription?.close(), ...closing]);
    this.server.close?.();
  }

  /**
   * Puts a request for one key into the group of this tick, if its operation is one for groups, and
   * unless the restart guard withholds its vote; else sends it. While too many commands wait for
   * replies, each is alone, because it may be refused.
   */
  #put(operation: Operation, request: QuorumRequest, nodeIndex: number): void {
    const { eachKey, kind, sha1 } = operation;
    const { open, crowded } = this.connection;
    const fits = (!sha1 || eachKey) && request.keys.length === 1 && !isGuarded(operation, request);
    const joins = fits && this.#groups && open && !crowded;
    const isOther = operation !== this.#groupOperation || nodeIndex !== this.#groupIndex;
    if (!joins || isOther) this.#sendGroup(); // first, in the order of the calls
    if (!joins) return this.#submit(this.#commandOf(operation, [request]), nodeIndex);
    this.#groupOperation = operation;
    this.#groupIndex = nodeIndex;
    const length = this.#group.push(request);
    if (length === 1) beforeWrites(this.#sendGroup, kind === "acquire");
    else if (length === GROUP_LENGTH_MAX) this.#sendGroup();
  }

  /** Sends the group, if there is one. */
  readonly #sendGroup = (): void => {
    const group = this.#group;
    if (group.length === 0) return;
    const command = this.#commandOf(this.#groupOperation!, group);
    if (group.length === 1) group.pop(); // as most have, which keeps the memory of the list
    else group.length = 0;
    this.#submit(command, this.#groupIndex);
  };

  /** Its script goes out by its digest if the server knows it, or is likely to. */
  #commandOf(operation: Operation, requests: readonly QuorumRequest[]): RequestCommand {
    const { sha1 } = operation;
    const { ticket, keepsTicket } = requests[0];
    // with a ticket, others have most likely sent it
    const known = this.#known.get(sha1!) ?? (ticket !== undefined && !keepsTicket);
    return RequestCommand.shared(operation, requests, sha1 !== undefined && known);
  }

  /**
   * While too many commands wait for replies, it refuses all but releases of keys that may be
   * there: a server that hangs should not get one more command for each lock.
   */
  #submit(command: RequestCommand, nodeIndex: number): void {
    const { operation: { sha1 }, request, byDigest } = command;
    const { crowded } = this.connection;
    if (crowded && !undoes(command, nodeIndex)) {
      return this.onFailure(crowded, command, nodeIndex);
    }
    if (sha1 && !byDigest) this.#known.set(sha1, true);
    this.connection.submit(command, this, nodeIndex);
    if (!isGuarded(command.operation, request)) return;
    this.#guard ??= new RestartGuard(this.server, this.connection, this.#onEvent);
    this.#guard.askBehind(command.keys, request);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, command: RequestCommand, nodeIndex: number, index = 0): void {
    const { operation, requests, byDigest } = command;
    const { sha1 } = operation;
    if (index === 0) command.request.encoded = undefined; // all nodes have got it by now
    if (!sha1) return this.#onAnswer(reply, operation, requests[index], nodeIndex);
    // as `#submit` did; but `onOpen`, which forgets scripts, comes after the first commands
    if (!byDigest) this.#known.set(sha1, true);
    if (reply instanceof ReplyError) return this.#onError(explained(reply), command, nodeIndex);
    if (requests.length === 1) return this.#onAnswer(reply, operation, command.request, nodeIndex);
    const replies = Array.isArray(reply) ? reply : [];
    for (let at = 0; at < requests.length; at++) {
      // mutation: group-answers-the-neighbour
      const answer = replies[at] ?? null;
      this.#onAnswer(answer, operation, requests[at], nodeIndex);
    }
  }

  /** An error for all that a command is for: asks again what the server may take otherwise. */
  #onError(error: ReplyError, command: RequestCommand, nodeIndex: number): void {
    const { operation, requests, byDigest } = command;
    // mutation: script-never-sent
    const unknown = byDigest && error.prefix === UNKNOWN_SCRIPT;
    // Each alone may be allowed: in a cluster its key is in one slot.
    const refused = requests.length > 1 && error.permanent;
    if (unknown) this.#known.set(operation.sha1!, false);
    if (refused) this.#groups = false;
    for (const each of requests) {
      const again = (unknown || refused) && isRepeatable(operation, each);
      if (again) this.#put(operation, each, nodeIndex);
      else this.#onRefused(error, operation, each, nodeIndex);
    }
  }

  #onAnswer(
    reply: RawReply,
    operation: Operation,
    request: QuorumRequest,
    nodeIndex: number,
  ): void {
    if (reply instanceof ReplyError) {
      return this.#onRefused(explained(reply), operation, request, nodeIndex);
    }
    const atMs = this.connection.receivedAtMs;
    const outcome = operation.read(reply, request);
    if (outcome === undefined) {
      const text = `Cannot read vote as ${this.name} sent an unexpected reply`;
      return request.answer(nodeIndex, FAILED, new ProtocolError(text), atMs);
    }
    const detail = detailOf(outcome, reply, operation, request);
    // the guard concerns no other answer
    const concernsGuard = outcome === GRANTED ||
      outcome === DENIED && operation.kind === "acquire";
    const withholds = concernsGuard && isGuarded(operation, request);
    if (withholds) this.#guard!.withhold(request, { nodeIndex, outcome, detail, atMs });
    else request.answer(nodeIndex, outcome, detail, atMs);
  }

  #onRefused(
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
      return this.#put(operationOf("acquire", request), request, nodeIndex);
    }
    const isTransient = !wrongType && !reply.permanent; // the server may take it later
    if (kind === "release" && isTransient) this.#pendingReleases.add(request);
    request.answer(nodeIndex, FAILED, reply);
    if (isDemoted(reply)) this.connection.leave(reply);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(
    error: ConnectionError,
    { operation, requests }: RequestCommand,
    nodeIndex: number,
    index = 0,
  ): void {
    const outcome = error.outcome === "not-sent" ? UNSENT : FAILED;
    for (const each of requests.slice(index)) {
      const isRelease = operation.kind === "release";
      // mutation: release-forgotten
      if (isRelease && each.mayHaveKeys(nodeIndex)) this.#pendingReleases.add(each);
      each.answer(nodeIndex, outcome, error);
    }
  }
}

/** Whether the guard withholds the vote of a request. */
function isGuarded({ kind }: Operation, { guardMs = 0 }: QuorumRequest): boolean {
  return guardMs > 0 && (kind === "acquire" || kind === "extend");
}

/**
 * Whether a request may go out again if the server did not know its script, or refused its group:
 * not if it could take effect behind what undoes it, or behind what keeps its keys for a while.
 */
function isRepeatable({ kind }: Operation, { wanted, undone }: QuorumRequest): boolean {
  // mutation: script-sent-for-undone-attempt
  return kind === "release" || wanted && !undone;
}

/** Whether a command takes back what may be there. */
function undoes({ operation: { kind }, requests }: RequestCommand, nodeIndex: number): boolean {
  return kind === "release" && requests.some((request) => request.mayHaveKeys(nodeIndex));
}

/** How a question is put to a node; `queues` if the ticket of an acquisition is to queue up. */
export function operationOf(
  question: Question,
  request: QuorumRequest,
  queues = false,
): Operation {
  if (question === "acquire") return acquireOperation(request, queues);
  if (question === "release") return releaseOperation(request);
  if (question === "extend") return request.mode ? EXTEND_SHARED : EXTEND;
  return question === "adopt" ? ADOPT : RAISE;
}

/** How a request for a lock is put to a node; `queues` if its ticket is to stand in the queues. */
function acquireOperation(
  { keys, counterHint, pool, mode }: QuorumRequest,
  queues: boolean,
): Operation {
  if (mode) return queues ? QUEUED_SHARED : ACQUIRE_SHARED;
  if (pool) return queues ? QUEUED_ANY : ACQUIRE_ANY;
  if (queues) return QUEUED_PLAIN;
  if (keys.length > 1) return ACQUIRE_OR_WAIT;
  return counterHint === undefined ? ACQUIRE : ACQUIRE_COUNTED;
}

/** Sets a single key if it is missing: the one operation without a script. */
const ACQUIRE: Operation = {
  kind: "acquire",
  argv: ({ keys, value, ttlMs }) => ["SET", keys[0], value, "NX", "PX", String(ttlMs)],
  read: (reply) => reply === "OK" ? GRANTED : reply === null ? DENIED : undefined,
};

const QUEUED_PLAIN = /* @__PURE__ */ queued(ACQUIRE_OR_WAIT);
const QUEUED_ANY = /* @__PURE__ */ queued(ACQUIRE_ANY);
const QUEUED_SHARED = /* @__PURE__ */ queued(ACQUIRE_SHARED);

/** How a release is put to a node now. */
export function releaseOperation(
  { replaces, ticket, mode, keptMs }: Release,
): Operation<Release> {
  if (replaces !== undefined) return GIVE_BACK;
  if (keptMs !== undefined && keptMs() > 0) return KEEP;
  return mode || ticket ? RELEASE_QUEUED : RELEASE;
}

/** What comes with an outcome that was read from a reply; see `outcome.ts`. */
export function detailOf(
  outcome: Outcome,
  reply: RawReply,
  { kind }: Operation,
  { counterHint, pool }: QuorumRequest,
): number | QueuePosition | undefined {
  if (outcome === QUEUED) return queuePosition(reply);
  if (outcome === DENIED && pool && Array.isArray(reply)) return reply.find(isNumber);
  const counts = kind === "raise" || kind === "acquire" && counterHint !== undefined;
  return outcome === GRANTED && counts && isNumber(reply) ? reply : undefined;
}

/** The command of one request, or of several with one key each. */
export class RequestCommand implements LockCommand {
  readonly operation: Operation;
  readonly requests: readonly QuorumRequest[];
  /** Whether its script goes out by its digest; else whole. */
  readonly byDigest: boolean;
  /** Without a script, each request is a command. */
  readonly count: number;
  bytes: LockCommand["bytes"] = undefined;

  /** @param requests At least one. */
  constructor(operation: Operation, requests: readonly QuorumRequest[], byDigest = false) {
    this.operation = operation;
    this.requests = requests;
    this.byDigest = byDigest;
    this.count = operation.sha1 ? 1 : requests.length;
  }

  /**
   * The command for all nodes that are asked the same: the first leaves it at its first request,
   * where the others find it, so it is encoded only once. But each has its own `KEEP`, which has
   * the time that is left: a node may be asked again, and later.
   *
   * @param requests At least one. They are copied.
   */
  static shared(
    operation: Operation,
    requests: readonly QuorumRequest[],
    byDigest: boolean,
  ): RequestCommand {
    const { encoded } = requests[0];
    const isSame = encoded instanceof RequestCommand && encoded.operation === operation &&
      operation !== KEEP && encoded.byDigest === byDigest && isEqual(encoded.requests, requests);
    if (isSame) return encoded;
    return requests[0].encoded = new RequestCommand(operation, requests.slice(), byDigest);
  }

  get request(): QuorumRequest {
    return this.requests[0];
  }

  /** Made when it is sent: a release that has keys live on says how long that is from then on. */
  get args(): readonly string[] {
    const { operation: { source, sha1, argv }, requests, byDigest } = this;
    // not by `flatMap`: with that, a client in Node 20 takes a tenth more CPU
    const rest = requests.length === 1
      ? argv(requests[0])
      : ([] as string[]).concat(...requests.map(argv));
    if (sha1 === undefined) return rest;
    const call = byDigest ? "EVALSHA" : "EVAL";
    const script = byDigest ? sha1 : source!;
    const { keys } = this;
    // A literal, because every lock ends with this, and spread arguments take more memory.
    if (keys.length === 1 && rest.length === 1) return [call, script, "1", keys[0], rest[0]];
    return [call, script, String(keys.length), ...keys, ...rest];
  }

  get keys(): readonly string[] {
    const { requests } = this;
    if (requests.length > 1) return requests.map(({ keys }) => keys[0]);
    const { keys, pool } = requests[0];
    return pool?.keys ?? keys;
  }
}

function isEqual(one: readonly QuorumRequest[], other: readonly QuorumRequest[]): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false;
  return true;
}
