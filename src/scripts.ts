/**
 * The Lua scripts, which run in one step on each node, and their SHA-1s, by which they are called.
 *
 * Each takes any number of keys. A key of another type is an error, never somebody's lock and never deleted.
 *
 * @module
 */

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

/**
 * `KEYS` resources, `ARGV` value, TTL: 1 where all keys were ours, which live on for the TTL or longer; 0 where
 * one is another's, and nothing was done; 2 where some were missing, which are set again.
 */
export const EXTEND: Script = {
  source: `local missing = false
for _, key in ipairs(KEYS) do
  local value = redis.call('GET', key)
  if not value then missing = true elseif value ~= ARGV[1] then return 0 end
end
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) < tonumber(ARGV[2]) then
    redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
  end
end
return missing and 2 or 1
`,
  sha1: "968c02bca7246acb671e2ce8a7a23c9200e1c984",
};

/** `KEYS` resources, `ARGV` value: deletes what is ours; 1 where all keys were, else 0. */
export const RELEASE: Script = {
  source: `local all, failure = 1, nil
for _, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  if value == ARGV[1] then
    redis.call('DEL', key)
  else
    all = 0
    if type(value) == 'table' then failure = value end
  end
end
return failure or all
`,
  sha1: "5f241a2b5458e71f245ddee6f12cccd2e11fa13f",
};
