/**
 * Which operation a request is to a node, its command, and what comes with its outcome.
 *
 * @module
 */
import { DENIED, GRANTED, type Outcome, QUEUED } from "../quorum/outcome.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { QueuePosition } from "../quorum/queue_ticket.ts";
import type { RawReply } from "../redis/reply.ts";
import type { LockCommand } from "./command_sender.ts";
import { ACQUIRE_OR_WAIT } from "./scripts/acquire.ts";
import { GIVE_BACK } from "./scripts/adopt.ts";
import { EXTEND } from "./scripts/extend.ts";
import { ACQUIRE_COUNTED } from "./scripts/fencing.ts";
import { queuePosition } from "./scripts/queue.ts";
import { isNumber, type Operation, type Release } from "./scripts/script.ts";
import { ACQUIRE_ANY } from "./scripts/pool.ts";
import { ACQUIRE_SHARED, EXTEND_SHARED, RELEASE_SHARED } from "./scripts/readers.ts";
import { RELEASE, RELEASE_QUEUED } from "./scripts/release.ts";

/** How a request for a lock is put to a node; `queues` if its ticket is to stand in the queues. */
export function acquireOperation(
  { keys, counterHint, pool, mode }: QuorumRequest,
  queues: boolean,
): Operation {
  if (mode) return queues ? ACQUIRE_SHARED : ACQUIRE_SHARED_NOW;
  if (pool) return queues ? ACQUIRE_ANY : ACQUIRE_ANY_NOW;
  if (queues) return ACQUIRE_OR_WAIT;
  if (keys.length > 1) return ACQUIRE_ALL_NOW;
  return counterHint === undefined ? ACQUIRE : ACQUIRE_COUNTED;
}

/** Sets a single key if it is missing: the one operation without a script. */
const ACQUIRE: Operation = {
  kind: "acquire",
  argv: ({ keys, value, ttlMs }) => ["SET", keys[0], value, "NX", "PX", String(ttlMs)],
  read: (reply) => reply === "OK" ? GRANTED : reply === null ? DENIED : undefined,
};

const ACQUIRE_ALL_NOW = /* @__PURE__ */ withoutQueue(ACQUIRE_OR_WAIT);
const ACQUIRE_ANY_NOW = /* @__PURE__ */ withoutQueue(ACQUIRE_ANY);
const ACQUIRE_SHARED_NOW = /* @__PURE__ */ withoutQueue(ACQUIRE_SHARED);

/** The same for a caller that does not stand in queues. */
function withoutQueue(operation: Operation): Operation {
  return { ...operation, queues: false };
}

/** How an extension is put to a node. */
export function extendOperation({ mode }: QuorumRequest): Operation {
  return mode ? EXTEND_SHARED : EXTEND;
}

/** How a release is put to a node now. */
export function releaseOperation(
  { keys, replaces, ticket, mode, keptMs }: Release,
): Operation<Release> {
  const keeps = keptMs !== undefined && keptMs() > 0;
  if (mode) return RELEASE_SHARED;
  if (replaces !== undefined && !keeps) return GIVE_BACK;
  return keeps || keys.length > 1 || ticket !== undefined ? RELEASE_QUEUED : RELEASE;
}

/** The keys that the command of a request names. */
export function keysOf({ keys, pool }: Pick<QuorumRequest, "keys" | "pool">): readonly string[] {
  return pool?.keys ?? keys;
}

/** The command of a request. */
export class RequestCommand implements LockCommand {
  readonly operation: Operation;
  readonly request: QuorumRequest;
  /** Whether its script goes out whole. */
  readonly whole: boolean;
  bytes: LockCommand["bytes"] = undefined;

  constructor(operation: Operation, request: QuorumRequest, whole: boolean) {
    this.operation = operation;
    this.request = request;
    this.whole = whole;
  }

  /** Made when it is sent: a release that has keys live on says how long that is from then on. */
  get args(): readonly string[] {
    return commandOf(this.operation, this.request, this.whole);
  }

  get keys(): readonly string[] {
    return keysOf(this.request);
  }

  get sets(): QuorumRequest | undefined {
    return this.operation.kind === "acquire" ? this.request : undefined;
  }

  get releases(): QuorumRequest | undefined {
    return this.operation.kind === "release" ? this.request : undefined;
  }
}

/** The command of a request for all nodes that are asked by this operation. */
export function sharedCommand(operation: Operation, request: QuorumRequest): RequestCommand {
  const { shared } = request;
  if (shared instanceof RequestCommand && shared.operation === operation) return shared;
  return request.shared = new RequestCommand(operation, request, false);
}

/**
 * The command of an operation: its name and its arguments.
 *
 * @param operation The operation.
 * @param content What it is about.
 * @param whole Whether its script goes out whole, and not by its digest.
 */
export function commandOf<Content extends Pick<QuorumRequest, "keys" | "pool">>(
  operation: Operation<Content>,
  content: Content,
  whole: boolean,
): string[] {
  const rest = operation.argv(content);
  const script = whole ? operation.source : operation.sha1;
  if (script === undefined) return rest;
  const call = whole ? "EVAL" : "EVALSHA";
  const keys = keysOf(content);
  // A literal, because every lock ends with this, and spread arguments take more memory.
  if (keys.length === 1 && rest.length === 1) return [call, script, "1", keys[0], rest[0]];
  return [call, script, String(keys.length), ...keys, ...rest];
}

/** What comes with an outcome that was read from a reply; see `outcome.ts`. */
export function detailOf(
  outcome: Outcome,
  reply: RawReply,
  { kind }: Operation,
  { counterHint }: QuorumRequest,
): number | QueuePosition | undefined {
  if (outcome === QUEUED) return queuePosition(reply);
  if (Array.isArray(reply)) return reply.find(isNumber); // a denial of a pool
  const counts = kind === "raise" || kind === "acquire" && counterHint !== undefined;
  return outcome === GRANTED && counts && isNumber(reply) ? reply : undefined;
}
