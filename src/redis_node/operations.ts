/**
 * What a node asks of its server: which operation a request is, its script, its command, and what
 * its reply means.
 *
 * @module
 */
import { CONTENDED, DENIED, GRANTED, MISSING, type Outcome, QUEUED } from "../quorum/outcome.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { QueuePosition, QueueTicket } from "../quorum/queue_ticket.ts";
import { type RawReply, textReply } from "../redis/reply.ts";
import type { Release } from "./command_sender.ts";
import { ACQUIRE_OR_WAIT } from "./scripts/acquire.ts";
import { ADOPT, GIVE_BACK } from "./scripts/adopt.ts";
import { EXTEND } from "./scripts/extend.ts";
import { ACQUIRE_COUNTED, RAISE } from "./scripts/fencing.ts";
import { EXTEND_MANY, RELEASE_MANY } from "./scripts/group.ts";
import { ACQUIRE_ANY } from "./scripts/pool.ts";
import { ACQUIRE_SHARED, EXTEND_SHARED, RELEASE_SHARED } from "./scripts/readers.ts";
import { LEAVE, RELEASE, RELEASE_QUEUED } from "./scripts/release.ts";
import type { Script } from "./scripts/script.ts";

/** How a script is called: by its digest, or with its source if the server may not know it. */
export type Call = "EVALSHA" | "EVAL";

/**
 * One operation. A reply means something only together with its operation: most are answered by an
 * integer.
 */
export interface Operation<Content = QuorumRequest> {
  /** What it does: sets the keys, extends them, raises their counters, or deletes them. */
  readonly kind: "acquire" | "extend" | "raise" | "release";
  /** The script; `undefined` for a plain command. */
  readonly script: Script | undefined;
  /** Whether it puts the request's ticket in the queues if it denies. */
  readonly queues?: boolean;
  /** What its script gets behind the keys; without a script, the whole command. */
  argv(content: Content): string[];
  /**
   * What a reply that is no error means; `undefined` if the operation is never answered like this.
   */
  read(reply: RawReply, content: Content): Outcome | undefined;
}

/** The command of an operation: its name and its arguments. */
export function commandOf<Content extends Pick<QuorumRequest, "keys" | "pool">>(
  { script, argv }: Pick<Operation<Content>, "script" | "argv">,
  content: Content,
  call: Call,
): string[] {
  if (!script) return argv(content);
  const keys = content.pool?.keys ?? content.keys;
  const name = call === "EVAL" ? script.source : script.sha1;
  const rest = argv(content);
  // A literal, because every lock ends with this, and spread arguments take more memory.
  if (keys.length === 1 && rest.length === 1) return [call, name, "1", keys[0], rest[0]];
  return [call, name, String(keys.length), ...keys, ...rest];
}

/** An operation whose script replies an integer: the index of an outcome. */
function scripted<Content>(
  kind: Operation["kind"],
  script: Script,
  argv: (content: Content) => string[],
  outcomes: readonly Outcome[],
): Operation<Content> {
  const read = (reply: RawReply) => typeof reply === "number" ? outcomes[reply] : undefined;
  return { kind, script, argv, read };
}

/** In place of an argument that a script does without. */
const NONE = "";

/** The reply to an acquisition that stands in queues; the last two are of a pool. */
type PositionReply = [
  pttl: number,
  ahead: number,
  length: number,
  score: number,
  timeUs: number,
  foreign: number,
  value: RawReply,
  turnMs: number,
  free?: number,
  reserved?: number,
];
/** How many parts it has: without those two, and with them. */
export const POSITION_LENGTHS: readonly number[] = [8, 10];
/** Which of them is a text. */
export const TEXT_AT = 6;

// Acquisitions

/** Sets a single key if it is missing. */
const SET_KEY: Operation = {
  kind: "acquire",
  script: undefined,
  argv: ({ keys, value, ttlMs }) => ["SET", keys[0], value, "NX", "PX", String(ttlMs)],
  read: (reply) => reply === "OK" ? GRANTED : reply === null ? DENIED : undefined,
};

const COUNT_KEY = /* @__PURE__ */ acquisition(ACQUIRE_COUNTED);
const SET_KEYS = /* @__PURE__ */ acquisition(ACQUIRE_OR_WAIT);
const SET_OR_QUEUE = /* @__PURE__ */ acquisition(ACQUIRE_OR_WAIT, true);
const SET_ANY = /* @__PURE__ */ acquisition(ACQUIRE_ANY);
const SET_ANY_OR_QUEUE = /* @__PURE__ */ acquisition(ACQUIRE_ANY, true);
const SHARE_KEYS = /* @__PURE__ */ acquisition(ACQUIRE_SHARED);
const SHARE_OR_QUEUE = /* @__PURE__ */ acquisition(ACQUIRE_SHARED, true);

