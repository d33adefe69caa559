/**
 * Counting fencing tokens.
 *
 * The counter of a key is the string `hasp:fence:<key>`: microseconds since 1970 when it was
 * created or renewed, plus one for each lock since. Why it never falls is in `fencing/token.ts`.
 *
 * Only decimal digits that make a safe integer are a counter. Anything else under that name is an
 * error, and stays as it is. A counter of 0 counts as missing.
 *
 * @module
 */
import { DENIED, GRANTED, isCount } from "../../quorum/outcome.ts";
import { acquireArgs, lua, readAcquired, type ScriptOperation } from "./script.ts";

/** What precedes a key in the name of its counter. */
export const COUNTER_PREFIX = "hasp:fence:";

/**
 * By how much a hint may differ from a node's clock, in microseconds; one that differs by more is
 * ignored: a minute.
 */
const HINT_TOLERANCE_US = 60_000_000;
/**
 * A counter that is further behind the clock than this, in microseconds, is set to the clock when
 * {@linkcode ACQUIRE_COUNTED} uses it: a day.
 */
export const COUNTER_AGE_US_MAX = 86_400_000_000;
/**
 * How long a counter lives after the clock has reached its value, in milliseconds: a week, and as
 * long as it may be behind when it is used. A counter without expiry would be a leak for each
 * resource that was ever locked.
 */
export const COUNTER_TTL_MS = 691_200_000;
const COUNT_MAX = Number.MAX_SAFE_INTEGER;

/**
 * Begins a script: ends it with 0 if a key holds another value than `ARGV[1]`, or else with -1 if a
 * key is missing. Behind it, all keys hold the value.
 */
export const HELD_LUA = `local isMissing = false
for _, key in ipairs(KEYS) do
  local found = redis.call('GET', key)
  if found and found ~= ARGV[1] then return 0 end
  isMissing = isMissing or not found
end
if isMissing then return -1 end`;

/** Numbers are written by `string.format`, because `tostring` keeps only fourteen digits. */
export const FENCE_LUA: string = /* @__PURE__ */ lua(
  // Counts a lock on the keys, if there is a hint, or else returns 1. Gives the counters of all
  // keys one value, and returns it, the token: the highest that one of them calls for, so that it
  // exceeds all earlier tokens of each key. A counter calls for one more than it is, a missing one
  // for the clock, or the hint if that is near the clock.
  //
  // With a `token`, raises the counters to that, or to the highest of them if that is more; its
  // first write then is a `PEXPIRE`, for the same reason as that of `ADOPT`.
  () =>
    `local function fence(keys, hint, token)
  if hint == '' then return 1 end
  local time = redis.call('TIME')
  local nowUs = time[1] * 1000000 + time[2]
  local start = math.abs(hint - nowUs) > ${HINT_TOLERANCE_US} and nowUs or tonumber(hint)
  local highest = token or 0
  for _, key in ipairs(keys) do
    local text = redis.call('GET', 'hasp:fence:' .. key) or '0'
    local count = (text == '0' or text:find('^[1-9]%d*$')) and tonumber(text)
    if not count or count >= ${COUNT_MAX} then
      error('WRONGTYPE this is no fencing counter: hasp:fence:' .. key)
    end
    if count == 0 then count = start elseif not token then count = count + 1 end
    highest = math.max(highest, count)
  end
  if highest > ${COUNT_MAX} then error('WRONGTYPE the clock is beyond all fencing counters') end
  local ttlMs = ${COUNTER_TTL_MS} + math.max(0, math.ceil((highest - nowUs) / 1000))
  local text, ttl = string.format('%.0f', highest), string.format('%.0f', ttlMs)
  if token then redis.call('PEXPIRE', 'hasp:fence:' .. keys[1], ttl) end
  for _, key in ipairs(keys) do
    redis.call('SET', 'hasp:fence:' .. key, text, 'PX', ttl)
  end
  return highest
end`,
  // Counts a lock on the keys, and sets them. Returns what `fence` does.
  `local function grant(keys, value, ttl, hint)
  local granted = fence(keys, hint)
  for _, key in ipairs(keys) do
    redis.call('SET', key, value, 'PX', ttl)
  end
  return granted
end`,
);

/**
 * Sets a single key and counts; replies with the counter, or 0 if the key exists.
 *
 * The common path makes two calls, `SET` and `INCR`. A counter that is a day behind the clock is
 * replaced by the clock, and gets a new TTL; so does one that was missing, which is 1 after `INCR`.
 * To find that out, the script first compares the counter with the client's hint, which costs no
 * call, and only if it looks old, with the node's clock. Before that it gives a new counter its
 * TTL, because the node may refuse `TIME`.
 *
 * A hint that becomes the counter stays the text that the client sent: to write a number as text
 * takes as long as another command.
 */
export const ACQUIRE_COUNTED: ScriptOperation = {
  kind: "acquire",
  argv: acquireArgs,
  source: /* @__PURE__ */ lua(() =>
    `local key, value, ttl, hint = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
if not redis.call('SET', key, value, 'NX', 'PX', ttl) then return 0 end
local name = 'hasp:fence:' .. key
local count = redis.pcall('INCR', name)
if type(count) == 'table' then return redis.error_reply(count.err .. ': ' .. name) end
if count > 1 and count > hint - ${COUNTER_AGE_US_MAX} and count <= ${COUNT_MAX} then return count end
if count == 1 then redis.call('SET', name, '1', 'PX', '${COUNTER_TTL_MS}') end
local time = redis.call('TIME')
local start, text = time[1] * 1000000 + time[2], nil
if math.abs(hint - start) <= ${HINT_TOLERANCE_US} then start, text = hint, ARGV[3] end
if count < 1 or math.max(count, start) > ${COUNT_MAX} then
  redis.call('DECR', name)
  return redis.error_reply('WRONGTYPE this is no fencing counter: ' .. name)
end
if count > 1 and count > start - ${COUNTER_AGE_US_MAX} then return count end
redis.call('SET', name, text or string.format('%.0f', start), 'PX', '${COUNTER_TTL_MS}')
return start`
  ),
  sha1: "2893f927588e1af7f79c589ff520b82e28a03480",
  read: readAcquired,
};

/**
 * Raises the counters to the token if all keys hold the value; replies with the counter then, or 0
 * or -1 if a key does not hold it. A missing counter starts from the clock if that is more by a
 * minute, because the node may have lost one that was above the token.
 */
export const RAISE: ScriptOperation = {
  kind: "raise",
  argv: ({ value, counterFloor }) => [value, String(counterFloor)],
  source: /* @__PURE__ */ lua(
    HELD_LUA,
    FENCE_LUA,
    `local token = tonumber(ARGV[2])
return fence(KEYS, token, token)`,
  ),
  sha1: "0b855afdd4c834e25bbdaa58f6807124e93058ce",
  read: (reply) => reply === 0 || reply === -1 ? DENIED : isCount(reply) ? GRANTED : undefined,
};
