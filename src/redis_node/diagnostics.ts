/**
 * What a Redis server reports about itself, and what it refuses: commands that change no key, and
 * what their replies mean.
 *
 * Most of them go out in one piece over the node's own connection; if one is refused the others
 * still count. Two more connections are opened for a moment. One of them tries `SUBSCRIBE`: on the
 * node's own connection a refused `UNSUBSCRIBE` would end all locking. Both ask for the run id: if
 * it differs the address leads to several servers. Two of them are needed, because a load balancer
 * that takes turns gives two connections in a row to two servers.
 *
 * @module
 */
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import { ReplyError } from "../redis/errors.ts";
import { printable } from "../printable.ts";
import { type Reply, textReply, timeReplyMs } from "../redis/reply.ts";
import type { CommandSender, ServerAccess } from "./command_sender.ts";
import { settledWithin } from "../time/settled_within.ts";
import { infoField, repliesTo } from "./replies.ts";
import { isDemoted } from "./scripts/script.ts";
import { TRIAL, TRIED } from "./scripts/trial.ts";

/** A channel of the kind that waiting uses; it has no subscriber. */
const CHANNEL = "hasp:wake:check";
/** The SHA-1 of no script: a server that allows `EVALSHA` answers `NOSCRIPT`. */
const NO_SCRIPT = /* @__PURE__ */ "f".repeat(40);
/** The error which shows that `EVALSHA` is allowed. */
const SCRIPT_MISSING = "NOSCRIPT";
/** What stands in place of the first word of a reply, if a command is refused inside of scripts. */
const IN_SCRIPTS = "in scripts";
/** The same, if the server ends the connection in place of a reply. */
const BY_ENDING = "ends the connection";
/** Error prefixes of a server that is up but cannot serve; treated as unreachable. */
const UNSERVING_PREFIXES: readonly string[] = ["NOAUTH", "LOADING", "BUSY"];
/** The share of its time after which a diagnosis waits no longer for the further connections. */
const FURTHER_SHARE = 0.75;

/** The values of `role` in `INFO`. */
const ROLES: ReadonlyMap<string, NodeDiagnosis["role"]> = new Map([
  ["master", "master"],
  ["slave", "replica"],
  ["replica", "replica"],
  ["active-replica", "active-replica"],
]);

/**
 * The commands on the node's own connection. `TIME` comes first, because its reply shows the clock
 * and the round trip. `SET` with `XX` sets no key that is missing, but a server that would refuse a
 * lock refuses it for the same reason.
 */
function commandsOn(key: string): readonly (readonly string[])[] {
  return [
    ["TIME"],
    ["INFO"],
    ["CONFIG", "GET", "appendfsync"],
    ["SET", key, "", "XX", "PX", "1"],
    ["EVAL", TRIAL.source, "1", key],
    ["EVALSHA", NO_SCRIPT, "0"],
    ["PUBLISH", CHANNEL, ""],
    ["SCAN", "0", "COUNT", "1", "TYPE", "string"],
  ];
}
const RUN_ID_COMMAND: readonly string[] = ["INFO", "server"];
const SUBSCRIBE_COMMAND: readonly string[] = ["SUBSCRIBE", CHANNEL];

/** The replies to the commands on the node's own connection, and when these were sent. */
interface Replies {
  /** By the name of the command. */
  readonly byCommand: ReadonlyMap<string, Reply>;
  /** By the monotonic clock. */
  readonly askedAtMs: number;
  readonly roundTripMs: number;
  /** The wall clock when the reply to `TIME` came. */
  readonly wallMs: number;
}

/** Asks one server about itself. */
export class RedisDiagnostics {
  readonly #connection: CommandSender;
  readonly #server: ServerAccess;
  /** The further connections that are not closed yet. */
  readonly #further: Set<CommandSender> = new Set();
  #closed = false;

  /**
   * @param connection The node's own connection.
   * @param server Where further connections are made.
   */
  constructor(connection: CommandSender, server: ServerAccess) {
    this.#connection = connection;
    this.#server = server;
  }

