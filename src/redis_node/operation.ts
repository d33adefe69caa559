/**
 * What a node asks of its server: of each operation the script, the bytes of its command, and what its reply means.
 * Here are the two operations of a lock on one key.
 *
 * A single key, which is what most locks have, is written straight into the slab of the encoder.
 *
 * @module
 */
import type { LockRequest } from "../quorum/lock_node.ts";
import {
  bytesMax,
  CommandWriter,
  encodeCommand,
  encodeConstant,
  encodeHead,
} from "../redis/encoder.ts";
import type { ReplyError } from "../redis/errors.ts";
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
export interface Operation<Content = LockRequest> {
  /** Its place in a table, from 0 to 15. */
  readonly code: number;
  /** What it does: sets the keys, extends them, raises their counters, deletes them, or leaves their queues. */
  readonly kind: "acquire" | "extend" | "raise" | "release" | "leave";
  /** The script; `undefined` for a plain command. */
  readonly script: Script | undefined;
  /** Whether it puts the request's ticket in the queue if it denies. */
  readonly queues?: boolean;
  /** Its command. */
  encode(content: Content, call: Call): Uint8Array;
  /** What a reply that is no error means; `undefined` if the operation is never answered like this. */
  read(reply: RawReply): Outcome | undefined;
  /** The error to report for an error reply, if the reply's own text does not explain it. */
  explain?(reply: ReplyError): ReplyError;
}

/** What a release needs of a request. */
export type Release = Pick<LockRequest, "keys" | "value" | "ticket" | "keepsTicket">;

/** Room for the constant parts, the value and the TTL of any command about a single key. */
const SINGLE_KEY_BYTES = 256;
const SET_HEAD = /* @__PURE__ */ encodeHead(6, "SET");
const SET_TAIL = /* @__PURE__ */ encodeConstant("$2\r\nNX\r\n$2\r\nPX\r\n");
const RELEASE_HEAD = /* @__PURE__ */ encodeScriptHead(RELEASE, 2);

/** Sets a single key if it is missing. */
export const SET_KEY: Operation = {
  code: 0,
  kind: "acquire",
  script: undefined,
  encode: ({ keys, value, ttlMs }) =>
    singleKey(keys[0], SET_HEAD).text(value).constant(SET_TAIL).text(String(ttlMs)).end(),
  read: (reply) => reply === "OK" ? "granted" : reply === null ? "denied" : undefined,
};

/** What the replies 0, 1, 2 and 3 to a release mean. */
export const RELEASE_OUTCOMES = ["denied", "granted", undefined, "contended"] as const;

/** Deletes a single key, and notifies the next waiter. */
export const RELEASE_KEY: Operation<Release> = {
  code: 1,
  kind: "release",
  script: RELEASE,
  encode: ({ keys, value }, call) =>
    call === "EVAL"
      ? encodeCall(call, RELEASE, keys, [value])
      : singleKey(keys[0], RELEASE_HEAD).text(value).end(),
  read: (reply) => outcomeOf(reply, RELEASE_OUTCOMES),
};

/** The constant head of a script's call with one key, up to that key. */
export function encodeScriptHead({ sha1 }: Script, argumentCount: number): Uint8Array {
  return encodeHead(3 + argumentCount, "EVALSHA", sha1, "1");
}

/** Begins a command about a single key, up to that key. */
export function singleKey(key: string, head: Uint8Array): CommandWriter {
  return new CommandWriter(bytesMax(key) + SINGLE_KEY_BYTES).constant(head).text(key);
}

/** A script's call. */
export function encodeCall(
  call: Call,
  { sha1, source }: Script,
  keys: readonly string[],
  args: readonly string[],
): Uint8Array {
  const script = call === "EVAL" ? source : sha1;
  return encodeCommand([call, script, String(keys.length), ...keys, ...args]);
}

/** The outcome that an integer stands for. */
export function outcomeOf(
  reply: RawReply,
  outcomes: readonly (Outcome | undefined)[],
): Outcome | undefined {
  return typeof reply === "number" ? outcomes[reply] : undefined;
}
