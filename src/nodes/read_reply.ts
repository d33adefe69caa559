/**
 * What any client returns for a command, as the reply that the node expects.
 *
 * Clients hand out the same reply in different forms: text or bytes, numbers or digits, arrays or
 * maps. The command decides which form is meant.
 *
 * @module
 */
import { masked, MASKED_LENGTH_MIN } from "../printable.ts";
import { ReplyError } from "../redis/errors.ts";
import { type RawReply, textOf, timeReplyMs } from "../redis/reply.ts";
import { GET_LUA } from "../redis_node/inspect_key.ts";
import { POOL_POSITION_LENGTH, POSITION_LENGTH, TEXT_AT } from "../redis_node/scripts/queue.ts";
import { messageOf } from "../to_error.ts";

/**
 * The first words of errors that a Redis server replies with. Any other error is taken for one of
 * the client, so the command may have been executed: that is the safe side.
 */
const ERROR_PREFIX =
  /^-?(?=(?:ASK|BUSY|CLUSTERDOWN|CROSSSLOT|DENIED|ERR|EXECABORT|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOPERM|NOREPLICAS|NOSCRIPT|NOTBUSY|OOM|READONLY|TRYAGAIN|UNKILLABLE|WRONGPASS|WRONGTYPE)(?: |$))/u;
/** How deep the arrays of a reply may be nested. */
const DEPTH_MAX = 2;
const INTEGER = /^-?\d+$/u;

/** The commands of one exchange. */
export type Commands = readonly (readonly string[])[];

/** A reply of which bytes are read as text. */
type PlainReply = string | number | bigint | null | PlainReply[];

const encoder = new TextEncoder();

/**
 * The reply to a command.
 *
 * @param args The command.
 * @param returned What the client returned, which may be anything.
 * @param commands All commands of the exchange, whose arguments an error must not show.
 * @returns The reply; `undefined` for what is no reply: an error of the client, `undefined`, and a
 * form that the command is never answered with, such as a gateway's own words. Then the command may
 * have been executed.
 */
export function readReply(
  args: readonly string[],
  returned: unknown,
  commands: Commands = [args],
): RawReply | undefined {
  try {
    if (returned instanceof Error) return replyErrorOf(returned, commands);
    const [name, script] = args;
    return replyTo(script === GET_LUA ? "GET" : name, plainReply(returned, DEPTH_MAX));
  } catch {
    return undefined; // it is nested too deep, or throws when it is read
  }
}

/**
 * The error that the server replied with, if `error` is one.
 *
 * @param error What the client threw, which may be anything.
 * @param commands The commands, whose arguments the message must not show.
 */
export function replyErrorOf(error: unknown, commands: Commands = []): ReplyError | undefined {
  const message = masked(messageOf(error), secretsIn(commands));
  return ERROR_PREFIX.test(message) ? new ReplyError(message.replace(/^-/u, "")) : undefined;
}

/** The arguments of commands, which may be secrets; a shorter one may be a part of any word. */
export function secretsIn(commands: Commands): string[] {
  return commands.flatMap(([, ...args]) =>
    args.filter(({ length }) => length >= MASKED_LENGTH_MIN)
  );
}

/**
 * The reply in the form that a command expects; `undefined` if the command is never answered like
 * this.
 */
function replyTo(name: string, reply: PlainReply): RawReply | undefined {
  switch (name) {
    case "SET":
      return reply === "OK" || reply === null ? reply : undefined;
    case "PING":
      return reply === "PONG" ? reply : undefined;
    case "EVAL":
    case "EVALSHA":
      return scriptReplyOf(reply);
    case "PTTL":
    case "PUBLISH":
    case "ZCARD":
      return integerOf(reply);
    case "INFO":
    case "TYPE":
      return typeof reply === "string" ? reply : undefined;
    case "TIME":
      return timeReplyMs(reply as RawReply) === undefined ? undefined : reply;
    case "CONFIG":
      return isFlat(reply) ? reply : undefined;
    case "SCAN":
      return Array.isArray(reply) && isNumeric(reply[0]) && isFlat(reply[1]) ? reply : undefined;
    case "ZRANGE":
      return scoresOf(reply);
    case "GET":
      if (reply === null) return null;
      return Array.isArray(reply) ? undefined : encoder.encode(String(reply));
    default:
      return reply;
  }
}

/** Text for bytes, arrays for maps; numbers as they are. */
function plainReply(reply: unknown, depthMax: number): PlainReply {
  if (reply === null || typeof reply === "string" || typeof reply === "number") return reply;
  if (typeof reply === "bigint") return reply;
  if (reply instanceof Uint8Array) return textOf(reply);
  if (reply instanceof ArrayBuffer) return textOf(new Uint8Array(reply));
  if (typeof reply !== "object" || depthMax === 0) throw new TypeError("it is no reply");
  const parts = Array.isArray(reply)
    ? reply
    : [...reply instanceof Map ? reply : Object.entries(reply)].flat();
  return parts.map((part) => plainReply(part, depthMax - 1));
}

/** An integer, or several; a position in queues has a text among them. */
function scriptReplyOf(reply: PlainReply): RawReply | undefined {
  if (!Array.isArray(reply)) return integerOf(reply);
  const isPosition = [POSITION_LENGTH, POOL_POSITION_LENGTH].includes(reply.length);
  const parts = reply.map((part, index) => {
    const isText = isPosition && index === TEXT_AT && typeof part === "string";
    return integerOf(part) ?? (isText ? encoder.encode(part) : undefined);
  });
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

/**
 * Members of a sorted set, each before its score; some clients, and RESP3, have each two in an
 * array.
 */
function scoresOf(reply: PlainReply): PlainReply | undefined {
  if (!Array.isArray(reply)) return undefined;
  const parts = reply.flat();
  const paired = parts.length === 2 * reply.length || reply.length % 2 === 0 && isFlat(reply);
  return paired && parts.every((part, at) => at % 2 === 0 || isNumeric(part)) ? parts : undefined;
}

function isFlat(reply: PlainReply | undefined): boolean {
  return Array.isArray(reply) && !reply.some(Array.isArray);
}

function isNumeric(part: PlainReply): boolean {
  return part !== null && part !== "" && Number.isFinite(Number(part));
}

/** Some clients, and JSON, have integers as digits. */
function integerOf(reply: PlainReply): number | undefined {
  const digits = typeof reply === "bigint" || typeof reply === "string" && INTEGER.test(reply);
  const number = digits ? Number(reply) : reply;
  return Number.isSafeInteger(number) ? number as number : undefined;
}
