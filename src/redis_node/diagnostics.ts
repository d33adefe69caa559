/**
 * What a Redis server tells of itself: commands that touch no key, and what their replies mean.
 *
 * All but one go out in one piece over the node's own connection, and each refusal stands for itself. `SUBSCRIBE`
 * has a connection of its own that is closed at once: where `UNSUBSCRIBE` is refused, the node's own would be of no
 * more use.
 *
 * @module
 */
import type { NodeDiagnosis, TriedCommand } from "../quorum/node_diagnosis.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import type { Connection } from "../redis/connection.ts";
import { encodeCommand } from "../redis/encoder.ts";
import { ReplyError } from "../redis/errors.ts";
import { type RawReply, type Reply, textReply } from "../redis/reply.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/** A name of the kind that waiting uses, to which nobody listens. */
const CHANNEL = "hasp:wake:doctor";
/** The SHA-1 of no script: a server that lets scripts be run answers `NOSCRIPT`. */
const NO_SCRIPT = "f".repeat(40);
/** The one refusal of `EVALSHA` that says that it is allowed. */
const ALLOWED_PREFIX = "NOSCRIPT";
/** What a server says that serves nobody, or nobody yet: it can be asked as little as one that is down. */
const UNSERVING_PREFIXES: readonly string[] = ["NOAUTH", "LOADING", "BUSY"];
/** The share of its time that a node may spend on finding out whether channels can be listened to. */
const LISTENING_SHARE = 0.75;

/** `TIME` comes first, as its reply tells the clock and the round trip. */
const COMMANDS: readonly (readonly [TriedCommand, ...string[]])[] = [
  ["TIME"],
  ["INFO"],
  ["CONFIG", "GET", "appendfsync"],
  ["EVALSHA", NO_SCRIPT, "0"],
  ["PUBLISH", CHANNEL, ""],
];

/** The replies to {@linkcode COMMANDS}, and when they were asked for and came. */
interface Replies {
  readonly all: readonly Reply[];
  /** By the monotonic clock, once the connection was made. */
  readonly askedAtMs: number;
  readonly roundTripMs: number;
  /** The wall clock when the reply to `TIME` came. */
  readonly wallMs: number;
}

/** Asks one server about itself. */
export class RedisDiagnostics {
  readonly #connection: Connection;
  readonly #openAnother: () => Connection;
  readonly #wheel: TimerWheel;
  /** Connections that listen, or are being closed. */
  readonly #listening: Set<Connection> = new Set();
  #closed = false;

  /**
   * @param connection The node's own.
   * @param openAnother Makes one more to the same server.
   * @param wheel Where time comes from.
   */
  constructor(connection: Connection, openAnother: () => Connection, wheel: TimerWheel) {
    this.#connection = connection;
    this.#openAnother = openAnother;
    this.#wheel = wheel;
  }

  /**
   * Asks the server.
   *
   * @param timeoutMs How long the caller waits, in milliseconds. What is not known shortly before is left out.
   * @throws {RedisError} If it cannot be reached, or serves nobody.
   */
  async diagnose(timeoutMs: number): Promise<NodeDiagnosis> {
    const replies = await this.#ask();
    const unserving = replies.all.find((reply) =>
      reply instanceof ReplyError && UNSERVING_PREFIXES.includes(reply.prefix)
    );
    if (unserving) throw unserving;
    const untilMs = replies.askedAtMs + timeoutMs * LISTENING_SHARE;
    const refusal = await this.#listen(untilMs - this.#wheel.clock.monotonicMs());
    return diagnosisOf(replies, refusal);
  }

