/**
 * The scripts that set the keys of a lock.
 *
 * @module
 */
import { FENCE } from "./fencing.ts";
import { NOTIFY, SCORE, TAKE } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/** `KEYS` resources; `ARGV` value, TTL: sets all keys, 1, or none, 0. A single key is a plain `SET NX PX`. */
export const ACQUIRE_ALL: Script = {
  source: `for _, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 then return 0 end
end
for _, key in ipairs(KEYS) do
  redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
end
return 1
`,
  sha1: "4df62321cd567593267878acb4c28e1f7a3cc4af",
};

/** Puts the ticket into the queues of all keys, and replies where it stands; 0 without one. */
export const JOIN = `if not ticket then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local score = scoreOf(KEYS, ticket, since, agreed, now)
local held, rank, length, foreign, holder = -2, 0, 0, 0, ''
for index, key in ipairs(KEYS) do
  local queue = 'hasp:queue:' .. key
  redis.call('ZADD', queue, score, ticket)
  redis.call('PEXPIRE', queue, 180000)
  rank = math.max(rank, redis.call('ZRANK', queue, ticket))
  length = math.max(length, redis.call('ZCARD', queue))
  if held ~= -1 then held = lives[index] == -1 and -1 or math.max(held, lives[index]) end
  local found = lives[index] ~= -2 and redis.pcall('GET', key)
  if found and found ~= 'hasp:shared' then
    if type(found) ~= 'string' then found = '' else holder = found end
    if (found .. ':'):match('^%x*():') ~= 41 then foreign = 1 end
  end
end
return { held, rank, length, score, now, foreign, holder, wait, ahead }
`;

/**
 * `KEYS` resources; `ARGV` value, TTL, the hint of a fencing token or an empty text; and, if its caller waits, ticket, stuck,
 * score and agreed: sets all keys and leaves their queues, or sets none and stands in their queues. Without a ticket it does
 * not look at the queues. Returns 1, or the counter, if all keys were set; 0 if not, without a ticket.
 *
 * A ticket stands in the queues of all keys, with one score. So among clients that ask for several keys, the one that has
 * waited longest comes to be the first in all its queues, and no two of them wait for each other. Being in one of the
 * queues proves the score for the others.
 *
 * A key is for the first ticket in its queue, even while it is free. But if that ticket is in `stuck`, with a space before
 * and behind it, the caller has waited for it: it takes the key, and drops all tickets ahead of its own. Those are notified:
 * one that asks again within a second gets its place back. `agreed` is no empty text if a quorum of nodes has put the ticket
 * in their queues with this score or an earlier one: then it passes tickets with later scores, even if it has lost its place
 * here.
 *
 * With a ticket it returns, if it sets none: how long the keys are held (as `PTTL` returns it; -2 if all are free, but others
 * are ahead), the number of tickets ahead, the number of all tickets, the ticket's score, the node's time in microseconds, 1
 * if a key holds what is no value of this library, else 0, and the value of a key, or an empty text; and if the keys are free,
 * how long to wait for the first ticket, and that ticket, else 0 and an empty text.
 */
export const ACQUIRE_OR_WAIT: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY,
    TAKE,
    SCORE,
    FENCE,
    `local value, ttl, hint, ticket, stuck, since, agreed = unpack(ARGV)
local blocked, lives, wait, ahead = false, {}, 0, ''
for index, key in ipairs(KEYS) do
  lives[index] = redis.call('PTTL', key)
  blocked = blocked or lives[index] ~= -2
end
for _, key in ipairs(ticket and not blocked and KEYS or {}) do
  local patience, notified = blocks(key, ticket, stuck, since, agreed)
  if patience then blocked, wait, ahead = true, math.max(wait, patience), notified end
end
if not blocked then
  for _, key in ipairs(ticket and KEYS or {}) do
    take(key, ticket, stuck)
  end
  local granted = hint == '' and 1 or fence(KEYS, hint)
  for _, key in ipairs(KEYS) do
    redis.call('SET', key, value, 'PX', ttl)
  end
  return granted
end
`,
    JOIN,
  ),
  sha1: "e63bc19322a1a1a0b07cecf832f80a4a1cc1a471",
};
