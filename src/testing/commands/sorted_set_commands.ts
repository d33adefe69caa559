/**
 * The commands about sorted sets: ZADD (NX), ZREM, ZCARD, ZRANGE (by rank, WITHSCORES), ZRANK, ZSCORE.
 *
 * @module
 */
import type { Command, CommandContext } from "./command.ts";
import { parseInteger } from "./integers.ts";
import { array, bulk, CommandError, integer } from "../server/replies.ts";

/** The commands by their names in lower case. */
export const SORTED_SET_COMMANDS: Readonly<Record<string, Command>> = {
  zadd: { arity: -4, run: add },
  zrem: { arity: -3, run: remove },
  zcard: { arity: 2, run: ({ keys }, [key]) => integer(keys.sortedSet(key)?.size ?? 0) },
  zrange: { arity: -4, run: range },
  zrank: { arity: 3, run: rank },
  zscore: { arity: 3, run: score },
};

function add({ keys }: CommandContext, [key, ...args]: readonly string[]): string {
  const onlyNew = args[0].toUpperCase() === "NX";
  const pairs = onlyNew ? args.slice(1) : args;
  if (pairs.length === 0 || pairs.length % 2 !== 0) throw new CommandError("ERR syntax error");
  const scores = pairs.filter((_, index) => index % 2 === 0).map(parseScore);
  const set = keys.sortedSet(key, true);
  let added = 0;
  scores.forEach((score, index) => {
    const member = pairs[2 * index + 1];
    if (onlyNew && set.score(member) !== undefined) return;
    if (set.add(member, score)) added++;
  });
  return integer(added);
}

function remove({ keys }: CommandContext, [key, ...members]: readonly string[]): string {
  const set = keys.sortedSet(key);
  const removed = members.filter((member) => set?.remove(member)).length;
  keys.dropIfEmpty(key);
  return integer(removed);
}

function range({ keys }: CommandContext, args: readonly string[]): string {
  const [key, first, last, ...options] = args;
  const withScores = options.length === 1 && options[0].toUpperCase() === "WITHSCORES";
  if (options.length > 0 && !withScores) throw new CommandError("ERR syntax error");
  const [from, to] = [Number(parseInteger(first)), Number(parseInteger(last))];
  const set = keys.sortedSet(key);
  const members = set?.range(from, to) ?? [];
  return array(members.flatMap((member) => {
    return withScores ? [bulk(member), bulk(scoreText(set!.score(member)!))] : [bulk(member)];
  }));
}

function rank({ keys }: CommandContext, [key, member]: readonly string[]): string {
  const found = keys.sortedSet(key)?.rank(member);
  return found === undefined ? bulk(undefined) : integer(found);
}

function score({ keys }: CommandContext, [key, member]: readonly string[]): string {
  const found = keys.sortedSet(key)?.score(member);
  return bulk(found === undefined ? undefined : scoreText(found));
}

/** Parses the score in a command: a number, or an infinity. */
export function parseScore(text: string): number {
  const infinite = /^([+-]?)inf(?:inity)?$/iu.exec(text);
  if (infinite) return infinite[1] === "-" ? -Infinity : Infinity;
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/iu.test(text) ? Number(text) : NaN;
  if (Number.isNaN(number)) throw new CommandError("ERR value is not a valid float");
  return number;
}

/** Formats a score for a reply: with up to 17 digits, without trailing zeros. */
export function scoreText(score: number): string {
  if (!Number.isFinite(score)) return score < 0 ? "-inf" : "inf";
  if (Number.isSafeInteger(score)) return String(score);
  const [digits, exponent] = score.toExponential(16).split("e");
  const power = Number(exponent);
  if (power >= -5 && power < 17) return trimZeros(score.toFixed(16 - power));
  const sign = power < 0 ? "-" : "+";
  return `${trimZeros(digits)}e${sign}${String(Math.abs(power)).padStart(2, "0")}`;
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/u, "") : text;
}
