/**
 * The queue of clients that wait for a key, on one node.
 *
 * **Tickets.** The queue is a sorted set under `hasp:queue:<key>`. A member is a ticket, `<client
 * id>:<number>:<patience>:<end>`. Its score is the time at which its client joined, in
 * microseconds, by a clock that all clients share as well as they can: the median of the nodes'
 * clocks. So every node gets the same score for the same ticket, and all have the same order. The
 * patience is how long the client is waited for, in milliseconds: its own distance decides it,
 * because a near second would else overtake a far first before that one's request can arrive. The
 * end is when its wait is over, in seconds since 1970; a wait without end has none. The number of a
 * reader's ticket begins with `R` (`readers.ts`); behind a ticket for a pool follow a dot and the
 * number of a key (`pool.ts`).
 *
 * **Turns.** A free key is the turn of one ticket at most; `hasp:turn:<key>` says whose, and behind
 * a space, if two or more wait for the turn to be over, which of them was the last in the queue:
 *
 * - *No turn.* Nothing is kept, or a ticket that has left the queue. So it is while a key is held,
 *   and when it has expired.
 * - *A turn runs* for as long as the ticket's patience, by the node's clock. Until then those
 *   behind the ticket, and newcomers, wait for it. Who asks without a ticket does not; nor do
 *   readers that no writer is ahead of, and tickets of pools of which enough keys are free
 *   (`mayHave`).
 * - *A turn is over.* It is kept for a while, so that scripts see it.
 *
 * | what happens to a key              | what becomes of the turn                  | function     |
 * | ---------------------------------- | ----------------------------------------- | ------------ |
 * | it is freed                        | the first ticket's begins: it is notified | `giveTurn`   |
 * | it was free, or a ticket leaves    | the same, unless a turn runs              | `ensureTurn` |
 * | it is free, and a client asks:     |                                           | `contendFor` |
 * | ... the client is first            | the client gets the key, in any turn      |              |
 * | ... no turn, another is first      | that one's begins                         | `giveTurn`   |
 * | ... another's turn runs            | goes on: the client is to wait            |              |
 * | ... another's turn is over         | all ahead are dropped, the client gets it | `overtake`   |
 * | ... the same, to a newcomer        | nobody is dropped, the client gets it     |              |
 * | it is taken                        | ends                                      | `take`       |
 * | it is held, and a client asks      | ends, if a plain `SET` had taken the key  | `JOIN_LUA`   |
 *
 * A first ticket to whose channel nobody subscribes is dropped, because its client is gone: then
 * the next one is first. A newcomer, who is not in the queue yet, passes those that wait, but drops
 * nobody; and if several wait it passes them 50 ms later, because they are about to ask.
 *
 * A ticket for any one of several keys has one turn at a time, so the next key that is free goes to
 * the next ticket.
 *
 * **Messages.** A client subscribes to one channel, `hasp:wake:<client id>`, and queues only while
 * a quorum of nodes can notify it: as the first on a minority it would keep others waiting, and win
 * nothing. What a script publishes there is a ticket, and a sign behind it. `readMessage` gives
 * each a name:
 *
 * - nothing, `turn`: the key is free, and it is the ticket's turn. Or another has overtaken it: it
 *   is to ask again, and gets its position back.
 * - `+` and a time, `watch`: the ticket is to ask after so many milliseconds if nothing comes
 *   before, or a little later if only a minority of nodes says so. Each that gets this message
 *   waits at least 50 ms longer than the one before. The key is free, and it is another's turn; or
 *   a lock that has ended keeps the key until then. It goes to the first, the fourth and the last
 *   of those who wait for that; if a lock keeps the key, also to the last but one. Several at the
 *   head may be stuck; but the last has just asked, so it most likely runs.
 * - `-` and a time, `taken`: another took the key, and it expires after so many milliseconds. Until
 *   then there is nothing to ask for. It goes to the same tickets. The last may be there only since
 *   it released the key, so the one that was the last when the turn began gets it, too.
 * - `*`, `beside`: readers hold the key, and the ticket, a reader's, may enter beside them.
 *
 * **Leaving.** A ticket leaves the queue when its client gets the key, gives up, is gone, or is
 * overtaken. One for several keys also leaves if the key is free while another is in its way
 * (`JOIN_LUA` in `acquire.ts`). One whose wait is over is gone, too: its host may be stopped or cut
 * off, with open connections. A client that got the key but not the lock is put back with its old
 * score; and so is one that was overtaken because it was slow, if a quorum has agreed on its score.
 *
 * **Wrong clocks.** No client can gain much by one, because a ticket may get another score than it
 * asks for (`scoreOf`). A score is *ahead* if it is more than {@linkcode QUEUE_LEAD_MS} later than
 * the node's clock, and *too early* if it is earlier than the last ticket's by more than that:
 *
 * | the ticket | the score that it asks for is                      | it gets                     |
 * | ---------- | -------------------------------------------------- | --------------------------- |
 * | stands     | ahead of the node's clock, or earlier than its own | the one that it has         |
 * |            | any other                                          | that one: it moves back     |
 * | is new     | ahead of the node's clock                          | the latest that is not      |
 * |            | too early for one that is new, and not agreed      | a later one than the last's |
 * |            | any other                                          | that one                    |
 *
 * Nodes may then have different scores for a ticket, so its client learns them, and asks with a
 * later one, until a quorum has *agreed* on it. From then on the client says so, and a node without
 * the ticket, because it has lost its queue, or was subscribed to later than the others, takes the
 * score as it is: so it has the same order. Before the client says so for the first time, it moves
 * back a score that is too early by the nodes' clocks: other queues may not have seen the ticket
 * yet. A client that was stopped for a second or more does not say so, because others may have
 * passed it.
 *
 * The queue's key is made in the script and not given as a key: a user who may access the locked
 * keys alone can still release. If the node refuses a command on the queue, or if something else
 * stands under its key, the node has no queue. If that is so of the key of a turn, only newcomers
 * wait for turns.
 *
 * @module
 */
