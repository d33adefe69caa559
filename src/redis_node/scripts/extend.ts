/**
 * Extending a lock ({@linkcode EXTEND}), and many at once.
 *
 * @module
 */
import { DENIED, GRANTED, MISSING } from "../../quorum/outcome.ts";
import type { QuorumRequest } from "../../quorum/quorum_node.ts";
import { lua, oneOf, type Script, type ScriptOperation } from "./script.ts";

// mutation: missing-key-counts-as-extended
export const readExtended = /* @__PURE__ */ oneOf(DENIED, GRANTED, MISSING);

/** `ARGV` of an extension. */
export function extendArgs({ value, ttlMs }: QuorumRequest): string[] {
  return [value, String(ttlMs)];
}

/**
 * Begins a script: ends it with 0 if a key holds another value than `ARGV[1]`. Behind it, `reply`
 * is 1 if all keys hold the value, and 2 if some are missing.
 */
export const HELD_LUA = `local value, reply = ARGV[1], 1
for _, key in ipairs(KEYS) do
  local found = redis.call('GET', key)
  if not found then reply = 2 elseif found ~= value then return 0 end
end`;

/** What each key holds; of a missing one `false`, of one that holds no text `GET`'s error. */
export const FOUND_LUA = `local function foundIn(keys)
  local found = redis.call('MGET', unpack(keys))
  for index, key in ipairs(keys) do
    found[index] = found[index] or redis.pcall('GET', key)
  end
  return found
end`;

/**
 * Does what {@linkcode EXTEND} does for each key, and returns what that returns, or its error.
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
return found`,
  ),
  sha1: "c98efd6d09a53e650a0ab0d3fe146c90f64f67cb",
};

/**
 * Gives the TTL to every key that holds the value and would live shorter. Replies 1 if all keys
 * hold it, 2 if some are missing and the others hold it, 0 if one holds another value: then nothing
 * is done.
 *
 * It never sets a key, because nothing that is not certain to be held may come back: the client
 * that asked may have lost the lock by the time that this runs. A missing key is set again by a
 * command of its own, once a quorum has extended the lock.
 */
export const EXTEND: ScriptOperation = {
  kind: "extend",
  many: EXTEND_MANY,
  argv: extendArgs,
  source: /* @__PURE__ */ lua(
    HELD_LUA,
    `local ttl = ARGV[2]
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) < tonumber(ttl) then redis.call('PEXPIRE', key, ttl) end
end
return reply`,
  ),
  sha1: "5680e7f39f5b5da3099ab57ec4056eaf55cb00ad",
  read: readExtended,
};
