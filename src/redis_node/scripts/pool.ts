/**
 * Setting any one of several keys, the caller's pool.
 *
 * An attempt is for one key of the pool, and a node that denies it says which of the others are
 * free. A ticket stands in the queues of all keys of the pool, with one score. Its id ends with a
 * dot, `<client id>:<number>:<patience>:<end>.`, and in the queue of each key the number of the key
 * follows, so that a notification says which key is free.
 *
 * @module
 */
import { DENIED } from "../../quorum/outcome.ts";
import { FENCE_LUA } from "./fencing.ts";
import { ASK_LUA, STAND_LUA } from "./queue.ts";
import { READERS_LUA } from "./readers.ts";
import { acquireArgs, isNumber, lua, readAcquired, type ScriptOperation } from "./script.ts";

/**
 * Sets the one key of the pool that is asked for, by its number from 1, leaves the queues of the
 * pool, and passes notifications for the others on. Returns 1, or the counter. If the key is held,
 * or is for another ticket, it sets nothing, and the ticket stands in all queues of the pool, with
 * the score that it gets in the queue of this key: then it returns the ticket's position. Without a
 * ticket, it returns a list of one number: a bit mask of the keys that are free.
 *
 * A caller may have a free key although it is another's turn, if that one waits for a pool, too,
 * and enough keys are free for all who are ahead of the caller (`mayHave`). Nodes that freed keys
 * in different orders gave the turns to different tickets, so each of these would have the votes of
 * some nodes only.
 *
 * A ticket whose turn is over is overtaken as by `ACQUIRE_OR_WAIT`. Those that are dropped and wait
 * for the same pool leave all its queues at once, and not one queue after the other.
 */
export const ACQUIRE_ANY: ScriptOperation = {
  kind: "acquire",
  argv: (request) => [String(request.pool!.place + 1), ...acquireArgs(request)],
  source: /* @__PURE__ */ lua(
    FENCE_LUA,
    // The key that is asked for, and the ticket in its queue. Without a ticket, ends here.
    `local number, value, ttl, hint, ticket, asked, agreed = unpack(ARGV)
number = tonumber(number)
local key, own = KEYS[number], ticket and ticket .. number
local blocked, free = redis.call('EXISTS', key) == 1, 0
if not ticket then
  if not blocked then return grant({ key }, value, ttl, hint) end
  for index, each in ipairs(KEYS) do
    if redis.call('EXISTS', each) == 0 then free = free + math.floor(2 ^ (index - 1)) end
  end
  return { free }
end`,
    ASK_LUA,
    READERS_LUA,
    // Whether the ticket of this rank may have a free key: as the first, if it is its turn, or if
    // it is that of another ticket of a pool, and there is a free key for each ahead and one more.
    `local freeCount
local function mayHave(key, rank)
  if rank == 0 then return true end
  local whose = redis.pcall('GET', 'hasp:turn:' .. key)
  freeCount = freeCount or #KEYS - redis.call('EXISTS', unpack(KEYS))
  return poolIdOf(whose) and (rank < freeCount or poolIdOf(whose) == ticket)
end`,
    // Takes these tickets of the pool out of the queues of the other keys, and notifies who may be
    // next where one has left. Where a turn runs it notifies nobody: with many keys free, that
    // would be several messages for each.
    `local function leaveOthers(ids)
  for index, other in ipairs(KEYS) do
    local count = 0
    for _, id in ipairs(ids) do
      if index ~= number then count = count + redis.call('ZREM', 'hasp:queue:' .. other, id .. index) end
    end
    if count > 0 then
      local found = redis.pcall('GET', other)
      if found == 'hasp:shared' then notifyReaders(other) end
      if not found then
        local _, leftMs = whoseTurn(other)
        if leftMs <= 0 then giveTurn(other) end
      end
    end
  end
end`,
    // Takes the key, unless it is held, or another's turn that the caller may not pass.
    `local overtaken
if not blocked then
  local turnMs
  turnMs, overtaken = contendFor(key, own, asked, agreed)
  local rank = turnMs > 0 and redis.call('ZRANK', 'hasp:queue:' .. key, own)
  blocked = turnMs > 0 and not (rank and mayHave(key, rank))
end
if not blocked then
  take(key, own, ttl)
  local leaving = { ticket }
  for _, one in ipairs(overtaken or {}) do leaving[#leaving + 1] = poolIdOf(one) end
  leaveOthers(leaving)
  return grant({ key }, value, ttl, hint)
end`,
    STAND_LUA,
    // Puts the ticket into all queues, with a score that is written as a text once. A key that is
    // free for another is `reserved`: it replies the first such key, where the ticket stands in its
    // queue, and how long that one's turn lasts, or would last. The turn that a plain `SET` has
    // ended is deleted for the key that was asked for; for each key it would cost too much.
    `local score, nowUs = scoreOf({ key }, own, asked, agreed)
local text = string.format('%.0f', score)
local heldMs, length, foreign, waitMs = -2, 0, 0, 0
local ahead, reserved, reservedRank
for index, each in ipairs(KEYS) do
  local pttl, rank, size = redis.call('PTTL', each), stand(each, ticket .. index, text)
  ahead, length = math.min(ahead or rank, rank), math.max(length, size)
  if pttl ~= -2 then
    if heldMs < 0 or pttl ~= -1 and pttl < heldMs then heldMs = pttl end
    local isForeign = holderOf(each)
    foreign = math.max(foreign, isForeign)
    if index == number then endTurn(each) end
  elseif mayHave(each, rank) then
    free = free + math.floor(2 ^ (index - 1))
  elseif not reserved then
    local whose, leftMs = whoseTurn(each)
    reserved, reservedRank = index, rank
    waitMs = whose and math.max(leftMs, 1) or patienceMs(redis.call('ZRANGE', 'hasp:queue:' .. each, 0, 0)[1])
  end
end
if free > 0 then heldMs = -2 end
return { heldMs, reservedRank or ahead, length, score, nowUs, foreign, '', waitMs, free, reserved or 0 }`,
  ),
  sha1: "9190f07694c99147aa11d3ab9f8f0ad27e6369c3",
  read(reply, request) {
    const isMask = Array.isArray(reply) && reply.length === 1 && isNumber(reply[0]);
    return isMask ? DENIED : readAcquired(reply, request);
  },
};
