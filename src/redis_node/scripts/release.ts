/**
 * The script that releases a lock on one key and notifies the next waiter.
 *
 * @module
 */
import { NOTIFY } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` one resource; `ARGV` value: deletes the key if it holds the value. Returns 0 if it did not, 1 if it did, 3 if
 * it did and a waiter was notified. Without waiters it makes three calls.
 */
export const RELEASE: Script = {
  source: /* @__PURE__ */ lua(
    `local value = redis.call('GET', KEYS[1])
if value == ARGV[1] then
  redis.call('DEL', KEYS[1])
elseif value then
  return 0
end
if redis.pcall('EXISTS', 'hasp:queue:' .. KEYS[1]) == 0 then return value and 1 or 0 end
`,
    NOTIFY,
    `local notified = notify(KEYS[1])
return value and (notified and 3 or 1) or 0
`,
  ),
  sha1: "be0a990448ab9f4dffbe8db6b9fb416f0707e537",
};
