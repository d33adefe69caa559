/**
 * The scripts that work on queues, as functions.
 *
 * @module
 */
import {
  LATE_MS,
  LATE_PREFIX,
  NOTIFIED_SUFFIX,
  PATIENCE_MS_MAX,
  PATIENCE_MS_MIN,
  QUEUE_LEAD_MS,
  QUEUE_TTL_MS,
  queueOf,
  TAKEN_SUFFIX,
  WAKE_CHANNEL,
} from "../../redis_node/scripts/queue.ts";
import { SHARED } from "../../redis_node/scripts/readers.ts";
import { type NotifiedFirst, POOL_SUFFIX, splitTicket } from "../../quorum/queue_ticket.ts";
import type { CommandContext } from "../commands/command.ts";
import { parseScore, scoreText } from "../commands/sorted_set_commands.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { array, bulk, CommandError, integer } from "../server/replies.ts";
import type { SortedSet } from "../server/sorted_set.ts";
import { fence } from "./fence_functions.ts";
import { getInScript, ReturnedError, setInScript, toNumber } from "./script_calls.ts";

/** The ticket of a reader, and how many of them are notified at once. */
export const READS = /^[^:]*:R/u;
export const ROUSED_MAX = 4;
const LEAD_US = QUEUE_LEAD_MS * 1_000;
/** What the value of a lock of this library looks like. */
const OUR_VALUE = /^[0-9a-f]{40}(:|$)/i;

/** What an acquisition says of its ticket. */
export interface Standing {
  readonly ticket: string;
  readonly stuck: string;
  readonly since: string;
  readonly agreed: string;
}

/** What a key holds: nothing, a text, or what `GET` refuses. */
export interface Held {
  readonly found?: string | undefined;
  readonly error?: CommandError;
}

/** RELEASE. */
export function release(
  context: CommandContext,
  [key]: readonly string[],
  [value]: readonly string[],
): string {
  const found = getInScript(context.keys, key);
  // mutation: release-does-not-compare
  if (found !== undefined && found !== value) return integer(0);
  if (found !== undefined) context.keys.delete(key);
  // mutation: release-notifies-nobody
  const notified = notify(context, key);
  return integer(found === undefined ? 0 : notified ? 2 : 1);
}

/** RELEASE_QUEUED. */
export function releaseQueued(
  context: CommandContext,
  names: readonly string[],
  args: readonly string[],
): string {
  return releaseAll(context, names, args, ({ keys }, key, value) => {
    const held = tryGet(keys, key);
    if (value === "" || held.found === undefined || held.found !== value) return { held };
    keys.delete(key);
    return { ours: true, held: {} };
  });
}

/** Takes a value off keys by `drop`, and a ticket out of the queues, or puts it back. */
export function releaseAll(
  context: CommandContext,
  names: readonly string[],
  [value, ticket, score]: readonly string[],
  drop: (context: CommandContext, key: string, value: string) => { ours?: boolean; held: Held },
): string {
  const { keys } = context;
  const pooled = ticket?.endsWith(POOL_SUFFIX);
  const dropped = names.map((key) => drop(context, key, value));
  const count = dropped.filter(({ ours }) => ours).length;
  let waiting = false;
  names.forEach((key, index) => {
    const { ours, held } = dropped[index];
    const own = pooled ? member(ticket, index) : ticket;
    const stays = score !== undefined;
    const left = own !== undefined && !stays && queueIfAny(keys, key) && remove(keys, key, own);
    if (stays && count > 0) putBack(keys, key, own, score);
    const isFree = held.found === undefined && !held.error;
    if (left || ours || isFree && !pooled && value !== "") {
      // mutation: release-notifies-nobody
      const notified = pass(context, key, held, stays ? own : undefined);
      waiting ||= notified;
    }
  });
  const failure = dropped.find(({ held }) => held.error)?.held.error;
  if (failure) throw new ReturnedError(failure.message);
  return integer(count === (pooled ? 1 : names.length) ? waiting ? 2 : 1 : 0);
}

