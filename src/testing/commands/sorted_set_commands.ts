/**
 * The commands about sorted sets: ZADD (NX, XX), ZREM, ZREMRANGEBYSCORE, ZCARD, ZRANGE (by rank,
 * WITHSCORES), ZRANK, ZSCORE.
 *
 * @module
 */
import type { CommandContext, CommandTable } from "./command.ts";
import { parseNumber } from "./integers.ts";
import { general } from "../lua/numbers.ts";
import { CommandError, Double, type Reply } from "../server/replies.ts";

/** How many digits a score has at most. */
const SCORE_DIGITS = 17;
/** The error of a text that is no score. */
const NO_SCORE = "ERR value is not a valid float";

/** The commands. */
export const SORTED_SET_COMMANDS: CommandTable = {
  zadd: { arity: -4, grows: true, run: add },
  zrem: { arity: -3, writes: true, run: remove },
  zremrangebyscore: { arity: 4, writes: true, run: removeByScore },
  zcard: { arity: 2, run: ({ keys }, [key]) => keys.sortedSet(key)?.size ?? 0 },
  zrange: { arity: -4, run: range },
  zrank: { arity: 3, run: ({ keys }, [key, member]) => keys.sortedSet(key)?.rank(member) ?? null },
  zscore: { arity: 3, run: score },
};

function add({ keys }: CommandContext, [key, ...args]: readonly string[]): Reply {
  let start = 0;
  const conditions = new Set<string>();
  while (/^(?:nx|xx)$/iu.test(args[start] ?? "")) conditions.add(args[start++].toUpperCase());
  const pairs = args.slice(start);
  if (pairs.length === 0 || pairs.length % 2 !== 0) throw new CommandError("ERR syntax error");
  if (conditions.size === 2) {
    throw new CommandError("ERR XX and NX options at the same time are not compatible");
  }
  const scores = pairs.filter((_, index) => index % 2 === 0).map(scoreOf);
  const isUpdate = conditions.has("XX");
  const set = keys.sortedSet(key) ?? (isUpdate ? undefined : keys.sortedSet(key, true));
  let added = 0;
  scores.forEach((score, index) => {
    const member = pairs[2 * index + 1];
    const isKnown = set?.score(member) !== undefined;
    if (isKnown ? conditions.has("NX") : isUpdate) return;
    if (set!.add(member, score)) added++;
  });
  return added;
}

function remove({ keys }: CommandContext, [key, ...members]: readonly string[]): Reply {
  const set = keys.sortedSet(key);
  const removed = members.filter((member) => set?.remove(member)).length;
  if (removed > 0) keys.dropIfEmpty(key);
  return removed;
}

function removeByScore({ keys }: CommandContext, [key, low, high]: readonly string[]): Reply {
  const [from, to] = [parseBound(low), parseBound(high)];
  const set = keys.sortedSet(key);
  const members = (set?.range(0, -1) ?? []).filter((member) => {
    const score = set!.score(member)!;
    return (from.isOutside ? score > from.score : score >= from.score) &&
      (to.isOutside ? score < to.score : score <= to.score);
  });
  for (const member of members) set!.remove(member);
  if (members.length > 0) keys.dropIfEmpty(key);
  return members.length;
}

function range(context: CommandContext, args: readonly string[]): Reply {
  const [key, first, last, ...options] = args;
  const withScores = options.length === 1 && options[0].toUpperCase() === "WITHSCORES";
  if (options.length > 0 && !withScores) throw new CommandError("ERR syntax error");
  const [from, to] = [parseNumber(first), parseNumber(last)];
  const set = context.keys.sortedSet(key);
  const members = set?.range(from, to) ?? [];
  if (!withScores) return members;
  const pairs = members.map((member) => [member, new Double(scoreText(set!.score(member)!))]);
  return context.inScript || context.connection.protocol !== 3 ? pairs.flat() : pairs;
}

function score({ keys }: CommandContext, [key, member]: readonly string[]): Reply {
  const found = keys.sortedSet(key)?.score(member);
  return found === undefined ? null : new Double(scoreText(found));
}

/** A limit of a range of scores; one that is outside of the range has a parenthesis in front. */
function parseBound(text: string): { score: number; isOutside: boolean } {
  const isOutside = text.startsWith("(");
  const number = isOutside ? text.slice(1) : text;
  // The C library reads an empty text as 0.
  const score = parseScore(number || "0", "ERR min or max is not a float");
  return { score, isOutside };
}

/** Parses the score of a member: not one that only its exponent makes 0 or infinite. */
function scoreOf(text: string): number {
  const score = parseScore(text, NO_SCORE);
  const isOver = score === 0
    ? /^[^e]*[1-9]/iu.test(text)
    : !Number.isFinite(score) && /\d/u.test(text);
  if (isOver) throw new CommandError(NO_SCORE);
  return score;
}

/** Parses a score in a command: a number, or an infinity. */
function parseScore(text: string, refusal: string): number {
  const infinite = /^([+-]?)inf(?:inity)?$/iu.exec(text);
  if (infinite) return infinite[1] === "-" ? -Infinity : Infinity;
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/iu.test(text)) return Number(text);
  throw new CommandError(refusal);
}

/** Formats a score for a reply: with up to 17 digits, without trailing zeros. */
function scoreText(score: number): string {
  if (!Number.isFinite(score)) return score < 0 ? "-inf" : "inf";
  if (Number.isSafeInteger(score)) return String(score);
  return general(score, SCORE_DIGITS);
}