import {
  PATIENCE_MS_MAX,
  PATIENCE_MS_MIN,
  QUEUE_LEAD_MS,
  type QueueMessage,
  type QueuePosition,
} from "../../quorum/queue_ticket.ts";
import type { KeyPool } from "../../quorum/quorum_node.ts";
import { GRANTED, QUEUED } from "../../quorum/outcome.ts";
import { type RawReply, textReply } from "../../redis/reply.ts";
import { isNumber, lua, type ScriptOperation } from "./script.ts";

/** The longest text that may be a lock's value, in bytes: those of lock libraries are shorter. */
export const VALUE_BYTES_MAX = 999;
/** How long a queue lives after a ticket was last put into it, in milliseconds. */
export const QUEUE_TTL_MS = 180_000;
const QUEUE_LEAD_US = QUEUE_LEAD_MS * 1_000;
/** How much later than the watcher before it a watcher is to ask at least, in milliseconds. */
const WATCH_STEP_MS = 50;
/**
 * How long the record of a turn lives, in milliseconds: longer than any turn, so that scripts see
 * that there was one.
 */
const TURN_RECORD_MS = 4_000;
/** What precedes a client's id in the name of its channel. */
export const WAKE_CHANNEL = "hasp:wake:";

/** What tickets say, who is notified, and whose turn it is for a key. */
export const QUEUE_LUA: string = /* @__PURE__ */ lua(
  // Sends the ticket's client the ticket and a sign; returns how many have received that, or an
  // error. Those who subscribe to a pattern count, too.
  `local function publish(ticket, sign)
  return redis.pcall('PUBLISH', 'hasp:wake:' .. ticket:match('^[^:]*'), ticket .. sign)
end`,
  // The node's time, in milliseconds since 1970; `nil` if it refuses to say: then `time` is the
  // error. It is asked once.
  `local time
local function nowMs()
  time = time or redis.pcall('TIME')
  return time[1] and time[1] * 1000 + math.floor(time[2] / 1000)
end`,
  // How long the ticket's client waits yet; `nil` if without end.
  `local function waitLeftMs(ticket)
  local ends = tonumber(ticket:match('^[^:]*:%w+:%d+:(%d+)'))
  local now = ends and nowMs()
  return now and ends * 1000 - now
end`,
  // Whether the ticket's client is gone: its wait is over, or nobody subscribes to its channel.
  `local function gone(ticket)
  local channel = 'hasp:wake:' .. ticket:match('^[^:]*')
  return (waitLeftMs(ticket) or 1) <= 0 or redis.pcall('PUBSUB', 'NUMSUB', channel)[2] == 0
end`,
  // How long the ticket's turn lasts: the farther its client is, the longer.
  () =>
    `local function patienceMs(ticket)
  return math.min(tonumber(ticket:match('^[^:]*:%w+:(%d+)')) or ${PATIENCE_MS_MIN}, ${PATIENCE_MS_MAX})
end`,
  // Sends the watchers, but for `own`, a sign and a time. They are the first ticket, the fourth and
  // the last, and the one that was the last `earlier`. If there are `tickets`, these are the first
  // five, the key is free, and the watchers are behind the one whose turn it is. In place of one
  // that is not there stands the first, because a list in Lua ends at `nil`.
  //
  // Each gets a later time than the one before it, and none before that one's patience is over, so
  // that it can ask before, though it is farther. The patiences are not added up, because a free
  // key is to wait for 1.5 s at most. Returns the time of one more watcher, and the last, unless
  // that is the first.
  () =>
    `local function notifyWatchers(key, sign, waitMs, tickets, own, earlier)
  local queue, notified = 'hasp:queue:' .. key, { [own or ''] = true }
  local index = tickets and 2 or 1
  tickets = tickets or redis.pcall('ZRANGE', queue, '0', '3')
  local first, fourth = tickets[index], tickets[index + 3]
  local last = tickets[index + 1] and redis.pcall('ZRANGE', queue, '-1', '-1')[1]
  for _, watcher in ipairs({ first, fourth or first, last or first, earlier }) do
    if not notified[watcher] and publish(watcher, sign .. waitMs) ~= 0 then
      if waitMs < ${PATIENCE_MS_MAX} then waitMs = math.max(waitMs, patienceMs(watcher)) end
      waitMs = waitMs + ${WATCH_STEP_MS}
    end
    notified[watcher] = true
  end
  return waitMs, last
end`,
  // The id of the ticket that a text begins with, without the number of the key, if it is one of a
  // pool; `nil` or `false` of anything else. The pattern alone is slow if there is no dot.
  `local function poolIdOf(text)
  return type(text) == 'string' and text:find('.', 1, true) and text:match('^[^. ]*%.')
end`,
  // The name of what says for which key of its pool a ticket has its turn. It begins as the keys of
  // most pools do, because a user may only have the right to such names, and a cluster has them in
  // one slot by their hash tag. In a pool whose keys begin otherwise, a ticket may have many turns.
  `local function poolTurnName(key, id)
  return 'hasp:turn:' .. (key:match('^.*%W') or '') .. id
end`,
  // Whether the ticket has its turn for another key of its pool: then it is passed over, so that
  // each of several free keys goes to another ticket.
  `local function hasTurnElsewhere(ticket, key)
  local id = poolIdOf(ticket)
  local other = id and redis.pcall('GET', poolTurnName(key, id))
  if type(other) ~= 'string' or other == key then return false end
  return poolIdOf(redis.pcall('GET', 'hasp:turn:' .. other)) == id
end`,
  // Whose turn it is for the key: `nil` if nobody has had one, or the ticket has left the queue; or
  // if it is yet to begin, because the node's clock was set back: else a first that is gone would
  // keep the key for that long. And for how long yet: 0 or less unless a turn runs.
  () =>
    `local function whoseTurn(key)
  local found = redis.pcall('GET', 'hasp:turn:' .. key)
  if type(found) ~= 'string' then return nil, 0 end
  local ticket = found:match('^[^ ]*')
  if not tonumber(redis.pcall('ZRANK', 'hasp:queue:' .. key, ticket)) then return nil, 0 end
  local sinceMs = ${TURN_RECORD_MS} - redis.pcall('PTTL', 'hasp:turn:' .. key)
  if sinceMs < 0 then return nil, 0 end
  return ticket, patienceMs(ticket) - sinceMs
end`,
  // Ends the turn for the key. Returns whether one can be recorded: not if there is anything else
  // than a ticket, which stays; and the ticket that was the last in the queue when it began.
  `local function endTurn(key)
  local found = redis.pcall('GET', 'hasp:turn:' .. key)
  if not found then return true end
  if type(found) ~= 'string' or not found:find('^[^:]*:%w+:%d') then return false end
  redis.pcall('DEL', 'hasp:turn:' .. key)
  return true, found:match(' (.+)')
end`,
  // Gives the turn for a free key to the first ticket, or the first from this rank on, that has its
  // turn for no other key: notifies it, and the watchers. Drops tickets whose clients are gone.
  // Returns for how long `own`, the caller's ticket, is to wait for it; 0 if it is nobody else's
  // turn, or if the node refuses to drop a ticket or to record the turn. If something else stands
  // under the turn's key, no script can see when the turn is over. So tickets in the queue do not
  // wait for it; but newcomers do, because they would pass the first again and again.
  //
  // If nobody else waits, `gone` is not asked: the message then shows whether it has a receiver,
  // but counts those who subscribe to a pattern, too; and if its wait is over, that keeps nobody
  // waiting.
  () =>
    `local function giveTurn(key, own, rank)
  local queue = 'hasp:queue:' .. key
  while true do
    local tickets = redis.pcall('ZRANGE', queue, rank or '0', rank and rank + 4 or '4')
    local first, others = tickets[1], own or tickets[2]
    if not first or first == own then return 0 end
    if hasTurnElsewhere(first, key) then
      rank = (rank or 0) + 1
    elseif others and gone(first) or publish(first, '') == 0 then
      if redis.pcall('ZREM', queue, first) ~= 1 then return 0 end
    else
      local turnMs, id = patienceMs(first), poolIdOf(first)
      if id then redis.pcall('SET', poolTurnName(key, id), key, 'PX', turnMs) end
      local waitMs, last = notifyWatchers(key, '+', turnMs, tickets, own)
      local turn = last and first .. ' ' .. last or first
      local set = endTurn(key)
        and redis.pcall('SET', 'hasp:turn:' .. key, turn, 'PX', '${TURN_RECORD_MS}')
      if set and set.err or not set and redis.pcall('ZRANK', queue, own or '') then return 0 end
      return waitMs
    end
  end
end`,
  // Gives the turn for a free key to the first, unless the key was free before and a turn runs:
  // then only notifies its watchers again, because one of them may have left. As a rule the turn is
  // the first's; if it is another's, that one gets a needless `+`. Returns what `giveTurn` does.
  `local function ensureTurn(key, wasHeld, own)
  if not wasHeld then
    local _, leftMs = whoseTurn(key)
    if leftMs > 0 then
      local tickets = redis.pcall('ZRANGE', 'hasp:queue:' .. key, '0', '4')
      return notifyWatchers(key, '+', leftMs, tickets, own)
    end
  end
  return giveTurn(key, own)
end`,
);

