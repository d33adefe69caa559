/**
 * The parts of scripts that put a ticket into queues, and say where it stands. The queue itself is
 * described in `queue.ts`.
 *
 * @module
 */

/**
 * `scoreOf(keys, ticket, since, agreed)` is the score that a ticket gets in the queues of the keys:
 * `since`, unless `queue.ts` says that it is another. Also returns the node's time. All times are
 * in microseconds.
 *
 * `stand(key, ticket, score)` puts a ticket into a key's queue. Returns how many are ahead of it
 * there, and how many there are.
 *
 * `holderOf(key)`, of a key that is held: 1 if what it holds is no value of this library, else 0,
 * and the value if it is a text. If readers hold it, the value of the one with the latest deadline.
 */
export const QUEUE_LUA = `local function scoreOf(keys, ticket, since, agreed)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local score, known, last = tonumber(since), nil, nil
  for _, key in ipairs(keys) do
    local queue = 'hasp:queue:' .. key
    known = tonumber(redis.call('ZSCORE', queue, ticket) or nil) or known
    last = tonumber(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]) or last
  end
  if score > now + 250000 then score = known or now + 250000 end
  if known then return math.max(score, known), now end
  if agreed == '' and last and score < last - 250000 then return last + 1, now end
  return score, now
end
local function stand(key, ticket, score)
  local queue = 'hasp:queue:' .. key
  redis.call('ZADD', queue, score, ticket)
  redis.call('PEXPIRE', queue, 180000)
  return redis.call('ZRANK', queue, ticket), redis.call('ZCARD', queue)
end
local function holderOf(key)
  local found = redis.pcall('GET', key)
  if found == 'hasp:shared' then return 0, redis.pcall('ZRANGE', 'hasp:readers:' .. key, -1, -1)[1] end
  if type(found) ~= 'string' then return 1 end
  return (found .. ':'):match('^%x*():') == 41 and 0 or 1, found
end
`;

/**
 * The end of a script that sets nothing: puts the ticket into the queues of all keys, and replies
 * where it stands; 0 without one. By then there are `lives`, what `PTTL` says of each key, and
 * `wait`, what `blocks` returned. A key that is held is nobody's turn.
 */
export const JOIN_LUA = `if not ticket then return 0 end
local score, now = scoreOf(KEYS, ticket, since, agreed)
local held, ahead, length, foreign, holder = -2, 0, 0, 0, ''
for index, key in ipairs(KEYS) do
  local life, rank, size = lives[index], stand(key, ticket, score)
  ahead, length = math.max(ahead, rank), math.max(length, size)
  if held ~= -1 then held = life == -1 and -1 or math.max(held, life) end
  if life ~= -2 then
    local isForeign, value = holderOf(key)
    foreign, holder = math.max(foreign, isForeign), value or holder
    redis.pcall('DEL', 'hasp:turn:' .. key)
  end
end
return { held, ahead, length, score, now, foreign, holder, wait }
`;
