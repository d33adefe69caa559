/**
 * Setting the keys of a lock, or having its caller wait for them.
 *
 * @module
 */
import { FENCE_LUA } from "./fencing.ts";
import { ASK_LUA, STAND_LUA } from "./queue.ts";
import { acquireArgs, lua, readAcquired, type ScriptOperation } from "./script.ts";

/**
 * Ends a script that has denied: puts its `ticket`, which has `asked` for a score, into the queues
 * of the keys that are in its way: those that are held, and those that are another ticket's for the
 * milliseconds in `turnsMs`. Returns the reply: where it stands.
 */
export const JOIN_LUA: string = /* @__PURE__ */ lua(
  STAND_LUA,
  // Finds the keys that are in its way, and leaves the queues of the others: while one key is, it
  // cannot use another. But it stays while it has its turn for that, so that it gets both if the
  // first is soon free. What becomes of the turn for the key that it leaves:
  //
  // - If it runs, it goes on.
  // - If nobody has one, the first gets it.
  // - If it is over, the next behind the ticket gets it: those ahead of it have had theirs, or may
  //   need another key, too.
  `local pttls, inWay = {}, {}
for _, key in ipairs(KEYS) do
  pttls[key] = redis.call('PTTL', key)
  if pttls[key] ~= -2 or (turnsMs[key] or 0) > 0 then
    inWay[#inWay + 1] = key
  else
    local rank = redis.call('ZRANK', 'hasp:queue:' .. key, ticket)
    if rank then
      local whose, leftMs = whoseTurn(key)
      if leftMs <= 0 or whose ~= ticket then redis.call('ZREM', 'hasp:queue:' .. key, ticket) end
      if leftMs <= 0 then giveTurn(key, nil, whose and rank) end
    end
  end
end`,
  // Stands in their queues, with one score. One that is held is nobody's turn.
  `local score, nowUs = scoreOf(inWay, ticket, asked, agreed)
local heldMs, waitMs, ahead, length, foreign, holder = -2, 0, 0, 0, 0, ''
for _, key in ipairs(inWay) do
  local pttl, rank, size = pttls[key], stand(key, ticket, score)
  ahead, length = math.max(ahead, rank), math.max(length, size)
  waitMs = math.max(waitMs, turnsMs[key] or 0)
  heldMs = pttl ~= -1 and heldMs ~= -1 and math.max(heldMs, pttl) or -1
  if pttl ~= -2 then
    local isForeign, value = holderOf(key)
    foreign, holder = math.max(foreign, isForeign), value or holder
    endTurn(key)
  end
end
return { heldMs, ahead, length, score, nowUs, foreign, holder, waitMs }`,
);

/**
 * Sets all keys and leaves their queues, or sets none and stands in their queues. If it set the
 * keys, it returns 1, or the counter if the hint is no empty text. If not, it returns the ticket's
 * position. A caller that does not wait has no ticket: then the script does not look at the queues,
 * and returns 0 if it set none.
 *
 * A ticket stands in the queues of the keys that are in its way, with one score. So among clients
 * that ask for several keys, the one that has waited longest is the first in each queue that it
 * comes to, and no two of them wait for each other. In the queue of a key that is not in its way it
 * would get turns that it cannot use. `scoreOf` takes its score in one queue as proof
 * for the others.
 *
 * A free key is for the ticket whose turn it is (**Turns** in `queue.ts`). `agreed` is 1 if a
 * quorum of nodes has put the ticket in their queues with this score or an earlier one (**Wrong
 * clocks**): then it passes tickets with later scores, even if it has lost its position here.
 */
export const ACQUIRE_OR_WAIT: ScriptOperation = {
  kind: "acquire",
  argv: acquireArgs,
  source: /* @__PURE__ */ lua(
    FENCE_LUA,
    // Takes the keys if they are free and the caller does not wait, and ends here.
    `local value, ttl, hint, ticket, asked, agreed = unpack(ARGV)
local blocked = redis.call('EXISTS', unpack(KEYS)) > 0
if not ticket then return blocked and 0 or grant(KEYS, value, ttl, hint) end`,
    ASK_LUA,
    // Finds out whether a free key is another's turn. Leaves the queues before it sets the keys: a
    // server without memory refuses `SET` only as the first write of a script.
    `local turnsMs = {}
for _, key in ipairs(blocked and {} or KEYS) do
  turnsMs[key] = contendFor(key, ticket, asked, agreed)
  blocked = blocked or turnsMs[key] > 0
end
if not blocked then
  for _, key in ipairs(KEYS) do
    take(key, ticket, ttl)
  end
  return grant(KEYS, value, ttl, hint)
end`,
    JOIN_LUA,
  ),
  sha1: "b4d7eac57c164e1b89319951072ad0a615b7978f",
  read: readAcquired,
};