/** What a script calls whose caller asks for keys: it takes them, or joins their queues. */
export const ASK_LUA: string = /* @__PURE__ */ lua(
  QUEUE_LUA,
  // Drops the tickets ahead of this rank, which is 1 or more, but for those that have their turns
  // for other keys, and returns them. Notifies each: one that asks again gets its position back if
  // a quorum has agreed on its score.
  `local function overtake(key, rank)
  local queue, overtaken = 'hasp:queue:' .. key, {}
  for _, ticket in ipairs(redis.call('ZRANGE', queue, '0', rank - 1)) do
    if not hasTurnElsewhere(ticket, key) then
      overtaken[#overtaken + 1] = ticket
      redis.call('ZREM', queue, ticket)
      publish(ticket, '')
    end
  end
  return overtaken
end`,
  // Asks for a free key. Returns for how long it is another's turn yet: 0 if `own` may have it, and
  // then those that it overtakes. It may have the key if
  //
  // - it is the first, or would be with the score that is `asked` for, and a quorum has `agreed` on
  //   that: then it has only lost its position on this node;
  // - it is its turn;
  // - another's turn is over: it overtakes those ahead of it. A newcomer has no rank, and drops
  //   nobody.
  //
  // If nobody has a turn, the first gets it.
  () =>
    `local function contendFor(key, own, asked, agreed)
  local queue = 'hasp:queue:' .. key
  local first, second = unpack(redis.pcall('ZRANGE', queue, '0', '1'))
  if not first or first == own then return 0 end
  if agreed == '1' and tonumber(asked) < tonumber(redis.call('ZSCORE', queue, first)) then return 0 end
  local whose, leftMs = whoseTurn(key)
  if not whose then return giveTurn(key, own) end
  if whose == own then return 0 end
  local rank = redis.call('ZRANK', queue, own)
  if second and not rank then leftMs = leftMs + ${WATCH_STEP_MS} end
  if leftMs > 0 then return leftMs end
  return 0, rank and overtake(key, rank)
end`,
  // Takes a ticket out of the queue of a key that it is about to get, and ends the turn for it.
  // Reports to the watchers that the key is taken for the `ttl`.
  `local function take(key, own, ttl)
  redis.call('ZREM', 'hasp:queue:' .. key, own)
  local _, earlier = endTurn(key)
  notifyWatchers(key, '-', tonumber(ttl), nil, own, earlier)
end`,
);

