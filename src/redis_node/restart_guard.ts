/**
 * The restart guard on one Redis server: what is asked next to commands that set keys, and the
 * grants that wait for the answers.
 *
 * Replies come in the order of the commands, so a grant waits only for what was sent behind it in
 * the same piece. If the guard is off nothing is sent.
 *
 * @module
 */
import { FAILED, GRANTED, OUTDATED, QUARANTINED } from "../quorum/outcome.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import { type ConnectionError, ProtocolError, ReplyError } from "../redis/errors.ts";
import { type RawReply, textReply } from "../redis/reply.ts";
import type { CommandSender, LockCommand } from "./command_sender.ts";
import { infoField } from "./info_field.ts";
import {
  CREATED_KEY,
  oldCountsBelow,
  type Quarantine,
  quarantineOf,
  restartedAtMs,
} from "./quarantine.ts";
import { CREATED } from "./scripts/creation.ts";
import { explained } from "./scripts/script.ts";

const INFO_COMMAND: LockCommand = { args: ["INFO", "server"], keys: [] };
const AGE_COMMAND: LockCommand = /* @__PURE__ */ ageCommand();
/** By how much two readings of one cause of a quarantine may differ, in milliseconds. */
const SAME_CAUSE_MS = 2_000;
/** The commands, by their tags. */
const INFO = 0, AGE = 1;

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
export class RedisGuard implements ReplyReceiver<GuardedCommand | undefined> {
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

function ageCommand(): LockCommand {
  return { args: ["EVAL", CREATED.source, "1", CREATED_KEY], keys: [] };
}
