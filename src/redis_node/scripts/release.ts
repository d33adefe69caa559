/**
 * The script that releases a lock and wakes the next waiter.
 *
 * @module
 */
import { NAMES, STAND, WAKE } from "./queue.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` resources; `ARGV` value, and, where the lock was waited for, the entry and "leave" or "stay":
 * deletes what is ours, takes the entry out of line or puts it back, and wakes who is next: but not the entry that is
 * put back, which has just asked. 0 where a key was not ours;
 * 1 where all were; 3 where all were and somebody else waits.
 */
export const RELEASE: Script = {
  source: /* @__PURE__ */ lua(
    NAMES,
    WAKE,
    STAND,
    `local all, waiting, failure = true, false, nil
local entry, leaves, stays = ARGV[2], ARGV[3] == 'leave', ARGV[3] == 'stay'
for _, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  if value == ARGV[1] then
    redis.call('DEL', key)
  else
    all = false
    if type(value) == 'table' then failure = value end
  end
  if leaves then
    redis.pcall('LREM', waiters(key), 1, entry)
  elseif stays and value == ARGV[1] then
    if pcall(stand, waiters(key), entry, true) then
      redis.pcall('PEXPIRE', waiters(key), 180000)
    end
  end
  if value == ARGV[1] or not value then
    waiting = wake(key, stays and entry) or waiting
  end
end
return failure or (all and (waiting and 3 or 1) or 0)
`,
  ),
  sha1: "ccb11426f3bd21d8db1c8447d653f4d02b3f72a0",
};
