/**
 * Which operation a request is, and what its answer says beside the outcome.
 *
 * @module
 */
import { DENIED, GRANTED, type Outcome, QUEUED } from "../quorum/outcome.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { QueuePosition } from "../quorum/queue_ticket.ts";
import type { RawReply } from "../redis/reply.ts";
import { ACQUIRE_OR_WAIT } from "./scripts/acquire.ts";
import { GIVE_BACK } from "./scripts/adopt.ts";
import { ACQUIRE_COUNTED } from "./scripts/fencing.ts";
import { ACQUIRE_ANY } from "./scripts/pool.ts";
import { queued, queuePosition } from "./scripts/queue.ts";
import { ACQUIRE_SHARED, KEEP } from "./scripts/readers.ts";
import { RELEASE, RELEASE_QUEUED } from "./scripts/release.ts";
import { isNumber, type Operation, type Release } from "./scripts/script.ts";

/** How a request for a lock is put to a node; `queues` if its ticket is to stand in the queues. */
export function acquireOperation(
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
