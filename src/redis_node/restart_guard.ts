/**
 * When a node's votes do not count, because it may have lost locks that are still held.
 *
 * A node that comes back without its keys would grant a held lock to a second client. So its grants
 * do not count until every lock that it may have lost has expired: for the *guard*, which must be
 * at least the longest TTL in use. Two things show that a node may have lost keys:
 *
 * - It was **restarted**. Its uptime shows that. This also covers a server that came back with all
 *   keys but those of its last second. A server whose clock was set back below its start reports a
 *   negative uptime; it counts as just started. So does one whose run id has changed, or cannot be
 *   read any more, whatever its uptime. A server that has never let this client read `INFO` is
 *   judged by the other sign.
 * - It was **emptied** while it ran, or is another server. Its *creation marker* is missing then,
 *   or young: a key that was set once, with the node's own time, and does not expire.
 *
 * One script reads both, *behind* each command that sets a lock's keys, in the same piece. Were it
 * to read them ahead of that command, the node could lose everything in between. The guard
 * withholds the vote until the script's reply has come, and so waits only for what was sent in the
 * same piece. `INFO` costs a server as much as the lock, so the uptime is not read each time: only
 * first on each connection, because a restart ends connections, and then once a second, because a
 * proxy may keep the client's; but each time with another client, which may connect again
 * unnoticed. If the guard is off nothing is sent.
 *
 * **A marker that is no time in the past** is an error vote, and stays as it is. It may be an
 * application's key, and nothing of an application is overwritten. If it is a time in the future,
 * the node's clock was set back since, and no age can be had from it. An operator deletes it; then
 * it is set again, and the node counts after the guard.
 *
 * **What is not seen:** a restart behind a proxy that keeps the client's connection, for a second,
 * unless the keys are lost as well; and a server's clock that was set ahead since it started, if
 * this client had not read the uptime before: uptime and age are then too long by as much.
 *
 * **A denial** of an attempt does not count either: the key may be that of an attempt that cannot
 * win, because its own grant does not count. A denial that puts the ticket in the queues counts:
 * its caller waits.
 *
 * **Extensions** do not count either: a lock is exclusive as long as a quorum of nodes that have
 * lost nothing keep its key. Before a node lost its keys, it may have granted another attempt that
 * is still under way, and finds its quorum with a node where this lock's key has expired. When the
 * client of this lock sets the missing key again, the first node looks like any other. If it
 * counted, this lock would have a quorum, too. So it does not count until that attempt is over,
 * which is what the guard waits for. This costs no lock of a healthy cluster: a cluster that is
 * young as a whole has granted none, if the guard is on for all of its clients.
 *
 * **Fencing tokens.** A node that has lost keys, or came back without its last second, may have
 * counters that are below what it replied before. They are not counted until they have been raised:
 * see {@linkcode oldCountsBelow}.
 *
 * @module
 */
import { emit, type EventListener } from "../events.ts";
import {
  type Detail,
  FAILED,
  GRANTED,
  type Outcome,
  OUTDATED,
  QUARANTINED,
} from "../quorum/outcome.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { ReplyReceiver } from "../redis/wire.ts";
import { encodeApart } from "../redis/encoder.ts";
import { type ConnectionError, ProtocolError, ReplyError } from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import type { CommandSender, LockCommand, ServerAccess } from "./command_sender.ts";
import { explained, UNKNOWN_SCRIPT } from "./refusals.ts";
import { isNumber } from "./scripts/script.ts";

/**
 * The key of a node's creation marker: since when it has lost nothing, in milliseconds by its own
 * clock.
 */
export const CREATED_KEY = "hasp:born";

/**
 * `KEYS` the creation marker: replies with its age and the node's clock, both in milliseconds. If
 * there is an argument, also with the uptime in seconds, or -1 if the node does not report it, and
 * with a number that stands for the run id, or 0 if it reports none. If the marker is missing it is
 * set to the clock, and its age is 0; one that is no time in the past stays, and its age is -1. It
 * is one script so that the clock is read in the step that sets the marker: a time that a client
 * had asked for before may be as old as that client was paused, and would hide that the node was
 * emptied meanwhile.
 */
