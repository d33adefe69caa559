/**
 * The script that reads a node's creation marker, and sets it where it is missing.
 *
 * @module
 */
import type { Script } from "./script.ts";

/**
 * `KEYS` the birth key: for how long it has stood, in milliseconds by the node's clock. Where there is none, or one of
 * the future, it is set to now, and 0.
 */
export const CREATED: Script = {
  source: `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local born = tonumber(redis.call('GET', KEYS[1]))
if born and born >= 0 and born <= now then return now - born end
redis.call('SET', KEYS[1], string.format('%.0f', now))
return 0
`,
  sha1: "e6a1856a2190c2c48cb57e17152b7b64f8b76117",
};
