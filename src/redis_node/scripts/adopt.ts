/**
 * Giving the keys of a lock another value, and giving them back the one they had.
 *
 * @module
 */
import { DENIED, GRANTED, MISSING } from "../../quorum/outcome.ts";
import { FENCE_LUA, HELD_LUA } from "./fencing.ts";
import {
  acquireArgs,
  lua,
  oneOf,
  readAcquired,
  type Release,
  type ScriptOperation,
} from "./script.ts";

/**
 * Gives all keys the value if all of them hold the one that it replaces, and none of them a shorter
 * TTL than it has. Replies 1, or the counter if the hint is no empty text; 0 if a key holds
 * something else, -1 if some are missing and the others hold the replaced value: then nothing is
 * done.
 *
 * So of all that ask to replace one value, one does on this node, and whatever the former holder
 * sends afterwards finds a value that is not its own.
 *
 * Its first write is a `PEXPIRE`, which a server without memory allows: it refuses `SET`, but not
 * behind another write.
 */
export const ADOPT: ScriptOperation = {
  kind: "acquire",
  argv: (request) => [request.replaces!, ...acquireArgs(request)],
  source: /* @__PURE__ */ lua(
    HELD_LUA,
    FENCE_LUA,
    `local _, new, ttl, hint = unpack(ARGV)
local ttls = {}
for index, key in ipairs(KEYS) do
  ttls[index] = math.max(redis.call('PTTL', key), tonumber(ttl))
  redis.call('PEXPIRE', key, ttls[index])
end
local granted = fence(KEYS, hint)
for index, key in ipairs(KEYS) do
  redis.call('SET', key, new, 'PX', ttls[index])
end
return granted`,
  ),
  sha1: "345f66f55e381fa8a58817461590e8086c3a1487",
  read: (reply, request) => reply === -1 ? MISSING : readAcquired(reply, request),
};

/**
 * Each key that holds the value gets the former one back, with the TTL that it has. Replies 1 if
 * all keys held the value, else 0. Its first write is a `PEXPIRE`, as that of {@linkcode ADOPT}.
 */
export const GIVE_BACK: ScriptOperation<Release> = {
  kind: "release",
  argv: ({ value, replaces }) => [value, replaces!],
  source: `local value, former = unpack(ARGV)
local count = 0
for _, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == value then
    local pttl = math.max(redis.call('PTTL', key), 1)
    redis.call('PEXPIRE', key, pttl)
    redis.call('SET', key, former, 'PX', pttl)
    count = count + 1
  end
end
return count == #KEYS and 1 or 0`,
  sha1: "09dd2bbd986f25115ce4406806fe664054f92677",
  read: /* @__PURE__ */ oneOf({ 0: DENIED, 1: GRANTED }),
};
