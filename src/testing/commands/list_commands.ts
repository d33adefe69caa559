/**
 * The commands about lists: LPUSH, RPUSH, LPOP, RPOP, LLEN, LRANGE, LREM, LPOS.
 *
 * @module
 */
import { type Command, type CommandContext, wrongArity } from "./command.ts";
import { INT64_MAX, parseInteger } from "./integers.ts";
import { array, bulk, CommandError, integer, NULL_ARRAY } from "../server/replies.ts";

type End = "left" | "right";

/** The commands by their names in lower case. */
export const LIST_COMMANDS: Readonly<Record<string, Command>> = {
  lpush: { arity: -3, run: (context, args) => push(context, args, "left") },
  rpush: { arity: -3, run: (context, args) => push(context, args, "right") },
  lpop: { arity: -2, run: (context, args) => pop(context, args, "left") },
  rpop: { arity: -2, run: (context, args) => pop(context, args, "right") },
  llen: { arity: 2, run: ({ keys }, [key]) => integer(keys.list(key)?.length ?? 0) },
  lrange: { arity: 4, run: range },
  lrem: { arity: 4, run: remove },
  lpos: { arity: -3, run: position },
};

function push({ keys }: CommandContext, [key, ...values]: readonly string[], end: End): string {
  const items = keys.list(key) ?? [];
  if (end === "left") items.unshift(...[...values].reverse());
  else items.push(...values);
  keys.putList(key, items);
  return integer(items.length);
}

function pop({ keys }: CommandContext, args: readonly string[], end: End): string {
  if (args.length > 2) throw wrongArity(end === "left" ? "lpop" : "rpop");
  const [key, amount] = args;
  const count = amount === undefined ? 1 : popCount(amount);
  const items = keys.list(key);
  if (!items) return amount === undefined ? bulk(undefined) : NULL_ARRAY;
  const popped = end === "left"
    ? items.splice(0, count)
    : items.splice(Math.max(0, items.length - count)).reverse();
  keys.putList(key, items);
  return amount === undefined ? bulk(popped[0]) : array(popped.map(bulk));
}

function popCount(text: string): number {
  const count = parseOr(text, "ERR value is out of range, must be positive");
  if (count < 0n) throw new CommandError("ERR value is out of range, must be positive");
  return Number(count);
}

function range({ keys }: CommandContext, [key, first, last]: readonly string[]): string {
  const from = Number(parseInteger(first));
  const to = Number(parseInteger(last));
  const items = keys.list(key) ?? [];
  const start = Math.max(0, from < 0 ? items.length + from : from);
  const end = to < 0 ? items.length + to : to;
  return array(items.slice(start, Math.max(0, end + 1)).map(bulk));
}

/** A count above 0 removes from the left, one below 0 from the right, 0 removes all. */
function remove({ keys }: CommandContext, [key, amount, value]: readonly string[]): string {
  const count = Number(parseInteger(amount));
  const items = keys.list(key);
  if (!items) return integer(0);
  const ordered = count < 0 ? [...items].reverse() : items;
  let removed = 0;
  const kept = ordered.filter((item) => {
    const gone = item === value && (count === 0 || removed < Math.abs(count));
    if (gone) removed++;
    return !gone;
  });
  keys.putList(key, count < 0 ? kept.reverse() : kept);
  return integer(removed);
}

/** What LPOS looks for. */
interface Search {
  /** Which match is the first one told, from the left; below 0 from the right. */
  rank: number;
  /** How many matches are told, 0 for all; `undefined`: one, and not as an array. */
  count: number | undefined;
  /** How many elements are looked at, 0 for all. */
  lengthMax: number;
}

function position({ keys }: CommandContext, args: readonly string[]): string {
  const [key, value, ...options] = args;
  const { rank, count, lengthMax } = searchOptions(options);
  const items = keys.list(key) ?? [];
  const step = rank < 0 ? -1 : 1;
  const found: number[] = [];
  let matches = 0;
  for (let looked = 0; looked < Math.min(items.length, lengthMax || Infinity); looked++) {
    const index = step < 0 ? items.length - 1 - looked : looked;
    if (items[index] !== value || ++matches < Math.abs(rank)) continue;
    found.push(index);
    if (found.length === (count ?? 1)) break;
  }
  if (count !== undefined) return array(found.map(integer));
  return found.length === 0 ? bulk(undefined) : integer(found[0]);
}

function searchOptions(words: readonly string[]): Search {
  const search: Search = { rank: 1, count: undefined, lengthMax: 0 };
  for (let index = 0; index < words.length; index += 2) {
    const word = words[index].toUpperCase();
    const amount = words[index + 1];
    if (amount === undefined) throw new CommandError("ERR syntax error");
    if (word === "RANK") search.rank = searchRank(amount);
    else if (word === "COUNT") search.count = naturalNumber(amount, word);
    else if (word === "MAXLEN") search.lengthMax = naturalNumber(amount, word);
    else throw new CommandError("ERR syntax error");
  }
  return search;
}

function searchRank(text: string): number {
  const rank = parseInteger(text);
  if (rank !== 0n) return Number(rank);
  throw new CommandError(
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list",
  );
}

function naturalNumber(text: string, name: string): number {
  const number = parseOr(text, `ERR ${name} can't be negative`);
  if (number < 0n || number > INT64_MAX) throw new CommandError(`ERR ${name} can't be negative`);
  return Number(number);
}

function parseOr(text: string, refusal: string): bigint {
  try {
    return parseInteger(text);
  } catch (error) {
    throw error instanceof CommandError ? new CommandError(refusal) : error;
  }
}
