/**
 * When a node's grants do not count, because it may have lost locks that are still held.
 *
 * A node that comes back without its keys would grant a held lock to a second client. So its grants
 * do not count until every lock that it may have lost has expired: for the *guard*, which must be
 * at least the longest TTL in use. Two things show that a node may have lost keys:
 *
 * - It was **restarted**. Its uptime shows that. It is asked for on each connection, ahead of the
 *   first command that could count, because a restart always breaks the connection. This also
 *   covers a server that came back with all keys but those of its last second. A server whose clock
 *   was set back below its start reports a negative uptime; it counts as just started. So does one
 *   whose run id has changed or cannot be read again, whatever its uptime, and one that does not
 *   reply to `INFO` for now. A server that has never let this client read it is judged by the other
 *   sign.
 * - It was **emptied** while it ran, or is another server. Its *creation marker* is missing then,
 *   or young: a key that was set once, with the node's own time, and does not expire. It is read
 *   *behind* the command that sets the lock's keys, in the same piece. Were it read ahead of that
 *   command, the node could lose both in between.
 *
 * The guard asks for both next to commands that set keys, and holds back the grants that wait for
 * the answers. Replies come in the order of the commands, so a grant waits only for what was sent
 * behind it in the same piece. If the guard is off nothing is sent.
 *
 * **A marker that is no time in the past** is an error vote, and stays as it is. It may be an
 * application's key, and nothing of an application is overwritten. If it is a time in the future,
 * the node's clock was set back since, and no age can be had from it. An operator deletes it; then
 * it is set again, and the node counts after the guard.
 *
 * **What is not seen:** a restart behind a proxy that keeps the client's connection, unless the
 * keys are lost as well; and a clock that was set ahead after the server started, by a client that
 * was not connected before the restart: uptime and age are then too long by as much.
 *
 * **Extensions** do not count either. A lock that a quorum granted under the guard is exclusive as
 * long as a quorum of nodes that have lost nothing keep its key. A node that has lost its keys may
 * have granted another attempt just before, which is under way and may still find its quorum. Once
 * this lock's key is filled in there, the node looks like any other and would make up a quorum next
 * to the other attempt's. So it does not count until that attempt is over, which is what the guard
 * waits for. This costs no lock of a healthy cluster: a cluster that is young as a whole has
 * granted none, if the guard is on for all of its clients.
 *
 * **Fencing tokens.** A node that came back with all keys but those of its last second may have
 * counters that are below what it replied before. They are not counted until they have been raised:
 * see {@linkcode oldCountsBelow}.
 *
 * @module
 */
import { FAILED, GRANTED, OUTDATED, QUARANTINED } from "../quorum/outcome.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { ReplyReceiver } from "../redis/wire.ts";
import { type ConnectionError, ProtocolError, ReplyError } from "../redis/errors.ts";
import { type RawReply, textReply } from "../redis/reply.ts";
import type { CommandSender, LockCommand } from "./command_sender.ts";
import { infoField } from "./replies.ts";
import { explained } from "./refusals.ts";

/**
 * The key of a node's creation marker: since when it has lost nothing, in milliseconds by its own
 * clock.
 */
export const CREATED_KEY = "hasp:born";

/**
 * `KEYS` the creation marker: replies with its age and with the node's clock, both in milliseconds.
 * If the marker is missing it is set to the clock, and its age is 0; a marker that is no time in
 * the past stays, and its age is -1. It is one script so that the clock is read in the step that
 * sets the marker: a time that a client had asked for before may be as old as that client was
 * paused, and would hide that the node was emptied meanwhile.
 */
export const CREATED_LUA = `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local createdMs = redis.call('GET', KEYS[1])
if not createdMs then
  redis.call('SET', KEYS[1], string.format('%.0f', nowMs))
  return {0, nowMs}
end
return {string.find(createdMs, '^%d+$') and math.max(nowMs - createdMs, -1) or -1, nowMs}`;

/**
 * Start and uptime are whole seconds of the server's clock, so the uptime may be a second too long.
 */
const UPTIME_ERROR_MS = 1_000;
/**
 * How far a counter may be ahead of the node's clock, in milliseconds: by a client's hint, and one
 * microsecond a lock.
 */
const COUNTER_LEAD_MS_MAX = 61_000;

