/**
 * Holds `MemoryRedis` to a real redis-server: the same random commands, the same bytes back.
 *
 * A failure names the seed and the shortest sequence that shows it. Left out is what differs by nature: TIME,
 * CLIENT ID, and a PTTL's last milliseconds.
 */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { connect, type RedisClient } from "../../src/redis/mod.ts";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import { ACQUIRE_ALL, EXTEND, RELEASE } from "../../src/scripts.ts";
import { MemoryRedis, startNodes } from "../../src/testing/mod.ts";
import { startServer } from "../support/servers.ts";

const SEQUENCES = 400;
/** How far two PTTLs may lie apart, in milliseconds: the sequences run one after the other. */
const PTTL_TOLERANCE_MS = 2_000;
/** Lives are so long that nothing expires while a sequence runs, or so short that they are refused. */
const LIVES_MS = [
  "60000",
  "90000",
  "120000",
  "0",
  "-1",
  "x",
  "",
  "007",
  "1.5",
  "9223372036854775807",
];

const latin1 = new TextDecoder("latin1");

type Command = readonly string[];

const word = (...choices: string[]) => fc.constantFrom(...choices);
const key = word("a", "b", "c", "\0\r\n", "é");
const value = word(
  "v",
  "w",
  "",
  "1",
  "-7",
  "007",
  "9223372036854775807",
  "9223372036854775808",
  "\r\n$-1",
);
const life = word(...LIVES_MS);
const extra = fc.array(word("x", "NX", "0", ""), { maxLength: 2 });

const setOption: fc.Arbitrary<Command> = fc.oneof(
  word("NX", "xx", "XX", "PX", "FOO").map((option) => [option]),
  fc.tuple(word("PX", "px", "EX"), life).map((pair) => pair),
);
const set = fc.tuple(key, value, fc.array(setOption, { maxLength: 3 }))
  .map(([key, value, options]) => ["SET", key, value, ...options.flat()]);
const keyCommand = fc.oneof(
  fc.tuple(word("GET", "get", "PTTL", "INCR", "DEL", "EXISTS"), key).map((words) => words),
  fc.tuple(word("DEL", "EXISTS"), fc.array(key, { maxLength: 3 })).map((
    [name, keys],
  ) => [name, ...keys]),
  fc.tuple(fc.constant("PEXPIRE"), key, life).map((words) => words),
);
const script = fc.constantFrom(ACQUIRE_ALL, EXTEND, RELEASE);
const scriptArgs = fc.oneof(
  fc.tuple(fc.array(key, { maxLength: 3 }), value, life)
    .map(([keys, value, life]) => [String(keys.length), ...keys, value, life]),
  fc.tuple(word("0", "1", "2", "-1", "x"), fc.array(value, { maxLength: 2 }))
    .map(([count, args]) => [count, ...args]),
);
const scriptCommand = fc.oneof(
  fc.tuple(script, scriptArgs).map(([{ source }, args]) => ["EVAL", source, ...args]),
  fc.tuple(script, scriptArgs).map(([{ sha1 }, args]) => ["EVALSHA", sha1, ...args]),
  fc.tuple(script, scriptArgs).map(([{ sha1 }, args]) => ["evalsha", sha1.toUpperCase(), ...args]),
  script.map(({ source }) => ["SCRIPT", "LOAD", source]),
  fc.array(script, { minLength: 1, maxLength: 2 }).map((them) => [
    "SCRIPT",
    "EXISTS",
    "f".repeat(40),
    ...them.map(({ sha1 }) => sha1),
  ]),
  fc.tuple(word("SYNC", "async", "x"), fc.boolean()).map(([mode, plain]) =>
    plain ? ["SCRIPT", "FLUSH"] : ["SCRIPT", "FLUSH", mode]
  ),
  fc.tuple(word("f".repeat(40), "abc"), scriptArgs).map((
    [sha1, args],
  ) => ["EVALSHA", sha1, ...args]),
);
const connectionCommand = fc.oneof(
  fc.array(value, { maxLength: 2 }).map((args) => ["PING", ...args]),
  word("0", "1", "15", "16", "-1", "x", "2147483648", "").map((number) => ["SELECT", number]),
  word("name", "", "two words", "é", "~!").map((name) => ["CLIENT", "SETNAME", name]),
  fc.constant(["client", "getname"]),
  fc.array(word("default", "bob", "secret"), { maxLength: 3 }).map((args) => ["AUTH", ...args]),
  extra.map((args) => ["FLUSHALL", ...args]),
);
const malformed = fc.oneof(
  fc.tuple(
    word(
      "GET",
      "SET",
      "DEL",
      "PTTL",
      "INCR",
      "SELECT",
      "EVAL",
      "EVALSHA",
      "EXISTS",
      "PEXPIRE",
    ),
    fc.constant([]),
  ).map(([name]) => [name]),
  fc.tuple(word("GET", "PTTL", "INCR", "TIME", "SELECT"), key, extra)
    .map(([name, key, extra]) => [name, key, "x", ...extra]),
  fc.tuple(
    word("CLIENT", "SCRIPT"),
    word("FOO", "foo\r\n", "SETNAME", "EXISTS", "GETNAME", "a\0b"),
    extra,
  )
    .map(([name, subname, extra]) => [name, subname, ...extra]),
  word("CLIENT", "SCRIPT").map((name) => [name]),
  fc.tuple(
    word("FOO", "\r\n", "f\0o", "", "y".repeat(200), "toString", "__proto__"),
    fc.array(
      word("x", "é", "\0", "\r\n", "it's", "z".repeat(100)),
      { maxLength: 4 },
    ),
  ).map(([name, args]) => [name, ...args]),
);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: set },
  { weight: 5, arbitrary: keyCommand },
  { weight: 5, arbitrary: scriptCommand },
  { weight: 2, arbitrary: connectionCommand },
  { weight: 2, arbitrary: malformed },
);

