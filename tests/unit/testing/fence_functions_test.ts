import { assert, assertEquals } from "@std/assert";
import type { Clock } from "../../../src/time/clock.ts";
import { encodeCommand } from "../../../src/redis/encoder.ts";
import {
  ACQUIRE_COUNTED,
  ACQUIRE_FENCED,
  EXTEND_FENCED,
  RAISE,
} from "../../../src/redis_node/scripts/fencing.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { MemoryRedis } from "../../../src/testing/mod.ts";
import { WRONGTYPE } from "../../support/queue_bench.ts";

const NOW_MS = 1_700_000_000_000;
const NOW_US = NOW_MS * 1_000;
/** Ahead of the server's clock. */
const HINT = NOW_US + 1_000_000;
const WEEK = ":604800000";

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
    return this.#call(ACQUIRE_COUNTED, `${key} hasp:fence:${key}`, "v", 1_000, hint);
  }

  acquire(keys: string, ticket = "", hint = HINT): string {
    return this.#call(ACQUIRE_FENCED, keys, "v", 1_000, ticket, ticket === "" ? 1 : 0, 5, hint);
  }

  extend(keys: string, token: number | string): string {
    return this.#call(EXTEND_FENCED, keys, "v", 2_000, token);
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
  Deno.test(`MemoryRedis starts a counter by ${name} from the hint or its clock, whichever is ahead`, () => {
    for (const [hint, start] of [[HINT, HINT], [NOW_US - 1, NOW_US], [1, NOW_US]]) {
      const bench = new Bench();
      assertEquals(acquire(bench, hint), `:${start + 1}`);
      assertEquals(bench.counter("k"), [`${start + 1}`, WEEK]);
      assertEquals([bench.ask("GET", "k"), bench.ask("PTTL", "k")], ["$1\r\nv", ":1000"]);
    }
  });

  Deno.test(`MemoryRedis counts on by ${name}, whatever the hint is, and gives the counter a new life`, () => {
    const bench = new Bench();
    bench.ask("SET", "hasp:fence:k", 5_000_000, "PX", 500);
    assertEquals([acquire(bench), bench.counter("k")], [":5000001", ["5000001", WEEK]]);
  });

  Deno.test(`MemoryRedis neither sets nor counts by ${name} where the key is there`, () => {
    const bench = new Bench();
    bench.ask("SET", "k", "w");
    assertEquals([acquire(bench), bench.counter("k")], [":0", ["none", ":-2"]]);
    assertEquals(bench.ask("GET", "k"), "$1\r\nw");
  });

  Deno.test(`MemoryRedis starts a counter anew by ${name} once its week is over`, () => {
    const bench = new Bench();
    acquire(bench);
    bench.nowMs += 604_800_001;
    assertEquals(acquire(bench, 1), `:${bench.nowMs * 1_000 + 1}`);
  });
}

for (const [text, start] of [["0", true], ["-7", true], ["-1", true], ["1", false]] as const) {
  Deno.test(`MemoryRedis ${start ? "starts anew" : "counts on"} by ACQUIRE_COUNTED from a counter of ${text}`, () => {
    const bench = new Bench();
    bench.ask("SET", "hasp:fence:k", text);
    assertEquals(bench.count(), start ? `:${HINT + 1}` : ":2");
  });
}

for (
  const [text, error] of [
    ["x", "ERR value is not an integer or out of range"],
    ["007", "ERR value is not an integer or out of range"],
    ["9223372036854775807", "ERR increment or decrement would overflow"],
  ]
) {
  Deno.test(`MemoryRedis refuses by ACQUIRE_COUNTED a counter of ${text}, with the key set`, () => {
    const bench = new Bench();
    bench.ask("SET", "hasp:fence:k", text);
    const where = `script: ${ACQUIRE_COUNTED.sha1}, on @user_script:2.`;
    assertEquals([bench.count(), bench.ask("EXISTS", "k")], [`-${error} ${where}`, ":1"]);
  });
}

Deno.test("MemoryRedis starts anew by ACQUIRE_FENCED where a counter is no number", () => {
  const bench = new Bench();
  bench.ask("SET", "hasp:fence:k", "x");
  assertEquals([bench.acquire("k"), bench.counter("k")], [`:${HINT + 1}`, [`${HINT + 1}`, WEEK]]);
});

