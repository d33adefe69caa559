/**
 * What operators ask of a node, apart from {@linkcode RedisNode}, so that programs which only lock
 * do not carry it: which keys there are; what the server reports about itself, and what it refuses.
 *
 * The commands of a diagnosis change no key. Most of them go out in one piece over the node's own
 * connection; if one is refused the others still count. Two more connections are opened for a
 * moment. One of them tries `SUBSCRIBE`: on the node's own connection a refused `UNSUBSCRIBE` would
 * end all locking. Both ask for the run id: if it differs the address leads to several servers. Two
 * of them are needed, because a load balancer that alternates gives two connections in a row to two
 * servers.
 *
 * @module
 */
import { type NodeDiagnosis, SILENT, UNCONNECTED } from "../quorum/node_diagnosis.ts";
import type { QuorumNode } from "../quorum/quorum_node.ts";
import { ProtocolError, ReplyError } from "../redis/errors.ts";
import { printable } from "../printable.ts";
import { type Reply, textReply, timeReplyMs } from "../redis/reply.ts";
import { type CommandSender, repliesTo } from "./command_sender.ts";
import { RedisNode } from "./redis_node.ts";
import { settledWithin } from "../time/pause.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";
import { isDemoted, UNKNOWN_SCRIPT } from "./refusals.ts";
import { CREATED_KEY } from "./restart_guard.ts";

/** How many keys a server looks at in a step at most. */
const STEP_KEYS_MAX = 200;
/**
 * The length of all names of a step beyond which the next one is shorter: a connection is closed by
 * a reply of more than 1 MiB. So the first step looks at one key, and others at four times as many
 * as the one before.
 */
const STEP_LENGTH = 100_000;
/** How servers before Redis 6 refuse `SCAN` with `TYPE`. */
const SYNTAX_ERROR = "ERR syntax error";
const SCAN_TOO_OLD = "ERR the server is too old: to list keys needs Redis 6 or newer";
/** What a pattern would not take literally. */
const SPECIAL = /[*?[\]\\^-]/gu;

/** Gives a node on Redis what operators ask of it; any other node has that itself. */
export function operated(node: QuorumNode): QuorumNode {
  if (node instanceof RedisNode) {
    node.keys = (prefix) => scanKeys(node.connection, node.name, prefix);
    node.diagnose = (timeoutMs, key) => diagnose(node, timeoutMs, key);
  }
  return node;
}

/**
 * Lists the keys that begin with a prefix and hold a string, a step at a time. A key that is there
 * from the first step to the last is listed, perhaps more than once.
 *
 * @param connection The connection to the server.
 * @param name The node, for messages.
 * @param prefix What the keys begin with.
 * @throws {RedisError} If the server cannot be asked, or refuses to answer.
 */
async function* scanKeys(
  connection: CommandSender,
  name: string,
  prefix: string,
): AsyncGenerator<readonly string[], void> {
  await connection.expectPlainKeys?.();
  const pattern = `${prefix.replaceAll(SPECIAL, "\\$&")}*`;
  let cursor = "0";
  let count = 1;
  do {
    const words = ["SCAN", cursor, "MATCH", pattern, "COUNT", String(count), "TYPE", "string"];
    const [reply] = await repliesTo(connection, [words]);
    if (reply instanceof ReplyError) {
      throw reply.message === SYNTAX_ERROR ? new ReplyError(SCAN_TOO_OLD) : reply;
    }
    const [next, keys] = Array.isArray(reply) ? textReply(reply) as unknown[] : [];
    if (!Array.isArray(keys)) {
      throw new ProtocolError(`Cannot list keys as ${name} sent an unexpected reply`);
    }
    const names = keys.map(String);
    yield names;
    cursor = String(next);
    // keys come in no order, so the next step has names of the same length
    count = Math.ceil(Math.min(4 * count, count * STEP_LENGTH / names.join("").length));
    count = Math.min(count, STEP_KEYS_MAX);
  } while (cursor !== "0");
}

