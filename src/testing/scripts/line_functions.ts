/**
 * The scripts that know of waiters, as functions that stand for them.
 *
 * @module
 */
import { ACQUIRE_OR_WAIT } from "../../redis_node/scripts/acquire.ts";
import {
  LEAVE,
  QUEUE_TTL_MS,
  SKEW_MS_MAX,
  waitersKey,
  WAKE_CHANNEL,
} from "../../redis_node/scripts/queue.ts";
import type { CommandContext } from "../commands/command.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { array, CommandError, integer } from "../server/replies.ts";
import {
  atPlace,
  placeIn,
  scriptError,
  type ScriptPlace,
  setInScript,
  toNumber,
} from "./script_places.ts";

/** RELEASE: a key of another type spares no other key; its error is the answer in the end. */
export function release(
  context: CommandContext,
  names: readonly string[],
  [value, entry, what]: readonly string[],
): string {
  const keyspace = context.keys;
  let all = true;
  let waiting = false;
  let failure: CommandError | undefined;
  for (const [key, list] of pairs(names)) {
    let found: string | undefined;
    let another = false;
    try {
      found = keyspace.get(key);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      failure = error;
      another = true;
    }
    const ours = found !== undefined && found === value;
    if (ours) keyspace.delete(key);
    else all = false;
    if (what === "leave" && listOf(keyspace, list)) removeFrom(keyspace, list, entry);
    if (what === "stay" && ours && (listOf(keyspace, list) || !keyspace.has(list))) {
      stand(keyspace, list, entry, true);
      keyspace.expireAt(list, keyspace.nowMs() + BigInt(QUEUE_TTL_MS));
    }
    const own = what === "stay" ? entry : undefined;
    if (ours || found === undefined && !another) {
      waiting = wake(context, key, list, own) || waiting;
    }
  }
  if (failure) throw failure;
  return integer(all ? waiting ? 3 : 1 : 0);
}

/** ACQUIRE_OR_WAIT; and ACQUIRE_FENCED, which counts what is granted. */
export function acquireOrWait(
  context: CommandContext,
  names: readonly string[],
  args: readonly string[],
  script = ACQUIRE_OR_WAIT,
  count = () => 1,
): string {
  const keyspace = context.keys;
  const [, , entry] = args;
  const claim = toNumber(args[3]);
  const locks = pairs(names);
  const at = (text: string) => placeIn(script, text);
  const blocked = locks.find(([key, list]) =>
    keyspace.has(key) || claim === 0 && wake(context, key, list, entry)
  );
  if (!blocked) {
    if (entry !== "") {
      const overdue = claim === 2;
      const place = at(overdue ? "local ahead = claim == 2" : "redis.call('LREM', list, 1, entry)");
      for (const [, list] of locks) quitLine(keyspace, list, entry, overdue, place);
    }
    const granted = count();
    for (const [key] of locks) {
      setInScript(keyspace, key, args, at("redis.call('SET', key, ARGV[1]"));
    }
    return integer(granted);
  }
  if (entry === "") return integer(0);
  for (const lock of locks) {
    const [key, list] = lock;
    if (lock === blocked) continue;
    const place = at("if index ~= blocked and redis.call('LREM'");
    const left = atPlace(place, () => removeFrom(keyspace, list, entry));
    if (left && !keyspace.has(key)) wake(context, key, list);
  }
  const [key, list] = blocked;
  if (claim === undefined) throw noClaim(at("stand(list, entry, claim > 0)"));
  const { ahead, length } = atPlace(
    at("local ahead = redis.call('LPOS', list, entry)"),
    () => stand(keyspace, list, entry, claim > 0),
  );
  keyspace.expireAt(list, keyspace.nowMs() + BigInt(QUEUE_TTL_MS));
  return array([integer(Number(keyspace.remainingMs(key))), integer(ahead), integer(length)]);
}

