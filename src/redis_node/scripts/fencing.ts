/**
 * The scripts that count fencing tokens.
 *
 * The counter of a key is the string `hasp:fence:<key>`: microseconds since 1970 when it was
 * created or renewed, plus one for each lock since. {@linkcode COUNTER_TTL_MS} documents how long
 * it lives, and why it never falls.
 *
 * Only decimal digits that make a safe integer are a counter. Anything else under that name is an
 * error, and stays as it is. A missing counter is 0, and so is a counter of 0.
 *
 * @module
 */
import { lua, type Script } from "./script.ts";

/** What precedes a key in the name of its counter. */
export const COUNTER_PREFIX = "hasp:fence:";

/**
 * `fence(keys, token, hint, step)` gives the counters of all keys one value: the token, or the
 * highest that one of them calls for, if that is more. A counter calls for its own value and a
 * step, a missing one for the clock. So a lock on several keys, for which the step is 1, has one
 * token, which exceeds all earlier ones of each key.
 *
 * Numbers are written by `string.format`, because `tostring` keeps only fourteen digits.
 */
export const FENCE_LUA = `local function countOf(key)
  local name = 'hasp:fence:' .. key
  local text = redis.call('GET', name) or '0'
  local value = (text == '0' or text:find('^[1-9]%d*$')) and tonumber(text)
  if value and value < 9007199254740991 then return value end
  error('WRONGTYPE this is no fencing counter: ' .. name)
end
local function fence(keys, token, hint, step)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local start = math.abs(hint - now) > 60000000 and now or tonumber(hint)
  local highest = token
  for _, key in ipairs(keys) do
    local count = countOf(key)
    highest = math.max(highest, count > 0 and count + step or start)
  end
  if highest > 9007199254740991 then error('WRONGTYPE the clock is beyond all fencing counters') end
  local ttl = 691200000 + math.max(0, math.ceil((highest - now) / 1000))
  local count, life = string.format('%.0f', highest), string.format('%.0f', ttl)
  for _, key in ipairs(keys) do
    redis.call('SET', 'hasp:fence:' .. key, count, 'PX', life)
  end
  return highest
end
`;

/**
 * `KEYS` one resource; `ARGV` value, TTL, hint. Sets the key and counts; replies with the counter,
 * or 0 if the key exists.
 *
 * The common path makes two calls. The counter's own value shows when it is due for a longer life:
 * when it is a day behind the clock it is replaced by the clock, together with its TTL. The
 * client's hint stands in for the clock in that question, so that a counter that is not due costs
 * no look at the clock; the node's clock has the last word. The TTL is quoted, and a hint that
 * becomes the counter stays the text that the client sent: to write a number as text takes as long
 * as another command.
 */
export const ACQUIRE_COUNTED: Script = {
  source: `local key, value, ttl, hint = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
if not redis.call('SET', key, value, 'NX', 'PX', ttl) then return 0 end
local name = 'hasp:fence:' .. key
local count = redis.pcall('INCR', name)
if type(count) == 'table' then return redis.error_reply(count.err .. ': ' .. name) end
if count > 1 and count > hint - 86400000000 and count <= 9007199254740991 then return count end
local time = redis.call('TIME')
local start, text = time[1] * 1000000 + time[2], nil
if math.abs(hint - start) <= 60000000 then start, text = hint, ARGV[3] end
if count < 1 or math.max(count, start) > 9007199254740991 then
  redis.call('DECR', name)
  return redis.error_reply('WRONGTYPE this is no fencing counter: ' .. name)
end
if count > 1 and count > start - 86400000000 then return count end
redis.call('SET', name, text or string.format('%.0f', start), 'PX', '691200000')
return start
`,
  sha1: "3df67d757f3b5cf4c7f29c5ea58aeba2d379b181",
};

/**
 * `KEYS` resources; `ARGV` value, token. Raises the counters to the token if all keys hold the
 * value; replies with the counter then, or 0 if a key does not hold it. A missing counter starts
 * from the clock if that is more, because the node may have lost one that was above the token. The
 * `PEXPIRE` in front has a server without memory take the rest.
 */
export const RAISE: Script = {
  source: /* @__PURE__ */ lua(
    FENCE_LUA,
    `local value, token = ARGV[1], tonumber(ARGV[2])
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) ~= value then return 0 end
end
redis.call('PEXPIRE', 'hasp:fence:' .. KEYS[1], 691200000)
return fence(KEYS, token, token, 0)
`,
  ),
  sha1: "b9a888e183854194a99770041628fb7a6147c261",
};
