import { assert, assertEquals } from "@std/assert";
import type { Clock } from "../../../src/time/clock.ts";
import { encodeCommand } from "../../../src/redis/encoder.ts";
import { ACQUIRE_COUNTED, ACQUIRE_FENCED, RAISE } from "../../../src/redis_node/scripts/fencing.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { MemoryRedis } from "../../../src/testing/mod.ts";
import { WRONGTYPE } from "../../support/queue_bench.ts";

const NOW_MS = 1_700_000_000_000;
const NOW_US = NOW_MS * 1_000;
/** Ahead of the server's clock. */
const HINT = NOW_US + 1_000_000;
const MINUTE_US = 60_000_000;
const DAY_US = 86_400_000_000;
const DAY_MS = DAY_US / 1_000;
/** What a new counter's life is. */
const LIFE = `:${8 * DAY_MS}`;

const latin1 = new TextDecoder("latin1");

/** A server in memory that counts. */
class Bench {
  nowMs = NOW_MS;
  readonly session = new MemoryRedis({
    clock: { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs } as Clock,
  }).session();

  ask(...command: (string | number)[]): string {
    return latin1.decode(this.session.push(encodeCommand(command))).trimEnd();
  }

  #call({ source }: Script, keys: string, ...args: (string | number)[]): string {
    const names = keys.split(" ").filter(Boolean);
    return this.ask("EVAL", source, names.length, ...names, ...args);
  }

  count(key = "k", hint = HINT): string {
    return this.#call(ACQUIRE_COUNTED, key, "v", 1_000, hint);
  }

  acquire(keys: string, ticket = "", hint = HINT): string {
    return this.#call(ACQUIRE_FENCED, keys, "v", 1_000, ticket, ticket === "" ? 1 : 0, 5, hint);
  }

  raise(keys: string, token: number | string, value = "v"): string {
    return this.#call(RAISE, keys, value, token);
  }

  /** The counter of a key, and its life. */
  counter(key: string): string[] {
    const reply = this.ask("GET", `hasp:fence:${key}`);
    return [reply.split("\r\n")[1] ?? "none", this.ask("PTTL", `hasp:fence:${key}`)];
  }
}

const ACQUIRES: Record<string, (bench: Bench, hint?: number) => string> = {
  ACQUIRE_COUNTED: (bench, hint) => bench.count("k", hint),
  ACQUIRE_FENCED: (bench, hint) => bench.acquire("k", "", hint),
};

for (const [name, acquire] of Object.entries(ACQUIRES)) {
  for (
    const [hint, start] of [
      [HINT, HINT],
      [NOW_US - MINUTE_US, NOW_US - MINUTE_US],
      [NOW_US + MINUTE_US, NOW_US + MINUTE_US],
      [NOW_US + MINUTE_US + 1, NOW_US],
      [NOW_US - MINUTE_US - 1, NOW_US],
      [9e15, NOW_US],
      [1, NOW_US],
    ]
  ) {
    Deno.test(`MemoryRedis starts a counter by ${name} from ${start} with the hint ${hint}`, () => {
      const bench = new Bench();
      assertEquals(acquire(bench, hint), `:${start}`);
      const leadMs = name === "ACQUIRE_FENCED" ? Math.max(0, (start - NOW_US) / 1_000) : 0;
      assertEquals(bench.counter("k"), [`${start}`, `:${8 * DAY_MS + leadMs}`]);
      assertEquals([bench.ask("GET", "k"), bench.ask("PTTL", "k")], ["$1\r\nv", ":1000"]);
    });
  }

  Deno.test(`MemoryRedis counts on by ${name}, whatever the hint is`, () => {
    for (const hint of [HINT, NOW_US, 1, 9e15]) {
      const bench = new Bench();
      bench.ask("SET", "hasp:fence:k", HINT + 7, "PX", 5_000);
      assertEquals([acquire(bench, hint), bench.counter("k")[0]], [`:${HINT + 8}`, `${HINT + 8}`]);
    }
  });

  Deno.test(`MemoryRedis neither sets nor counts by ${name} where the key is there`, () => {
    const bench = new Bench();
    bench.ask("SET", "k", "w");
    assertEquals([acquire(bench), bench.counter("k")], [":0", ["none", ":-2"]]);
    assertEquals(bench.ask("GET", "k"), "$1\r\nw");
  });

  Deno.test(`MemoryRedis starts a counter above what it was by ${name} once its life is over`, () => {
    const bench = new Bench();
    acquire(bench);
    bench.nowMs += 9 * DAY_MS;
    assertEquals(acquire(bench, 1), `:${bench.nowMs * 1_000}`);
  });

  for (
    const [what, text] of [
      ["no integer", "x"],
      ["with a leading zero", "007"],
      ["with a space", " 7"],
      ["negative", "-7"],
      ["just negative", "-1"],
      ["as high as can be", "9007199254740991"],
      ["beyond safe integers", "9007199254740993"],
      ["beyond all integers", "9223372036854775807"],
      ["empty", ""],
    ]
  ) {
    Deno.test(`MemoryRedis refuses by ${name} a counter that is ${what}, and leaves it as it is`, () => {
      const bench = new Bench();
      bench.ask("SET", "hasp:fence:k", text, "PX", 5_000);
      const reply = acquire(bench);
      assertEquals([reply[0], reply.includes("hasp:fence:k")], ["-", true]);
      assertEquals(bench.ask("GET", "hasp:fence:k"), `$${text.length}\r\n${text}`.trimEnd());
      assertEquals(bench.ask("PTTL", "hasp:fence:k"), ":5000");
    });
  }

  Deno.test(`MemoryRedis refuses by ${name} to count where its clock is beyond all counters, and recovers`, () => {
    const bench = new Bench();
    bench.nowMs = 9_007_199_254_741_000;
    assertEquals(acquire(bench)[0], "-");
    bench.ask("DEL", "k");
    bench.nowMs = NOW_MS;
    assertEquals(acquire(bench), `:${HINT}`);
  });
}