export const STATE_LUA = `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local createdMs = redis.call('GET', KEYS[1])
if not createdMs then
  createdMs = string.format('%.0f', nowMs)
  redis.call('SET', KEYS[1], createdMs)
end
local ageMs = createdMs:find('^%d+$') and math.max(nowMs - createdMs, -1) or -1
if not ARGV[1] then return { ageMs, nowMs } end
local info = redis.pcall('INFO', 'server')
if type(info) ~= 'string' then info = '' end
local uptime = info:match('\\nuptime_in_seconds:([^\\r]*)')
local runId = info:match('\\nrun_id:(%x+)') or '0'
return {
  ageMs,
  nowMs,
  uptime and math.max(tonumber(uptime) or 0, 0) or -1,
  tonumber('0x' .. runId:sub(1, 8)),
}`;
/** The SHA-1 of {@linkcode STATE_LUA}. */
export const STATE_SHA1 = "faf78ae4d2eefdaffd355f4a26d5e1a3cb7b3cde";

/**
 * Start and uptime are whole seconds of the server's clock, so the uptime may be a second too long.
 */
const UPTIME_ERROR_MS = 1_000;
/**
 * How far a counter may be ahead of the node's clock, in milliseconds: by a client's hint, and one
 * microsecond a lock.
 */
const COUNTER_LEAD_MS_MAX = 61_000;

/** For how long an uptime that was read on a connection counts there, in milliseconds. */
const UPTIME_COUNTS_MS = 1_000;

/**
 * The script goes out whole with the uptime, so at first on each connection, and by its digest
 * from then on: that costs a server a third less.
 */
const STATE_COMMAND = /* @__PURE__ */ stateCommand("EVAL", STATE_LUA, "uptime");
const AGE_COMMAND = /* @__PURE__ */ stateCommand("EVALSHA", STATE_SHA1);
/** By how much two readings of one cause of a quarantine may differ, in milliseconds. */
const SAME_CAUSE_MS = 2_000;

/** What a server reports about itself: see {@linkcode STATE_LUA}. */
type ServerState = [ageMs: number, timeMs: number, uptimeS?: number, runId?: number];

/** A vote that is not answered yet. */
interface WithheldVote {
  readonly nodeIndex: number;
  readonly outcome: Outcome;
  /** What the node said beside that. */
  readonly detail: Detail | undefined;
  /** When it voted, by the monotonic clock. */
  readonly atMs: number;
}

/** Withholds the votes of one server that may have lost keys. */
export class RestartGuard implements ReplyReceiver<LockCommand> {
  readonly #server: ServerAccess;
  readonly #connection: CommandSender;
  readonly #onEvent: EventListener | undefined;
  /**
   * Since when the node had lost nothing, by the monotonic clock, when a quarantine was last
   * reported.
   */
  #reportedMs = -Infinity;
  /** When the uptime is due to be read again, by the monotonic clock. */
  #uptimeDueMs = -Infinity;
  /**
   * When the server was restarted at the latest, by the monotonic clock. With one run id it never
   * falls: a clock that is set ahead makes an uptime too long.
   */
  #restartedMs = -Infinity;
  /** The run id of the server, when it last replied. */
  #runId = 0;
  /** The votes on requests, until it is known whether they count. */
  readonly #withheld: Map<QuorumRequest, WithheldVote> = new Map();

  /**
   * @param server The node's server.
   * @param connection The connection to it.
   * @param onEvent Called once for each cause of a quarantine.
   */
  constructor(
    server: ServerAccess,
    connection: CommandSender,
    onEvent: EventListener | undefined,
  ) {
    this.#server = server;
    this.#connection = connection;
    this.#onEvent = onEvent;
  }

  /**
   * There is another connection: the server is asked at once, so that its marker is set early.
   */
  onOpen(): void {
    this.#uptimeDueMs = -Infinity;
    this.askBehind([]);
  }

  /**
   * Must be called with the keys of the command that may bring the grant, and its request, right
   * behind that.
   */
  askBehind(keys: readonly string[], request?: QuorumRequest): void {
    const { thirdParty, wheel: { clock } } = this.#server;
    // others' clients may connect again unnoticed
    const isDue = thirdParty || clock.monotonicMs() >= this.#uptimeDueMs;
    this.#connection.submit({ ...isDue ? STATE_COMMAND : AGE_COMMAND, keys, request }, this);
  }

  /** Withholds a vote until the state of the server comes, which was asked for behind it. */
  withhold(request: QuorumRequest, vote: WithheldVote): void {
    this.#withheld.set(request, vote);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, { args, keys, request }: LockCommand): void {
    const unknown = reply instanceof ReplyError && reply.prefix === UNKNOWN_SCRIPT;
    if (unknown && args === AGE_COMMAND.args) {
      return this.#connection.submit({ ...STATE_COMMAND, keys, request }, this);
    }
    const state = this.#stateIn(reply);
    if (!(state instanceof Error)) this.#noteRestart(state);
    this.#conclude(request, state);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: ConnectionError, { request }: LockCommand): void {
    this.#conclude(request, error);
  }