/** A pool's ticket in the queue of one of the keys. */
export function member(ticket: string, place: number): string {
  return ticket + (place + 1);
}

/** ACQUIRE_OR_WAIT. */
export function acquireOrWait(
  context: CommandContext,
  names: readonly string[],
  [value, ttl, hint, ticket, stuck, since, agreed]: readonly string[],
): string {
  const { keys } = context;
  const lives = names.map((key) => Number(keys.remainingMs(key)));
  const held = lives.some((lifeMs) => lifeMs !== -2);
  const standing = ticket === undefined ? undefined : { ticket, stuck, since, agreed };
  let first: NotifiedFirst | undefined;
  // mutation: newcomers-overtake
  if (!held && standing) first = notifyFirsts(context, names, standing);
  if (!held && !first) {
    for (const key of standing ? names : []) take(context, key, ticket, stuck);
    const granted = hint === "" ? 1 : fence(context, names, 0, Number(hint), 1);
    for (const key of names) setInScript(keys, key, [value, "PX", ttl]);
    return integer(granted);
  }
  return standing ? join(context, names, standing, lives, first) : integer(0);
}

/** Puts a ticket into the queues of all keys. */
export function join(
  { keys, server }: CommandContext,
  names: readonly string[],
  { ticket, since, agreed }: Standing,
  lives: readonly number[],
  first: NotifiedFirst = { ticketId: "", patienceMs: 0 },
): string {
  const nowUs = Math.floor(server.clock.wallMs() * 1_000);
  const score = allowedScore(keys, names, { ticket, since, agreed }, nowUs);
  let [held, ahead, length, foreign, holder] = [-2, 0, 0, 0, ""];
  names.forEach((key, index) => {
    const { rank, size } = stand(keys, key, ticket, score);
    ahead = Math.max(ahead, rank);
    length = Math.max(length, size);
    if (held !== -1) held = lives[index] === -1 ? -1 : Math.max(held, lives[index]);
    if (lives[index] === -2) return;
    const { isForeign, value } = holderOf(keys, key);
    if (isForeign) foreign = 1;
    holder = value ?? holder;
  });
  return array([
    ...[held, ahead, length, score, nowUs, foreign].map(integer),
    bulk(holder),
    integer(first.patienceMs),
    bulk(first.ticketId),
  ]);
}

/** Puts a ticket into a key's queue; returns how many are ahead of it, and how many there are. */
export function stand(
  keys: Keyspace,
  key: string,
  ticket: string,
  score: number,
): { rank: number; size: number } {
  const queue = keys.sortedSet(queueOf(key), true);
  queue.add(ticket, score);
  keys.expireAt(queueOf(key), keys.nowMs() + BigInt(QUEUE_TTL_MS));
  return { rank: queue.rank(ticket)!, size: queue.size };
}

/** Whether a held key holds what is no value of this library; and the value, if it is a text and not that of readers. */
export function holderOf(keys: Keyspace, key: string): { isForeign: boolean; value?: string } {
  const { found } = tryGet(keys, key);
  if (found === SHARED) return { isForeign: false };
  return { isForeign: !OUR_VALUE.test(found ?? ""), value: found };
}

/** The score that a ticket gets, within the limits of the queues that it is to stand in. */
export function allowedScore(
  keys: Keyspace,
  names: readonly string[],
  { ticket, since, agreed }: Omit<Standing, "stuck">,
  nowUs: number,
): number {
  const [askedUs, limitUs] = [parseScore(since), nowUs + LEAD_US];
  let known: number | undefined;
  let last: number | undefined;
  for (const name of names) {
    const queue = keys.sortedSet(queueOf(name));
    known = queue?.score(ticket) ?? toNumber(tryGet(keys, LATE_PREFIX + ticket).found) ?? known;
    const [member] = queue?.range(-1, -1) ?? [];
    if (member !== undefined) last = queue!.score(member);
  }
  const scoreUs = askedUs > limitUs ? known ?? limitUs : askedUs;
  if (known !== undefined) return Math.max(scoreUs, known);
  const overtakes = agreed === "" && last !== undefined && scoreUs < last - LEAD_US;
  return overtakes ? last! + 1 : scoreUs;
}

