/**
 * The script that gives the keys of a lock another value.
 *
 * @module
 */
import { FENCE } from "./fencing.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` resources; `ARGV` value, TTL, the value that it replaces, and, with fencing tokens, the hint: gives all keys the
 * value if all of them hold the other one, and none of them a shorter TTL than it has. Replies 1, or the counter; 0 if a
 * key holds something else, -1 if some are missing and the others hold the replaced value: then nothing is done.
 * With the TTL 1, which no lock has, a failed adoption gives keys back: then each key that holds the value gets the other.
 *
 * So of all that ask to replace one value, one does on this node, and whatever the former holder sends afterwards
 * finds a value that is not its own.
 */
export const ADOPT: Script = {
  source: /* @__PURE__ */ lua(
    FENCE,
    `local held, reply = {}, -1
for _, key in ipairs(KEYS) do
  local value = redis.call('GET', key)
  if value == ARGV[3] then held[#held + 1] = key elseif value then reply = 0 end
end
if #held == #KEYS then
  reply = ARGV[4] and fence(KEYS, ARGV[4]) or 1
elseif ARGV[2] ~= '1' then
  return reply
end
for _, key in ipairs(held) do
  local ttl = math.max(redis.call('PTTL', key), tonumber(ARGV[2]))
  redis.call('SET', key, ARGV[1], 'PX', string.format('%.0f', ttl))
end
return reply
`,
  ),
  sha1: "1604a2051fc99c4ed7ad67ed626b8ea5e11c091e",
};
