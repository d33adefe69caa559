/**
 * The script that extends a lock.
 *
 * @module
 */
import { lua, type Script } from "./script.ts";

/** The extending itself; says whether keys were `missing`. */
export const EXTEND_KEYS = `local missing = false
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