/** Notifies the first ticket of a queue and those that watch it, and drops tickets whose clients are gone. */
export function notify(
  context: CommandContext,
  key: string,
  own?: string,
): NotifiedFirst | undefined {
  const { keys } = context;
  for (;;) {
    const [first] = queueIfAny(keys, key)?.range(0, 0) ?? [];
    if (first === undefined || first === own) return undefined;
    const receivers = publish(context, first, first);
    // mutation: dead-waiter-notified
    if (receivers > 0) {
      let patienceMs = patienceOf(first);
      for (const watcher of watchers(keys, key, 1)) {
        if (watcher === own || watcher === first) continue;
        const message = `${watcher}${NOTIFIED_SUFFIX}${patienceMs}:${first}`;
        if (publish(context, watcher, message) === 0) continue;
        patienceMs = Math.max(patienceMs, patienceOf(watcher)) + PATIENCE_MS_MIN;
      }
      return { ticketId: first, patienceMs };
    }
    remove(keys, key, first);
  }
}

/**
 * Notifies the readers among a few tickets, up to a writer's, and has the next watch them; returns whether somebody but
 * `own` waits.
 */
export function rouse(
  context: CommandContext,
  key: string,
  { own, from = 0, known = 0 }: { own?: string; from?: number; known?: number } = {},
): boolean {
  let first: string | undefined;
  let notified = known;
  const tickets = queueIfAny(context.keys, key)?.range(from, from + ROUSED_MAX) ?? [];
  for (const [index, ticket] of tickets.entries()) {
    // mutation: dead-first-holds-readers-back
    if (isGone(context, ticket)) {
      remove(context.keys, key, ticket);
      notified = 0;
    } else if (ticket !== own) {
      first ??= ticket;
      if (!READS.test(ticket)) break;
      if (index === ROUSED_MAX) {
        publish(context, ticket, `${ticket}${NOTIFIED_SUFFIX}${patienceOf(first)}:${first}`);
      } else if (index >= notified) publish(context, ticket, ticket);
    }
  }
  return first !== undefined;
}

/** Notifies those who may be next if the key is free, or if readers hold it; returns whether somebody but `own` waits. */
export function pass(
  context: CommandContext,
  key: string,
  { found, error }: Held,
  own?: string,
): boolean {
  if (found === SHARED) return rouse(context, key, { own });
  return found === undefined && !error && notify(context, key, own) !== undefined;
}

/** Notifies the first of each queue, unless it is this ticket or one that it has waited for. */
function notifyFirsts(
  context: CommandContext,
  names: readonly string[],
  standing: Standing,
): NotifiedFirst | undefined {
  let last: NotifiedFirst | undefined;
  for (const key of names) {
    const { ticketId, patienceMs } = notifyUnlessPassed(context, key, standing) ?? {};
    if (!ticketId) continue;
    last = { ticketId, patienceMs: Math.max(last?.patienceMs ?? 0, patienceMs!) };
  }
  return last;
}

/**
 * Notifies the first of a queue, unless it is this ticket, or one that it has waited for, or one whose score is later than
 * that on which a quorum has agreed for this ticket.
 */
export function notifyUnlessPassed(
  context: CommandContext,
  key: string,
  { ticket, stuck, since, agreed }: Standing,
): NotifiedFirst | undefined {
  const queue = queueIfAny(context.keys, key);
  const [first] = queue?.range(0, 0) ?? [];
  if (first !== undefined && stuck.includes(` ${first} `)) return undefined;
  const passes = agreed === "1" && first !== undefined &&
    parseScore(since) < queue!.score(first)!;
  return passes ? undefined : notify(context, key, ticket);
}

