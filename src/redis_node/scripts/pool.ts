/**
 * The script of a call for any one of several keys, its pool.
 *
 * An attempt is for one key of the pool, and a node that denies it says which of the others are free. A ticket stands in
 * the queues of all keys of the pool, with one score. Its id ends with a dot, `<client id>:<number>:<patience>.`, and in
 * the queue of each key the number of the key follows, so that a notification says which key is free.
 *
 * @module
 */
import { FENCE } from "./fencing.ts";
import { JOINING } from "./join.ts";
import { NOTIFY, PASS, TAKE } from "./notify.ts";
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
    JOINING,
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
      if left then pass(name, nil, redis.pcall('GET', name)) end
    end
  end
  local granted = hint == '' and 1 or fence({ key }, 0, hint, 1)
  redis.call('SET', key, value, 'PX', ttl)
  return granted
end
local free, lives = 0, {}
for index, name in ipairs(KEYS) do lives[index] = redis.call('PTTL', name) end
if not ticket then
  for index, life in ipairs(lives) do
    if life == -2 then free = free + math.floor(2 ^ (index - 1)) end
  end
  return { free }
end
local score, now = scoreOf({ key }, ticket .. place, since, agreed)
local held, ahead, kept, behind
local length, foreign, wait, first = 0, 0, 0, ''
for index, name in ipairs(KEYS) do
  local life, rank, size = lives[index], stand(name, ticket .. index, score)
  ahead, length = math.min(ahead or rank, rank), math.max(length, size)
  if life ~= -2 then
    foreign = math.max(foreign, (holderOf(name)))
  elseif rank == 0 then
    free = free + math.floor(2 ^ (index - 1))
  elseif not kept then
    kept, behind, first = index, rank, redis.call('ZRANGE', 'hasp:queue:' .. name, 0, 0)[1]
    wait = patience(first)
  end
  if life ~= -1 and (not held or held == -1 or life < held) then held = life end
  held = held or -1
end
return { held, behind or ahead, length, score, now, foreign, '', wait, first, free, kept or 0 }
`,
  ),
  sha1: "e72077a82c276a18c6f3b7f43dc7ba15ae8a0120",
};
