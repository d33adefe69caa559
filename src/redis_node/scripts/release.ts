/**
 * Releasing locks ({@linkcode RELEASE}), or taking a ticket out of queues; and giving the next
 * waiter its turn.
 *
 * @module
 */
import { QUEUE_LUA, QUEUE_TTL_MS } from "./queue.ts";
import { READERS_LUA } from "./readers.ts";
import { lua, oneOf, oneOfEach, type Release, RELEASED, type ScriptOperation } from "./script.ts";

/**
 * Deletes each key that holds its value. Replies for each key: 0 if it did not, 1 if it did, 2 if
 * it did and others wait. If a key is free then, gives the first in its queue the turn; but if it
 * was missing before, only if nobody has a turn. Without waiters it makes three calls for all keys.
 * Keys of one lock have one value, and an error about one of them is the reply.
 */
export const RELEASE: ScriptOperation<Release> = {
  kind: "release",
  eachKey: true,
  argv: ({ value }) => [value],
  read: /* @__PURE__ */ oneOfEach(RELEASED),
  source: /* @__PURE__ */ lua(
    // Most releases are of one key that nobody waits for: they make no table, and no function. A
    // second value shows that the keys are of several locks.
    `local replies, failure
if KEYS[2] then
  local found, freed, queues = redis.pcall('MGET', unpack(KEYS)), {}, {}
  replies = {}
  for index, key in ipairs(KEYS) do
    local value = found[index] or redis.pcall('GET', key)
    replies[index] = 0
    if value == (ARGV[index] or ARGV[1]) then
      freed[#freed + 1], replies[index] = key, 1
    elseif type(value) == 'table' then
      replies[index], failure = value, not ARGV[2] and value
    end
    queues[index] = 'hasp:queue:' .. key
  end
  if freed[1] then redis.call('DEL', unpack(freed)) end
  if redis.pcall('EXISTS', unpack(queues)) == 0 then return failure or replies end
else
  local key = KEYS[1]
  local reply = redis.call('GET', key) == ARGV[1] and 1 or 0
  if reply == 1 then redis.call('DEL', key) end
  if redis.pcall('EXISTS', 'hasp:queue:' .. key) == 0 then return reply end
  replies = { reply }
end`,
    QUEUE_LUA,
    `for index, key in ipairs(KEYS) do
  local hadValue = replies[index] == 1
  local isFree = hadValue or redis.pcall('EXISTS', key) == 0
  if isFree and ensureTurn(key, hadValue) > 0 and hadValue then replies[index] = 2 end
end
return failure or KEYS[2] and replies or replies[1]`,
  ),
  sha1: "fd64bfa6c4ccd817c7425255b7042202a10bf0f8",
};

/**
 * Takes the value off the keys: deletes those that hold it, and those whose last reader it was.
 * Takes the ticket out of the queues, if the lock was waited for; or, if there is a score because
 * its client waits on, puts it back if a key held the value. Notifies the next waiter of each key
 * that is free, but not the ticket that is put back: it has just asked. If readers hold a key that
 * the value or the ticket has left, notifies those that may enter; if neither has, nothing has
 * changed for them. Returns 0 if a key did not hold the value, 1 if all did, 2 if all did and
 * others wait.
 *
 * A ticket for a pool is in the queues of all its keys, but only one key held the value: that is
 * enough for 1 or 2. Of the other keys, too, it notifies somebody only if the ticket has left the
 * queue: else the first in it has been notified before.
 */
export const RELEASE_QUEUED: ScriptOperation<Release> = {
  kind: "release",
  argv({ value, ticket, keepsTicket }) {
    if (!ticket) return [value];
    return [value, ticket.ticketId, ...keepsTicket ? [String(ticket.score)] : []];
  },
  read: /* @__PURE__ */ oneOf(RELEASED),
  source: /* @__PURE__ */ lua(
    QUEUE_LUA,
    READERS_LUA,
    // Takes the value off a key. Returns whether the key held it, and what the key holds now:
    // `false` if it is free.
    `local value, ticket, score = unpack(ARGV)
local function takeOff(key)
  local found, readers = redis.pcall('GET', key), 'hasp:readers:' .. key
  if found == value then
    redis.call('DEL', key)
    return true, false
  end
  local deadline = found == 'hasp:shared' and tonumber(redis.pcall('ZSCORE', readers, value))
  if not deadline then return false, found end
  local hadValue = deadline > nowMs()
  redis.call('ZREM', readers, value)
  return hadValue, not expireReaders(key, deadline) and found
end`,
    // Does so with all keys; an error is returned at the end.
    `local hadValue, found, count, failure = {}, {}, 0, nil
for index, key in ipairs(KEYS) do
  hadValue[index], found[index] = takeOff(key)
  if hadValue[index] then count = count + 1 end
  if type(found[index]) == 'table' then failure = found[index] end
end`,
    // Takes the ticket out of the queues; or with its score, if it has had a key, puts it back.
    // Notifies who may be next where the value or the ticket has left; and, unless it is a pool,
    // where a key was free.
    () =>
      `local pooled, waiting = ticket and ticket:sub(-1) == '.', false
for index, key in ipairs(KEYS) do
  local queue, own = 'hasp:queue:' .. key, pooled and ticket .. index or ticket
  local hasLeft = hadValue[index]
  if not score then
    hasLeft = ticket and redis.pcall('ZREM', queue, own) == 1 or hasLeft
  elseif count > 0 and type(redis.pcall('ZADD', queue, 'NX', score, own)) == 'number' then
    redis.pcall('PEXPIRE', queue, '${QUEUE_TTL_MS}')
  end
  if not found[index] and (hasLeft or not pooled) then
    waiting = ensureTurn(key, hadValue[index], score and own) > 0 or waiting
  elseif found[index] == 'hasp:shared' and hasLeft then
    waiting = notifyReaders(key, own) or waiting
  end
end
if failure then return failure end
return count < (pooled and 1 or #KEYS) and 0 or waiting and 2 or 1`,
  ),
  sha1: "67d2a7207e810e4af958fed95b32d6bdd5651206",
};
