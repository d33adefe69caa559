/**
 * The scripts that count fencing tokens.
 *
 * @module
 */
import { ACQUIRE_KEYS } from "./acquire.ts";
import { EXTEND_KEYS } from "./extend.ts";
import { NOTIFY } from "./queue.ts";
import { lua, type Script } from "./script.ts";

/**
 * The counter of fencing tokens of `key`.
 *
 * @param key The key of a resource.
 */
export function counterKey(key: string): string {
  return `hasp:fence:${key}`;
}

/**
 * The counters of fencing tokens, `hasp:fence:<key>`. Several keys share the highest count, so that one token is above all
 * earlier ones of each. A count is written by `string.format`, as `tostring` keeps fourteen digits.
 */
const FENCE = `local function counter(key)
  return 'hasp:fence:' .. key
end
local function count(key)
  return tonumber(redis.call('GET', counter(key)))
end
local function lift(keys, token)
  local highest = tonumber(token)
  for _, key in ipairs(keys) do highest = math.max(highest, count(key) or 0) end
  for _, key in ipairs(keys) do
    redis.call('SET', counter(key), string.format('%.0f', highest), 'PX', 604800000)
  end
  return highest
end
local function fence(keys, hint)
  local highest = 0
  for _, key in ipairs(keys) do
    local last = count(key)
    if not last then
      local time = redis.call('TIME')
      last = math.max(time[1] * 1000000 + time[2], tonumber(hint))
    end
    highest = math.max(highest, last + 1)
  end
  return lift(keys, highest)
end
`;

/**
 * `KEYS` one resource and its counter, `ARGV` value, TTL, hint: sets the key and counts, in as few calls as can be; the
 * count, or 0 where the key is there. A counter that is missing starts from the hint or the node's clock.
 */
export const ACQUIRE_COUNTED: Script = {
  source: `if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
local count = redis.call('INCR', KEYS[2])
if count > 1 then
  redis.call('PEXPIRE', KEYS[2], 604800000)
else
  local time = redis.call('TIME')
  count = math.max(time[1] * 1000000 + time[2], tonumber(ARGV[3])) + 1
  redis.call('SET', KEYS[2], string.format('%.0f', count), 'PX', 604800000)
end
return count
`,
  sha1: "ef9652faca7c0fa35799c0e3911ab250ec991f42",
};

/**
 * As {@linkcode ACQUIRE_OR_WAIT}, with the hint for counters that are missing, and a ticket that may be empty: then
 * it joins no queue, and returns 0 if a key is in the way. The count is the answer where all were set.
 */
export const ACQUIRE_FENCED: Script = {
  source: /* @__PURE__ */ lua(NOTIFY, FENCE, ACQUIRE_KEYS),
  sha1: "e6bc8e9bc6f27028e0d7f1988aaa9b911fdcbe9b",
};

/** As {@linkcode EXTEND}, and lifts the counters to the token in `ARGV[3]`: those of keys set again as well. */
export const EXTEND_FENCED: Script = {
  source: /* @__PURE__ */ lua(
    FENCE,
    EXTEND_KEYS,
    "lift(KEYS, ARGV[3])\nreturn missing and 2 or 1\n",
  ),
  sha1: "8145a90135cff84a0b62e94025b8322cc88c5743",
};

/** `KEYS` resources; `ARGV` value, token: lifts the counters to the token; the count then, or 0 where a key is not ours. */
export const RAISE: Script = {
  source: /* @__PURE__ */ lua(
    FENCE,
    `for _, key in ipairs(KEYS) do
  if redis.call('GET', key) ~= ARGV[1] then return 0 end
end
return lift(KEYS, ARGV[2])
`,
  ),
  sha1: "dc79ea55f36e2d83c8a397daac168070f15ab040",
};