Deno.test("MemoryRedis gives a counter a new life by ACQUIRE_COUNTED when it is a day old, by its own clock", () => {
  for (
    const [ageUs, hint, renewed] of [
      [DAY_US + 1, NOW_US, true],
      [DAY_US + 1, HINT, true],
      [DAY_US, NOW_US, false],
      [DAY_US + 1, 9e15, true],
      [DAY_US, 9e15, false],
      [5 * DAY_US, NOW_US - 5 * DAY_US, false], // a client that is behind renews nothing
    ] as const
  ) {
    const bench = new Bench();
    const before = NOW_US - ageUs;
    bench.ask("SET", "hasp:fence:k", before, "PX", 5_000);
    const start = Math.abs(hint - NOW_US) <= MINUTE_US ? hint : NOW_US;
    const count = renewed ? start : before + 1;
    assertEquals(bench.count("k", hint), `:${count}`);
    assertEquals(bench.counter("k"), [`${count}`, renewed ? LIFE : ":5000"]);
  }
});

Deno.test("MemoryRedis counts for several keys from the highest, and all of them alike", () => {
  const bench = new Bench();
  bench.ask("SET", "hasp:fence:k", HINT + 50_000);
  bench.ask("SET", "hasp:fence:l", HINT + 90_000);
  const count = `${HINT + 90_001}`;
  assertEquals(bench.acquire("k l m"), `:${count}`);
  const life = `:${8 * DAY_MS + Math.ceil((Number(count) - NOW_US) / 1_000)}`;
  for (const key of ["k", "l", "m"]) assertEquals(bench.counter(key), [count, life]);
});

Deno.test("MemoryRedis refuses by ACQUIRE_FENCED where one of several counters is none, and sets no key", () => {
  const bench = new Bench();
  bench.ask("SET", "hasp:fence:l", "x");
  assertEquals(bench.acquire("k l m")[0], "-");
  assertEquals(bench.ask("EXISTS", "k", "l", "m", "hasp:fence:k", "hasp:fence:m"), ":0");
});

Deno.test("MemoryRedis puts a ticket into the queue by ACQUIRE_FENCED, and counts once it is its turn", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w", "PX", 700);
  assert(bench.acquire("k", "x:1").startsWith("*5\r\n:700\r\n:0\r\n:1\r\n:5\r\n"));
  assertEquals(bench.counter("k"), ["none", ":-2"]);
  bench.ask("DEL", "k");
  assertEquals(bench.acquire("k", "x:1"), `:${HINT}`);
  assertEquals(bench.ask("ZCARD", "hasp:queue:k"), ":0");
});

Deno.test("MemoryRedis leaves queues alone by ACQUIRE_FENCED without a ticket", () => {
  const bench = new Bench();
  bench.ask("ZADD", "hasp:queue:k", 5, "x:1");
  assertEquals([bench.acquire("k"), bench.ask("ZCARD", "hasp:queue:k")], [`:${HINT}`, ":1"]);
});

Deno.test("MemoryRedis raises by RAISE to the token, or answers with what is higher", () => {
  const bench = new Bench();
  bench.count();
  const token = HINT + 9_000_000;
  assertEquals(bench.raise("k", token), `:${token}`);
  assertEquals(bench.counter("k"), [`${token}`, `:${8 * DAY_MS + 10_000}`]);
  bench.ask("PEXPIRE", "hasp:fence:k", 5);
  assertEquals(bench.raise("k", HINT), `:${token}`);
  assertEquals(bench.counter("k"), [`${token}`, `:${8 * DAY_MS + 10_000}`]);
});

Deno.test("MemoryRedis keeps a counter that RAISE put years ahead until a week after its clock has reached it", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "v");
  const years = 10 * 365 * DAY_US;
  assertEquals(bench.raise("k", NOW_US + years), `:${NOW_US + years}`);
  assertEquals(bench.counter("k")[1], `:${8 * DAY_MS + years / 1_000}`);
});

Deno.test("MemoryRedis raises a missing counter by RAISE to its clock, where that is above the token", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "v");
  assertEquals(bench.raise("k", NOW_US - DAY_US), `:${NOW_US}`);
  assertEquals(bench.counter("k"), [`${NOW_US}`, LIFE]);
});

Deno.test("MemoryRedis raises nothing by RAISE where a key is not ours or gone", () => {
  const bench = new Bench();
  bench.acquire("k l");
  bench.ask("SET", "l", "w");
  for (const keys of ["k l", "l", "gone", "k gone"]) {
    assertEquals(bench.raise(keys, HINT + 9), ":0");
  }
  assertEquals([bench.counter("k")[0], bench.counter("gone")[0]], [`${HINT}`, "none"]);
});

Deno.test("MemoryRedis refuses the counting scripts where the counter is of another type", () => {
  const bench = new Bench();
  bench.ask("ZADD", "hasp:fence:k", 1, "x");
  const where = ({ sha1, source }: Script) => {
    const line = source.slice(0, source.indexOf("redis.call('GET', name)")).split("\n").length;
    return `script: ${sha1}, on @user_script:${line}.`;
  };
  assertEquals(bench.acquire("k"), `-${WRONGTYPE} ${where(ACQUIRE_FENCED)}`);
  assertEquals(bench.count(), `-${WRONGTYPE}: hasp:fence:k`);
  assertEquals(bench.raise("k", HINT), `-${WRONGTYPE} ${where(RAISE)}`);
});
