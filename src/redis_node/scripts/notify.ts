/**
 * The parts of scripts that notify clients in a queue: of every script that frees a key, or takes a
 * ticket out of a queue. The queue itself is described in `queue.ts`.
 *
 * @module
 */

/**
 * `notify(key, own, kept)` gives the turn for a key to the first ticket in its queue that is not
 * `busy`, and notifies it and the watchers: the next behind it, the fourth and the last ticket,
 * each with how long to wait for it. Drops tickets whose clients are gone: nobody subscribes to
 * their channels, or their waits are over. (`PUBLISH` counts those who subscribe to a pattern,
 * too.) If it is to be `kept`, a turn that is not over stays whose it is. Returns for how long the
 * caller waits; `false` if the ticket is `own`, if all others are busy, or if the node refuses what
 * it takes.
 *
 * `busy(ticket, key)` is whether a pool's ticket has its turn for another key: so each of several
 * keys that are free goes to another ticket. For that, the key is kept for as long as the turn
 * lasts, under the name that `duty` returns. It has what is common to the keys of most pools,
 * because a user may only have the right to names that begin with that, and a cluster to names with
 * their hash tag.
 *
 * `turn(key)` is the ticket in a key's queue whose turn it is, and how long its turn lasts yet: if
 * 0 or less, it is over.
 *
 * A ticket has its client's patience, in milliseconds: the farther a client is, the longer its
 * turn. And it has the end of its wait, in seconds: `remains(ticket)` is how long it waits yet, in
 * milliseconds, and `nil` if without end.
 */
export const NOTIFY_LUA = `local function publish(ticket, message)
  local id = ticket:match('^(.-):')
  return id and redis.pcall('PUBLISH', 'hasp:wake:' .. id, message) or 0
end
local function remains(ticket)
  local ends = tonumber(ticket:match('^[^:]*:%w+:%d+:(%d+)'))
  local time = ends and redis.pcall('TIME')
  return time and time[2] and (ends - time[1]) * 1000 - math.floor(time[2] / 1000)
end
local function gone(ticket)
  local id = ticket:match('^(.-):')
  return not id or (remains(ticket) or 1) <= 0 or redis.pcall('PUBSUB', 'NUMSUB', 'hasp:wake:' .. id)[2] == 0
end
local function patience(ticket)
  return math.min(tonumber(ticket:match('^[^:]*:%w+:(%d+)')) or 50, 1000)
end
local function watchers(queue, from)
  local near = redis.pcall('ZRANGE', queue, from, from + 3)
  if not near[1] then return {} end
  local last = redis.pcall('ZRANGE', queue, -1, -1)[1]
  return { near[1], near[4] or last, last }
end
local function duty(ticket, key)
  local id = ticket:match('^(.*%.)%d+$')
  return id and 'hasp:turn:' .. (key:match('^.*%W') or '') .. id, id
end
local function busy(ticket, key)
  local name, id = duty(ticket, key)
  local other = name and redis.pcall('GET', name)
  if type(other) ~= 'string' or other == key then return false end
  local whose = redis.pcall('GET', 'hasp:turn:' .. other)
  return type(whose) == 'string' and whose:sub(1, #id) == id
end
local function turn(key)
  local ticket = redis.pcall('GET', 'hasp:turn:' .. key)
  if type(ticket) ~= 'string' then return nil end
  if type(redis.pcall('ZSCORE', 'hasp:queue:' .. key, ticket)) ~= 'string' or gone(ticket) then return nil end
  return ticket, redis.pcall('PTTL', 'hasp:turn:' .. key) - 3000
end
local function notify(key, own, kept)
  local queue, rank, ticket, left = 'hasp:queue:' .. key, 0, nil, 0
  if kept then ticket, left = turn(key) end
  if ticket and ticket ~= own and left > 0 then return left end
  while true do
    local first = redis.pcall('ZRANGE', queue, rank, rank)[1]
    if not first or first == own then return false end
    if busy(first, key) then
      rank = rank + 1
    else
      local receivers = gone(first) and 0 or publish(first, first)
      if receivers ~= 0 then
        local wait, before, name = patience(first), first, duty(first, key)
        local set = redis.pcall('SET', 'hasp:turn:' .. key, first, 'PX', wait + 3000)
        if type(receivers) ~= 'number' or set.err then return false end
        if name then redis.pcall('SET', name, key, 'PX', wait) end
        for _, watcher in ipairs(watchers(queue, rank + 1)) do
          if watcher ~= before and watcher ~= own then
            local received = publish(watcher, watcher .. '+' .. wait)
            if received ~= 0 then wait = math.max(wait, patience(watcher)) + 50 end
          end
          before = watcher
        end
        return wait
      end
      if type(redis.pcall('ZREM', queue, first)) == 'table' then return false end
    end
  end
end
`;

