/**
 * Holds `MemoryRedis` to a real redis-server: the same random commands over two connections, the same bytes back.
 *
 * A failure names the seed and the shortest sequence that shows it. Time passes in both at the same places: where a
 * key was given a life of a millisecond, the real server is waited for and the clock of the other one is stepped.
 * Left out is what differs by nature: TIME, CLIENT ID, most of INFO, and a PTTL's last milliseconds.
 */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import Redlock4 from "redlock4";
import Redlock5 from "redlock5";
import type { Clock } from "../../src/clock.ts";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import { ACQUIRE_ALL, EXTEND, RELEASE } from "../../src/scripts.ts";
import { MemoryRedis, type MemorySession } from "../../src/testing/mod.ts";
import { startServer } from "../support/servers.ts";

const SEED = 20_120;
/** Sequences for each of the two servers: one without and one with a password. */
const SEQUENCES = 1_200;
/** How far two PTTLs may lie apart, in milliseconds: the sequences run one after the other. */
const PTTL_TOLERANCE_MS = 2_000;
/** A key with a life of one millisecond is gone after this long. */
const EXPIRED_AFTER_MS = 3;
/** Lives are so long that nothing expires while a sequence runs, or so short that they are refused. */
const LIVES_MS = "60000 90000 120000 0 -1 x 007 1.5 9223372036854775807".split(" ").concat("");

const latin1 = new TextDecoder("latin1");

type Command = readonly string[];

/** What is done at once: commands over one connection, and where `expires` a wait for the last one's key to go. */
interface Step {
  readonly over: number;
  readonly commands: readonly Command[];
  readonly expires: boolean;
}

interface PeerScripts {
  readonly scripts: Readonly<Record<string, { readonly value: string; readonly hash: string }>>;
}

/** The scripts of node-redlock, from the packages themselves. */
const PEER_SCRIPTS = [Redlock4, Redlock5].flatMap((Peer) => {
  const { scripts } = new (Peer as unknown as new (clients: object[]) => PeerScripts)([{}]);
  return Object.values(scripts).map(({ value, hash }) => ({ source: value, sha1: hash }));
});
const SCRIPTS = [ACQUIRE_ALL, EXTEND, RELEASE, ...PEER_SCRIPTS];

const word = (...choices: string[]) => fc.constantFrom(...choices);
const words = (choices: fc.Arbitrary<string>, maxLength: number) =>
  fc.array(choices, { maxLength });
/** Some keys are mostly strings, some mostly lists, so that both come to hold something. */
const KEYS = ["a", "b", "\0\r\n", "é"];
const LISTS = ["l", "m"];
const key = fc.oneof({ weight: 8, arbitrary: word(...KEYS) }, {
  weight: 1,
  arbitrary: word(...LISTS),
});
const listKey = fc.oneof(
  { weight: 16, arbitrary: word(...LISTS) },
  { weight: 1, arbitrary: word("a", "nope") },
);
const anyKey = word(...KEYS, ...LISTS);
const value = word(
  ..."v w v w 1 -7 007 9223372036854775807 9223372036854775808".split(" "),
  "",
  "\r\n$-1",
);
const life = word(...LIVES_MS);
const index = word(..."0 1 2 3 -1 -2 -3 100 -100 9223372036854775807 x".split(" "));
const extra = words(word("x", "NX", "0", ""), 2);

const setOption: fc.Arbitrary<Command> = fc.oneof(
  word("NX", "xx", "XX", "PX", "FOO").map((option) => [option]),
  fc.tuple(word("PX", "px", "EX"), life),
);
const set = fc.tuple(key, value, fc.array(setOption, { maxLength: 3 }))
  .map(([key, value, options]) => ["SET", key, value, ...options.flat()]);
const keyCommand = fc.oneof(
  fc.tuple(word("GET", "get", "PTTL", "INCR", "DEL", "EXISTS"), key),
  fc.tuple(word("PTTL", "DEL", "EXISTS"), anyKey),
  fc.tuple(word("DEL", "EXISTS"), words(anyKey, 3)).map(([name, keys]) => [name, ...keys]),
  fc.tuple(fc.constant("PEXPIRE"), anyKey, life),
);
const searchOption = fc.oneof(
  fc.tuple(word("RANK", "rank"), word("1", "2", "3", "-1", "-2")),
  fc.tuple(word("COUNT", "MAXLEN", "count", "RANK", "FOO"), word("0", "1", "2", "-1", "x")),
);
const item = word("v", "w", "x");
const pushed = fc.tuple(word("LPUSH", "RPUSH"), listKey, words(item, 4))
  .map(([name, key, items]) => [name, key, ...items]);
