/**
 * The parts of scripts that notify clients in a queue: of every script that frees a key, or takes a ticket out of a queue.
 * The queue itself is described in `queue.ts`.
 *
 * @module
 */

/**
 * `notify(key, own)` notifies the first ticket in a key's queue, and the watchers: the second, the fifth and the last
 * ticket. Each watcher gets the first's ticket and how long to wait for it. Drops first tickets whose clients are gone:
 * nobody subscribes to their channels. (`PUBLISH` counts those who subscribe to a pattern, too.) Returns for how long the
 * caller waits for the first, and the first. Returns `false` if it notified nobody, because the first ticket is `own`,
 * because the queue is empty, or because the node refuses what it takes.
 *
 * A ticket has its client's patience at its end, in milliseconds: the farther a client is, the longer it is waited for.
 */
export const NOTIFY = `local function publish(ticket, message)
  local id = ticket:match('^(.-):')
  return id and redis.pcall('PUBLISH', 'hasp:wake:' .. id, message) or 0
end
local function gone(ticket)
  local id = ticket:match('^(.-):')
  return not id or redis.pcall('PUBSUB', 'NUMSUB', 'hasp:wake:' .. id)[2] == 0
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
local function notify(key, own)
  local queue = 'hasp:queue:' .. key
  while true do
    local first = redis.pcall('ZRANGE', queue, 0, 0)[1]
    if not first or first == own then return false end
    local receivers = gone(first) and 0 or publish(first, first)
    if receivers ~= 0 then
      if type(receivers) ~= 'number' then return false end
      local wait, before = patience(first), first
      for _, watcher in ipairs(watchers(queue, 1)) do
        if watcher ~= before and watcher ~= own then
          local received = publish(watcher, watcher .. '+' .. wait .. ':' .. first)
          if received ~= 0 then wait = math.max(wait, patience(watcher)) + 50 end
        end
        before = watcher
      end
      return wait, first
    end
    if type(redis.pcall('ZREM', queue, first)) == 'table' then return false end
  end
end
`;

/**
 * `rouse(key, own, from, known)` notifies the readers among four tickets in the queue, up to the first writer's, but for as
 * many as are `known` to have been notified. The fifth watches the first of them. Drops tickets whose clients are gone.
 * Returns whether somebody but `own` waits. See `readers.ts`.
 *
 * `pass(key, own, held)` is `notify` if the key is free, and `rouse` if readers hold it, by what it holds: of every script
 * after which somebody else may be the first. Returns nothing, or `false`, if nobody waits.
 */
export const PASS = `local function reads(ticket)
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
        publish(ticket, ticket .. '+' .. patience(first) .. ':' .. first)
      elseif index > known then
        publish(ticket, ticket)
      end
    end
  end
  return first ~= nil
end
local function pass(key, own, held)
  if not held then return notify(key, own) end
  if held == 'hasp:shared' then return rouse(key, own, 0, 0) end
end
`;

/**
 * `take(key, own, stuck)` takes a ticket out of a key's queue that is about to get the key, and reports to the watchers
 * that the key is taken. If `stuck` is no empty text, drops all tickets ahead of it too, and notifies each: one that asks
 * again within a second gets its place back. Returns those and their scores.
 *
 * `blocks(key, own, stuck, since, agreed)` is `notify`, but if the first is one of the tickets in `stuck` that `own` has
 * waited for, with a space before and behind each, it notifies nobody and returns `false`. So it does if a quorum has
 * `agreed` on the score `since` of `own`, and the first's is later: then `own` has only lost its place on this node.
 */
export const TAKE = `local function take(key, own, stuck)
  local queue = 'hasp:queue:' .. key
  local rank = stuck == '' and 0 or redis.call('ZRANK', queue, own) or 1
  local overtaken = rank > 0 and redis.call('ZRANGE', queue, 0, rank - 1, 'WITHSCORES') or {}
  for index = 1, #overtaken, 2 do
    redis.call('ZREM', queue, overtaken[index])
    redis.pcall('SET', 'hasp:late:' .. overtaken[index], overtaken[index + 1], 'PX', 1000)
    publish(overtaken[index], overtaken[index])
  end
  redis.call('ZREM', queue, own)
  local before
  for _, watcher in ipairs(watchers(queue, 0)) do
    if watcher ~= before then publish(watcher, watcher .. '-') end
    before = watcher
  end
  return overtaken
end
local function blocks(key, own, stuck, since, agreed)
  if stuck ~= '' or agreed == '1' then
    local first = redis.pcall('ZRANGE', 'hasp:queue:' .. key, 0, 0, 'WITHSCORES')
    if first[1] and stuck:find(' ' .. first[1] .. ' ', 1, true) then return false end
    if first[2] and agreed == '1' and tonumber(since) < tonumber(first[2]) then return false end
  end
  return notify(key, own)
end
`;
