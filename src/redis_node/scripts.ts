/**
 * The Lua scripts, which run in one step on each node, and their SHA-1s, by which they are called.
 *
 * Each takes any number of keys. A key of another type is an error, never somebody's lock and never deleted.
 *
 * Where a client has to wait it stands in the list `{key}:waiters`, as `<client id>:<number>:<since when>`. It listens
 * to `hasp:wake:<client id>`. Whoever frees the key tells the head of the list, which leaves the list only by taking the
 * key, by going, or because nobody listens for it any more: telling it twice does no harm. One that took the key but
 * did not win the lock goes back to the front.
 *
 * Those who come at the same time reach each node in another order, and must stand in the same order on all of them,
 * or nodes tell different heads. So whoever came earlier by its own clock goes before whoever came later, within a
 * tenth of a second: beyond that clocks are not trusted, and the order is that in which they reach the node. Whoever's
 * clock is fast is passed for no longer than that. Those who split the vote and go back to the front are sorted however
 * far their clocks are apart, or each would stay first on its nodes, and they would split the vote for ever.
 *
 * @module
 */

/** How long a list of waiters lives after somebody last asked for a place in it, in milliseconds. */
export const LINE_TTL_MS = 180_000;
/** By how much clocks of clients may differ and still decide who came first, in milliseconds. */
export const SKEW_MS_MAX = 100;
/** What stands before a client's id in the name of the channel on which it is woken. */
export const WAKE_CHANNEL = "hasp:wake:";

/**
 * The list of those who wait for `key`: in one cluster slot with it.
 *
 * @param key The key of a resource.
 */
export function waitersKey(key: string): string {
  const open = key.indexOf("{");
  const tagged = open >= 0 && key.indexOf("}", open + 1) > open + 1;
  return tagged ? `${key}:waiters` : `{${key}}:waiters`;
}

/**
 * The counter of fencing tokens of `key`: in one cluster slot with it.
 *
 * @param key The key of a resource.
 */
export function counterKey(key: string): string {
  return waitersKey(key).slice(0, -"waiters".length) + "fence";
}

/** Joins the parts of a script. The numbers in them are those above, which a test holds them to. */
function lua(...parts: readonly string[]): string {
  return parts.join("");
}

/**
 * Makes the name of a key's list. It is made here and not given as a key: a user who may touch the keys alone must be
 * able to release.
 */
const NAMES = `local function waiters(key)
  local open = key:find('{', 1, true)
  local close = open and key:find('}', open + 1, true)
  if close and close > open + 1 then return key .. ':waiters' end
  return '{' .. key .. '}:waiters'
end
`;

/**
 * Tells the head of a key's list that the key may be free, passing over those for whom nobody listens. Says whether
 * somebody was told; the caller's own entry is not, and nobody is where what it takes is not allowed.
 */
const WAKE = `local function wake(key, own)
  local list = waiters(key)
  while true do
    local entry = redis.pcall('LINDEX', list, 0)
    if type(entry) ~= 'string' or entry == own then return false end
    local id = entry:match('^(.-):')
    local heard = id and redis.pcall('PUBLISH', 'hasp:wake:' .. id, entry .. ':' .. key) or 0
    if heard ~= 0 then return type(heard) == 'number' end
    if type(redis.pcall('LPOP', list)) == 'table' then return false end
  end
end
`;

/**
 * Puts an entry in line, where it does not stand there: at the end, but before those who came at the same time and
 * after it; or at the front, but behind all who came before it. Returns how many stand before it.
 */
const STAND = `local function since(entry)
  return tonumber(entry:match('[^:]*$')) or 0
end
local function stand(list, entry, front)
  local ahead = redis.call('LPOS', list, entry)
  if ahead then return ahead end
  local at, pivot = front and 0 or -1, nil
  while true do
    local other = redis.call('LINDEX', list, at)
    if not other then break end
    local lead = since(other) - since(entry)
    local later = lead > 0 or lead == 0 and other > entry
    if later == front or not front and lead > 100 then break end
    at, pivot = at + (front and 1 or -1), other
  end
  if pivot then
    redis.call('LINSERT', list, front and 'AFTER' or 'BEFORE', pivot, entry)
  else
    redis.call(front and 'LPUSH' or 'RPUSH', list, entry)
  end
  return redis.call('LPOS', list, entry)
end
`;

