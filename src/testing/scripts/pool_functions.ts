/**
 * The script of a call for any one of several keys, as a function.
 *
 * @module
 */
import { queueOf } from "../../redis_node/scripts/queue.ts";
import type { CommandContext } from "../commands/command.ts";
import { array, bulk, integer } from "../server/replies.ts";
import { fence } from "./fence_functions.ts";
import {
  allowedScore,
  holderOf,
  member,
  notifyUnlessPassed,
  pass,
  patienceOf,
  remove,
  stand,
  take,
  tryGet,
} from "./queue_functions.ts";
import { setInScript } from "./script_calls.ts";

/** A ticket of a pool in the queue of one of its keys. */
const POOLED = /^(.*\.)\d+$/su;

/** ACQUIRE_ANY. */
export function acquireAny(
  context: CommandContext,
  names: readonly string[],
  args: readonly string[],
): string {
  const { keys } = context;
  const [number, value, ttl, hint, ticket, stuck, since, agreed] = args;
  const place = Number(number) - 1;
  // mutation: any-key-of-a-pool-counts
  const key = names[place];
  // mutation: held-key-of-a-pool-granted
  const isHeld = keys.has(key);
  const blocked = isHeld ||
    ticket !== undefined &&
      notifyUnlessPassed(context, key, { ticket: member(ticket, place), stuck, since, agreed });
  if (!blocked) {
    if (ticket !== undefined) leaveAll(context, names, place, ticket, stuck);
    const granted = hint === "" ? 1 : fence(context, [key], 0, Number(hint), 1);
    setInScript(keys, key, [value, "PX", ttl]);
    return integer(granted);
  }
  const lives = names.map((name) => Number(keys.remainingMs(name)));
  if (ticket !== undefined) return joinAll(context, names, args, lives);
  return array([integer(maskOf(lives.map((life) => life === -2)))]);
}

/** The sum of the bits of those that are true. */
function maskOf(flags: readonly boolean[]): number {
  return flags.reduce((mask, flag, index) => flag ? mask + 2 ** index : mask, 0);
}

/** Takes a ticket that has won one of the keys out of the queues of all, and a stuck first too. */
function leaveAll(
  context: CommandContext,
  names: readonly string[],
  place: number,
  ticket: string,
  stuck: string,
): void {
  const { keys } = context;
  const [first = ""] = take(context, names[place], member(ticket, place), stuck);
  const [, pooled = ticket] = POOLED.exec(first) ?? [];
  names.forEach((name, index) => {
    if (index === place) return;
    const tickets = [member(ticket, index), member(pooled, index)];
    // mutation: won-queue-alone-is-left
    const left = tickets.filter((each) => remove(keys, name, each)).length > 0;
    // mutation: notification-of-a-pool-kept
    if (left) pass(context, name, tryGet(keys, name));
  });
}

/** Puts a ticket into the queues of all keys. */
function joinAll(
  { keys, server }: CommandContext,
  names: readonly string[],
  [number, , , , ticket, , since, agreed]: readonly string[],
  lives: readonly number[],
): string {
  const nowUs = Math.floor(server.clock.wallMs() * 1_000);
  const place = Number(number) - 1;
  const standing = { ticket: member(ticket, place), since, agreed };
  const score = allowedScore(keys, [names[place]], standing, nowUs);

  const places = names.map((name, index) => stand(keys, name, member(ticket, index), score));
  const ranks = places.map(({ rank }) => rank);
  const length = Math.max(...places.map(({ size }) => size));
  const foreign = names.some((name, index) =>
    lives[index] !== -2 && holderOf(keys, name).isForeign
  );
  const kept = lives.findIndex((life, index) => life === -2 && ranks[index] > 0) + 1;
  const [first] = kept > 0 ? keys.sortedSet(queueOf(names[kept - 1]))!.range(0, 0) : [""];
  const held = Math.min(...lives.map((life) => life === -1 ? Infinity : life));
  const wait = kept > 0 ? patienceOf(first) : 0;
  const ahead = kept > 0 ? ranks[kept - 1] : Math.min(...ranks);
  const free = maskOf(lives.map((life, index) => life === -2 && ranks[index] === 0));
  return array([
    integer(held === Infinity ? -1 : held),
    ...[ahead, length, score, nowUs, foreign ? 1 : 0].map(integer),
    bulk(""),
    integer(wait),
    bulk(first),
    ...[free, kept].map(integer),
  ]);
}
