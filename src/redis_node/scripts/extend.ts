/**
 * The script that extends a lock.
 *
 * @module
 */
import type { Script } from "./script.ts";

/**
 * `KEYS` resources; `ARGV` value, TTL, and anything to shorten. Gives the TTL to every key that
 * holds the value and would live shorter; to shorten, as the end of a lock does, to every key that
 * holds the value. Replies 1 if all keys hold it, 2 if some are missing and the others hold it, 0
 * if one holds another value: then nothing is done.
 *
 * It never sets a key, because nothing that is not certain to be held may come back: the client
 * that asked may have lost the lock by the time that this runs. A missing key is set again by a
 * command of its own, once a quorum has extended the lock.
 */
export const EXTEND: Script = {
  source: `local value, ttl, shortens = ARGV[1], ARGV[2], ARGV[3]
local reply = 1
for _, key in ipairs(KEYS) do
  local found = redis.call('GET', key)
  if not found then reply = 2 elseif found ~= value then return 0 end
end
for _, key in ipairs(KEYS) do
  if shortens or redis.call('PTTL', key) < tonumber(ttl) then redis.call('PEXPIRE', key, ttl) end
end
return reply
`,
  sha1: "4c29a97fed79451a37bc252646d5dd91d9f1eb6e",
};