/**
 * Has as `KEYS` a key that is missing: calls the commands of the scripts that a diagnosis does not
 * call otherwise, on this key, its queue, turn, readers and counter. Returns the numbers of the
 * commands that were refused, by their places in {@linkcode TRIED}.
 *
 * The calls change nothing, because all five keys are missing. The two commands that count would
 * create the counter; they are called only if it can be deleted again, which is done in the same
 * step. A counter that may not be deleted, though keys may, may not be accessed at all.
 */
export const TRIAL_LUA = `local key = KEYS[1]
local queue, fence = 'hasp:queue:' .. key, 'hasp:fence:' .. key
local refused, tried = {}, {
  { 'GET', key }, { 'DEL', key }, { 'EXISTS', key }, { 'PEXPIRE', key, 1 }, { 'PTTL', key },
  { 'ZADD', queue, 'XX', 1, '-' }, { 'ZCARD', queue }, { 'ZRANGE', queue, 0, 0 },
  { 'ZRANK', queue, '-' }, { 'ZREM', queue, '-' }, { 'ZREMRANGEBYSCORE', queue, 1, 0 },
  { 'ZSCORE', queue, '-' }, { 'INCR', fence }, { 'DECR', fence },
  { 'ZADD', 'hasp:readers:' .. key, 'XX', 1, '-' }, { 'ZADD', 'hasp:turn:' .. key, 'XX', 1, '-' },
}
local function isRefusal(reply)
  return type(reply) == 'table' and reply.err
end
local deletes = not isRefusal(redis.pcall('DEL', key))
local counts = deletes and not isRefusal(redis.pcall('DEL', fence))
for number, words in ipairs(tried) do
  local isTried = words[2] ~= fence or counts
  local isRefused = isTried and isRefusal(redis.pcall(unpack(words)))
  if isRefused or deletes and not counts and words[1] == 'INCR' then
    refused[#refused + 1] = number
  end
end
if counts then redis.call('DEL', fence) end
return refused`;
/** The commands that it tries; it names each by its place here, from 1. */
export const TRIED: readonly string[] = /* @__PURE__ */ Array.from(
  TRIAL_LUA.matchAll(/\{ '([A-Z]+)'/gu),
  ([, name]) => name,
);

/** A channel of the kind that waiting uses; it has no subscriber. */
const CHANNEL = "hasp:wake:check";
/** The SHA-1 of no script: a server that allows `EVALSHA` does not know it. */
const NO_SCRIPT = /* @__PURE__ */ "f".repeat(40);
/** What stands in place of the first word of a reply, if a command is refused inside of scripts. */
const IN_SCRIPTS = "in scripts";
/** The same, if the server ends the connection in place of a reply. */
const BY_ENDING = "ends the connection";
/** Error prefixes of a server that is up but cannot serve; treated as unreachable. */
const UNSERVING_PREFIXES: readonly string[] = ["NOAUTH", "LOADING", "BUSY"];
/** The share of its time after which a diagnosis does without the replies that are missing. */
const REPLIES_SHARE = 0.75;

/** The values of `role` in `INFO`. */
const ROLES: ReadonlyMap<string, NodeDiagnosis["role"]> = new Map([
  ["master", "master"],
  ["slave", "replica"],
  ["replica", "replica"],
  ["active-replica", "active-replica"],
]);

/**
 * The commands on the node's own connection, behind `TIME`, whose reply shows the clock and the
 * round trip. `SET` with `XX` sets no key that is missing, but a server that would refuse a
 * lock refuses it for the same reason.
 */
function commandsOn(key: string): readonly (readonly string[])[] {
  return [
    ["INFO"],
    ["CONFIG", "GET", "appendfsync"],
    ["SET", key, "", "XX", "PX", "1"],
    ["EVAL", TRIAL_LUA, "1", key],
    ["EVALSHA", NO_SCRIPT, "0"],
    ["PUBLISH", CHANNEL, ""],
    ["SCAN", "0", "COUNT", "1", "TYPE", "string"],
    ["GET", CREATED_KEY], // of the restart guard: a user without that may lack the right
  ];
}
const RUN_ID_COMMAND: readonly string[] = ["INFO", "server"];

/** The replies to the commands on the node's own connection, and when these were sent. */
interface Replies {
  /** By the name of the command. */
  readonly byCommand: ReadonlyMap<string, Reply>;
  /** The first of the commands that locks need and that has no reply. */
  readonly silent: string | undefined;
  /** By the monotonic clock. */
  readonly askedAtMs: number;
  readonly roundTripMs: number;
  /** The wall clock when the reply to `TIME` came. */
  readonly wallMs: number;
}

/**
 * Asks a server about itself.
 *
 * @param node The node on it.
 * @param timeoutMs How long the caller waits, in milliseconds. What a server has not shown after
 * three quarters of it, though it answered `INFO` soon, is missing in the result.
 * @param key A key that is missing, to try commands on.
 * @throws {RedisError} If the server cannot be reached, or cannot serve now.
 */
export async function diagnose(
  node: RedisNode,
  timeoutMs: number,
  key: string,
): Promise<NodeDiagnosis> {
  const { connection, server: { wheel, thirdParty } } = node;
  const replies = await repliesOfOneThatAnswers(node, key, timeoutMs * REPLIES_SHARE);
  const unserving = [...replies.byCommand.values()].find((reply) =>
    reply instanceof ReplyError && UNSERVING_PREFIXES.includes(reply.prefix)
  );
  if (unserving) throw unserving;
  const limitMs = replies.askedAtMs + timeoutMs * REPLIES_SHARE - wheel.clock.monotonicMs();
  const [[first, subscribed], [second]] = await Promise.all([
    // The client of others may have one connection for all.
    askAnother(node, [RUN_ID_COMMAND, ...thirdParty ? [] : [["SUBSCRIBE", CHANNEL]]], limitMs),
    askAnother(node, [RUN_ID_COMMAND], limitMs),
  ]);
  return plainData(diagnosisOf(replies, [first, second], subscribed), connection.password);
}

/**
 * The node's own connection is given up for a moment if it led to a replica: then another one shows
 * what is there.
 */
async function repliesOfOneThatAnswers(
  node: RedisNode,
  key: string,
  limitMs: number,
): Promise<Replies> {
  const { connection, server: { wheel } } = node;
  const ask = (connection: CommandSender) => repliesOf(connection, wheel, commandsOn(key), limitMs);
  try {
    return await ask(connection);
  } catch (error) {
    const replies = isDemoted((error as Error).cause) && await withAnother(node, ask);
    if (replies) return replies;
    throw error;
  }
}

/**
 * The replies within the limit, or as long again as the first two took: these are waited for
 * however late they come, and a slow server is not a silent one.
 */
async function repliesOf(
  connection: CommandSender,
  wheel: TimerWheel,
  commands: readonly (readonly string[])[],
  limitMs: number,
): Promise<Replies> {
  const { clock } = wheel;
  // The first connection is ready at some moment before its first reply, so the round trip of the
  // second is measured.
  if (connection.readyAtMs === Infinity) await repliesTo(connection, [["TIME"]]);
  const askedAtMs = clock.monotonicMs();
  // The wall clock is read first: if the process stands still here, the round trip contains that.
  const timed = repliesTo(connection, [["TIME"]]).then(([time]) => {
    return { time, wallMs: clock.wallMs(), roundTripMs: clock.monotonicMs() - askedAtMs };
  });
  const byCommand = new Map<string, Reply>();
  const answered = commands.map(async (command) => {
    const [reply] = await repliesTo(connection, [command]);
    byCommand.set(command[0], textReply(reply));
  });
  const all = Promise.all(answered);
  all.catch(() => {}); // it is awaited below
  const [{ time, ...times }] = await Promise.all([timed, answered[0]]);
  const tookMs = clock.monotonicMs() - askedAtMs;
  await Promise.race([all, settledWithin(wheel, all, Math.max(limitMs - tookMs, tookMs))]);
  const silent = commands.find(([name]) => name !== "CONFIG" && !byCommand.has(name))?.[0];
  return { ...times, askedAtMs, byCommand: byCommand.set("TIME", textReply(time)), silent };
}

/** Opens one more connection for a question, unless the node is closed, and closes it. */
async function withAnother<T>(
  { server, further }: RedisNode,
  ask: (connection: CommandSender) => Promise<T>,
): Promise<T | undefined> {
  if (!further) return undefined;
  const connection = server.newSender();
  further.add(connection);
  try {
    return await ask(connection);
  } finally {
    connection.close().finally(() => further.delete(connection));
  }
}

/** What another connection answered within the limit. */
async function askAnother(
  node: RedisNode,
  commands: readonly (readonly string[])[],
  limitMs: number,
): Promise<readonly Reply[]> {
  const replies: Reply[] = [];
  if (limitMs <= 0) return replies;
  await withAnother(node, (connection) => {
    const answered = commands.map(async (command, index) => {
      const [reply] = await repliesTo(connection, [command]).catch(() => [null]);
      replies[index] = textReply(reply);
    });
    return settledWithin(node.server.wheel, Promise.all(answered), limitMs);
  });
  return replies;
}

/**
 * What the replies say; those on the further connections are `undefined` if they did not come in
 * time. The one to `SUBSCRIBE` is `null` if the connection ended in its place.
 */
function diagnosisOf(
  replies: Replies,
  infos: readonly (Reply | undefined)[],
  subscribed: Reply | undefined,
): NodeDiagnosis {
  const { byCommand, silent, roundTripMs, wallMs } = replies;
  const timeMs = timeReplyMs(byCommand.get("TIME"));
  // The server read its clock between question and reply; the middle is the best guess.
  const middleMs = wallMs - roundTripMs / 2;
  const parts = infoParts(byCommand.get("INFO"));
  const config = byCommand.get("CONFIG");
  const tried = [...byCommand].filter(([command]) => command !== "GET");
  const refused = Object.fromEntries(refusals([...tried, ["SUBSCRIBE", subscribed]]));
  if (silent) refused[silent] = SILENT; // those behind it wait for its reply
  if (subscribed === null) {
    const [info] = infos;
    if (typeof info === "string") refused.SUBSCRIBE = BY_ENDING;
    // the server refused the connection itself, not INFO
    else if (info instanceof ReplyError && !info.commandRefused) refused.SUBSCRIBE = UNCONNECTED;
  }
  return {
    roundTripMs: rounded(roundTripMs),
    clockOffsetMs: timeMs === undefined ? undefined : rounded(timeMs - middleMs),
    ...parts,
    markerAgeMs: markerAgeMs(timeMs, byCommand.get("GET")),
    otherRunIds: otherRunIds(parts.runId, infos),
    appendfsync: Array.isArray(config) && typeof config[1] === "string" ? config[1] : undefined,
    refused: Object.keys(refused).length > 0 ? refused : undefined,
  };
}

/** The commands that were refused, each with why. */
function* refusals(replies: Iterable<[string, Reply | undefined]>): Iterable<[string, string]> {
  for (const [command, reply] of replies) {
    if (reply instanceof ReplyError && reply.prefix !== UNKNOWN_SCRIPT) {
      yield [command, reply.prefix];
    }
    if (command !== "EVAL" || !Array.isArray(reply)) continue;
    const names = reply.flatMap((number) => TRIED[Number(number) - 1] ?? []);
    for (const name of names) yield [name, IN_SCRIPTS];
  }
}

/** See {@linkcode NodeDiagnosis.markerAgeMs}. */
function markerAgeMs(timeMs: number | undefined, marker: Reply | undefined): number | undefined {
  if (timeMs === undefined || marker !== null && typeof marker !== "string") return undefined;
  const ageMs = marker === null ? 0 : Math.round(timeMs - Number(marker));
  return ageMs >= 0 ? ageMs : undefined; // such as NaN
}

/** What a reply to `INFO` says, which has lines of `name:value`. */
function infoParts(info: Reply | undefined): Partial<NodeDiagnosis> {
  if (typeof info !== "string") return {};
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "mu").exec(info)?.[1];
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