const listCommand = fc.oneof(
  pushed,
  pushed,
  fc.tuple(word("LPOP", "RPOP"), listKey),
  fc.tuple(word("LPOP", "RPOP"), listKey, index),
  fc.tuple(fc.constant("LLEN"), listKey),
  fc.tuple(fc.constant("LRANGE"), listKey, index, index),
  fc.tuple(fc.constant("LREM"), listKey, index, item),
  fc.tuple(listKey, item, fc.array(searchOption, { maxLength: 2 }))
    .map(([key, item, options]) => ["LPOS", key, item, ...options.flat()]),
);
const script = fc.constantFrom(...SCRIPTS);
const scriptArgs = fc.oneof(
  fc.tuple(words(fc.oneof(key, anyKey), 3), word("v", "w", "1"), word("60000", ...LIVES_MS))
    .map(([keys, value, life]) => [String(keys.length), ...keys, value, life]),
  fc.tuple(word("0", "1", "2", "-1", "x"), words(value, 2)).map((
    [count, args],
  ) => [count, ...args]),
);
const scriptCommand = fc.oneof(
  fc.tuple(script, scriptArgs).map(([{ source }, args]) => ["EVAL", source, ...args]),
  fc.tuple(script, scriptArgs).map(([{ sha1 }, args]) => ["EVALSHA", sha1, ...args]),
  fc.tuple(script, scriptArgs).map(([{ sha1 }, args]) => ["evalsha", sha1.toUpperCase(), ...args]),
  script.map(({ source }) => ["SCRIPT", "LOAD", source]),
  fc.array(script, { minLength: 1, maxLength: 2 })
    .map((them) => ["SCRIPT", "EXISTS", "f".repeat(40), ...them.map(({ sha1 }) => sha1)]),
  words(word("SYNC", "async", "x"), 1).map((mode) => ["SCRIPT", "FLUSH", ...mode]),
  fc.tuple(word("f".repeat(40), "abc"), scriptArgs).map((
    [sha1, args],
  ) => ["EVALSHA", sha1, ...args]),
);
const channel = word("news", "talk");
const channelCommand = fc.oneof(
  fc.tuple(word("SUBSCRIBE", "UNSUBSCRIBE", "unsubscribe"), words(channel, 2))
    .map(([name, channels]) => [name, ...channels]),
  fc.tuple(fc.constant("PUBLISH"), channel, value),
);
const connectionCommand = fc.oneof(
  words(value, 2).map((args) => ["PING", ...args]),
  word("0", "1", "15", "16", "-1", "x", "2147483648", "").map((number) => ["SELECT", number]),
  word("name", "", "two words", "é", "~!").map((name) => ["CLIENT", "SETNAME", name]),
  fc.constant(["client", "getname"]),
  words(word("default", "bob", "secret"), 3).map((args) => ["AUTH", ...args]),
  fc.constant(["RESET"]),
);
const serverCommand = fc.oneof(
  extra.map((args) => ["FLUSHALL", ...args]),
  word("maxmemory-policy", "appendonly", "AppendFsync", "nope")
    .map((name) => ["CONFIG", "GET", name]),
);
const malformed = fc.oneof(
  word(
    ..."GET SET DEL PTTL INCR SELECT EVAL EVALSHA EXISTS PEXPIRE LPUSH LPOP LPOS PUBLISH SUBSCRIBE"
      .split(" "),
  ).map((name) => [name]),
  fc.tuple(word("GET", "PTTL", "INCR", "TIME", "SELECT", "LLEN", "LPOP", "RPOP"), key, extra)
    .map(([name, key, extra]) => [name, key, "x", "y", ...extra]),
  fc.tuple(
    word("CLIENT", "SCRIPT", "CONFIG"),
    word("FOO", "foo\r\n", "SETNAME", "EXISTS", "GETNAME", "GET", "a\0b"),
    extra,
  ).map(([name, subname, extra]) => [name, subname, ...extra.map(() => "nope")]),
  word("CLIENT", "SCRIPT", "CONFIG").map((name) => [name]),
  fc.tuple(
    word("FOO", "\r\n", "f\0o", "", "y".repeat(200), "toString", "__proto__"),
    words(word("x", "é", "\0", "\r\n", "it's", "z".repeat(100)), 4),
  ).map(([name, args]) => [name, ...args]),
);
const quit = words(value, 1).map((args) => ["QUIT", ...args]);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 24, arbitrary: set },
  { weight: 30, arbitrary: keyCommand },
  { weight: 30, arbitrary: listCommand },
  { weight: 30, arbitrary: scriptCommand },
  { weight: 16, arbitrary: channelCommand },
  { weight: 10, arbitrary: connectionCommand },
  { weight: 6, arbitrary: serverCommand },
  { weight: 10, arbitrary: malformed },
  { weight: 1, arbitrary: quit },
);
const shortLived: fc.Arbitrary<Command> = fc.oneof(
  fc.tuple(fc.constant("PEXPIRE"), anyKey, fc.constant("1")),
  fc.tuple(key, value, word("NX", "XX", "nx"))
    .map(([key, value, when]) => ["SET", key, value, when, "PX", "1"]),
  fc.tuple(script, words(key, 2), value).map((
    [{ source }, keys, value],
  ) => ["EVAL", source, String(keys.length), ...keys, value, "1"]),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      over: fc.nat(1),
      commands: fc.array(command, { minLength: 1, maxLength: 8 }),
      expires: fc.constant(false),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      over: fc.nat(1),
      commands: shortLived.map((command) => [command]),
      expires: fc.constant(true),
    }),
  },
);