const INFO_COMMAND: LockCommand = { args: ["INFO", "server"], keys: [] };
const AGE_COMMAND: LockCommand = { args: ["EVAL", CREATED_LUA, "1", CREATED_KEY], keys: [] };
/** By how much two readings of one cause of a quarantine may differ, in milliseconds. */
const SAME_CAUSE_MS = 2_000;
/** The commands, by their tags. */
const INFO = 0, AGE = 1;

/** A time in which a node's grants do not count. */
interface Quarantine {
  /** What shows that the node may have lost keys. */
  readonly reason: "restarted" | "emptied";
  /** Since when it cannot have lost anything more, by the client's monotonic clock. */
  readonly sinceMs: number;
  /** How much longer its grants do not count, in milliseconds. */
  readonly remainingMs: number;
}

/** A command under the guard: one node's part in a request. */
export interface GuardedCommand {
  readonly request: QuorumRequest;
  readonly nodeIndex: number;
  /**
   * When the node granted, and what it counted; that is the answer if the node turns out not to be
   * in quarantine.
   */
  granted: { readonly atMs: number; readonly count: number | undefined } | undefined;
}

/** Holds back the grants of one server that may have lost keys. */
export class RestartGuard implements ReplyReceiver<GuardedCommand | undefined> {
  readonly #name: string;
  readonly #connection: CommandSender;
  readonly #onQuarantined: (quarantine: Quarantine) => void;
  /** Since when the last quarantine that was reported lasts. */
  #reportedMs = -Infinity;
  #used = false;
  /** Whether the uptime was asked for on this connection. */
  #asked = false;
  /**
   * When the server was restarted, by the monotonic clock; `undefined` until it has replied on this
   * connection.
   */
  #restartedMs: number | undefined = undefined;
  /** The run id of the server, when it last replied. */
  #runId: string | undefined = undefined;

  /**
   * @param name The node's name.
   * @param connection The node's connection.
   * @param onQuarantined Called once for each cause.
   */
  constructor(
    name: string,
    connection: CommandSender,
    onQuarantined: (quarantine: Quarantine) => void,
  ) {
    this.#name = name;
    this.#connection = connection;
    this.#onQuarantined = onQuarantined;
  }

  /**
   * The connection was made: if the guard is in use the server is asked at once, so that its marker
   * is set early.
   */
  onConnected(): void {
    if (!this.#used || this.#asked) return;
    this.#askUptime();
    this.#askAge(undefined);
  }

  /**
   * The connection was lost: the next one may be to a server that was restarted, or to which more
   * is allowed.
   */
  onDisconnected(): void {
    this.#asked = false;
    this.#restartedMs = undefined;
  }

  /** Must be called right before a guarded command is sent. */
  ahead(): void {
    this.#used = true;
    if (!this.#asked && !this.#connection.unconnected) this.#askUptime();
  }

  /** Must be called right behind it. */
  behind(command: GuardedCommand): void {
    // Without a connection that breaks, only an uptime from after the command shows that it was not
    // lost.
    if (this.#connection.unconnected) this.#askUptime();
    this.#askAge(command);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, command: GuardedCommand | undefined, tag: number): void {
    if (tag === INFO) this.#onUptime(reply);
    else if (command?.granted) this.#onAge(reply, command, command.granted);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: ConnectionError, command: GuardedCommand | undefined, tag: number): void {
    if (tag === INFO) return this.onDisconnected();
    if (command?.granted) command.request.answer(command.nodeIndex, FAILED, error);
  }

  #askUptime(): void {
    this.#asked = true;
    this.#connection.submit(INFO_COMMAND, this, undefined, INFO);
  }

  /** Asks for the age of the creation marker, and has it set if it is missing. */
  #askAge(command: GuardedCommand | undefined): void {
    this.#connection.submit(AGE_COMMAND, this, command, AGE);
  }

  /**
   * A server that does not show now that it is the one of before, or for how long it has run,
   * counts as just restarted.
   */
  #onUptime(reply: RawReply): void {
    const { receivedAtMs } = this.#connection;
    const text = textReply(reply);
    const info = typeof text === "string" ? text : "";
    const runId = infoField(info, "run_id");
    this.#asked = typeof text === "string" || reply instanceof ReplyError && reply.permanent;
    this.#restartedMs = !this.#asked || this.#runId !== undefined && runId !== this.#runId
      ? receivedAtMs
      : restartedAtMs(info, receivedAtMs); // if it never replies, the marker has to do
    this.#runId = runId ?? this.#runId;
  }

