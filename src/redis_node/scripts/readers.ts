/**
 * Locks in shared mode, whose holders are readers here: any number of them may hold a key together.
 *
 * While readers hold a key it reads {@linkcode SHARED}, so every `SET NX` of another client is
 * denied. The sorted set `hasp:readers:<key>` has the value of each reader, and as its score the
 * reader's own deadline, in milliseconds since 1970 by the node's clock. Each script keeps one
 * invariant: while the score of a reader lies ahead, the key exists, reads {@linkcode SHARED}, and
 * expires no earlier than that. So a reader that crashed costs its own TTL, whatever the others do.
 *
 * **Why readers exclude writers.** A node grants a reader if the keys are missing or readers' own,
 * and from then on the keys exist until that reader's TTL is over or it is released, whatever other
 * readers do. So the nodes that granted a reader grant no writer, and those that granted a writer
 * grant no reader. Because two quorums share a node, no writer is held beside anybody. All else in
 * the argument of `lock/acquire.ts` is true of a reader as it is, because its value, its deadline
 * and its release are its own.
 *
 * Readers and writers wait in one queue. The ticket of a reader has `R` before its number. A reader
 * enters if no writer's ticket is ahead of its own, and notifies the readers that are first then:
 * so all readers up to the next writer enter. One that passes four or more, which may all be
 * stopped, notifies those around its own rank, too. As no release comes while readers stay, each
 * script about readers drops the writers that it finds gone.
 *
 * The set's key is made in the script and not given as a key, as that of the queue is.
 *
 * @module
 */
import { DENIED, GRANTED } from "../../quorum/outcome.ts";
import { JOIN_LUA } from "./acquire.ts";
import { extendArgs } from "./extend.ts";
import { ASK_LUA, QUEUE_LUA } from "./queue.ts";
import {
  EXTENDED,
  lua,
  NONE,
  oneOf,
  readAcquired,
  type Release,
  type ScriptOperation,
} from "./script.ts";

/** What a key reads while readers hold it. */
export const SHARED = "hasp:shared";
/** What precedes a key in the name of the set of its readers. */
export const READERS_PREFIX = "hasp:readers:";

/** What scripts call that notify readers, or change those of a key. */
export const READERS_LUA: string = /* @__PURE__ */ lua(
  // Whether a ticket is a reader's.
  `local function reads(ticket)
  return ticket:find('^[^:]*:R')
end`,
  // Notifies the readers that may enter, but for `own`: those among the first four tickets, up to
  // the first writer's. The fifth is to ask later, as a watcher. Drops tickets whose clients are
  // gone. Returns whether somebody but `own` waits.
  //
  // If there is a `rank`, the four begin there. If there is a number `from`, those of the four that
  // are before it were notified earlier, and are left out, unless one was dropped: then those
  // behind it have moved up. It looks again only if all were gone: else somebody asks soon.
  `local function notifyReaders(key, own, rank, from)
  local queue, first = 'hasp:queue:' .. key, nil
  from = from or 1
  repeat
    local dropped = false
    for index, ticket in ipairs(redis.pcall('ZRANGE', queue, rank or '0', rank and rank + 4 or '4')) do
      if gone(ticket) then
        dropped = redis.pcall('ZREM', queue, ticket) == 1
        from = 1
      elseif ticket ~= own then
        first = first or ticket
        if not reads(ticket) then break end
        if index == 5 then
          publish(ticket, '+' .. patienceMs(first))
        elseif index >= from then
          publish(ticket, '*')
        end
      end
    end
  until first or not dropped
  return first ~= nil
end`,
  // Drops readers whose deadline is over, and gives the key and the set the latest deadline of the
  // others: nothing to do if the deadline of a reader that has `left` was not the latest. Without
  // others, deletes the key. Returns whether the key is free then.
  `local function expireReaders(key, left)
  local readers = 'hasp:readers:' .. key
  redis.call('ZREMRANGEBYSCORE', readers, '-inf', nowMs())
  local latest = redis.call('ZRANGE', readers, '-1', '-1', 'WITHSCORES')[2]
  if not latest then
    redis.call('DEL', key)
    return true
  end
  if left and left < tonumber(latest) then return false end
  local ttl = string.format('%.0f', latest - nowMs())
  redis.call('PEXPIRE', key, ttl)
  redis.call('PEXPIRE', readers, ttl)
end`,
);

/**
 * Makes the value a reader of all keys and leaves their queues, or changes no key and stands in
 * their queues. A key that is not free must be held by readers, and no writer may be ahead of the
 * caller: beside readers the writer is waited for until its wait is over. It shortens no deadline,
 * because it may come twice, and late. Returns what {@linkcode ACQUIRE_OR_WAIT} returns, but no
 * counter.
 *
 * A caller without a ticket waits for the turn of writers as well, unless it `passes` them: else
 * those that only try would pass a writer that has just been notified, again and again.
 */
