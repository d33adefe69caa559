/**
 * The script that reads and sets a node's creation marker.
 *
 * @module
 */
import type { Script } from "./script.ts";

/**
 * `KEYS` the creation marker: replies with its age and with the node's clock, both in milliseconds.
 * If the marker is missing it is set to the clock, and its age is 0; a marker that is no time in
 * the past stays, and its age is -1. It is one script so that the clock is read in the step that
 * sets the marker: a time that a client had asked for before may be as old as that client was
 * paused, and would hide that the node was emptied meanwhile.
 */
export const CREATED: Script = {
  source: `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local created = redis.call('GET', KEYS[1])
if not created then
  redis.call('SET', KEYS[1], string.format('%.0f', now))
  return {0, now}
end
return {string.find(created, '^%d+$') and math.max(now - created, -1) or -1, now}
`,
  sha1: "5b5ef96cb707767348107bf169a9671150e4fafb",
};
