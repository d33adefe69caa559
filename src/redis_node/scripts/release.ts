/**
 * The scripts that release a lock and notify the next waiter.
 *
 * @module
 */
import { NOTIFY } from "./queue.ts";
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
  sha1: "858da155840289bc97455dd4eb42aad68ca4ff51",
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
  sha1: "ef97c494103082397b5cae930a7f360586e9bdd3",
};
