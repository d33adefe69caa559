/**
 * The script that gives the keys of a lock another value.
 *
 * @module
 */
import { FENCE } from "./fencing.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` resources; `ARGV` value, TTL, the value that it replaces, and, with fencing tokens, the
 * hint: gives all keys the value if all of them hold the other one, and none of them a shorter TTL
 * than it has. Replies 1, or the counter; 0 if a key holds something else, -1 if some are missing
 * and the others hold the replaced value: then nothing is done. With the TTL 1, which no lock has,
 * a failed adoption gives keys back: then each key that holds the value gets the other.
 *
 * Its first write is a `PEXPIRE`, which a server without memory allows: it refuses `SET`, but not
 * behind another write.
 *
 * So of all that ask to replace one value, one does on this node, and whatever the former holder
 * sends afterwards finds a value that is not its own.
 */
export const ADOPT: Script = {
  source: /* @__PURE__ */ lua(
    FENCE,
    `local value, ttl, replaces, hint = unpack(ARGV)
local held, reply = {}, -1
for _, key in ipairs(KEYS) do
  local found = redis.call('GET', key)
  if found == replaces then held[#held + 1] = key elseif found then reply = 0 end
end
if #held < #KEYS and ttl ~= '1' then return reply end
local lives = {}
for index, key in ipairs(held) do
  lives[index] = string.format('%.0f', math.max(redis.call('PTTL', key), tonumber(ttl)))
  redis.call('PEXPIRE', key, lives[index])
end
if #held == #KEYS then reply = hint and fence(KEYS, 0, hint, 1) or 1 end
for index, key in ipairs(held) do
  redis.call('SET', key, value, 'PX', lives[index])
end
return reply
`,
  ),
  sha1: "0d6ce63414714eb0dd29474d0e77d5a3b3781ed3",
};