  /**
   * Asks the server.
   *
   * @param timeoutMs How long the caller waits, in milliseconds. What the further connections have
   * not shown after
   *   three quarters of it is missing in the result.
   * @param key A key that is missing, to try commands on.
   * @throws {RedisError} If the server cannot be reached, or cannot serve now.
   */
  async diagnose(timeoutMs: number, key: string): Promise<NodeDiagnosis> {
    const replies = await this.#askOneThatAnswers(key);
    const unserving = [...replies.byCommand.values()].find((reply) =>
      reply instanceof ReplyError && UNSERVING_PREFIXES.includes(reply.prefix)
    );
    if (unserving) throw unserving;
    const untilMs = replies.askedAtMs + timeoutMs * FURTHER_SHARE;
    const limitMs = untilMs - this.#server.wheel.clock.monotonicMs();
    const [[first, subscribed], [second]] = await Promise.all([
      this.#askAnother([RUN_ID_COMMAND, SUBSCRIBE_COMMAND], limitMs),
      this.#askAnother([RUN_ID_COMMAND], limitMs),
    ]);
    // Clients of others may reply nothing to it.
    const ended = subscribed === null && !this.#connection.unconnected;
    const diagnosis = diagnosisOf(replies, [first, second], subscribed, ended);
    return plainData(diagnosis, this.#connection.password);
  }

  /** Closes the further connections; those of the node's own are not touched. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#further].map((connection) => connection.close()));
  }

  /**
   * The node's own connection is given up for a moment if it led to a replica: then another one
   * shows what is there.
   */
  async #askOneThatAnswers(key: string): Promise<Replies> {
    const own = this.#connection;
    try {
      return await this.#ask(own, commandsOn(key));
    } catch (error) {
      if (!isDemoted((error as Error).cause) || this.#closed) throw error;
    }
    const another = this.#open();
    try {
      return await this.#ask(another, commandsOn(key));
    } finally {
      this.#end(another);
    }
  }

  async #ask(
    connection: CommandSender,
    [first, ...others]: readonly (readonly string[])[],
  ): Promise<Replies> {
    const { clock } = this.#server.wheel;
    // The first connection is ready at some moment before its first reply, so the round trip of the
    // second is measured.
    if (connection.readyAtMs === Infinity) await repliesTo(connection, [first]);
    const askedAtMs = clock.monotonicMs();
    const timed = repliesTo(connection, [first]).then(([reply]) => {
      return { reply, roundTripMs: connection.receivedAtMs - askedAtMs, wallMs: clock.wallMs() };
    });
    const [{ reply, ...times }, replies] = await Promise.all([
      timed,
      repliesTo(connection, others),
    ]);
    const names = [first, ...others].map(([name]) => name);
    const texts = [reply, ...replies].map(textReply);
    return {
      ...times,
      askedAtMs,
      byCommand: new Map(names.map((name, index) => [name, texts[index]])),
    };
  }

  /** Opens a connection, and returns what it answered within the limit. */
  async #askAnother(
    commands: readonly (readonly string[])[],
    limitMs: number,
  ): Promise<readonly Reply[]> {
    if (this.#closed || limitMs <= 0) return [];
    const connection = this.#open();
    const replies: Reply[] = [];
    const answered = commands.map(async (command, index) => {
      replies[index] = await answerTo(connection, command);
    });
    await settledWithin(this.#server.wheel, Promise.all(answered), limitMs);
    this.#end(connection);
    return replies;
  }

  #open(): CommandSender {
    const connection = this.#server.open();
    this.#further.add(connection);
    return connection;
  }

  #end(connection: CommandSender): void {
    connection.close().finally(() => this.#further.delete(connection));
  }
}

/**
 * The reply to a command, or the error that a server without room for one more connection sends
 * before it closes it.
 */