function encode(commands: readonly Command[]): Uint8Array {
  if (commands.length === 0) return new Uint8Array(0);
  return joinCommands(commands.map((command) => encodeCommand(command)));
}

/** A command that every server answers alike, whatever state the connection is in. */
function barrier(number: number): { command: Command; reply: string } {
  const name = `barrier-${number}`;
  const reply = `-ERR unknown command '${name}', with args beginning with: \r\n`;
  return { command: [name], reply };
}

/** One plain stream to the real server. */
class RealConnection implements Disposable {
  readonly #port: number;
  readonly #buffer = new Uint8Array(64 * 1024);
  #stream: Deno.TcpConn | undefined;
  #asked = 0;
  /** Everything that came since the last reset. */
  transcript = "";

  constructor(port: number) {
    this.#port = port;
  }

  /** As good as new. */
  async reset(): Promise<void> {
    if (!this.#stream) {
      this.#stream = await Deno.connect({ hostname: "127.0.0.1", port: this.#port });
      this.#stream.setNoDelay(true);
    } else {
      await this.ask([["RESET"]]);
    }
    this.transcript = "";
  }

  /** Sends commands at once and reads up to the last one's reply, or the end. */
  async ask(commands: readonly Command[]): Promise<void> {
    if (!this.#stream) return;
    const last = barrier(++this.#asked);
    const bytes = encode([...commands, last.command]);
    for (let at = 0; at < bytes.length;) at += await this.#stream.write(bytes.subarray(at));
    while (!this.transcript.endsWith(last.reply)) {
      const count = await this.#stream.read(this.#buffer);
      if (count === null) return this[Symbol.dispose]();
      this.transcript += latin1.decode(this.#buffer.subarray(0, count));
    }
    this.transcript = this.transcript.slice(0, -last.reply.length);
  }

  [Symbol.dispose](): void {
    this.#stream?.close();
    this.#stream = undefined;
  }
}

/** What the real server answers over each connection. */
async function realReplies(connections: readonly RealConnection[], steps: readonly Step[]) {
  for (const { over, commands, expires } of steps) {
    await connections[over].ask(commands);
    const fromMs = Date.now();
    while (expires && Date.now() - fromMs < EXPIRED_AFTER_MS) {
      await new Promise((resolve) => setTimeout(resolve, EXPIRED_AFTER_MS));
    }
  }
  return connections.map(({ transcript }) => transcript);
}

/** What the server in memory answers over each connection, piece by piece where the steps say so. */
function memoryReplies(options: { password?: string }, steps: readonly Step[]): string[] {
  let nowMs = 1_700_000_000_000;
  const clock = { monotonicMs: () => nowMs, wallMs: () => nowMs } as Clock;
  const server = new MemoryRedis({ ...options, clock });
  const sessions: MemorySession[] = [server.session(), server.session()];
  const transcripts = ["", ""];
  for (const { over, commands, expires } of steps) {
    transcripts[over] += latin1.decode(sessions[over].push(encode(commands)));
    if (expires) nowMs += EXPIRED_AFTER_MS;
  }
  return transcripts;
}

/** Makes replies comparable: lives of keys are rounded, everything else stays as it is. */
function assertSameReplies(actual: string, expected: string): void {
  const lives: number[] = [];
  const comparable = (replies: string) =>
    replies.replace(/^:(\d{4,9})\r$/gmu, (_, digits) => {
      lives.push(Number(digits));
      return ":life\r";
    }).replace(/(?:\*3\r\n\$11\r\nunsubscribe\r\n\$4\r\n\w+\r\n:\d\r\n)+/gu, sortedNotices);
  assertEquals(comparable(actual), comparable(expected));
  const half = lives.length / 2;
  for (let index = 0; index < half; index++) {
    const apartMs = Math.abs(lives[index] - lives[half + index]);
    assert(apartMs <= PTTL_TOLERANCE_MS, `two lives are ${apartMs} ms apart`);
  }
}

/** A server leaves its channels in an order of its own, drawn when it starts. */
function sortedNotices(notices: string): string {
  const names = (notices.match(/news|talk/gu) ?? []).sort();
  return notices.replaceAll(/news|talk/gu, () => names.shift()!);
}

/** A look over each connection at all that is left in the end. */
const LOOKS = [0, 1].map((over): Step => ({
  over,
  commands: [
    ["UNSUBSCRIBE"],
    ["CLIENT", "GETNAME"],
    ...[...KEYS, ...LISTS].flatMap((key) => [["GET", key], ["PTTL", key]]),
    ...LISTS.map((key) => ["LRANGE", key, "0", "-1"]),
  ],
  expires: false,
}));

/** Holds a server to the real one, sequence by sequence; each finds new connections and no keys. */
async function compare(options: { password?: string }): Promise<void> {
  await using server = await startServer(options);
  using cleaner = new RealConnection(server.port);
  using first = new RealConnection(server.port);
  using second = new RealConnection(server.port);
  await cleaner.reset();
  const login = options.password === undefined ? [] : [["AUTH", options.password]];
  const loginSteps = [0, 1].map((over): Step => ({ over, commands: login, expires: false }));
  const sequence = fc.array(step, { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(sequence, fc.nat(4), async (drawn, loggedOut) => {
      const clean = cleaner.ask([...login, ["FLUSHALL"], ["SCRIPT", "FLUSH"]]);
      await Promise.all([first.reset(), second.reset(), clean]);
      // Some begin without having logged in; all have by their end, so that what they did shows.
      const steps = [...(loggedOut === 0 ? [] : loginSteps), ...drawn, ...loginSteps, ...LOOKS];
      const expected = await realReplies([first, second], steps);
      const actual = memoryReplies(options, steps);
      expected.forEach((replies, over) => assertSameReplies(actual[over], replies));
    }),
    { seed: SEED, numRuns: SEQUENCES },
  );
}

Deno.test("MemoryRedis answers random commands byte for byte as redis-server does", async () => {
  await compare({});
});

Deno.test("MemoryRedis with a password answers random commands byte for byte as redis-server does", async () => {
  await compare({ password: "secret" });
});

/** INFO's text, without what differs from run to run. */
function lasting(info: string): string {
  return info.replace(/^(run_id|server_time_usec|uptime_in_\w+|redis_version):.*\r$/gmu, "$1\r");
}

/** The lines of `info` that stand in `known` too, in the sections that do. */
function knownPart(info: string, known: string): string {
  const lines = new Set(known.split("\r\n"));
  return info.split(/\r\n(?=# )/u).filter((section) => lines.has(section.split("\r\n", 1)[0]))
    .map((section) => section.split("\r\n").filter((line) => lines.has(line)).join("\r\n"))
    .join("\r\n");
}

Deno.test("MemoryRedis tells in INFO a part of what redis-server tells, word for word", async () => {
  await using server = await startServer();
  const requests = [
    "",
    "server",
    "SERVER Persistence",
    "replication",
    "all",
    "x",
    "x memory memory",
  ];
  for (const request of requests) {
    const info = ["INFO", ...request.split(" ").filter(Boolean)];
    const reply = latin1.decode(new MemoryRedis().session().push(encodeCommand(info)));
    const text = lasting(reply.slice(reply.indexOf("\n") + 1, -2));
    assertEquals(text, knownPart(lasting(String(await server.command(...info))), text), request);
    assertEquals(text.includes("#"), request !== "x");
  }
});

Deno.test("MemoryRedis knows each script of node-redlock 4 and 5 by its SHA-1", () => {
  assertEquals(PEER_SCRIPTS.length, 6);
  const session = new MemoryRedis().session();
  for (const { source, sha1 } of PEER_SCRIPTS) {
    const reply = latin1.decode(session.push(encodeCommand(["SCRIPT", "LOAD", source])));
    assertEquals(reply, `$40\r\n${sha1}\r\n`);
  }
});
