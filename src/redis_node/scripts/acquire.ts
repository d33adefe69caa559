/**
 * Setting the keys of a lock, or having its caller wait for them.
 *
 * @module
 */
import { type Outcome, QUEUED } from "../../quorum/outcome.ts";
import type { QuorumRequest } from "../../quorum/quorum_node.ts";
import type { RawReply } from "../../redis/reply.ts";
import { FENCE_LUA } from "./fencing.ts";
import { ASK_LUA, isPosition, JOIN_LUA, POSITION_LENGTH } from "./queue.ts";
import { acquireArgs, lua, type Operation, readAcquired, type ScriptOperation } from "./script.ts";

/** As {@linkcode readAcquired}, and reads the position of a caller that stands in queues. */
export function readQueued(
  this: Operation,
  reply: RawReply,
  request: QuorumRequest,
): Outcome | undefined {
  if (this.queues && isPosition(reply, POSITION_LENGTH)) return QUEUED;
  return readAcquired.call(this, reply, request);
}

/**
 * Sets all keys and leaves their queues, or sets none and stands in their queues. If it set the
 * keys, it returns 1, or the counter if the hint is no empty text. If not, it returns the ticket's
 * position. A caller that does not wait has no ticket: then the script does not look at the queues,
 * and returns 0 if it set none.
 *
 * A ticket stands in the queues of the keys that are in its way, with one score. So among clients
 * that ask for several keys, the one that has waited longest is the first in each queue that it
 * comes to, and no two of them wait for each other. In the queue of a key that is not in its way it
 * would get turns that it cannot use. Being in one queue proves the score for the others.
 *
 * A free key is for the ticket whose turn it is. But if that turn is over, the caller drops the
 * tickets ahead of its own. `agreed` is 1 if a quorum of nodes has put the ticket in their queues
 * with this score or an earlier one: then it passes tickets with later scores, even if it has lost
 * its position here.
 */
export const ACQUIRE_OR_WAIT: ScriptOperation = {
  kind: "acquire",
  queues: true,
  argv: acquireArgs,
  source: /* @__PURE__ */ lua(
    ASK_LUA,
    // Finds out whether a key is held, or is another's turn.
    `local value, ttl, hint, ticket, asked, agreed = unpack(ARGV)
local blocked, turnsMs = redis.call('EXISTS', unpack(KEYS)) > 0, {}
if ticket and not blocked then
  for _, key in ipairs(KEYS) do
    turnsMs[key] = othersTurnMs(key, ticket, asked, agreed)
    blocked = blocked or turnsMs[key] > 0
  end
end`,
    // Takes the keys.
    FENCE_LUA,
    `if not blocked then
  for _, key in ipairs(KEYS) do
    if ticket then take(key, ticket, ttl) end
  end
  local granted = fence(KEYS, hint)
  for _, key in ipairs(KEYS) do
    redis.call('SET', key, value, 'PX', ttl)
  end
  return granted
end
if not ticket then return 0 end`,
    JOIN_LUA,
    `return join(ticket, asked, agreed, turnsMs)`,
  ),
  sha1: "1111dde02fc2c4c8b77129faae92da4d8c2cca41",
  read: readQueued,
};