/**
 * What a script calls that puts a ticket into queues. It stands behind what grants, which does
 * without.
 */
export const STAND_LUA: string = /* @__PURE__ */ lua(
  // The score that a ticket gets in the queues of the keys: see **Wrong clocks**. If it stands in
  // one of them, that proves its score for the others. Also returns the node's time, both in
  // microseconds.
  () =>
    `local function scoreOf(keys, ticket, asked, agreed)
  local time = redis.call('TIME')
  local nowUs = time[1] * 1000000 + time[2]
  local score, latest, former, last = tonumber(asked), nowUs + ${QUEUE_LEAD_US}, nil, 0
  for _, key in ipairs(keys) do
    former = tonumber(redis.call('ZSCORE', 'hasp:queue:' .. key, ticket)) or former
  end
  if former then return score > latest and former or math.max(score, former), nowUs end
  score = math.min(score, latest)
  if agreed == '1' then return score, nowUs end
  for _, key in ipairs(keys) do
    local found = redis.call('ZRANGE', 'hasp:queue:' .. key, '-1', '-1', 'WITHSCORES')
    last = math.max(last, tonumber(found[2]) or 0)
  end
  return score < last - ${QUEUE_LEAD_US} and last + 1 or score, nowUs
end`,
  // Puts a ticket into a key's queue. Returns how many are ahead of it, and how many there are.
  () =>
    `local function stand(key, ticket, score)
  local queue = 'hasp:queue:' .. key
  redis.call('ZADD', queue, score, ticket)
  redis.call('PEXPIRE', queue, '${QUEUE_TTL_MS}')
  return redis.call('ZRANK', queue, ticket), redis.call('ZCARD', queue)
end`,
  // Of a key that is held: 1 if what it holds is no value of this library, else 0; and its value,
  // if that may be a lock's: a reply must be short. If readers hold it, that of the reader with the
  // latest deadline.
  () =>
    `local function holderOf(key)
  local found = redis.pcall('GET', key)
  if found == 'hasp:shared' then return 0, redis.pcall('ZRANGE', 'hasp:readers:' .. key, '-1', '-1')[1] end
  if type(found) ~= 'string' or #found > ${VALUE_BYTES_MAX} then return 1 end
  return #found:match('^%x*') == 40 and 0 or 1, found
end`,
);