  /** Closes what it opened. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#listening].map((connection) => connection.close()));
  }

  #ask(): Promise<Replies> {
    const connection = this.#connection;
    const { clock } = this.#wheel;
    const startMs = clock.monotonicMs();
    return new Promise((resolve, reject) => {
      const all: Reply[] = [];
      let askedAtMs = 0, roundTripMs = 0, wallMs = 0;
      const receiver: ReplyReceiver = {
        onReply(reply) {
          if (all.length === 0) {
            const { receivedAtMs, readyAtMs } = connection;
            askedAtMs = Math.max(startMs, readyAtMs);
            roundTripMs = receivedAtMs - askedAtMs;
            wallMs = clock.wallMs();
          }
          all.push(textReply(reply));
          if (all.length === COMMANDS.length) resolve({ all, askedAtMs, roundTripMs, wallMs });
        },
        onFailure: reject,
      };
      for (const command of COMMANDS) {
        connection.submit(encodeCommand(command), receiver, undefined, 0);
      }
    });
  }

  /** The first word of what refused listening; `undefined` where it is allowed or there was no time to find out. */
  async #listen(limitMs: number): Promise<string | undefined> {
    if (this.#closed || limitMs <= 0) return undefined;
    const connection = this.#openAnother();
    this.#listening.add(connection);
    try {
      const reply = await this.#firstReply(connection, limitMs);
      return reply instanceof ReplyError ? reply.prefix : undefined;
    } finally {
      connection.close().finally(() => this.#listening.delete(connection));
    }
  }

  #firstReply(connection: Connection, limitMs: number): Promise<RawReply | undefined> {
    const wheel = this.#wheel;
    return new Promise((resolve) => {
      const limit = wheel.after(limitMs, () => resolve(undefined));
      const settle = (reply?: RawReply) => {
        wheel.cancel(limit);
        resolve(reply);
      };
      const receiver = {
        onReply: settle,
        // A server that has no room for one more connection says so in place of a greeting.
        onFailure: ({ cause }: Error) => settle(cause instanceof ReplyError ? cause : undefined),
      };
      connection.submit(encodeCommand(["SUBSCRIBE", CHANNEL]), receiver, undefined, 0);
    });
  }
}

function diagnosisOf(replies: Replies, subscribeRefusal: string | undefined): NodeDiagnosis {
  const [time, info, config] = replies.all;
  const refused: Partial<Record<TriedCommand, string>> = {};
  COMMANDS.forEach(([command], index) => {
    const reply = replies.all[index];
    const refusal = reply instanceof ReplyError ? reply.prefix : ALLOWED_PREFIX;
    if (refusal !== ALLOWED_PREFIX) refused[command] = refusal;
  });
  if (subscribeRefusal !== undefined) refused.SUBSCRIBE = subscribeRefusal;
  return known({
    roundTripMs: rounded(replies.roundTripMs),
    clockOffsetMs: clockOffsetMs(time, replies),
    ...(typeof info === "string" ? infoParts(info) : {}),
    appendfsync: Array.isArray(config) && typeof config[1] === "string" ? config[1] : undefined,
    refused: Object.keys(refused).length > 0 ? refused : undefined,
  });
}

/** The server read its clock at some time between question and reply: in the middle, for want of better. */
function clockOffsetMs(time: Reply, { roundTripMs, wallMs }: Replies): number | undefined {
  if (!Array.isArray(time)) return undefined;
  const [seconds, microseconds] = time.map(Number);
  const offsetMs = seconds * 1_000 + microseconds / 1_000 - (wallMs - roundTripMs / 2);
  return Number.isFinite(offsetMs) ? rounded(offsetMs) : undefined;
}

/** What `INFO` tells, in lines of `name:value`. */
function infoParts(info: string): Partial<NodeDiagnosis> {
  const fields = new Map(
    info.split("\r\n").map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)] as const;
    }),
  );
  const number = (name: string) => fields.has(name) ? Number(fields.get(name)) : undefined;
  const flag = (name: string) => fields.has(name) ? fields.get(name) === "1" : undefined;
  const role = fields.get("role");
  const uptimeS = number("uptime_in_seconds");
  return {
    version: fields.get("valkey_version") ?? fields.get("redis_version"),
    role: role === "slave" ? "replica" : role === "master" ? "master" : undefined,
    runId: fields.get("run_id"),
    uptimeMs: uptimeS === undefined ? undefined : uptimeS * 1_000,
    clustered: flag("cluster_enabled"),
    aofEnabled: flag("aof_enabled"),
    maxmemoryBytes: number("maxmemory"),
    maxmemoryPolicy: fields.get("maxmemory_policy"),
  };
}

/** The same without what is not known, so that it prints well. */
function known(diagnosis: NodeDiagnosis): NodeDiagnosis {
  const entries = Object.entries(diagnosis).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as unknown as NodeDiagnosis;
}

/** To a microsecond. */
function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
