/**
 * Releasing a lock ({@linkcode RELEASE}), and many at once, or taking a ticket out of queues; and
 * giving the next waiter its turn.
 *
 * @module
 */
import { CONTENDED, DENIED, GRANTED } from "../../quorum/outcome.ts";
import { FOUND_LUA } from "./extend.ts";
import { ANNOUNCE_LUA, NOTIFY_READERS_LUA, QUEUE_TTL_MS, TURN_LUA } from "./queue.ts";
import { READERS_LUA } from "./readers.ts";
import {
  type GroupScript,
  lua,
  NONE,
  oneOf,
  type Release,
  type ScriptOperation,
} from "./script.ts";

export const readReleased = /* @__PURE__ */ oneOf(DENIED, GRANTED, CONTENDED);

/**
 * `ARGV` of a release: the value; the ticket that it takes out of the queues; and the ticket's
 * score, if it puts the ticket back instead. If the keys are to live on for a while that is not
 * over by now, there is no ticket, and that time is the last argument.
 */
export function releaseArgs({ value, ticket, keepsTicket, keptMs }: Release): string[] {
  const leftMs = Math.ceil(keptMs?.() ?? 0);
  if (leftMs > 0) return [value, NONE, NONE, String(leftMs)];
  if (!ticket) return [value];
  return [value, ticket.ticketId, ...keepsTicket ? [String(ticket.score)] : []];
}

/**
 * Gives the turn for a free key to the first, unless the key was free before and another's turn
 * runs: then notifies the watchers of that again, because one may have left. Returns what
 * `giveTurn` does.
 */
const ENSURE_TURN_LUA = `local function ensureTurn(key, wasHeld, own)
  if wasHeld then return giveTurn(key, 0, own) end
  local whose, leftMs = whoseTurn(key)
  if leftMs <= 0 or whose == own then return giveTurn(key, 0, own) end
  local queue = 'hasp:queue:' .. key
  return notifyBehind(queue, redis.pcall('ZRANGE', queue, '0', '4'), leftMs, own)
end`;

/**
 * Does what {@linkcode RELEASE} does for each key, and returns what that returns, or its error.
 * Without waiters it makes three calls for all keys that hold their values.
 */
export const RELEASE_MANY: GroupScript = {
  argv: ({ requests }) => requests.map(({ value }) => value),
  source: /* @__PURE__ */ lua(
    TURN_LUA,
    ENSURE_TURN_LUA,
    FOUND_LUA,
    `local replies, held, queues, found = {}, {}, {}, foundIn(KEYS)
for index, key in ipairs(KEYS) do
  local holds = found[index] == ARGV[index]
  replies[index] = holds and 1 or type(found[index]) == 'table' and found[index] or 0
  if holds then held[#held + 1] = key end
  queues[index] = 'hasp:queue:' .. key
end
if held[1] then redis.call('DEL', unpack(held)) end
if redis.pcall('EXISTS', unpack(queues)) ~= 0 then
  for index, key in ipairs(KEYS) do
    local isFree = replies[index] == 1 or not found[index]
    if isFree and redis.pcall('EXISTS', queues[index]) ~= 0 and ensureTurn(key, found[index]) > 0 then
      replies[index] = 2 * replies[index]
    end
  end
end
return replies`,
  ),
  sha1: "925feb3c259fb39d2b0e70704c933dee4b56d314",
};

/**
 * Deletes a single key if it holds the value. Returns 0 if it did not, 1 if it did, 2 if it did and
 * others wait. If the key is free then, gives the first in the queue its turn; but if it was
 * missing before, only if nobody has a turn. Without waiters it makes three calls.
 */
export const RELEASE: ScriptOperation<Release> = {
  kind: "release",
  many: RELEASE_MANY,
  argv: ({ value }) => [value],
  read: readReleased,
  source: /* @__PURE__ */ lua(
    `local key, value = KEYS[1], ARGV[1]
local found = redis.call('GET', key)
if found == value then
  redis.call('DEL', key)
elseif found then
  return 0
end
if redis.pcall('EXISTS', 'hasp:queue:' .. key) == 0 then return found and 1 or 0 end`,
    TURN_LUA,
    ENSURE_TURN_LUA,
    `local waiting = ensureTurn(key, found) > 0
return found and (waiting and 2 or 1) or 0`,
  ),
  sha1: "d24149586030b4369afcb31457d942f729b19dd3",
};

