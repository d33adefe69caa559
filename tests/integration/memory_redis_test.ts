/**
 * Holds `MemoryRedis` to a real redis-server: the same random commands over two connections, the
 * same bytes back.
 *
 * A failure names the seed and the shortest sequence that shows it. Time passes in both at the same
 * places: where a key was given a life of a millisecond, the real server is waited for and the
 * clock of the other one is stepped. Left out is what differs by nature: TIME (which a position in
 * a queue carries, too), CLIENT ID, most of INFO, and a PTTL's last milliseconds.
 */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { Clock } from "../../src/time/clock.ts";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import { MemoryRedis, type MemorySession } from "../../src/testing/mod.ts";
import { testAsRedis70 as test } from "../support/as_redis_70.ts";
import { startServer } from "../support/servers.ts";
import {
  anyStep,
  type Command,
  FENCE_KEYS,
  fenceStep,
  KEYS,
  PEER_SCRIPTS,
  QUEUE_KEYS,
  queueStep,
  READER_KEYS,
  READERS,
  readerStep,
  SETS,
  type Step,
} from "./random_commands.ts";
import { QUEUE_EXAMPLES } from "./queue_examples.ts";

const SEED = 20_120;
/** Sequences of each kind of steps; logging in takes fewer. */
const SEQUENCES = 1_200;
const LOGIN_SEQUENCES = 300;
/** How far two PTTLs may lie apart beside the time that the real server took, in milliseconds. */
const PTTL_TOLERANCE_MS = 20;
/** By how much a counter that starts from the clock may be ahead or behind, in milliseconds. */
const CLOCK_TOLERANCE_MS = 60_000;
/** The deadlines of readers are at most so far away, in milliseconds. */
const DEADLINE_MS_MAX = 180_000;
/** A key with a life of one millisecond is gone after this long. */
const EXPIRED_AFTER_MS = 3;
/**
 * In this time no turn ends: the shortest lasts 50 ms. If the real server took longer, its replies
 * may differ by that.
 */
const TURN_KEPT_MS = 30;
/** Times that a sequence is compared again because the machine was too busy for it. */
const REPEATS_MAX = 10;

const latin1 = new TextDecoder("latin1");

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
async function realReplies(
  connections: readonly RealConnection[],
  steps: readonly Step[],
  other: RealConnection,
) {
  for (const { over, commands, expires, fills } of steps) {
    if (fills) await other.ask(fill(1));
    await connections[over].ask(commands);
    const fromMs = Date.now();
    while (expires && Date.now() - fromMs < EXPIRED_AFTER_MS) {
      await new Promise((resolve) => setTimeout(resolve, EXPIRED_AFTER_MS));
    }
  }
  return connections.map(({ transcript }) => transcript);
}

/**
 * What the server in memory answers over each connection, piece by piece where the steps say so.
 */
function memoryReplies(options: { password?: string }, steps: readonly Step[]): string[] {
  let nowMs = Date.now();
  const clock = { monotonicMs: () => nowMs, wallMs: () => nowMs } as Clock;
  const server = new MemoryRedis({ ...options, clock });
  const sessions: MemorySession[] = [server.session(), server.session()];
  const transcripts = ["", ""];
  for (const { over, commands, expires, fills } of steps) {
    if (fills) server.fill();
    transcripts[over] += latin1.decode(sessions[over].push(encode(commands)));
    if (expires) nowMs += EXPIRED_AFTER_MS;
  }
  return transcripts;
}

/**
 * Makes replies comparable: lives of keys, what is left of a turn, and counters that started from
 * the clock are rounded.
 */
function assertSameReplies(actual: string, expected: string, tookMs: number): void {
  const lives: number[] = [];
  const comparable = (replies: string) =>
    replies.replace(/(\$2\r\nid\r\n):\d+/gu, "$1:id").replace(
      /(\$7\r\nversion\r\n)\$\d+\r\n[\d.]+/gu,
      "$1version",
    ).replace(/^:(\d{2,13})\r$/gmu, (_, digits) => {
      lives.push(Number(digits));
      return ":life\r";
    }).replace(/\$\d+\r\n([^+$*]+\+)(\d+)\r/gu, (_, ticket, digits) => { // what a turn has left
      lives.push(Number(digits));
      return `${ticket}life\r`;
    }).replace(/^([:,]?)(\d{16})\r$/gmu, (reply, kind, digits) => {
      const apartMs = Math.abs(Number(digits) / 1_000 - Date.now());
      return apartMs < CLOCK_TOLERANCE_MS ? `${kind}clock\r` : reply;
    }).replace(/^(,?)(\d{13})\r$/gmu, (reply, kind, digits) => { // a reader's deadline
      const apartMs = Math.abs(Number(digits) - Date.now());
      return apartMs < DEADLINE_MS_MAX ? `${kind}deadline\r` : reply;
    }).replace(READER_IN_THE_WAY, "$1reader\r\n").replace(
      /(?:[*>]3\r\n\$11\r\nunsubscribe\r\n\$\d+\r\n[\w:]+\r\n:\d\r\n)+/gu,
      sortedNotices,
    );
  assertEquals(comparable(actual), comparable(expected));
  const half = lives.length / 2;
  for (let index = 0; index < half; index++) {
    const apartMs = Math.abs(lives[index] - lives[half + index]);
    assert(apartMs <= tookMs + PTTL_TOLERANCE_MS, `two lives are ${apartMs} ms apart`);
  }
}