/** Where a ticket stands, and how the keys are. The last two parts are of a pool. */
type PositionReply = [
  /**
   * How long a key is held, as `PTTL` returns it: the longest time; of a pool the shortest. -2 if
   * all are free, or one of the pool for the ticket.
   */
  heldMs: number,
  /**
   * How many tickets are ahead, in the queue with the most ahead; of a pool in that of `reserved`,
   * or in the shortest.
   */
  ahead: number,
  /** How many tickets there are, in the longest queue. */
  length: number,
  /** The ticket's. */
  score: number,
  /** The node's clock. */
  nowUs: number,
  /** 1 if a key holds what is no value of this library, else 0. */
  foreign: number,
  /** The value of a key, or an empty text. */
  holder: RawReply,
  /** {@linkcode QueuePosition.turnMs} */
  waitMs: number,
  /** A bit mask: 1 for the first key of the pool if it is free for the ticket, and so on. */
  free?: number,
  /** The number of the first key of the pool that is free, but for another ticket; else 0. */
  reserved?: number,
];
/** How many parts it has: without those two, and with them. */
export const POSITION_LENGTH = 8, POOL_POSITION_LENGTH = 10;
/** Which of them is a text. */
export const TEXT_AT = 6;

/**
 * An acquisition for a caller that stands in the queues if it is denied. Behind what it gets
 * otherwise, its script gets the ticket's id and the score that the ticket asks for, and a 1 if
 * that is agreed; and it denies by replying the position.
 */
