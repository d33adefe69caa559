/**
 * The script of a call for any one of several keys, its pool.
 *
 * An attempt is for one key of the pool, and a node that denies it says which of the others are
 * free. A ticket stands in the queues of all keys of the pool, with one score. Its id ends with a
 * dot, `<client id>:<number>:<patience>:<end>.`, and in the queue of each key the number of the key
 * follows, so that a notification says which key is free.
 *
 * @module
 */
import { FENCE_LUA } from "./fencing.ts";
import { QUEUE_LUA } from "./join.ts";
import { NOTIFY_LUA, PASS_LUA, TAKE_LUA } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` the pool; `ARGV` the number of the key that is asked for, from 1, value, TTL, the hint of
 * a fencing token or an empty text; and, if its caller waits, ticket, score and agreed: sets the
 * key, leaves the queues of the pool, and passes notifications for the others on. Returns 1, or the
 * counter. If the key is held, or is for another ticket, it sets nothing, and the ticket stands in
 * all queues of the pool, with the score that it gets in that of the key.
 *
 * The reply then is a list. Without a ticket it has a bit mask: 1 for the first key of the pool if
 * it is free for the caller, 2 for the second, and so on. With a ticket there are the parts that
 * `ACQUIRE_OR_WAIT` returns: the shortest time for which a key is held (-2 if one is free, but for
 * another ticket), the least number of tickets ahead (if a key is free, but for another ticket,
 * that in its queue), the greatest number of all tickets, the ticket's score, the node's time,
 * whether a key holds what is no value of this library, and an empty text; how long it is another's
 * turn for a key that is free, else 0. The bit mask follows, and the number of that key, or 0.
 *
 * If enough keys are free for all who are ahead of the caller, it may have one although it is
 * another such ticket's turn for that (`shares`): nodes that freed keys in different orders gave
 * the turns to different tickets, so each of these would have the votes of some nodes only.
 *
 * A ticket whose turn is over is overtaken as by `ACQUIRE_OR_WAIT`: all that are ahead and wait for
 * the same pool are dropped from all its queues, not from one queue after the other.
 */
export const ACQUIRE_ANY: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY_LUA,
    PASS_LUA,
    TAKE_LUA,
    QUEUE_LUA,
    FENCE_LUA,
    `local place, value, ttl, hint, ticket, since, agreed = unpack(ARGV)
place = tonumber(place)
local spare = ticket and #KEYS - redis.call('EXISTS', unpack(KEYS))
local function shares(rank, whose)
  return rank and rank < spare and type(whose) == 'string' and whose:match('%.%d+$')
end
local key = KEYS[place]
local blocked = redis.call('EXISTS', key) == 1
local overtakes
if not blocked and ticket then
  blocked, overtakes = blocks(key, ticket .. place, since, agreed)
  local rank = blocked and redis.call('ZRANK', 'hasp:queue:' .. key, ticket .. place)
  if shares(rank, redis.pcall('GET', 'hasp:turn:' .. key)) then blocked = false end
end
if not blocked then
  local leaving = ticket and take(key, ticket .. place, overtakes) or {}
  leaving[#leaving + 1] = ticket and ticket .. place
  for index, name in ipairs(ticket and KEYS or {}) do
    if index ~= place then
      local names = {}
      for _, one in ipairs(leaving) do names[#names + 1] = (one:match('^(.*%.)%d+$') or one) .. index end
      local left = redis.call('ZREM', 'hasp:queue:' .. name, unpack(names)) > 0
      if left then pass(name, nil, redis.pcall('GET', name), true) end
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
local length, foreign, wait = 0, 0, 0
for index, name in ipairs(KEYS) do
  local life, rank, size = lives[index], stand(name, ticket .. index, score)
  ahead, length = math.min(ahead or rank, rank), math.max(length, size)
  if life ~= -2 then
    foreign = math.max(foreign, (holderOf(name)))
    if index == place then redis.call('DEL', 'hasp:turn:' .. name) end
  else
    local whose, left = turn(name)
    if rank == 0 or whose == ticket .. index or shares(rank, whose) then
      free = free + math.floor(2 ^ (index - 1))
    elseif not kept then
      kept, behind = index, rank
      wait = whose and math.max(left, 1) or patience(redis.call('ZRANGE', 'hasp:queue:' .. name, 0, 0)[1])
    end
  end
  if life ~= -1 and (not held or held == -1 or life < held) then held = life end
  held = held or -1
end
return { held, behind or ahead, length, score, now, foreign, '', wait, free, kept or 0 }
`,
  ),
  sha1: "31ee18b1410786d353267c775e0661e20f2ef2c7",
};