/**
 * The reader with the latest deadline, in the reply to one that waits: of two that entered one
 * after the other, both may have the same deadline, or the second a later one.
 */
const READER_IN_THE_WAY = new RegExp(
  `(\\*8\\r\\n(?::[^\\r]*\\r\\n){6})\\$\\d+\\r\\n(?:${READERS.join("|")})\\r\\n`,
  "gu",
);

/** A server leaves its channels in an order of its own, drawn when it starts. */
function sortedNotices(notices: string): string {
  const name = /\$\d+\r\n(?!unsubscribe\r)[\w:]+\r\n/gu;
  const names = (notices.match(name) ?? []).sort();
  return notices.replaceAll(name, () => names.shift()!);
}

/** A look over each connection at all that is left in the end. */
const LOOKS = [0, 1].map((over): Step => ({
  over,
  commands: [
    ["UNSUBSCRIBE"],
    ["CLIENT", "GETNAME"],
    ...[...KEYS, ...SETS, ...FENCE_KEYS].flatMap((key) => [["GET", key], ["PTTL", key]]),
    ...[...SETS, ...QUEUE_KEYS].map((key) => ["ZRANGE", key, "0", "-1", "WITHSCORES"]),
    ...READER_KEYS.flatMap((key) => [
      ...[["PTTL", key], ["ZCARD", key]],
      ...READERS.map((value) => ["ZSCORE", key, value]),
    ]),
  ],
  expires: false,
}));

/** The command that gives the real server so much memory; 0 is no limit. */
function fill(bytes: number): Command[] {
  return [["CONFIG", "SET", "maxmemory", String(bytes)]];
}

/** From here on, the memory is full. */
const FULL: Step = { over: 0, commands: [], expires: false, fills: true };
/** Both connections begin with the new protocol. */
const RESP3 = [0, 1].map((over): Step => ({ over, commands: [["HELLO", "3"]], expires: false }));

/** Holds a server to the real one, sequence by sequence; each finds new connections and no keys. */
async function compare(
  options: { password?: string },
  step = anyStep,
  ...examples: (readonly Step[])[]
): Promise<void> {
  await using server = await startServer({ ...options, rights: ["&*", "+@all"] });
  using cleaner = new RealConnection(server.port);
  using first = new RealConnection(server.port);
  using second = new RealConnection(server.port);
  await cleaner.reset();
  const login = options.password === undefined ? [] : [["AUTH", options.password]];
  const loginSteps = [0, 1].map((over): Step => ({ over, commands: login, expires: false }));
  const sequence = fc.array(step, { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      sequence,
      fc.nat(4),
      fc.boolean(),
      fc.nat(9),
      async (drawn, loggedOut, isNew, full) => {
        // Some begin without having logged in; all have by their end, so that what they did shows.
        const logins = loggedOut === 0 ? [] : loginSteps;
        const work = full < drawn.length ? drawn.toSpliced(full, 0, FULL) : drawn;
        const steps = [...logins, ...(isNew ? RESP3 : []), ...work, ...loginSteps, ...LOOKS];
        for (let repeats = 0;; repeats++) {
          const clean = cleaner.ask([...login, ["FLUSHALL"], ["SCRIPT", "FLUSH"], ...fill(0)]);
          await Promise.all([first.reset(), second.reset(), clean]);
          const startMs = performance.now();
          const expected = await realReplies([first, second], steps, cleaner);
          const tookMs = performance.now() - startMs;
          const actual = memoryReplies(options, steps);
          try {
            expected.forEach((replies, over) => assertSameReplies(actual[over], replies, tookMs));
            return;
          } catch (error) {
            if (tookMs < TURN_KEPT_MS || repeats === REPEATS_MAX) throw error;
          }
        }
      },
    ),
    {
      seed: SEED,
      numRuns: options.password === undefined ? SEQUENCES : LOGIN_SEQUENCES,
      examples: examples.map((steps) => [[...steps], 1, false, 9]),
    },
  );
}

test("MemoryRedis answers random commands byte for byte as redis-server does", async () => {
  await compare({});
});

test("MemoryRedis with a password answers random commands byte for byte as redis-server does", async () => {
  await compare({ password: "secret" });
});

test("MemoryRedis keeps queues of tickets, and notifies them, byte for byte as redis-server does", async () => {
  await compare({}, queueStep, ...QUEUE_EXAMPLES);
});

test("MemoryRedis keeps readers byte for byte as redis-server does", async () => {
  await compare({}, readerStep);
});

test("MemoryRedis counts fencing tokens byte for byte as redis-server does", async () => {
  await compare({}, fenceStep);
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

test("MemoryRedis reports in INFO a part of what redis-server reports, word for word", async () => {
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
    const reply = latin1.decode(new MemoryRedis().session().push(encode([info])));
    const text = lasting(reply.slice(reply.indexOf("\n") + 1, -2));
    assertEquals(text, knownPart(lasting(String(await server.command(...info))), text), request);
    assertEquals(text.includes("#"), request !== "x");
  }
});

Deno.test("MemoryRedis knows each script of node-redlock 4 and 5 by its SHA-1", () => {
  assertEquals(PEER_SCRIPTS.length, 6);
  const session = new MemoryRedis().session();
  for (const { source, sha1 } of PEER_SCRIPTS) {
    const reply = latin1.decode(session.push(encode([["SCRIPT", "LOAD", source]])));
    assertEquals(reply, `$40\r\n${sha1}\r\n`);
  }
});
