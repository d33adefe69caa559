/**
 * The scripts of many locks: each has one key, and is released or extended as if it were alone.
 *
 * @module
 */
import { NOTIFY_LUA } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/**
 * `foundIn(keys)` is what each key holds; of a missing one `false`, and of one that holds no text
 * the error that `GET` replies.
 */
const FOUND_LUA = `local function foundIn(keys)
  local found = redis.call('MGET', unpack(keys))
  for index, key in ipairs(keys) do
    found[index] = found[index] or redis.pcall('GET', key)
  end
  return found
end
`;

/**
 * `KEYS` resources; `ARGV` the value of each: does what `RELEASE` does for each key, and returns
 * what that returns, or its error. Without waiters it makes three calls for all keys that hold
 * their values.
 */
export const RELEASE_MANY: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY_LUA,
    FOUND_LUA,
    `local replies, ours, queues, found = {}, {}, {}, foundIn(KEYS)
for index, key in ipairs(KEYS) do
  local mine = found[index] == ARGV[index]
  replies[index] = mine and 1 or type(found[index]) == 'table' and found[index] or 0
  if mine then ours[#ours + 1] = key end
  queues[index] = 'hasp:queue:' .. key
end
if ours[1] then redis.call('DEL', unpack(ours)) end
if redis.pcall('EXISTS', unpack(queues)) ~= 0 then
  for index, key in ipairs(KEYS) do
    local isFree = replies[index] == 1 or not found[index]
    if isFree and redis.pcall('EXISTS', queues[index]) ~= 0 and notify(key, nil, not found[index]) then
      replies[index] = 2 * replies[index]
    end
  end
end
return replies
`,
  ),
  sha1: "c7cd6b7b1844378fb6409cd997cc58a09c0ce88d",
};

/**
 * `KEYS` resources; `ARGV` the value and the TTL of each: does what `EXTEND` does for each key, and
 * returns what that returns, or its error. It shortens nothing.
 */
export const EXTEND_MANY: Script = {
  source: /* @__PURE__ */ lua(
    FOUND_LUA,
    `local found = foundIn(KEYS)
for index, key in ipairs(KEYS) do
  local value, ttl = ARGV[2 * index - 1], ARGV[2 * index]
  if found[index] == value then
    if redis.call('PTTL', key) < tonumber(ttl) then redis.call('PEXPIRE', key, ttl) end
    found[index] = 1
  elseif type(found[index]) ~= 'table' then
    found[index] = found[index] and 0 or 2
  end
end
return found
`,
  ),
  sha1: "3d9584b46336efb5554d3ac11e564772ab361c89",
};
