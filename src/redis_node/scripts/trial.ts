/**
 * The script that tries what the other scripts call.
 *
 * @module
 */
import type { Script } from "./script.ts";

/** The commands that {@linkcode TRIAL} tries; it names each by its place here, from 1. */
export const TRIED: readonly string[] = [
  ...["GET", "DEL", "EXISTS", "PEXPIRE", "PTTL", "TYPE"],
  ...["ZADD", "ZCARD", "ZRANGE", "ZRANK", "ZREM", "ZREMRANGEBYSCORE", "ZSCORE"],
  ...["INCR", "DECR"],
];

/**
 * `KEYS` a key that is missing: calls the commands of the scripts that a diagnosis does not call
 * otherwise, and `TYPE`, on this key, its queue and its counter. Returns the numbers of the
 * commands that were refused, by their places in {@linkcode TRIED}.
 *
 * The calls change nothing, because all three keys are missing. The two commands that count would
 * create the counter; they are called only if it can be deleted again, which is done in the same
 * step. A counter that may not be deleted, though keys may, may not be accessed at all.
 */
export const TRIAL: Script = {
  source: `local key = KEYS[1]
local queue, fence = 'hasp:queue:' .. key, 'hasp:fence:' .. key
local refused = {}
local function try(number, ...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return true end
  refused[#refused + 1] = number
end
try(1, 'GET', key)
local deletes = try(2, 'DEL', key)
try(3, 'EXISTS', key)
try(4, 'PEXPIRE', key, 1)
try(5, 'PTTL', key)
try(6, 'TYPE', key)
try(7, 'ZADD', queue, 'XX', 1, '-')
try(8, 'ZCARD', queue)
try(9, 'ZRANGE', queue, 0, 0)
try(10, 'ZRANK', queue, '-')
try(11, 'ZREM', queue, '-')
try(12, 'ZREMRANGEBYSCORE', queue, 1, 0)
try(13, 'ZSCORE', queue, '-')
if deletes and try(14, 'DEL', fence) then
  try(14, 'INCR', fence)
  try(15, 'DECR', fence)
  redis.call('DEL', fence)
end
return refused
`,
  sha1: "0cb8ac34903e174306c5f9702d6b558b6b1cea2d",
};