export const ACQUIRE_SHARED: ScriptOperation = {
  kind: "acquire",
  argv: ({ value, ttlMs, entersAtOnce }) => [value, String(ttlMs), entersAtOnce ? "1" : NONE],
  read: readAcquired,
  source: /* @__PURE__ */ lua(
    ASK_LUA,
    READERS_LUA,
    // The first writer's ticket ahead of `own` in the queue, or the 64th of all, behind which may
    // be one; `nil` without one. Drops writers' tickets whose clients are gone; also returns
    // whether it dropped one.
    `local function writerAhead(key, own)
  local queue, dropped = 'hasp:queue:' .. key, false
  repeat
    local again = false
    for index, ticket in ipairs(redis.pcall('ZRANGE', queue, '0', '63')) do
      if ticket == own then break end
      local writes = not reads(ticket)
      if writes and gone(ticket) then
        again = redis.pcall('ZREM', queue, ticket) == 1
      elseif writes or index == 64 and not again then
        return ticket, dropped or again
      end
    end
    dropped = dropped or again
  until not again
  return nil, dropped
end`,
    // Finds out whether a writer holds a key. Without a clock, the script ends here: it has changed
    // nothing.
    `local value, ttl, passes, ticket, asked, agreed = unpack(ARGV)
local own = ticket or ''
local now = nowMs()
if not now then return time end
local blocked, found, turnsMs = false, {}, {}
for index, key in ipairs(KEYS) do
  found[index] = redis.pcall('GET', key)
  blocked = blocked or found[index] and found[index] ~= 'hasp:shared'
end`,
    // Finds out whether a writer is ahead: on a free key it may be overtaken once its turn is over,
    // beside readers it is waited for until its wait is. If one beside readers was gone, others may
    // enter.
    `if passes == '' and not blocked then
  for index, key in ipairs(KEYS) do
    local writer, dropped = writerAhead(key, own)
    if found[index] then
      if dropped then notifyReaders(key, own) end
      turnsMs[key] = writer and waitLeftMs(writer)
      blocked = blocked or writer
    elseif writer then
      turnsMs[key] = contendFor(key, own, asked, agreed)
      blocked = blocked or turnsMs[key] > 0
    end
  end
end`,
    // Leaves the queues and enters, and notifies the readers that may enter next. Four if the key
    // was free; else only the fourth, because the reader that entered before has notified the three
    // ahead of that. And those around its own rank, if it has passed so many that all of them may
    // be stopped. Beside readers, the watchers know that the key is taken. If the node refuses
    // `SET`, the set of readers has a TTL all the same.
    `if not blocked then
  for index, key in ipairs(KEYS) do
    local isFree, readers, queue = not found[index], 'hasp:readers:' .. key, 'hasp:queue:' .. key
    local rank = ticket and (redis.call('ZRANK', queue, ticket) or 0)
    if rank then
      if isFree then take(key, ticket, ttl) else redis.call('ZREM', queue, ticket) end
    end
    if isFree and redis.call('ZCARD', readers) > 0 then redis.call('DEL', readers) end
    local deadline = tonumber(redis.call('ZSCORE', readers, value)) or 0
    redis.call('ZADD', readers, math.max(deadline, now + ttl), value)
    local set = isFree and redis.pcall('SET', key, 'hasp:shared', 'PX', ttl) or {}
    expireReaders(key)
    if set.err then return set end
    if rank then
      notifyReaders(key, nil, nil, isFree and 1 or 4)
      if rank > 3 then notifyReaders(key, nil, rank - 3) end
    end
  end
  return 1
end`,
    `if not ticket then return 0 end`,
    JOIN_LUA,
  ),
  sha1: "b467193efdb77c54470eb8a7141160d6c3e20b8e",
};

/**
 * As {@linkcode EXTEND}, of a reader's own deadline. Replies 1 if the value is a reader of all
 * keys, 0 if somebody else holds one of them, else -1. Where it is a reader, it is extended.
 *
 * If it `keeps`, the keys live on for a while in place of being deleted: the deadline may get
 * earlier, and watchers are notified of when the keys expire. The last but one is one of them,
 * because the last may be the client that keeps the key. That goes for exclusive mode, too,
 * which needs no clock; an extension ends at once without one.
 *
 * Its first write is a `PEXPIRE`, which a server without memory allows: it refuses `ZADD`, but not
 * behind another write.
 */
const PROLONG: string = /* @__PURE__ */ lua(
  QUEUE_LUA,
  READERS_LUA,
  `local value, ttl, keeps = unpack(ARGV)
if not keeps and not nowMs() then return time end
local reply = 1
for _, key in ipairs(KEYS) do
  local found, readers = redis.call('GET', key), 'hasp:readers:' .. key
  local deadline = found == 'hasp:shared' and tonumber(redis.call('ZSCORE', readers, value)) or 0
  local isReader = deadline > 0 and deadline > nowMs()
  if isReader or found == value then
    redis.call('PEXPIRE', key, ttl)
    if isReader then
      redis.call('ZADD', readers, math.max(keeps and 0 or deadline, nowMs() + ttl), value)
      expireReaders(key)
      notifyReaders(key)
    end
    if keeps then
      local earlier = redis.pcall('ZRANGE', 'hasp:queue:' .. key, '-2', '-2')[1]
      notifyWatchers(key, '+', tonumber(ttl), nil, nil, earlier)
    end
  elseif found and found ~= 'hasp:shared' then
    reply = 0
  elseif reply == 1 then
    reply = -1
  end
end
return reply`,
);
const PROLONG_SHA1 = "6074021b1f7f1f9a4438f457c92c7d28a683839f";

/** Extends a lock in shared mode. */
export const EXTEND_SHARED: ScriptOperation = {
  kind: "extend",
  argv: extendArgs,
  source: PROLONG,
  sha1: PROLONG_SHA1,
  read: /* @__PURE__ */ oneOf(EXTENDED),
};

/** Has the keys of a lock live on, in either mode: it `keeps` them. */
export const KEEP: ScriptOperation<Release> = {
  kind: "release",
  argv: ({ value, keptMs }) => [value, String(Math.max(Math.ceil(keptMs!()), 1)), "1"],
  source: PROLONG,
  sha1: PROLONG_SHA1,
  read: /* @__PURE__ */ oneOf({ "-1": DENIED, 0: DENIED, 1: GRANTED }),
};