  #onAge(
    reply: RawReply,
    { request, nodeIndex }: GuardedCommand,
    { atMs, count }: NonNullable<GuardedCommand["granted"]>,
  ): void {
    const fail = (why: string) => {
      const text = `Cannot determine the age of ${this.#name}: it ${why}`;
      request.answer(nodeIndex, FAILED, new ProtocolError(text));
    };
    if (reply instanceof ReplyError) return request.answer(nodeIndex, FAILED, explained(reply));
    const [ageMs, timeMs] = Array.isArray(reply) ? reply : [];
    if (typeof ageMs !== "number" || typeof timeMs !== "number") {
      return fail("sent an unexpected reply");
    }
    if (ageMs < 0) return fail(`has no time in the past under its key '${CREATED_KEY}'`);
    const restartedMs = this.#restartedMs;
    if (restartedMs === undefined) return fail("sent no uptime");
    const { receivedAtMs } = this.#connection;
    const quarantine = quarantineOf(request.guardMs!, receivedAtMs, restartedMs, ageMs);
    if (!quarantine) {
      const oldBelow = oldCountsBelow(timeMs, receivedAtMs - restartedMs);
      // A counter that may be an old one is withheld, so that counters are raised above it.
      // mutation: old-counters-believed
      if (count === undefined || count >= oldBelow) request.answer(nodeIndex, GRANTED, count, atMs);
      else request.answer(nodeIndex, OUTDATED, oldBelow, atMs);
      return;
    }
    request.answer(nodeIndex, QUARANTINED, undefined, receivedAtMs);
    if (quarantine.sinceMs <= this.#reportedMs + SAME_CAUSE_MS) return;
    this.#reportedMs = quarantine.sinceMs;
    this.#onQuarantined(quarantine);
  }
}

/**
 * When a server was started at the latest.
 *
 * @param info What it replied to `INFO server`.
 * @param receivedAtMs When the reply came, by the monotonic clock.
 * @returns By the monotonic clock. `-Infinity` if the reply has no uptime; the moment of the reply
 * if its uptime is negative or not a number.
 */
function restartedAtMs(info: string, receivedAtMs: number): number {
  const uptime = infoField(info, "uptime_in_seconds");
  if (uptime === undefined) return -Infinity;
  const uptimeMs = /^\d+$/u.test(uptime) ? Number(uptime) * 1_000 : 0;
  // mutation: restarted-node-counts
  return receivedAtMs - uptimeMs + UPTIME_ERROR_MS;
}

/**
 * Whether a node is in quarantine.
 *
 * @param guardMs How long a node's grants do not count after it may have lost keys, in
 * milliseconds.
 * @param nowMs The monotonic clock when the node answered.
 * @param restartedMs When it was restarted, by the same clock; `-Infinity` if that is not known.
 * @param ageMs The age of its creation marker, in milliseconds.
 */
function quarantineOf(
  guardMs: number,
  nowMs: number,
  restartedMs: number,
  ageMs: number,
): Quarantine | undefined {
  const createdMs = nowMs - ageMs;
  // mutation: emptied-node-counts
  const sinceMs = Math.max(restartedMs, createdMs);
  // in this order: exact, if it was emptied just now
  const remainingMs = guardMs - (nowMs - sinceMs);
  if (remainingMs <= 0) return undefined;
  return { reason: restartedMs >= createdMs ? "restarted" : "emptied", sinceMs, remainingMs };
}

/**
 * An upper bound of all counters of fencing tokens that a node had before its restart. The node
 * came back with what was on its disk, so its counters may be below what it replied; until they are
 * at least this they do not count. A counter is ahead of the node's clock by {@linkcode
 * COUNTER_LEAD_MS_MAX} at the most. No client's clock decides this, so one that is wrong cannot
 * raise counters.
 *
 * @param timeMs The node's clock.
 * @param uptimeMs How long it has been running, in milliseconds; `Infinity` if that is not known.
 * @returns Microseconds; `-Infinity` if the uptime is not known.
 */
function oldCountsBelow(timeMs: number, uptimeMs: number): number {
  return Math.ceil((timeMs - uptimeMs + COUNTER_LEAD_MS_MAX) * 1_000);
}
