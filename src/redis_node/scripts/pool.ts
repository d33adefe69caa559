/**
 * The scripts of a call for any one of several keys, its pool.
 *
 * An attempt is for one key of the pool, and a node that denies it says which of the others are free. A ticket stands in
 * the queues of all keys of the pool, with one score. Its id ends with a dot, `<client id>:<number>:<patience>.`, and in
 * the queue of each key the number of the key follows, so that a notification says which key is free.
 *
 * @module
 */
import { FENCE } from "./fencing.ts";
import { NOTIFY, PASS, SCORE, TAKE } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` the pool; `ARGV` the number of the key that is asked for, from 1, value, TTL, the hint of a fencing token or an
 * empty text; and, if its caller waits, ticket, stuck, score and agreed: sets the key, leaves the queues of the pool, and
 * passes notifications for the others on. Returns 1, or the counter. If the key is held, or is for
 * another ticket, it sets nothing, and the ticket stands in all queues of the pool, with the score that it gets in that of
 * the key.
 *
 * The reply then is a list. Without a ticket it has a bit mask: 1 for the first key of the pool if it is free for the caller,
 * 2 for the second, and so on. With a ticket there are the parts that `ACQUIRE_OR_WAIT` returns: the shortest time for
 * which a key is held (-2 if one is free, but for another ticket), the least number of tickets ahead (if a key is free,
 * but for another ticket, that in its queue), the greatest number of all tickets, the ticket's score, the node's time,
 * whether a key holds what is no value of this library, and an empty text; how long to wait for the first ticket in the
 * queue of a key that is free, but for that ticket, and the ticket, else 0 and an empty text. The bit mask follows, and the
 * number of that key, or 0.
 *
 * A first ticket in `stuck` is overtaken as by `ACQUIRE_OR_WAIT`. If it waits for the same pool, it is dropped from all
 * queues of the pool, not from one queue after the other.
 */
export const ACQUIRE_ANY: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY,
    PASS,
    TAKE,
    SCORE,
    FENCE,
    `local place, value, ttl, hint, ticket, stuck, since, agreed = unpack(ARGV)
place = tonumber(place)
local key = KEYS[place]
local blocked = redis.call('EXISTS', key) == 1
if not blocked and ticket then blocked = blocks(key, ticket .. place, stuck, since, agreed) end
if not blocked then
  local first = ticket and take(key, ticket .. place, stuck)[1]
  local pooled = first and first:match('^(.*%.)%d+$') or ticket
  for index, name in ipairs(ticket and KEYS or {}) do
    if index ~= place then
      local left = redis.call('ZREM', 'hasp:queue:' .. name, ticket .. index, pooled .. index) > 0
      if left then pass(name) end
    end
  end
  local granted = hint == '' and 1 or fence({ key }, hint)
  redis.call('SET', key, value, 'PX', ttl)
  return granted
end
local free, bit, lives = 0, 1, {}
for index, name in ipairs(KEYS) do lives[index] = redis.call('PTTL', name) end
if not ticket then
  for _, life in ipairs(lives) do
    if life == -2 then free = free + bit end
    bit = bit * 2
  end
  return { free }
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local score = scoreOf({ key }, ticket .. place, since, agreed, now)
local held, ahead, length, foreign, kept, behind
local wait, first = 0, ''
for index, name in ipairs(KEYS) do
  local queue, own, life = 'hasp:queue:' .. name, ticket .. index, lives[index]
  redis.call('ZADD', queue, score, own)
  redis.call('PEXPIRE', queue, 180000)
  local rank = redis.call('ZRANK', queue, own)
  ahead = math.min(ahead or rank, rank)
  length = math.max(length or 0, redis.call('ZCARD', queue))
  if life == -2 and rank == 0 then
    free = free + bit
  elseif life == -2 then
    if not kept then
      kept, behind, first = index, rank, redis.call('ZRANGE', queue, 0, 0)[1]
      wait = patience(first)
    end
  else
    local found = redis.pcall('GET', name)
    if found ~= 'hasp:shared' and (type(found) ~= 'string' or (found .. ':'):match('^%x*():') ~= 41) then
      foreign = 1
    end
  end
  if life ~= -1 and (not held or held == -1 or life < held) then held = life end
  held = held or -1
  bit = bit * 2
end
return { held, behind or ahead, length, score, now, foreign or 0, '', wait, first, free, kept or 0 }
`,
  ),
  sha1: "63672c7635d70a570c0c426d9ce7592e026f4216",
};

/**
 * `KEYS` the pool; `ARGV` the number of a key, from 1, value, ticket; and, if its caller waits on, its score: deletes
 * the key if it holds the value and that is not empty. Takes the ticket out of the queues of the pool, or puts it back
 * where the key held the value. Notifies the next waiter of every key that so becomes free, but not the ticket that is
 * put back. Returns 1 if the key held the value, else 0.
 */
export const RELEASE_ANY: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY,
    PASS,
    `local place, value, ticket, score = unpack(ARGV)
place = tonumber(place)
local ours = value ~= '' and redis.pcall('GET', KEYS[place]) == value
if ours then redis.call('DEL', KEYS[place]) end
for index, name in ipairs(KEYS) do
  local queue, own = 'hasp:queue:' .. name, ticket .. index
  local left = false
  if not score then
    left = redis.call('ZREM', queue, own) == 1
  elseif ours and type(redis.pcall('ZADD', queue, 'NX', score, own)) == 'number' then
    redis.pcall('PEXPIRE', queue, 180000)
  end
  if left or ours and index == place then pass(name, score and own) end
end
return ours and 1 or 0
`,
  ),
  sha1: "7af4cb10e422ecfc5dedc076252beac119ef06a3",
};