/** LEAVE. */
export function leave(
  context: CommandContext,
  names: readonly string[],
  [entry]: readonly string[],
): string {
  for (const [key, list] of pairs(names)) {
    const left = atPlace(
      placeIn(LEAVE, "redis.call('LREM', waiters(key), 1, ARGV[1])"),
      () => removeFrom(context.keys, list, entry),
    );
    if (left && !context.keys.has(key)) wake(context, key, list);
  }
  return integer(1);
}

/** The keys, each with its list. */
function pairs(keys: readonly string[]): [key: string, list: string][] {
  return keys.map((key) => [key, waitersKey(key)]);
}

/** Tells the head of a list, passing over those for whom nobody listens. */
function wake({ server, keys }: CommandContext, key: string, list: string, own?: string): boolean {
  for (;;) {
    const head = listOf(keys, list)?.[0];
    if (head === undefined || head === own) return false;
    const colon = head.indexOf(":");
    const channel = WAKE_CHANNEL + head.slice(0, colon);
    const message = `${head}:${key}`;
    if (colon >= 0 && (server.channels?.publish(channel, message) ?? 0) > 0) return true;
    keys.putList(list, keys.list(list)!.slice(1));
  }
}

/** `redis.pcall('LINDEX', …)`: what is no list has no head. */
function listOf(keyspace: Keyspace, list: string): string[] | undefined {
  try {
    return keyspace.list(list);
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

function quitLine(
  keyspace: Keyspace,
  list: string,
  entry: string,
  overdue: boolean,
  place: ScriptPlace,
): void {
  const items = atPlace(place, () => listForEntry(keyspace, list, entry));
  const ahead = items.indexOf(entry);
  if (ahead < 0) return;
  items.splice(ahead, 1);
  if (overdue && ahead > 0) items.push(items.shift()!);
  keyspace.putList(list, items);
}

/** Puts an entry in line, unless it stands there: at the end, or at the front behind all who came before it. */
function stand(keyspace: Keyspace, list: string, entry: string, front: boolean) {
  const items = keyspace.list(list) ?? [];
  if (!items.includes(entry)) {
    items.splice(placeOf(entry, items, front), 0, entry);
    keyspace.putList(list, items);
  }
  return { ahead: items.indexOf(entry), length: items.length };
}

function placeOf(entry: string, items: readonly string[], front: boolean): number {
  let passed = 0;
  for (; passed < items.length; passed++) {
    const other = items[front ? passed : items.length - 1 - passed];
    const leadMs = sinceMs(other) - sinceMs(entry);
    const later = leadMs > 0 || leadMs === 0 && other > entry;
    if (later === front || !front && leadMs > SKEW_MS_MAX) break;
  }
  if (passed === 0) return front ? 0 : items.length;
  // LINSERT finds the first of equal entries.
  return front ? items.indexOf(items[passed - 1]) + 1 : items.indexOf(items[items.length - passed]);
}

/** Since when an entry stands there, by its client's clock. */
function sinceMs(entry: string): number {
  return toNumber(entry.slice(entry.lastIndexOf(":") + 1)) ?? 0;
}

/** `claim > 0` where the claim is no number. */
function noClaim(place: ScriptPlace): CommandError {
  const text = `ERR user_script:${place.line}: attempt to compare number with nil`;
  return scriptError(new CommandError(text), place);
}

/** The list for a command that names the entry, too. */
function listForEntry(
  keyspace: Keyspace,
  list: string,
  entry: string | undefined,
): string[] {
  if (entry === undefined) {
    throw new CommandError("ERR Lua redis lib command arguments must be strings or integers");
  }
  return keyspace.list(list) ?? [];
}

/** `redis.call('LREM', list, 1, entry)`. */
function removeFrom(keyspace: Keyspace, list: string, entry: string): boolean {
  const items = listForEntry(keyspace, list, entry);
  const at = items.indexOf(entry);
  if (at < 0) return false;
  keyspace.putList(list, items.filter((_, index) => index !== at));
  return true;
}