Deno.test("MemoryRedis counts for several keys from the highest, and all of them alike", () => {
  const bench = new Bench();
  bench.ask("SET", "hasp:fence:k", HINT + 50);
  bench.ask("SET", "hasp:fence:l", HINT + 90);
  assertEquals(bench.acquire("k l m"), `:${HINT + 91}`);
  for (const key of ["k", "l", "m"]) assertEquals(bench.counter(key), [`${HINT + 91}`, WEEK]);
});

Deno.test("MemoryRedis puts a ticket into the queue by ACQUIRE_FENCED, and counts once it is its turn", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w", "PX", 700);
  assert(bench.acquire("k", "x:1").startsWith("*5\r\n:700\r\n:0\r\n:1\r\n:5\r\n"));
  assertEquals(bench.counter("k"), ["none", ":-2"]);
  bench.ask("DEL", "k");
  assertEquals(bench.acquire("k", "x:1"), `:${HINT + 1}`);
  assertEquals(bench.ask("ZCARD", "hasp:queue:k"), ":0");
});

Deno.test("MemoryRedis leaves queues alone by ACQUIRE_FENCED without a ticket", () => {
  const bench = new Bench();
  bench.ask("ZADD", "hasp:queue:k", 5, "x:1");
  assertEquals([bench.acquire("k"), bench.ask("ZCARD", "hasp:queue:k")], [`:${HINT + 1}`, ":1"]);
});

Deno.test("MemoryRedis raises by RAISE to the token, or answers with what is higher", () => {
  const bench = new Bench();
  bench.count();
  assertEquals([bench.raise("k", HINT + 9), bench.counter("k")[0]], [
    `:${HINT + 9}`,
    `${HINT + 9}`,
  ]);
  bench.ask("PEXPIRE", "hasp:fence:k", 5);
  assertEquals([bench.raise("k", HINT), bench.counter("k")], [
    `:${HINT + 9}`,
    [`${HINT + 9}`, WEEK],
  ]);
});

Deno.test("MemoryRedis raises nothing by RAISE where a key is not ours or gone", () => {
  const bench = new Bench();
  bench.acquire("k l");
  bench.ask("SET", "l", "w");
  for (const keys of ["k l", "l", "gone", "k gone"]) {
    assertEquals(bench.raise(keys, HINT + 9), ":0");
  }
  assertEquals([bench.counter("k")[0], bench.counter("gone")[0]], [`${HINT + 1}`, "none"]);
});

Deno.test("MemoryRedis raises by EXTEND_FENCED, for keys that were missing as well", () => {
  const bench = new Bench();
  bench.acquire("k");
  assertEquals([bench.extend("k", HINT + 5), bench.counter("k")], [":1", [`${HINT + 5}`, WEEK]]);
  assertEquals([bench.extend("k l", HINT + 3), bench.ask("PTTL", "l")], [":2", ":2000"]);
  assertEquals([bench.counter("k")[0], bench.counter("l")[0]], [`${HINT + 5}`, `${HINT + 5}`]);
});

Deno.test("MemoryRedis raises nothing by EXTEND_FENCED where a key is another's", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  assertEquals([bench.extend("k", HINT), bench.counter("k")[0]], [":0", "none"]);
});

for (
  const [name, { sha1 }, line, call] of [
    ["ACQUIRE_COUNTED", ACQUIRE_COUNTED, 2, (bench: Bench) => bench.count()],
    ["ACQUIRE_FENCED", ACQUIRE_FENCED, 22, (bench: Bench) => bench.acquire("k")],
    ["EXTEND_FENCED", EXTEND_FENCED, 5, (bench: Bench) => bench.extend("k", HINT)],
    ["RAISE", RAISE, 5, (bench: Bench) => (bench.ask("SET", "k", "v"), bench.raise("k", HINT))],
  ] as const
) {
  Deno.test(`MemoryRedis refuses ${name} where the counter is of another type`, () => {
    const bench = new Bench();
    bench.ask("ZADD", "hasp:fence:k", 1, "x");
    assertEquals(call(bench), `-${WRONGTYPE} script: ${sha1}, on @user_script:${line}.`);
  });
}

Deno.test("MemoryRedis refuses RAISE to what is no number", () => {
  const bench = new Bench();
  bench.count();
  const what = "bad argument #1 to 'max' (number expected, got nil)";
  const where = `script: ${RAISE.sha1}, on @user_script:9.`;
  assertEquals(bench.raise("k", "x"), `-ERR user_script:9: ${what} ${where}`);
});