/** An acquisition by a script, which gets the request's ticket if it `queues`. */
function acquisition(script: Script, queues = false): Operation {
  return {
    kind: "acquire",
    script,
    queues,
    argv({ value, ttlMs, counterHint, ticket, pool, mode, entersAtOnce }) {
      const args = pool ? [String(pool.place + 1), value] : [value];
      args.push(String(ttlMs));
      if (!mode) args.push(counterHint === undefined ? NONE : String(counterHint));
      if (queues) args.push(...ticketArgs(ticket!));
      else if (mode && !entersAtOnce) args.push(NONE);
      return args;
    },
    read(reply, request) {
      if (queues && isPosition(reply, request)) return QUEUED;
      if (!queues && isDenial(reply, request)) return DENIED;
      return grantOf(reply, request);
    },
  };
}

/** What the scripts get of a ticket. */
function ticketArgs({ ticketId, score, agreed }: QueueTicket): string[] {
  return [ticketId, String(score), agreed ? "1" : ""];
}

/**
 * How a request for a lock is put to a node; `queues` if that is to put the request's ticket in the
 * queues.
 */
export function acquireOperation(
  { keys, counterHint, pool, mode }: QuorumRequest,
  queues: boolean,
): Operation {
  if (mode) return queues ? SHARE_OR_QUEUE : SHARE_KEYS;
  if (pool) return queues ? SET_ANY_OR_QUEUE : SET_ANY;
  if (queues) return SET_OR_QUEUE;
  if (keys.length > 1) return SET_KEYS;
  return counterHint === undefined ? SET_KEY : COUNT_KEY;
}

/**
 * Gives the keys the value if they hold the one that it replaces; counts if the request asks for
 * it.
 */
export const ADOPT_KEYS: Operation = {
  kind: "acquire",
  script: ADOPT,
  argv: ({ value, ttlMs, replaces, counterHint }) => [
    value,
    String(ttlMs),
    replaces!,
    ...counterHint === undefined ? [] : [String(counterHint)],
  ],
  read: (reply, request) => reply === -1 ? MISSING : reply === 0 ? DENIED : grantOf(reply, request),
};

// Counters, extensions and releases

/** Raises the counters of the keys to the request's token. */
export const RAISE_COUNTERS: Operation = {
  kind: "raise",
  script: RAISE,
  argv: ({ value, counterFloor }) => [value, String(counterFloor)],
  read: (reply) => reply === 0 ? DENIED : isCount(reply) ? GRANTED : undefined,
};

/** Extends all keys. */
export const EXTEND_KEYS: Operation = /* @__PURE__ */ extension(EXTEND);
const EXTEND_READER = /* @__PURE__ */ extension(EXTEND_SHARED);

function extension(script: Script): Operation {
  const argv = ({ value, ttlMs, shortens }: QuorumRequest) => {
    return shortens ? [value, String(ttlMs), "1"] : [value, String(ttlMs)];
  };
  // mutation: missing-key-counts-as-extended
  return scripted("extend", script, argv, [DENIED, GRANTED, MISSING]);
}

/** How an extension is put to a node. */
export function extendOperation({ mode }: QuorumRequest): Operation {
  return mode ? EXTEND_READER : EXTEND_KEYS;
}

/** What the replies 0, 1 and 2 to a release mean. */
const RELEASE_OUTCOMES: readonly Outcome[] = [DENIED, GRANTED, CONTENDED];

/** Deletes a single key, and notifies the next waiter. */
export const RELEASE_KEY: Operation<Release> = /* @__PURE__ */ scripted(
  "release",
  RELEASE,
  ({ value }) => [value],
  RELEASE_OUTCOMES,
);

const RELEASE_KEYS = /* @__PURE__ */ releasing(RELEASE_QUEUED);
const RELEASE_READER = /* @__PURE__ */ releasing(RELEASE_SHARED);

/** A release that takes the request's ticket out of the queues, or puts it back. */
function releasing(script: Script): Operation<Release> {
  const argv = ({ value, ticket, keepsTicket }: Release) => {
    if (!ticket) return [value];
    return [value, ticket.ticketId, ...keepsTicket ? [String(ticket.score)] : []];
  };
  return scripted("release", script, argv, RELEASE_OUTCOMES);
}

/**
 * Gives the keys that hold the value back the one that it replaced, with the TTL that they have.
 */