export function queued(acquisition: ScriptOperation): ScriptOperation {
  return {
    ...acquisition,
    queues: true,
    argv(request) {
      const { ticketId, score, agreed } = request.ticket!;
      return [...acquisition.argv(request), ticketId, String(score), ...agreed ? ["1"] : []];
    },
    read(reply, request) {
      if (isPosition(reply, request.pool)) return QUEUED;
      return acquisition.read(reply, request) === GRANTED ? GRANTED : undefined;
    },
  };
}

/**
 * Whether a reply is a position in queues: integers, and a value, which a client that turns texts
 * into numbers may have turned into one.
 */
function isPosition(reply: RawReply, pool: KeyPool | undefined): boolean {
  const length = pool ? POOL_POSITION_LENGTH : POSITION_LENGTH;
  return Array.isArray(reply) && reply.length === length &&
    reply.every((part, index) => index === TEXT_AT ? !Array.isArray(part) : isNumber(part));
}

/** The position in queues that a node replied. */
export function queuePosition(reply: RawReply): QueuePosition {
  const [heldMs, ahead, length, score, nowUs, foreign, holder, turnMs, free, reserved = 0] =
    reply as PositionReply;
  return {
    // PTTL replies 0 in the last millisecond of a key, and -2 for a key that is missing.
    remainingMs: heldMs === -1 ? Infinity : Math.max(heldMs + 1, 0),
    ahead,
    length,
    score,
    timeMs: nowUs / 1_000,
    foreign: foreign === 1,
    value: String(textReply(holder)),
    turnMs,
    ...free === undefined ? {} : { free, turnPlace: reserved - 1 },
  };
}

/**
 * A member of a queue, as the scripts read it: a ticket's id and, of a pool, the number of a key.
 * Behind it nothing, `*`, or `-` or `+` with how long to wait. Digits in a row are in one part, so
 * a text that is no ticket takes linear time.
 */
const MESSAGE = /^(([^:]*:[0-9a-zA-Z]+)(?::\d+){0,2}(?:\.|(?!\d)))(\d+)?(?:(\*)|([-+])(\d+))?$/u;

/** Reads a message on a client's channel; `undefined` if it is for no ticket. */
export function readMessage(text: string): QueueMessage | undefined {
  const found = MESSAGE.exec(text);
  if (!found) return undefined;
  const [, ticketId, name, number, beside, sign, waitMs] = found;
  const place = number === undefined ? undefined : Number(number) - 1;
  if (!sign) return { name, ticketId, place, notice: beside ? "beside" : "turn" };
  const notice = sign === "+" ? "watch" : "taken";
  return { name, ticketId, place, notice, waitMs: Number(waitMs) };
}

/**
 * The key of the queue for a key.
 *
 * @param key The key that clients wait for.
 */
export function queueOf(key: string): string {
  return `hasp:queue:${key}`;
}
