/**
 * The scripts that release a lock, or take a ticket out of queues, and notify the next waiter.
 *
 * @module
 */
import { NOTIFY_LUA, PASS_LUA } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` one resource; `ARGV` value: deletes the key if it holds the value. Returns 0 if it did
 * not, 1 if it did, 2 if it did and a waiter was notified. If the key is missing, gives the first
 * its turn unless somebody has it. Without waiters it makes three calls.
 */
export const RELEASE: Script = {
  source: /* @__PURE__ */ lua(
    `local key, value = KEYS[1], ARGV[1]
local found = redis.call('GET', key)
if found == value then
  redis.call('DEL', key)
elseif found then
  return 0
end
if redis.pcall('EXISTS', 'hasp:queue:' .. key) == 0 then return found and 1 or 0 end
`,
    NOTIFY_LUA,
    `local notified = notify(key, nil, not found)
return found and (notified and 2 or 1) or 0
`,
  ),
  sha1: "0047e9e665a907fc26d18f36ad03209f8f60d35d",
};

/**
 * Takes a value off keys by `drop(key, value)`, and a ticket out of the queues, or puts it back.
 * `drop` returns whether the key held the value, and what it holds now: `false` if it is free,
 * perhaps an error.
 */
export const RELEASE_LUA = `local value, ticket, score = unpack(ARGV)
local pooled = ticket and ticket:sub(-1) == '.'
local ours, held, count, failure = {}, {}, 0, nil
for index, key in ipairs(KEYS) do
  ours[index], held[index] = drop(key, value)
  if ours[index] then count = count + 1 end
  failure = failure or type(held[index]) == 'table' and held[index]
end
local waiting = false
for index, key in ipairs(KEYS) do
  local queue, own, left = 'hasp:queue:' .. key, ticket, false
  if pooled then own = ticket .. index end
  if ticket and not score then
    left = redis.pcall('ZREM', queue, own) == 1
  elseif count > 0 and score and type(redis.pcall('ZADD', queue, 'NX', score, own)) == 'number' then
    redis.pcall('PEXPIRE', queue, 180000)
  end
  if left or ours[index] or not (held[index] or pooled) then
    waiting = pass(key, score and own, held[index], not ours[index]) or waiting
  end
end
return failure or count == (pooled and 1 or #KEYS) and (waiting and 2 or 1) or 0
`;

/**
 * `KEYS` resources; `ARGV` value, and, if the lock was waited for, the ticket; and, if its client
 * waits on, its score: deletes the keys that hold the value. Takes the ticket out of the queues, or
 * puts it back if a key held the value. Notifies the next waiter of each key that is free, but not
 * the ticket that is put back: it has just asked. If readers hold a key whose queue the ticket has
 * left, notifies those that may enter. Returns 0 if a key did not hold the value, 1 if all did, 2
 * if all did and a waiter was notified.
 *
 * A ticket for a pool is in the queues of all its keys, and only one of them held the value: 1 or 2
 * then. Of the others, those are notified whose queue the ticket has left: each key that is free
 * has notified its first before.
 */
export const RELEASE_QUEUED: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY_LUA,
    PASS_LUA,
    `local function drop(key, value)
  local found = redis.pcall('GET', key)
  if found ~= value then return false, found end
  redis.call('DEL', key)
  return true, false
end
`,
    RELEASE_LUA,
  ),
  sha1: "9db53c04783f5f872f4190c9d44e60e37d7247a1",
};

/**
 * `KEYS` resources; `ARGV` a ticket, whose client waits no longer: takes it out of the queues.
 * Notifies those who may be next where it was, if the key is free or readers hold it. A ticket for
 * a pool is in the queues of all its keys. Returns 1.
 */
export const LEAVE: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY_LUA,
    PASS_LUA,
    `local ticket = ARGV[1]
local pooled = ticket:sub(-1) == '.'
for index, key in ipairs(KEYS) do
  local own = pooled and ticket .. index or ticket
  if redis.pcall('ZREM', 'hasp:queue:' .. key, own) == 1 then
    pass(key, nil, redis.pcall('GET', key), true)
  end
end
return 1
`,
  ),
  sha1: "3b8437b82222e0c19b0934423d66668ebe72ee5a",
};