/**
 * The counters of fencing tokens, `{key}:fence`. Several keys share the highest count, so that one token is above all
 * earlier ones of each. A count is written by `string.format`, as `tostring` keeps fourteen digits.
 */
const FENCE = `local function counter(key)
  return (waiters(key):gsub('waiters$', 'fence'))
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

/** A script and the name it is called by. */
export interface Script {
  /** The Lua source. */
  readonly source: string;
  /** The SHA-1 of the source, in lower-case hexadecimal digits. */
  readonly sha1: string;
}

/** `KEYS` resources, `ARGV` value, TTL: sets all keys or none; 1 or 0. A single key is a plain `SET NX PX`. */
export const ACQUIRE_ALL: Script = {
  source: `for _, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 then return 0 end
end
for _, key in ipairs(KEYS) do
  redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
end
return 1
`,
  sha1: "4df62321cd567593267878acb4c28e1f7a3cc4af",
};

/** The extending itself; says whether keys were `missing`. */
const EXTEND_KEYS = `local missing = false
for _, key in ipairs(KEYS) do
  local value = redis.call('GET', key)
  if not value then missing = true elseif value ~= ARGV[1] then return 0 end
end
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) < tonumber(ARGV[2]) then
    redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
  end
end
`;

/**
 * `KEYS` resources, `ARGV` value, TTL: 1 where all keys were ours, which live on for the TTL or longer; 0 where
 * one is another's, and nothing was done; 2 where some were missing, which are set again.
 */
export const EXTEND: Script = {
  source: /* @__PURE__ */ lua(EXTEND_KEYS, "return missing and 2 or 1\n"),
  sha1: "968c02bca7246acb671e2ce8a7a23c9200e1c984",
};

/**
 * `KEYS` resources; `ARGV` value, and, where the lock was waited for, the entry and "leave" or "stay":
 * deletes what is ours, takes the entry out of line or puts it back, and wakes who is next: but not the entry that is
 * put back, which has just asked. 0 where a key was not ours;
 * 1 where all were; 3 where all were and somebody else waits.
 */
export const RELEASE: Script = {
  source: /* @__PURE__ */ lua(
    NAMES,
    WAKE,
    STAND,
    `local all, waiting, failure = true, false, nil
local entry, leaves, stays = ARGV[2], ARGV[3] == 'leave', ARGV[3] == 'stay'
for _, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  if value == ARGV[1] then
    redis.call('DEL', key)
  else
    all = false
    if type(value) == 'table' then failure = value end
  end
  if leaves then
    redis.pcall('LREM', waiters(key), 1, entry)
  elseif stays and value == ARGV[1] then
    if pcall(stand, waiters(key), entry, true) then
      redis.pcall('PEXPIRE', waiters(key), 180000)
    end
  end
  if value == ARGV[1] or not value then
    waiting = wake(key, stays and entry) or waiting
  end
end
return failure or (all and (waiting and 3 or 1) or 0)
`,
  ),
  sha1: "ccb11426f3bd21d8db1c8447d653f4d02b3f72a0",
};

/** Taking the keys, or a place in line. Where there is a function `fence`, it counts what is granted. */
const ACQUIRE_KEYS = `local entry, claim = ARGV[3], tonumber(ARGV[4])
local blocked
for index, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 or claim == 0 and wake(key, entry) then
    blocked = index
    break
  end
end
if not blocked then
  for _, key in ipairs(entry == '' and {} or KEYS) do
    local list = waiters(key)
    local ahead = claim == 2 and redis.call('LPOS', list, entry)
    redis.call('LREM', list, 1, entry)
    if ahead and ahead > 0 then
      redis.call('RPUSH', list, redis.call('LINDEX', list, 0)) -- first, so that the list lives on
      redis.call('LPOP', list)
    end
  end
  local granted = fence and fence(KEYS, ARGV[5]) or 1
  for _, key in ipairs(KEYS) do
    redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
  end
  return granted
