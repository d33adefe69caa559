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
import { lua, type Script } from "./script.ts";

/** How long a list of waiters lives after somebody last asked for a place in it, in milliseconds. */
export const QUEUE_TTL_MS = 180_000;
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
 * Makes the name of a key's list. It is made here and not given as a key: a user who may touch the keys alone must be
 * able to release.
 */
export const NAMES = `local function waiters(key)
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
export const WAKE = `local function wake(key, own)
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
export const STAND = `local function since(entry)
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
