/**
 * The scripts of locks in shared mode, as functions.
 *
 * @module
 */
import { READERS_PREFIX, SHARED } from "../../redis_node/scripts/readers.ts";
import type { NotifiedFirst } from "../../quorum/queue_ticket.ts";
import type { CommandContext } from "../commands/command.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { integer } from "../server/replies.ts";
import {
  isGone,
  join,
  notifyUnlessPassed,
  queueIfAny,
  READS,
  releaseAll,
  remove,
  rouse,
  ROUSED_MAX,
  take,
  tryGet,
} from "./queue_functions.ts";
import { getInScript, setInScript } from "./script_calls.ts";

/** How many tickets are looked at for a writer's. */
const AHEAD_MAX = 64;

/** ACQUIRE_SHARED. */
export function acquireShared(
  context: CommandContext,
  names: readonly string[],
  [value, ttl, given, stuck = "", since, agreed]: readonly string[],
): string {
  const { keys } = context;
  const ticket = given ?? "";
  const standing = { ticket, stuck, since, agreed };
  const lives = names.map((key) => Number(keys.remainingMs(key)));
  let blocked = names.some((key, index) =>
    lives[index] !== -2 && tryGet(keys, key).found !== SHARED
  );
  let notified: NotifiedFirst | undefined;
  let overtakes = false;
  for (const [index, key] of (blocked || given === undefined ? [] : names).entries()) {
    const isFree = lives[index] === -2;
    const { writer, dropped } = isFree && ticket === "" ? {} : writerAhead(context, key, ticket);
    // mutation: dead-first-holds-readers-back
    if (dropped && !isFree) rouse(context, key, { own: ticket });
    if (writer === undefined) continue;
    overtakes = true;
    // mutation: readers-pass-who-waits
    if (!isFree && !stuck.includes(` ${writer} `)) blocked = true;
    const first = isFree && notifyUnlessPassed(context, key, standing);
    if (!first) continue;
    blocked = true;
    notified = { ...first, patienceMs: Math.max(notified?.patienceMs ?? 0, first.patienceMs) };
  }
  if (blocked && ticket === "") return integer(0);
  if (blocked) return join(context, names, standing, lives, notified);
  names.forEach((key, index) => {
    enter(keys, key, value, Number(ttl), lives[index] === -2);
    if (ticket === "") return;
    const rank = overtakes ? 0 : queueIfAny(keys, key)?.rank(ticket) ?? 0;
    take(context, key, ticket, overtakes ? stuck : "");
    // mutation: entered-reader-notifies-nobody
    rouse(context, key, { known: lives[index] === -2 ? 0 : ROUSED_MAX - 1 });
    if (rank >= ROUSED_MAX) rouse(context, key, { from: rank - ROUSED_MAX + 1 });
  });
  return integer(1);
}

/** EXTEND_SHARED. */
export function extendShared(
  context: CommandContext,
  names: readonly string[],
  [value, ttl, shortens]: readonly string[],
): string {
  const { keys } = context;
  const deadlines: number[] = [];
  for (const key of names) {
    const found = getInScript(keys, key);
    if (found !== undefined && found !== SHARED) return integer(0);
    deadlines.push(found === undefined ? 0 : deadlineOf(keys, key, value));
  }
  names.forEach((key, index) => {
    const deadlineMs = deadlines[index];
    if (deadlineMs === 0) return;
    const untilMs = Number(keys.nowMs()) + Number(ttl);
    const longest = shortens === undefined ? Math.max(untilMs, deadlineMs) : untilMs;
    keys.sortedSet(READERS_PREFIX + key)!.add(value, longest);
    settle(keys, key);
    rouse(context, key);
  });
  return integer(deadlines.includes(0) ? 2 : 1);
}

/** RELEASE_SHARED. */
export function releaseShared(
  context: CommandContext,
  names: readonly string[],
  args: readonly string[],
): string {
  return releaseAll(context, names, args, ({ keys }, key, value) => {
    const held = tryGet(keys, key);
    if (held.found !== SHARED) return { held };
    const ours = deadlineOf(keys, key, value) > 0;
    keys.sortedSet(READERS_PREFIX + key)?.remove(value);
    // mutation: reader-deletes-the-marker
    if (ours) settle(keys, key);
    return { ours, held: tryGet(keys, key) };
  });
}

/** Makes a value a reader of a key. */
function enter(keys: Keyspace, key: string, value: string, ttlMs: number, isFree: boolean): void {
  const name = READERS_PREFIX + key;
  if (isFree && (keys.sortedSet(name)?.size ?? 0) > 0) keys.delete(name);
  const untilMs = Math.max(Number(keys.nowMs()) + ttlMs, deadlineOf(keys, key, value));
  keys.sortedSet(name, true).add(value, untilMs);
  if (isFree) setInScript(keys, key, [SHARED, "PX", String(ttlMs)]);
  // mutation: key-expires-with-the-last-comer
  settle(keys, key);
}

/** The deadline of a reader; 0 without one, or if it is over. */
function deadlineOf(keys: Keyspace, key: string, value: string): number {
  const deadlineMs = keys.sortedSet(READERS_PREFIX + key)?.score(value) ?? 0;
  return deadlineMs > Number(keys.nowMs()) ? deadlineMs : 0;
}

/** Drops readers that are over, and has the key and its set live as long as the others. */
function settle(keys: Keyspace, key: string): void {
  const name = READERS_PREFIX + key;
  const readers = keys.sortedSet(name);
  const nowMs = Number(keys.nowMs());
  for (const value of readers?.range(0, -1) ?? []) {
    if (readers!.score(value)! <= nowMs) readers!.remove(value);
  }
  const [latest] = readers?.range(-1, -1) ?? [];
  keys.dropIfEmpty(name);
  if (latest === undefined) return void keys.delete(key);
  const untilMs = BigInt(readers!.score(latest)!);
  for (const each of [key, name]) keys.expireAt(each, untilMs);
}

/** The first living writer's ticket ahead of `own`, an empty text behind too many readers; and whether dead ones were. */
function writerAhead(
  context: CommandContext,
  key: string,
  own: string,
): { writer?: string | undefined; dropped: boolean } {
  const tickets = queueIfAny(context.keys, key)?.range(0, AHEAD_MAX - 1) ?? [];
  let dropped = false;
  for (const ticket of tickets) {
    if (ticket === own) return { dropped };
    if (READS.test(ticket)) continue;
    // mutation: dead-first-holds-readers-back
    const gone = isGone(context, ticket);
    if (!gone) return { writer: ticket, dropped };
    remove(context.keys, key, ticket);
    dropped = true;
  }
  return { writer: tickets.length === AHEAD_MAX ? "" : undefined, dropped };
}