/**
 * Takes the value off the keys: deletes those that hold it, and those whose last reader it was.
 * Takes the ticket out of the queues, if the lock was waited for; or, if there is a score because
 * its client waits on, puts it back if a key held the value. Notifies the next waiter of each key
 * that is free, but not the ticket that is put back: it has just asked. If readers hold a key that
 * the value or the ticket has left, notifies those that may enter. Returns 0 if a key did not hold
 * the value, 1 if all did, 2 if all did and others wait.
 *
 * If the keys are to live on for a while, each that holds the value gets that TTL in place of being
 * deleted, and its watchers are notified of when it expires (`announceExpiry` in `queue.ts`).
 *
 * A ticket for a pool is in the queues of all its keys, but only one key held the value: that is
 * enough for 1 or 2. For each of the other keys, it notifies the next waiter only if the ticket has
 * left the queue of that key: else the first in it has been notified before.
 */
export const RELEASE_QUEUED: ScriptOperation<Release> = {
  kind: "release",
  argv: releaseArgs,
  read: readReleased,
  source: /* @__PURE__ */ lua(
    TURN_LUA,
    ENSURE_TURN_LUA,
    NOTIFY_READERS_LUA,
    ANNOUNCE_LUA,
    READERS_LUA,
    // Takes the value off the keys. `left` is what each holds then: `false` if it is free. An error
    // comes in the reply, but first all keys are done.
    `local value, ticket, score, kept = unpack(ARGV)
if kept then ticket, score = nil, nil end
local pooled = ticket and ticket:sub(-1) == '.'
local held, left, count, failure = {}, {}, 0, nil
for index, key in ipairs(KEYS) do
  local found = redis.pcall('GET', key)
  local deadline = found == 'hasp:shared' and redis.pcall('ZSCORE', 'hasp:readers:' .. key, value)
  local isReader = type(deadline) == 'string'
  local holds, isFree = found == value or isReader and tonumber(deadline) > nowMs(), not found
  if holds and kept then
    redis.call('PEXPIRE', key, kept)
    if isReader then
      redis.call('ZADD', 'hasp:readers:' .. key, nowMs() + kept, value)
      settle(key)
    end
    announceExpiry(key, '+', tonumber(kept))
  elseif isReader then
    redis.call('ZREM', 'hasp:readers:' .. key, value)
    isFree = holds and settle(key, deadline)
  elseif holds then
    isFree = redis.call('DEL', key)
  end
  held[index], left[index] = holds, not isFree and found
  if holds then count = count + 1 end
  failure = failure or type(found) == 'table' and found
end`,
    // Takes the ticket out of the queues, or with its score puts it back if it has had a key.
    // Notifies who may be next where the value or the ticket was; and, unless it is a pool, where a
    // key is free.
    () =>
      `local waiting = false
for index, key in ipairs(KEYS) do
  local queue, own, changed = 'hasp:queue:' .. key, pooled and ticket .. index or ticket, held[index]
  if ticket and not score then
    changed = redis.pcall('ZREM', queue, own) == 1 or changed
  elseif count > 0 and score and type(redis.pcall('ZADD', queue, 'NX', score, own)) == 'number' then
    redis.pcall('PEXPIRE', queue, '${QUEUE_TTL_MS}')
  end
  local back = score and own
  if not left[index] and (changed or not pooled) then
    waiting = ensureTurn(key, held[index], back) > 0 or waiting
  elseif left[index] == 'hasp:shared' and changed then
    waiting = notifyReaders(key, 0, 0, back) or waiting
  end
end
return failure or count == (pooled and 1 or #KEYS) and (waiting and 2 or 1) or 0`,
  ),
  sha1: "c176193589adc1345e16ec75bef9fe0d07773460",
};
