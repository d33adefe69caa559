/**
 * The script that tries what the other scripts call.
 *
 * @module
 */
import type { Script } from "./script.ts";

/**
 * `KEYS` a key that is missing: calls every command that the scripts of locks call, on this key, its queue and its
 * counter. Returns one text for each command that was refused: its name, a space, and the error.
 *
 * The calls change nothing, because all three keys are missing. The two commands that count would create the counter;
 * they are called only if it can be deleted again, which is done in the same step. If no key but the counter resists
 * `DEL`, the user may not access counters.
 */
export const TRIAL: Script = {
  source: `local key = KEYS[1]
local queue, fence = 'hasp:queue:' .. key, 'hasp:fence:' .. key
local refused = {}
local function failure(...)
  local reply = redis.pcall(...)
  return type(reply) == 'table' and reply.err
end
local function try(command, ...)
  local err = failure(command, ...)
  if err then refused[#refused + 1] = command .. ' ' .. err end
  return err
end
try('GET', key)
try('EXISTS', key)
try('PEXPIRE', key, 1)
try('PTTL', key)
try('TYPE', key)
try('ZADD', queue, 'XX', 1, '-')
try('ZCARD', queue)
try('ZRANGE', queue, 0, 0)
try('ZRANK', queue, '-')
try('ZREM', queue, '-')
try('ZSCORE', queue, '-')
if not try('DEL', key) then
  local err = failure('DEL', fence)
  if err then
    refused[#refused + 1] = 'INCR ' .. err
  else
    try('INCR', fence)
    try('DECR', fence)
    redis.call('DEL', fence)
  end
end
return refused
`,
  sha1: "0d96415463a69c920f9103457a734acd5767e481",
};
