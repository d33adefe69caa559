/**
 * The script that sets the keys of a lock, or has its caller wait for them.
 *
 * @module
 */
import { FENCE_LUA } from "./fencing.ts";
import { JOIN_LUA, QUEUE_LUA } from "./join.ts";
import { NOTIFY_LUA, TAKE_LUA } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/**
 * `KEYS` resources; `ARGV` value, TTL, the hint of a fencing token or an empty text; and, if its
 * caller waits, ticket, score and agreed: sets all keys and leaves their queues, or sets none and
 * stands in their queues. Without a ticket it does not look at the queues. Returns 1, or the
 * counter, if all keys were set; 0 if not, without a ticket.
 *
 * A ticket stands in the queues of all keys, with one score. So among clients that ask for several
 * keys, the one that has waited longest comes to be the first in all its queues, and no two of them
 * wait for each other. Being in one of the queues proves the score for the others.
 *
 * A key is for the ticket whose turn it is, even while it is free. But if that turn is over, the
 * caller takes the key, and drops all tickets ahead of its own (`notify.ts`). `agreed` is no empty
 * text if a quorum of nodes has put the ticket in their queues with this score or an earlier one:
 * then it passes tickets with later scores, even if it has lost its place here.
 *
 * With a ticket it returns, if it sets none: how long the keys are held (as `PTTL` returns it; -2
 * if all are free, but others are ahead), the number of tickets ahead, the number of all tickets,
 * the ticket's score, the node's time in microseconds, 1 if a key holds what is no value of this
 * library, else 0, and the value of a key, or an empty text; and if the keys are free, how long it
 * is another's turn, else 0.
 */
export const ACQUIRE_OR_WAIT: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY_LUA,
    TAKE_LUA,
    QUEUE_LUA,
    FENCE_LUA,
    `local value, ttl, hint, ticket, since, agreed = unpack(ARGV)
local blocked, lives, overtakes, wait = false, {}, {}, 0
for index, key in ipairs(KEYS) do
  lives[index] = redis.call('PTTL', key)
  blocked = blocked or lives[index] ~= -2
end
for index, key in ipairs(ticket and not blocked and KEYS or {}) do
  local left, isOver = blocks(key, ticket, since, agreed)
  if left then blocked, wait = true, math.max(wait, left) end
  overtakes[index] = isOver
end
if not blocked then
  for index, key in ipairs(ticket and KEYS or {}) do
    take(key, ticket, overtakes[index])
  end
  local granted = hint == '' and 1 or fence(KEYS, 0, hint, 1)
  for _, key in ipairs(KEYS) do
    redis.call('SET', key, value, 'PX', ttl)
  end
  return granted
end
`,
    JOIN_LUA,
  ),
  sha1: "76fdabcdd5a73407e82ebc17b23c81ae50ac29a3",
};