/**
 * `rouse(key, own, from, known)` notifies, with an asterisk, the readers among four tickets in the
 * queue, up to the first writer's, but for as many as are `known` to have been notified. The fifth
 * watches the first of them. Drops tickets whose clients are gone. Returns whether somebody but
 * `own` waits. See `readers.ts`.
 *
 * `pass(key, own, held, kept)` is for every script after which somebody else may be the first. It
 * calls `notify` if the key is free, and `rouse` if readers hold it, and returns what that returns.
 * It does nothing if somebody else holds the key.
 */
export const PASS_LUA = `local function reads(ticket)
  return ticket:find('^[^:]*:R')
end
local function rouse(key, own, from, known)
  local queue, first = 'hasp:queue:' .. key, nil
  for index, ticket in ipairs(redis.pcall('ZRANGE', queue, from, from + 4)) do
    if gone(ticket) then
      redis.pcall('ZREM', queue, ticket)
      known = 0
    elseif ticket ~= own then
      first = first or ticket
      if not reads(ticket) then break end
      if index > 4 then
        publish(ticket, ticket .. '+' .. patience(first))
      elseif index > known then
        publish(ticket, ticket .. '*')
      end
    end
  end
  return first ~= nil
end
local function pass(key, own, held, kept)
  if not held then return notify(key, own, kept) end
  if held == 'hasp:shared' then return rouse(key, own, 0, 0) end
end
`;

/**
 * `take(key, own, overtakes)` takes a ticket out of a key's queue that is about to get the key, and
 * ends the turn for it. Reports to the watchers that the key is taken. If it `overtakes`, drops all
 * tickets ahead of it, too, but for those that are busy, and notifies each: one that asks again
 * gets its place back if a quorum has agreed on its score. Returns those.
 *
 * `blocks(key, own, since, agreed)`, of a free key: for how long `own` has to wait, because it is
 * another ticket's turn; gives the first its turn if nobody has one. `false` if it has not to, and
 * then also whether it overtakes: the turn of one ahead is over. If a quorum has `agreed` on the
 * score `since` of `own`, and the first's is later, it has only lost its place on this node.
 */
export const TAKE_LUA = `local function take(key, own, overtakes)
  local queue = 'hasp:queue:' .. key
  local rank = overtakes and (redis.call('ZRANK', queue, own) or 1) or 0
  local overtaken = {}
  for _, ticket in ipairs(rank > 0 and redis.call('ZRANGE', queue, 0, rank - 1) or {}) do
    if not busy(ticket, key) then
      overtaken[#overtaken + 1] = ticket
      redis.call('ZREM', queue, ticket)
      publish(ticket, ticket)
    end
  end
  redis.call('ZREM', queue, own)
  redis.call('DEL', 'hasp:turn:' .. key)
  local before
  for _, watcher in ipairs(watchers(queue, 0)) do
    if watcher ~= before then publish(watcher, watcher .. '-') end
    before = watcher
  end
  return overtaken
end
local function blocks(key, own, since, agreed)
  local first = redis.pcall('ZRANGE', 'hasp:queue:' .. key, 0, 0, 'WITHSCORES')
  if not first[1] or first[1] == own then return false end
  if agreed == '1' and tonumber(since) < tonumber(first[2]) then return false end
  local ticket, left = turn(key)
  if ticket == own then return false end
  if ticket and left > 0 then return left end
  if ticket then return false, true end
  return notify(key, own)
end
`;