async function answerTo(connection: CommandSender, command: readonly string[]): Promise<Reply> {
  try {
    const [reply] = await repliesTo(connection, [command]);
    return textReply(reply);
  } catch (error) {
    const { cause } = error as Error;
    return cause instanceof ReplyError ? cause : null;
  }
}

/**
 * What the replies say; those on the further connections are `undefined` if they did not come in
 * time, and `ended` if the one to `SUBSCRIBE` was the end of its connection.
 */
function diagnosisOf(
  replies: Replies,
  infos: readonly (Reply | undefined)[],
  subscribed: Reply | undefined,
  ended: boolean,
): NodeDiagnosis {
  const { byCommand } = replies;
  const parts = infoParts(byCommand.get("INFO"));
  const config = byCommand.get("CONFIG");
  const refused = Object.fromEntries(refusals([...byCommand, ["SUBSCRIBE", subscribed]]));
  if (ended && typeof infos[0] === "string") refused.SUBSCRIBE = BY_ENDING;
  return {
    roundTripMs: rounded(replies.roundTripMs),
    clockOffsetMs: clockOffsetMs(byCommand.get("TIME"), replies),
    ...parts,
    otherRunIds: otherRunIds(parts.runId, infos),
    appendfsync: Array.isArray(config) && typeof config[1] === "string" ? config[1] : undefined,
    refused: Object.keys(refused).length > 0 ? refused : undefined,
  };
}

/** The commands that were refused, each with why. */
function* refusals(replies: Iterable<[string, Reply | undefined]>): Iterable<[string, string]> {
  for (const [command, reply] of replies) {
    if (reply instanceof ReplyError && reply.prefix !== SCRIPT_MISSING) {
      yield [command, reply.prefix];
    }
    if (command !== "EVAL" || !Array.isArray(reply)) continue;
    const names = reply.flatMap((number) => TRIED[Number(number) - 1] ?? []);
    for (const name of names) yield [name, IN_SCRIPTS];
  }
}

/** The server read its clock between question and reply; the middle is the best guess. */
function clockOffsetMs(
  time: Reply | undefined,
  { roundTripMs, wallMs }: Replies,
): number | undefined {
  const timeMs = time === undefined ? undefined : timeReplyMs(time);
  return timeMs === undefined ? undefined : rounded(timeMs - (wallMs - roundTripMs / 2));
}

/** What a reply to `INFO` says. */
function infoParts(info: Reply | undefined): Partial<NodeDiagnosis> {
  if (typeof info !== "string") return {};
  const field = (name: string) => infoField(info, name);
  const number = (name: string, unit = 1) => {
    const value = Number(field(name) ?? NaN) * unit;
    return Number.isFinite(value) ? value : undefined;
  };
  const flag = (name: string) => field(name) === undefined ? undefined : field(name) === "1";
  return {
    serverName: field("server_name"),
    version: field("valkey_version") ?? field("redis_version"),
    role: ROLES.get(field("role") ?? ""),
    runId: field("run_id"),
    uptimeMs: number("uptime_in_seconds", 1_000),
    clustered: flag("cluster_enabled"),
    aofEnabled: flag("aof_enabled"),
    maxmemoryBytes: number("maxmemory"),
    maxmemoryPolicy: field("maxmemory_policy"),
  };
}

/** The run ids in replies to `INFO` that are not `runId`. */
function otherRunIds(
  runId: string | undefined,
  infos: readonly (Reply | undefined)[],
): string[] | undefined {
  if (!runId) return undefined;
  const others = new Set(infos.map((info) => infoParts(info).runId ?? runId));
  others.delete(runId);
  return others.size > 0 ? [...others] : undefined;
}

/** Leaves out the fields that are not known, and replaces the password in every text. */
function plainData(diagnosis: NodeDiagnosis, password: string | undefined): NodeDiagnosis {
  return JSON.parse(
    JSON.stringify(diagnosis),
    (_name, value) =>
      typeof value === "string" ? printable(value, password ? [password] : []) : value,
  );
}

/** Rounds to a microsecond. */
function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
