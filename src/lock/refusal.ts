/**
 * Why a call got no lock.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import type { LockHeldError, QuorumError } from "../errors.ts";
import { emit } from "../events.ts";
import { agreeOnToken } from "../fencing/token.ts";
import { type BlockingKey, lockHeldError, quorumError } from "../messages.ts";
import type { Settings } from "../options.ts";
import type { Round } from "../quorum/round.ts";
import { blockingKey } from "./inspection.ts";

/** A call that may end without a lock. */
export interface RefusedCall {
  readonly client: ClientState;
  readonly settings: Settings;
  readonly resources: readonly string[];
  readonly keys: readonly string[];
  /** The name of its keys in this client's queues. */
  readonly name: string;
  /** How many attempts were made. */
  readonly attempts: number;
  /** For how long the call has lasted, in milliseconds. */
  readonly elapsedMs: number;
  /** How long the resources stay in their cooldown, in milliseconds; 0 if they are in none. */
  readonly cooldownMs: number;
  /** Whether an attempt failed because nodes did not answer, or not in time, and not because others hold the lock. */
  isUnanswered(denied: Round | undefined): boolean;
  /** Throws if the call's signal was aborted or the client was closed. */
  throwIfEnded(denied?: Round): void;
}

/**
 * The error of a call that ends without a lock. A node that denied it is asked first what it has under the key, because
 * the message describes that.
 *
 * @param denied The last attempt; `undefined` if no node was asked.
 * @throws The reason of the call's signal, or a {@linkcode RedlockError} if the client is closed meanwhile.
 */
export async function refusal(
  call: RefusedCall,
  denied: Round | undefined,
): Promise<LockHeldError | QuorumError> {
  const { client, keys, resources, settings: { nodeTimeoutMs, signal } } = call;
  const waitedMs = call.elapsedMs;
  const ownHeldMs = ownHoldMs(call);
  let key: BlockingKey | undefined;
  if (denied && !call.isUnanswered(denied) && call.cooldownMs === 0 && ownHeldMs === undefined) {
    const found = await blockingKey(client, denied, keys, nodeTimeoutMs, signal);
    const resource = keys.length > 1 ? resources[found?.index ?? 0] : undefined;
    key = found && { ...found, resource };
    call.throwIfEnded(denied);
  }
  return refusalNow(call, denied, { waitedMs, ownHeldMs, key });
}

/** What only a call that waited needs to know about its refusal. */
interface Explanation {
  readonly waitedMs?: number;
  readonly ownHeldMs?: number | undefined;
  readonly key?: BlockingKey | undefined;
}

/** The same without asking a node. Emits the event of the refusal. */
export function refusalNow(
  call: RefusedCall,
  denied: Round | undefined,
  { waitedMs, ownHeldMs, key }: Explanation = {},
): LockHeldError | QuorumError {
  const { client, resources, attempts, settings: { onEvent, waitMs } } = call;
  const { nodes: { length: nodeCount }, quorum, localQueues } = client;
  const votes = denied?.votes ?? [];
  const unanswered = call.isUnanswered(denied);
  const reason = unanswered ? "no-quorum" : "held";
  const refused = { resources, votes, nodeCount, quorum };
  if (onEvent) {
    const { elapsedMs } = call;
    emit(onEvent, { type: "denied", resources, reason, votes, attempts, elapsedMs });
  }
  if (unanswered) return quorumError("acquire", { ...refused, note: note(denied!, quorum) });
  return lockHeldError({
    ...refused,
    waitedMs: waitMs === 0 ? undefined : waitedMs,
    key,
    ownHeldMs,
    cooldownLeftMs: call.cooldownMs,
    waiters: localQueues.get(call.name)?.waiter?.queueLength,
  });
}

/** For how long this client itself has held one of the resources, in milliseconds, if it does. */
function ownHoldMs({ client: { localQueues }, keys }: RefusedCall): number | undefined {
  const wanted = new Set(keys);
  for (const owner of localQueues.owners) {
    const { round } = owner as { readonly round?: Round }; // which a lock has, and a call has not
    if (round?.keys.some((key) => wanted.has(key))) return round.elapsedMs;
  }
  return undefined;
}

/** Why there is no lock although a quorum granted it, if so. */
function note({ decision, counts }: Round, quorum: number): string | undefined {
  if (decision !== "granted") return undefined;
  const unsettled = counts !== undefined && !agreeOnToken(counts, quorum).agreed;
  return unsettled ? "but they did not agree on a fencing token" : "but too late for its validity";
}