end
if entry == '' then return 0 end
for index, key in ipairs(KEYS) do
  if index ~= blocked and redis.call('LREM', waiters(key), 1, entry) == 1 then
    if redis.call('EXISTS', key) == 0 then wake(key) end
  end
end
local list = waiters(KEYS[blocked])
local ahead = stand(list, entry, claim > 0)
redis.call('PEXPIRE', list, 180000)
return { redis.call('PTTL', KEYS[blocked]), ahead, redis.call('LLEN', list) }
`;

/**
 * `KEYS` resources; `ARGV` value, TTL, entry, claim: sets all keys and leaves the lists, or sets none
 * and stands in the list of one that is in the way. A claim of 0 keeps to the line: where others wait the key is
 * theirs, even while it is free. 1 was woken, and takes what is free. 2 has waited in vain for those before it: it
 * takes what is free, and the head goes to the end. 1 where all were set; else for how long the key is held (as `PTTL` tells), how
 * many stand before the entry, and how many in all.
 */
export const ACQUIRE_OR_WAIT: Script = {
  source: /* @__PURE__ */ lua(NAMES, WAKE, STAND, "local fence\n", ACQUIRE_KEYS),
  sha1: "232ba8b9f29a3f62340d3babc2edc57355b79045",
};

/** `KEYS` resources; `ARGV` entry: leaves the lists, and passes on a wake-up that may have come; 1. */
export const LEAVE: Script = {
  source: /* @__PURE__ */ lua(
    NAMES,
    WAKE,
    `for _, key in ipairs(KEYS) do
  if redis.call('LREM', waiters(key), 1, ARGV[1]) == 1 and redis.call('EXISTS', key) == 0 then
    wake(key)
  end
end
return 1
`,
  ),
  sha1: "3b44883ba4c85560b5180d224d17749e99a93fd9",
};

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
 * As {@linkcode ACQUIRE_OR_WAIT}, with the hint for counters that are missing, and an entry that may be empty: then
 * nobody stands in line, and 0 is the answer where a key is in the way. The count is the answer where all were set.
 */
export const ACQUIRE_FENCED: Script = {
  source: /* @__PURE__ */ lua(NAMES, WAKE, STAND, FENCE, ACQUIRE_KEYS),
  sha1: "130ebd0ff3817a05e86ac8732688ca51c691e720",
};

/** As {@linkcode EXTEND}, and lifts the counters to the token in `ARGV[3]`: those of keys set again as well. */
export const EXTEND_FENCED: Script = {
  source: /* @__PURE__ */ lua(
    NAMES,
    FENCE,
    EXTEND_KEYS,
    "lift(KEYS, ARGV[3])\nreturn missing and 2 or 1\n",
  ),
  sha1: "ad2a5913001b83f4a783c9a57d69578afd9b13c2",
};

/** `KEYS` resources; `ARGV` value, token: lifts the counters to the token; the count then, or 0 where a key is not ours. */
export const RAISE: Script = {
  source: /* @__PURE__ */ lua(
    NAMES,
    FENCE,
    `for _, key in ipairs(KEYS) do
  if redis.call('GET', key) ~= ARGV[1] then return 0 end
end
return lift(KEYS, ARGV[2])
`,
  ),
  sha1: "2c8139587631d96f8a7e823c17a676344ce3130f",
};

/**
 * `KEYS` the birth key: for how long it has stood, in milliseconds by the node's clock. Where there is none, or one of
 * the future, it is set to now, and 0.
 */
export const BORN: Script = {
  source: `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local born = tonumber(redis.call('GET', KEYS[1]))
if born and born >= 0 and born <= now then return now - born end
redis.call('SET', KEYS[1], string.format('%.0f', now))
return 0
`,
  sha1: "e6a1856a2190c2c48cb57e17152b7b64f8b76117",
};
