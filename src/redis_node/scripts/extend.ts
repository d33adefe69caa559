/**
 * Extending locks ({@linkcode EXTEND}).
 *
 * @module
 */
import type { QuorumRequest } from "../../quorum/quorum_node.ts";
import { EXTENDED, oneOfEach, type ScriptOperation } from "./script.ts";

/** `ARGV` of an extension. */
export function extendArgs({ value, ttlMs }: QuorumRequest): string[] {
  return [value, String(ttlMs)];
}

/**
 * Gives each key that holds its value its TTL, if it would live shorter. Replies for each key: 1 if
 * it holds the value, -1 if it is missing, 0 if it holds another value. Keys of one lock have one
 * value and TTL, and an error about one of them is the reply. With more values (`ARGV[3]`), the
 * keys are of several locks, and each has a reply of its own.
 *
 * It never sets a key, because nothing that is not certain to be held may come back: the client
 * that asked may have lost the lock by the time that this runs. A missing key is set again by a
 * command of its own, once a quorum has extended the lock.
 *
 * `MGET` is faster than a `GET` for each key. But a user may not be allowed to call it, and it
 * replies of a key that holds no text as of a missing one: then `GET` replies what is true. For one
 * key there is no table: it would take a seventh of the script's time.
 */
export const EXTEND: ScriptOperation = {
  kind: "extend",
  eachKey: true,
  argv: extendArgs,
  source: `local found = KEYS[2] and redis.pcall('MGET', unpack(KEYS))
local replies = found and {}
for index, key in ipairs(KEYS) do
  local value, ttl = ARGV[2 * index - 1] or ARGV[1], ARGV[2 * index] or ARGV[2]
  local reply = found and found[index] or redis.pcall('GET', key)
  if reply == value then
    if redis.call('PTTL', key) < tonumber(ttl) then redis.call('PEXPIRE', key, ttl) end
    reply = 1
  elseif not reply then
    reply = -1
  elseif type(reply) == 'string' then
    reply = 0
  elseif not ARGV[3] then
    return reply
  end
  if not replies then return reply end
  replies[index] = reply
end
return replies`,
  sha1: "9d16a250caae2287cad54ce6f58ca319e4d27aa9",
  read: /* @__PURE__ */ oneOfEach(EXTENDED),
};
