/**
 * The script that sets a node's creation marker.
 *
 * @module
 */
import type { Script } from "./script.ts";

/**
 * `KEYS` the creation marker: sets it to the node's clock, in milliseconds since 1970, if it is missing. It is a script
 * because the clock must be read in the step that sets the marker: a time that a client had asked for before may be as
 * old as that client was paused, and would hide that the node was emptied meanwhile.
 */
export const CREATED: Script = {
  source: `local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return redis.call('SET', KEYS[1], now, 'NX') and 1 or 0
`,
  sha1: "2696ad08f59598e4db9fe4f7a3555eab072b862b",
};
