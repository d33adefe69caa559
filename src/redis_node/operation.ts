/**
 * What a node asks of its server: of each operation the script, its command, and what its reply means. Here are the
 * two operations of a lock on one key.
 *
 * @module
 */
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { RawReply } from "../redis/reply.ts";
import { RELEASE } from "./scripts/release.ts";
import type { Script } from "./scripts/script.ts";

/** How a script is called: by its digest, or with its source if the server may not know it. */
export type Call = "EVALSHA" | "EVAL";

/**
 * What a node did: `counted` grants with the counter that it replied, `missing` found no other's key but not all of
 * ours, `contended` released while others wait.
 */
export type Outcome = "granted" | "counted" | "denied" | "missing" | "queued" | "contended";

/** One operation. A reply means something only together with its operation: most are answered by an integer. */
export interface Operation<Content = QuorumRequest> {
  /** What it does: sets the keys, extends them, raises their counters, or deletes them. */
  readonly kind: "acquire" | "extend" | "raise" | "release";
  /** The script; `undefined` for a plain command. */
  readonly script: Script | undefined;
  /** Whether it puts the request's ticket in the queue if it denies. */
  readonly queues?: boolean;
  /** The name of its command, and the arguments. */
  args(content: Content, call: Call): string[];
  /** What a reply that is no error means; `undefined` if the operation is never answered like this. */
  read(reply: RawReply): Outcome | undefined;
}

/** What a release needs of a request. */
export type Release = Pick<
  QuorumRequest,
  "keys" | "value" | "replaces" | "ticket" | "pool" | "keepsTicket" | "mode"
>;

/** Sets a single key if it is missing. */
export const SET_KEY: Operation = {
  kind: "acquire",
  script: undefined,
  args: ({ keys, value, ttlMs }) => ["SET", keys[0], value, "NX", "PX", String(ttlMs)],
  read: (reply) => reply === "OK" ? "granted" : reply === null ? "denied" : undefined,
};

/** What the replies 0, 1, 2 and 3 to a release mean. */
export const RELEASE_OUTCOMES = ["denied", "granted", undefined, "contended"] as const;

/** Deletes a single key, and notifies the next waiter. */
export const RELEASE_KEY: Operation<Release> = {
  kind: "release",
  script: RELEASE,
  // A literal, because every lock ends with this, and spread arguments take more memory.
  args: ({ keys, value }, call) => [call, scriptOf(call, RELEASE), "1", keys[0], value],
  read: (reply) => outcomeOf(reply, RELEASE_OUTCOMES),
};

/** A script's call. */
export function callArgs(
  call: Call,
  script: Script,
  keys: readonly string[],
  ...args: readonly string[]
): string[] {
  return [call, scriptOf(call, script), String(keys.length), ...keys, ...args];
}

function scriptOf(call: Call, { sha1, source }: Script): string {
  return call === "EVAL" ? source : sha1;
}

/** The outcome that an integer stands for. */
export function outcomeOf(
  reply: RawReply,
  outcomes: readonly (Outcome | undefined)[],
): Outcome | undefined {
  return typeof reply === "number" ? outcomes[reply] : undefined;
}
