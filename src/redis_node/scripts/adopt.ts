/**
 * The scripts that give the keys of a lock another value, and give them back the one they had.
 *
 * @module
 */
import { FENCE_LUA } from "./fencing.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` resources; `ARGV` value, TTL, the value that it replaces, and, with fencing tokens, the
 * hint: gives all keys the value if all of them hold the other one, and none of them a shorter TTL
 * than it has. Replies 1, or the counter; 0 if a key holds something else, -1 if some are missing
 * and the others hold the replaced value: then nothing is done.
 *
 * Its first write is a `PEXPIRE`, which a server without memory allows: it refuses `SET`, but not
 * behind another write.
 *
 * So of all that ask to replace one value, one does on this node, and whatever the former holder
 * sends afterwards finds a value that is not its own.
 */
export const ADOPT: Script = {
  source: /* @__PURE__ */ lua(
    FENCE_LUA,
    `local value, ttl, replaces, hint = unpack(ARGV)
local held, reply = {}, -1
for _, key in ipairs(KEYS) do
  local found = redis.call('GET', key)
  if found == replaces then held[#held + 1] = key elseif found then reply = 0 end
end
if #held < #KEYS then return reply end
local lives = {}
for index, key in ipairs(held) do
  lives[index] = string.format('%.0f', math.max(redis.call('PTTL', key), tonumber(ttl)))
  redis.call('PEXPIRE', key, lives[index])
end
reply = hint and fence(KEYS, 0, hint, 1) or 1
for index, key in ipairs(held) do
  redis.call('SET', key, value, 'PX', lives[index])
end
return reply
`,
  ),
  sha1: "997a0c1399e149993027a80ae4ccde164519b114",
};

/**
 * `KEYS` resources; `ARGV` value, and the one that it has replaced: each key that holds the value
 * gets the former one back, with the TTL that it has. Replies 1 if all keys held the value, else 0.
 * Its first write is a `PEXPIRE`, as that of {@linkcode ADOPT}.
 */
export const GIVE_BACK: Script = {
  source: `local value, former = ARGV[1], ARGV[2]
local count = 0
for _, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == value then
    local lives = math.max(redis.call('PTTL', key), 1)
    redis.call('PEXPIRE', key, lives)
    redis.call('SET', key, former, 'PX', lives)
    count = count + 1
  end
end
return count == #KEYS and 1 or 0
`,
  sha1: "d25567cee84171598a579b0df256289a7b68ddfd",
};
