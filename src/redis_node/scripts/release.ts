/**
 * The scripts that release a lock, or take a ticket out of queues, and notify the next waiter.
 *
 * @module
 */
import { NOTIFY, PASS } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` one resource; `ARGV` value: deletes the key if it holds the value. Returns 0 if it did not, 1 if it did, 3 if
 * it did and a waiter was notified. Without waiters it makes three calls.
 */
export const RELEASE: Script = {
  source: /* @__PURE__ */ lua(
    `local value = redis.call('GET', KEYS[1])
if value == ARGV[1] then
  redis.call('DEL', KEYS[1])
elseif value then
  return 0
end
if redis.pcall('EXISTS', 'hasp:queue:' .. KEYS[1]) == 0 then return value and 1 or 0 end
`,
    NOTIFY,
    `local notified = notify(KEYS[1])
return value and (notified and 3 or 1) or 0
`,
  ),
  sha1: "be0a990448ab9f4dffbe8db6b9fb416f0707e537",
};

/**
 * `KEYS` resources; `ARGV` value, and, if the lock was waited for, the ticket; and, if its client waits on, its score:
 * deletes the keys that hold the value. Takes the ticket out of the queues, or puts it back where a key held the value.
 * Notifies the next waiter of each key that is free, but not the ticket that is put back: it has just asked. Returns 0
 * if a key did not hold the value, 1 if all did, 3 if all did and a waiter was notified.
 */
export const RELEASE_QUEUED: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY,
    `local all, waiting, failure = true, false, nil
local ticket, score = ARGV[2], ARGV[3]
for _, key in ipairs(KEYS) do
  local queue = 'hasp:queue:' .. key
  local value = redis.pcall('GET', key)
  if value == ARGV[1] then
    redis.call('DEL', key)
  else
    all = false
    if type(value) == 'table' then failure = value end
  end
  if score then
    if value == ARGV[1] and type(redis.pcall('ZADD', queue, 'NX', score, ticket)) == 'number' then
      redis.pcall('PEXPIRE', queue, 180000)
    end
  elseif ticket then
    redis.pcall('ZREM', queue, ticket)
  end
  if value == ARGV[1] or not value then
    waiting = notify(key, score and ticket) or waiting
  end
end
return failure or (all and (waiting and 3 or 1) or 0)
`,
  ),
  sha1: "e0d8dd9c636257d65f5c34b984d75b6fc3a349a0",
};

/** `KEYS` resources; `ARGV` ticket: leaves the queues, and passes a notification on that may have come; 1. */
export const LEAVE: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY,
    PASS,
    `for _, key in ipairs(KEYS) do
  if redis.call('ZREM', 'hasp:queue:' .. key, ARGV[1]) == 1 then pass(key) end
end
return 1
`,
  ),
  sha1: "c79eddfa9bad13584ba2ae739f744b73c369ce4b",
};
