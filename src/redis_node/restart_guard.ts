/**
 * The restart guard on one Redis server: what is asked next to commands that set keys, and the grants that wait for
 * the answers.
 *
 * Replies come in the order of the commands, so a grant waits for no more than what stands behind it in the same
 * piece. Where the guard is off nothing is sent.
 *
 * @module
 */
import { encodeScriptHead } from "./commands.ts";
import type { LockRequest } from "../quorum/lock_node.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import type { Connection } from "../redis/connection.ts";
import { encodeCommand, encodeHead } from "../redis/encoder.ts";
import { isRefusal, ProtocolError, type RedisError, ReplyError } from "../redis/errors.ts";
import { type RawReply, textReply } from "../redis/reply.ts";
import { scriptError } from "./old_server.ts";
import {
  Causes,
  CREATED_KEY,
  mayBeOld,
  type Quarantine,
  quarantineOf,
  restartedAtMs,
} from "./quarantine.ts";
import { CREATED } from "./scripts/creation.ts";

const INFO_COMMAND = /* @__PURE__ */ encodeHead(2, "INFO", "server");
const BORN_COMMAND = /* @__PURE__ */ encodeScriptHead(CREATED, 1, "1", CREATED_KEY);
/** What a command was. */
const INFO = 0, AGE = 1, AGE_WHOLE = 2;

/** One node's part in a ballot. */
interface Answer {
  readonly request: LockRequest;
  readonly nodeIndex: number;
  /** How many replies about the birth key are to come. */
  awaited: number;
  /** When the node has granted, and what it counted. */
  granted: { readonly atMs: number; readonly count: number | undefined } | undefined;
}

/** Whether grants of this ballot are guarded. */
export function isGuarded({ guardMs }: LockRequest): boolean {
  return guardMs !== undefined && guardMs > 0;
}

/** Keeps back the grants of one server that may have forgotten. */
export class RedisGuard implements ReplyReceiver {
  readonly #name: string;
  readonly #connection: Connection;
  readonly #onQuarantined: (quarantine: Quarantine) => void;
  readonly #answers: Map<LockRequest, Answer> = new Map();
  readonly #causes = new Causes();
  #used = false;
  /** Whether the uptime was asked for on this connection, and what it said. */
  #asked = false;
  #restartedMs: number | undefined = undefined;

  /**
   * @param name The node's.
   * @param connection The node's own.
   * @param onQuarantined Told once of each cause.
   */
  constructor(
    name: string,
    connection: Connection,
    onQuarantined: (quarantine: Quarantine) => void,
  ) {
    this.#name = name;
    this.#connection = connection;
    this.#onQuarantined = onQuarantined;
  }

  /** The connection was made: where the guard is in use the server is asked at once, so that its birth is noted early. */
  onConnected(): void {
    if (!this.#used || this.#asked) return;
    this.#askUptime();
    this.#askAge(undefined);
  }

  /** It was lost: the next one may be to a server that was restarted. */
  onDisconnected(): void {
    this.#asked = false;
    this.#restartedMs = undefined;
  }

  /** To be called right before a guarded command is sent. */
  ahead(): void {
    this.#used = true;
    if (!this.#asked) this.#askUptime();
  }

  /** To be called right behind it. */
  behind(request: LockRequest, nodeIndex: number): void {
    let answer = this.#answers.get(request);
    if (!answer) {
      answer = { request, nodeIndex, awaited: 0, granted: undefined };
      this.#answers.set(request, answer);
    }
    answer.awaited++;
    this.#askAge(answer);
  }

  /**
   * The node has granted what was asked in between: the ballot is told, if the node turns out to be in no quarantine.
   *
   * @param atMs When, by the monotonic clock.
   * @param count What it counted.
   */
  hold(request: LockRequest, atMs: number, count: number | undefined): void {
    const answer = this.#answers.get(request);
    if (answer) answer.granted = { atMs, count };
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onReply(reply: RawReply, context: unknown, tag: number): void {
    if (tag === INFO) return this.#onUptime(reply);
    const answer = context as Answer | undefined;
    if (reply instanceof ReplyError && reply.prefix === "NOSCRIPT" && tag === AGE) {
      const command = encodeCommand(["EVAL", CREATED.source, 1, CREATED_KEY]);
      return this.#connection.submit(command, this, answer, AGE_WHOLE);
    }
    if (answer && this.#isLast(answer)) this.#settle(answer, reply);
  }

  /** Part of {@linkcode ReplyReceiver}. */
  onFailure(error: RedisError, context: unknown, tag: number): void {
    if (tag === INFO) return this.onDisconnected();
    const answer = context as Answer | undefined;
    if (answer && this.#isLast(answer) && answer.granted) {
      answer.request.fail(answer.nodeIndex, error);
    }
  }

  #askUptime(): void {
    this.#asked = true;
    this.#connection.submit(INFO_COMMAND, this, undefined, INFO);
  }

  #askAge(answer: Answer | undefined): void {
    this.#connection.submit(BORN_COMMAND, this, answer, AGE);
  }

  #onUptime(reply: RawReply): void {
    const text = textReply(reply);
    if (typeof text === "string") {
      this.#restartedMs = restartedAtMs(text, this.#connection.receivedAtMs);
    } else if (reply instanceof ReplyError && isRefusal(reply)) {
      this.#restartedMs = -Infinity; // it never tells: the birth key has to do
    } else this.#asked = false; // it may tell later
  }

  /** Whether no other reply about the birth key is to come: a command that was sent again needs a new one behind it. */
  #isLast(answer: Answer): boolean {
    if (--answer.awaited > 0) return false;
    this.#answers.delete(answer.request);
    return true;
  }

  #settle({ request, nodeIndex, granted }: Answer, age: RawReply): void {
    if (!granted) return;
    const restartedMs = this.#restartedMs;
    if (age instanceof ReplyError) return request.fail(nodeIndex, scriptError(age));
    if (typeof age !== "number") {
      return request.fail(nodeIndex, new ProtocolError(`Cannot tell the age of ${this.#name}`));
    }
    if (restartedMs === undefined) {
      return request.fail(nodeIndex, new ProtocolError(`Cannot tell the uptime of ${this.#name}`));
    }
    const { receivedAtMs } = this.#connection;
    const quarantine = quarantineOf(request.guardMs!, receivedAtMs, restartedMs, age);
    if (!quarantine) return this.#grant(request, nodeIndex, granted.atMs, granted.count);
    request.quarantine!(nodeIndex, receivedAtMs);
    if (this.#causes.isNew(quarantine)) this.#onQuarantined(quarantine);
  }

  /** A counter that may be an old one is not told: counters are to be raised above it. */
  #grant(request: LockRequest, nodeIndex: number, atMs: number, count: number | undefined): void {
    const { counterFloor, guardMs } = request;
    const uptimeMs = atMs - this.#restartedMs!;
    if (count === undefined || !mayBeOld(count, counterFloor!, guardMs!, uptimeMs)) {
      return request.grant(nodeIndex, atMs, count);
    }
    request.counterFloorNext = counterFloor;
    request.grant(nodeIndex, atMs);
  }
}