const GIVE_BACK_KEYS: Operation<Release> = /* @__PURE__ */ scripted(
  "release",
  GIVE_BACK,
  ({ value, replaces }) => [value, replaces!],
  [DENIED, GRANTED],
);

const KEEP_KEYS = /* @__PURE__ */ keeping(EXTEND);
const KEEP_READER = /* @__PURE__ */ keeping(EXTEND_SHARED);

/**
 * A release that has the keys live on for a while: for a millisecond at least, although it may be
 * over when the script is sent a second time. A `PEXPIRE` of 0 would delete a key of other readers.
 */
function keeping(script: Script): Operation<Release> {
  const argv = ({ value, keptMs }: Release) => {
    return [value, String(Math.max(Math.ceil(keptMs!()), 1)), "1"];
  };
  return scripted("release", script, argv, [DENIED, GRANTED, DENIED]);
}

/** Takes a ticket whose client waits no longer out of the queues for the keys. */
const LEAVE_QUEUES: Operation<Release> = /* @__PURE__ */ scripted(
  "release",
  LEAVE,
  ({ leaves }) => [leaves!],
  [DENIED, GRANTED],
);

/** How a release is put to a node. */
export function releaseOperation(
  { keys, replaces, ticket, mode, keptMs, leaves }: Release,
): Operation<Release> {
  if (leaves !== undefined) return LEAVE_QUEUES;
  if (keptMs && keptMs() > 0) return mode ? KEEP_READER : KEEP_KEYS;
  if (mode) return RELEASE_READER;
  if (replaces !== undefined) return GIVE_BACK_KEYS;
  return keys.length > 1 || ticket !== undefined ? RELEASE_KEYS : RELEASE_KEY;
}

// Groups

/** Requests whose keys one script gets; it replies to each as to the operation of one alone. */
export interface GroupRequest extends QuorumRequest {
  readonly requests: readonly QuorumRequest[];
}

/** The operation for many requests, each for one key, by the operation for one of them. */
export const GROUP_OPERATIONS: ReadonlyMap<Operation, Operation<GroupRequest>> = /* @__PURE__ */
  new Map([
    [RELEASE_KEY, /* @__PURE__ */ grouping("release", RELEASE_MANY, ({ value }) => [value])],
    [
      EXTEND_KEYS,
      /* @__PURE__ */ grouping("extend", EXTEND_MANY, ({ value, ttlMs }) => [value, String(ttlMs)]),
    ],
  ]);

function grouping(
  kind: Operation["kind"],
  script: Script,
  argvOf: (request: QuorumRequest) => string[],
): Operation<GroupRequest> {
  return scripted(kind, script, ({ requests }) => requests.flatMap(argvOf), []);
}

// Replies

/** A grant replies 1, and with fencing tokens the counter. */
function grantOf(reply: RawReply, { counterHint }: QuorumRequest): Outcome | undefined {
  return (counterHint === undefined ? reply === 1 : isCount(reply)) ? GRANTED : undefined;
}

function isCount(reply: RawReply): boolean {
  return Number.isSafeInteger(reply) && Number(reply) > 0;
}

/** A denial without a ticket replies 0, and of a pool which of its keys are free. */
function isDenial(reply: RawReply, { pool }: QuorumRequest): boolean {
  return pool ? Array.isArray(reply) && reply.length === 1 && isNumber(reply[0]) : reply === 0;
}

/**
 * Whether a reply is a place in queues: integers, and a value, which a client that turns texts into
 * numbers may have turned into one.
 */
function isPosition(reply: RawReply, { pool }: QuorumRequest): boolean {
  return Array.isArray(reply) &&
    reply.length === POSITION_LENGTHS[pool ? 1 : 0] &&
    reply.every((part, index) => index === TEXT_AT ? !Array.isArray(part) : isNumber(part));
}

function isNumber(reply: RawReply): reply is number {
  return typeof reply === "number";
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

/**
 * The place in queues that a node replied.
 *
 * @param reply The reply of {@linkcode ACQUIRE_OR_WAIT}, or of a script of its kind.
 */
function queuePosition(reply: RawReply): QueuePosition {
  const [pttl, ahead, length, score, timeUs, foreign, value, turnMs, free, reserved = 0] =
    reply as PositionReply;
  return {
    // PTTL replies 0 in the last millisecond of a key, and -2 for a key that is missing.
    remainingMs: pttl === -1 ? Infinity : Math.max(pttl + 1, 0),
    ahead,
    length,
    score,
    timeMs: timeUs / 1_000,
    foreign: foreign === 1,
    value: String(textReply(value)),
    turnMs,
    ...free === undefined ? {} : { free, reserved: reserved - 1 },
  };
}
