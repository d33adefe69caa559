/**
 * What any client returns for a command, as the reply that the node expects.
 *
 * Clients hand out the same reply in different forms: text or bytes, numbers or digits, arrays or maps. The command
 * decides which form is meant.
 *
 * @module
 */
import { ReplyError } from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";

/**
 * The first words of errors that a Redis server replies with. Any other error is taken for one of the client, so the
 * command may have been executed: that is the safe side.
 */
const ERROR_PREFIX =
  /^-?(?=(?:ASK|BUSY|CLUSTERDOWN|CROSSSLOT|DENIED|ERR|EXECABORT|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOPERM|NOREPLICAS|NOSCRIPT|NOTBUSY|OOM|READONLY|TRYAGAIN|UNKILLABLE|WRONGPASS|WRONGTYPE)(?: |$))/u;
/** The shortest argument that is removed from a client's error; a shorter one may be a part of its words. */
const ARGUMENT_LENGTH_MIN = 6;
/** What stands in place of an argument. */
const MASK = "***";
const INTEGER = /^-?\d+$/u;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * The reply to a command.
 *
 * @param args The command.
 * @param reply What the client returned.
 * @returns The reply; `undefined` for an error of the client. Any other value, such as `undefined`, becomes an empty
 *   array, which no command replies.
 */
export function readReply(args: readonly string[], reply: unknown): RawReply | undefined {
  if (reply instanceof Error) return replyErrorOf(args, reply);
  const plain = plainReply(args, reply);
  switch (args[0]) {
    case "EVAL":
    case "EVALSHA":
    case "PTTL":
    case "PUBLISH":
    case "ZCARD":
      return integersOf(plain);
    case "GET":
      return plain === null || Array.isArray(plain) ? plain : encoder.encode(String(plain));
    default:
      return plain;
  }
}

/**
 * The error that the server replied with, if `error` is one.
 *
 * @param args The command.
 * @param error What the client threw.
 */
export function replyErrorOf(args: readonly string[], error: unknown): ReplyError | undefined {
  const message = messageOf(args, error);
  return ERROR_PREFIX.test(message) ? new ReplyError(message.replace(/^-/u, "")) : undefined;
}

/** The message of what a client threw, without the arguments of the command, which may be secrets. */
export function messageOf(args: readonly string[], error: unknown): string {
  let message = error instanceof Error ? error.message : String(error);
  for (const argument of args.slice(1)) {
    if (argument.length >= ARGUMENT_LENGTH_MIN) message = message.replaceAll(argument, MASK);
  }
  return message;
}

/** Text for bytes, arrays for maps; numbers as they are. */
function plainReply(
  args: readonly string[],
  reply: unknown,
): string | number | bigint | null | RawReply[] {
  if (reply === null || typeof reply === "string" || typeof reply === "number") return reply;
  if (typeof reply === "bigint") return reply;
  if (reply instanceof Uint8Array) return decoder.decode(reply);
  if (reply instanceof ArrayBuffer) return decoder.decode(reply);
  if (Array.isArray(reply)) return reply.map((part) => readPart(args, part));
  if (reply instanceof Map) return [...reply].flat().map((part) => readPart(args, part));
  if (typeof reply !== "object") return [];
  return Object.entries(reply).flat().map((part) => readPart(args, part));
}

function readPart(args: readonly string[], part: unknown): RawReply {
  if (part instanceof Error) return replyErrorOf(args, part) ?? [];
  return plainReply(args, part);
}

/** Some clients, and JSON, have integers as digits. */
function integersOf(reply: RawReply): RawReply {
  if (Array.isArray(reply)) return reply.map(integersOf);
  const digits = typeof reply === "bigint" || typeof reply === "string" && INTEGER.test(reply);
  if (!digits) return reply;
  const number = Number(reply);
  return Number.isSafeInteger(number) ? number : reply;
}