  #stateIn(reply: RawReply): ServerState | Error {
    if (reply instanceof ReplyError) return explained(reply);
    const isState = Array.isArray(reply) && reply.length >= 2 && reply.every(isNumber);
    return isState ? reply as ServerState : this.#unknownAge("sent an unexpected reply");
  }

  #unknownAge(why: string): ProtocolError {
    return new ProtocolError(`Cannot determine the age of ${this.#server.name}: it ${why}`);
  }

  /** A server that does not show any more that it is the one of before counts as just restarted. */
  #noteRestart([, , uptimeS, runId = 0]: ServerState): void {
    if (uptimeS === undefined) return;
    const { receivedAtMs } = this.#connection;
    const isAnother = this.#runId !== 0 && runId !== this.#runId;
    // mutation: restarted-node-counts
    const startedMs = receivedAtMs - uptimeS * 1_000 + UPTIME_ERROR_MS;
    this.#runId = runId;
    this.#uptimeDueMs = receivedAtMs + UPTIME_COUNTS_MS;
    // a later start may be the same, read a little differently
    const isLater = uptimeS >= 0 && startedMs > this.#restartedMs + UPTIME_ERROR_MS;
    if (isAnother) this.#restartedMs = receivedAtMs;
    else if (isLater) this.#restartedMs = startedMs;
  }

  /** Answers a request, unless no vote on it is withheld. */
  #conclude(request: QuorumRequest | undefined, state: ServerState | Error): void {
    const vote = request && this.#withheld.get(request);
    if (!vote) return;
    this.#withheld.delete(request);
    const { nodeIndex, outcome, detail, atMs } = vote;
    if (state instanceof Error) return request.answer(nodeIndex, FAILED, state);
    const [ageMs, timeMs] = state;
    if (ageMs < 0) {
      const error = this.#unknownAge(`has no time in the past under its key '${CREATED_KEY}'`);
      return request.answer(nodeIndex, FAILED, error);
    }
    const { receivedAtMs } = this.#connection;
    const runsMs = receivedAtMs - this.#restartedMs;
    // how long it has lost nothing
    // mutation: emptied-node-counts
    const intactMs = Math.min(runsMs, ageMs);
    const remainingMs = request.guardMs! - intactMs;
    if (remainingMs <= 0) {
      const oldBelow = oldCountsBelow(timeMs, intactMs);
      // A counter that may be an old one is withheld, so that counters are raised above it.
      // mutation: old-counters-believed
      const isOld = outcome === GRANTED && Number(detail) < oldBelow;
      if (isOld) request.answer(nodeIndex, OUTDATED, oldBelow, atMs);
      else request.answer(nodeIndex, outcome, detail, atMs);
      return;
    }
    request.answer(nodeIndex, QUARANTINED, undefined, receivedAtMs);
    const sinceMs = receivedAtMs - intactMs;
    if (sinceMs <= this.#reportedMs + SAME_CAUSE_MS) return;
    this.#reportedMs = sinceMs;
    const reason = runsMs <= ageMs ? "restarted" : "emptied";
    const node = this.#server.name;
    emit(this.#onEvent, { type: "node-quarantined", node, reason, remainingMs });
  }
}

/** It is kept for good, so it must not keep the memory that commands have in common. */
function stateCommand(call: string, script: string, ...argv: string[]): Omit<LockCommand, "keys"> {
  const args = [call, script, "1", CREATED_KEY, ...argv];
  return { args, bytes: encodeApart(args) };
}

/**
 * An upper bound of all counters of fencing tokens that a node had before it was restarted or
 * emptied. Its counters may be below what it replied before; until they are at least this they do
 * not count. A counter is ahead of the node's clock by {@linkcode COUNTER_LEAD_MS_MAX} at the most.
 * No client's clock decides this, so one that is wrong cannot raise counters.
 *
 * @param timeMs The node's clock.
 * @param intactMs For how long it cannot have lost anything, in milliseconds.
 * @returns Microseconds.
 */
function oldCountsBelow(timeMs: number, intactMs: number): number {
  return Math.ceil((timeMs - intactMs + COUNTER_LEAD_MS_MAX) * 1_000);
}
