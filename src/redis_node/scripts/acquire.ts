/**
 * The scripts that set the keys of a lock.
 *
 * @module
 */
import { NAMES, STAND, WAKE } from "./queue.ts";
import { lua, type Script } from "./script.ts";

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

/** Taking the keys, or a place in line. Where there is a function `fence`, it counts what is granted. */
export const ACQUIRE_KEYS = `local entry, claim = ARGV[3], tonumber(ARGV[4])
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