/** One plain stream: writes a sequence at once and reads the replies up to that of a last, known command. */
class RawConnection {
  readonly #stream: Deno.TcpConn;
  readonly #buffer = new Uint8Array(64 * 1024);

  constructor(stream: Deno.TcpConn) {
    this.#stream = stream;
  }

  async ask(commands: readonly Command[], last: string): Promise<string> {
    const bytes = encode([...commands, ["PING", last]]);
    for (let at = 0; at < bytes.length;) at += await this.#stream.write(bytes.subarray(at));
    const end = `$${last.length}\r\n${last}\r\n`;
    let replies = "";
    while (!replies.endsWith(end)) {
      const count = await this.#stream.read(this.#buffer);
      assert(count !== null, `the server closed the connection after ${JSON.stringify(replies)}`);
      replies += latin1.decode(this.#buffer.subarray(0, count));
    }
    return replies;
  }

  close(): void {
    this.#stream.close();
  }
}

function encode(commands: readonly Command[]): Uint8Array {
  return joinCommands(commands.map((command) => encodeCommand(command)));
}

/** Makes replies comparable: lives of keys are rounded, everything else stays as it is. */
function assertSameReplies(actual: string, expected: string): void {
  const lives: number[] = [];
  const blank = (replies: string) =>
    replies.replace(/^:(\d{4,6})\r$/gmu, (_, digits) => {
      lives.push(Number(digits));
      return ":life\r";
    });
  assertEquals(blank(actual), blank(expected));
  const half = lives.length / 2;
  for (let index = 0; index < half; index++) {
    const apartMs = Math.abs(lives[index] - lives[half + index]);
    assert(apartMs <= PTTL_TOLERANCE_MS, `two lives are ${apartMs} ms apart`);
  }
}

/** Holds a server to the real one, sequence by sequence; each begins on new connections and without keys. */
async function compare(options: { password?: string }): Promise<void> {
  await using server = await startServer(options);
  const login = options.password === undefined ? [] : [["AUTH", options.password]];
  const clean = [...login, ["FLUSHALL"], ["SCRIPT", "FLUSH"]];
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 25 }), fc.boolean(), async (
      commands,
      loggedIn,
    ) => {
      const real = new RawConnection(
        await Deno.connect({ hostname: "127.0.0.1", port: server.port }),
      );
      try {
        const cleaner = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
        const cleaning = new RawConnection(cleaner);
        await cleaning.ask(clean, "clean");
        cleaning.close();
        const sequence = [...(loggedIn ? login : []), ...commands];
        const tail = login.length > 0 ? [...sequence, ...login] : sequence;
        const expected = await real.ask(tail, "the end");
        const session = new MemoryRedis(options).session();
        const actual = latin1.decode(session.push(encode([...tail, ["PING", "the end"]])));
        assertSameReplies(actual, expected);
      } finally {
        real.close();
      }
    }),
    { numRuns: SEQUENCES / 2 },
  );
}

Deno.test("MemoryRedis answers random commands byte for byte as redis-server does", async () => {
  await compare({});
});

Deno.test("MemoryRedis with a password answers random commands byte for byte as redis-server does", async () => {
  await compare({ password: "secret" });
});

Deno.test("startNodes() starts nodes that share nothing and ask for the password", async () => {
  await using nodes = await startNodes(2, { password: "s/cret" });
  await using one = await connect(nodes.addresses[0]);
  await using other = await connect(nodes.addresses[1]);
  await one.send(["SET", "a", "1"]);
  assertEquals([await one.send(["GET", "a"]), await other.send(["GET", "a"])], ["1", null]);
});

Deno.test("startNodes() is disposed of while clients are connected, and a second time", async () => {
  const nodes = await startNodes(1);
  const client: RedisClient = await connect(nodes.addresses[0]);
  await nodes[Symbol.asyncDispose]();
  await nodes[Symbol.asyncDispose]();
  const refused = await client.send(["PING"]).catch((error) => error.name);
  assertEquals(refused, "ConnectionError");
  await client.close();
});