/** The tickets that watch how the first uses its turn, if it is the one before `from`. */
function watchers(keys: Keyspace, key: string, from: number): Set<string> {
  const queue = queueIfAny(keys, key);
  const near = queue?.range(from, from + 3) ?? [];
  if (near.length === 0) return new Set();
  const [last] = queue!.range(-1, -1);
  return new Set([near[0], near[3] ?? last, last]);
}

/** How long a ticket's client is waited for, in milliseconds. */
export function patienceOf(ticket: string): number {
  return Math.min(splitTicket(ticket)?.patienceMs ?? PATIENCE_MS_MIN, PATIENCE_MS_MAX);
}

/** Sends a message to a ticket's client; returns how many received it. */
export function publish({ server }: CommandContext, ticket: string, message: string): number {
  const [id, number] = ticket.split(":", 2);
  return number === undefined ? 0 : server.channels?.publish(WAKE_CHANNEL + id, message) ?? 0;
}

/** Whether nobody subscribes to the channel of a ticket's client. */
export function isGone({ server }: CommandContext, ticket: string): boolean {
  const [id, number] = ticket.split(":", 2);
  return number === undefined || !server.channels?.has(WAKE_CHANNEL + id);
}

/** `redis.pcall('ZRANGE', …)`: a value of another type has no first member. */
export function queueIfAny(keys: Keyspace, key: string): SortedSet | undefined {
  try {
    return keys.sortedSet(queueOf(key));
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

/** `redis.pcall('GET', …)`. */
export function tryGet(keys: Keyspace, key: string): Held {
  try {
    return { found: keys.get(key) };
  } catch (error) {
    if (error instanceof CommandError) return { error };
    throw error;
  }
}

/** A ticket that won the key but not the lock goes back into the queue. */
function putBack(keys: Keyspace, key: string, ticket: string, score: string): void {
  const name = queueOf(key);
  const scoreUs = Number(score);
  if (Number.isNaN(scoreUs)) return; // `redis.pcall`
  if (keys.has(name) && !queueIfAny(keys, key)) return;
  const queue = keys.sortedSet(name, true);
  if (queue.score(ticket) === undefined) queue.add(ticket, scoreUs);
  keys.expireAt(name, keys.nowMs() + BigInt(QUEUE_TTL_MS));
}

/** Takes a ticket out of a queue, and if there are stuck ones all ahead of it, which it returns. */
export function take(
  context: CommandContext,
  key: string,
  ticket: string,
  stuck: string,
): string[] {
  const overtaken = stuck === "" ? [] : overtake(context, key, ticket);
  remove(context.keys, key, ticket);
  for (const watcher of watchers(context.keys, key, 0)) {
    publish(context, watcher, watcher + TAKEN_SUFFIX);
  }
  return overtaken;
}

/** Drops all tickets ahead of one, and remembers their scores for a second. */
function overtake(context: CommandContext, key: string, ticket: string): string[] {
  const { keys } = context;
  const queue = keys.sortedSet(queueOf(key));
  const rank = queue?.rank(ticket) ?? 1;
  const overtaken = rank > 0 ? queue?.range(0, rank - 1) ?? [] : [];
  for (const ahead of overtaken) {
    const score = scoreText(queue!.score(ahead)!);
    remove(keys, key, ahead);
    setInScript(keys, LATE_PREFIX + ahead, [score, "PX", String(LATE_MS)]);
    publish(context, ahead, ahead);
  }
  return overtaken;
}

/** `redis.call('ZREM', …)`: returns whether the ticket was in the queue. */
export function remove(keys: Keyspace, key: string, ticket: string): boolean {
  const removed = keys.sortedSet(queueOf(key))?.remove(ticket) ?? false;
  keys.dropIfEmpty(queueOf(key));
  return removed;
}
