import { assert, assertEquals } from "@std/assert";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { ACQUIRE_COUNTED, RAISE } from "../../../src/redis_node/scripts/fencing.ts";
import { MemoryBench, NOW_MS, WRONGTYPE } from "../../support/memory_bench.ts";

const NOW_US = NOW_MS * 1_000;
/** Ahead of the server's clock. */
const HINT = NOW_US + 1_000_000;
const MINUTE_US = 60_000_000;
const DAY_US = 86_400_000_000;
const DAY_MS = DAY_US / 1_000;
/** The life of a new counter. */
const LIFE = `:${8 * DAY_MS}`;

for (const [name, script] of Object.entries({ ACQUIRE_COUNTED, ACQUIRE_OR_WAIT })) {
  Deno.test(`${name} starts a counter from the hint if that is within a minute of the server's clock, else from the clock`, () => {
    for (
      const [hint, start] of [
        ...[HINT, NOW_US - MINUTE_US, NOW_US + MINUTE_US].map((hint) => [hint, hint]),
        ...[NOW_US + MINUTE_US + 1, NOW_US - MINUTE_US - 1, 9e15, 1].map((hint) => [hint, NOW_US]),
      ]
    ) {
      const bench = new MemoryBench();
      assertEquals(bench.count(script, "k", hint), `:${start}`);
      const leadMs = script === ACQUIRE_OR_WAIT ? Math.max(0, (start - NOW_US) / 1_000) : 0;
      assertEquals(bench.counter("k"), [`${start}`, `:${8 * DAY_MS + leadMs}`]);
      assertEquals([bench.ask("GET", "k"), bench.ask("PTTL", "k")], ["$1\r\nv", ":1000"]);
    }
  });

  Deno.test(`${name} counts on, whatever the hint is`, () => {
    for (const hint of [HINT, NOW_US, 1, 9e15]) {
      const bench = new MemoryBench();
      bench.ask("SET", "hasp:fence:k", HINT + 7, "PX", 5_000);
      const next = HINT + 8;
      assertEquals([bench.count(script, "k", hint), bench.counter("k")[0]], [
        `:${next}`,
        `${next}`,
      ]);
    }
  });

  Deno.test(`${name} neither sets nor counts if the key exists`, () => {
    const bench = new MemoryBench();
    bench.ask("SET", "k", "w");
    assertEquals([bench.count(script, "k", HINT), bench.counter("k")], [":0", ["none", ":-2"]]);
    assertEquals(bench.ask("GET", "k"), "$1\r\nw");
  });

  Deno.test(`${name} starts a counter above what it was once its life is over`, () => {
    const bench = new MemoryBench();
    bench.count(script, "k", HINT);
    bench.nowMs += 9 * DAY_MS;
    assertEquals(bench.count(script, "k", 1), `:${bench.nowMs * 1_000}`);
  });

  Deno.test(`${name} refuses what is not a counter, and leaves it as it is`, () => {
    for (
      const text of [
        ...["x", "007", " 7", "-7", "-1", "9007199254740991", "9007199254740993", ""],
        "9223372036854775807",
      ]
    ) {
      const bench = new MemoryBench();
      bench.ask("SET", "hasp:fence:k", text, "PX", 5_000);
      const reply = bench.count(script, "k", HINT);
      assertEquals([reply[0], reply.includes("hasp:fence:k")], ["-", true]);
      assertEquals(bench.ask("GET", "hasp:fence:k"), `$${text.length}\r\n${text}`.trimEnd());
      assertEquals(bench.ask("PTTL", "hasp:fence:k"), ":5000");
    }
  });

  Deno.test(`${name} refuses to count if the server's clock is beyond all counters, and recovers`, () => {
    const bench = new MemoryBench();
    bench.nowMs = 9_007_199_254_741_000;
    assertEquals(bench.count(script, "k", HINT)[0], "-");
    bench.ask("DEL", "k");
    bench.nowMs = NOW_MS;
    assertEquals(bench.count(script, "k", HINT), `:${HINT}`);
  });
}

Deno.test("ACQUIRE_COUNTED gives a counter a new life when it is a day old, by the server's clock", () => {
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
    const bench = new MemoryBench();
    const before = NOW_US - ageUs;
    bench.ask("SET", "hasp:fence:k", before, "PX", 5_000);
    const start = Math.abs(hint - NOW_US) <= MINUTE_US ? hint : NOW_US;
    const count = renewed ? start : before + 1;
    assertEquals(bench.count(ACQUIRE_COUNTED, "k", hint), `:${count}`);
    assertEquals(bench.counter("k"), [`${count}`, renewed ? LIFE : ":5000"]);
  }
});

Deno.test("ACQUIRE_OR_WAIT counts for several keys from the highest, and all of them alike", () => {
  const bench = new MemoryBench();
  bench.ask("SET", "hasp:fence:k", HINT + 50_000);
  bench.ask("SET", "hasp:fence:l", HINT + 90_000);
  const count = HINT + 90_001;
  assertEquals(bench.count(ACQUIRE_OR_WAIT, "k l m", HINT), `:${count}`);
  const life = `:${8 * DAY_MS + Math.ceil((count - NOW_US) / 1_000)}`;
  for (const key of ["k", "l", "m"]) assertEquals(bench.counter(key), [`${count}`, life]);
});

Deno.test("ACQUIRE_OR_WAIT refuses several keys if one has no valid counter, and sets none", () => {
  const bench = new MemoryBench();
  bench.ask("SET", "hasp:fence:l", "x");
  assertEquals(bench.count(ACQUIRE_OR_WAIT, "k l m", HINT)[0], "-");
  assertEquals(bench.existing("k", "l", "m", "hasp:fence:k", "hasp:fence:m"), []);
});

Deno.test("ACQUIRE_OR_WAIT puts a ticket into the queue, counts when it is its turn, and leaves queues alone without one", () => {
  const bench = new MemoryBench();
  bench.ask("SET", "k", "w", "PX", 700);
  const position = "*9\r\n:700\r\n:0\r\n:1\r\n:5\r\n";
  assert(bench.count(ACQUIRE_OR_WAIT, "k", HINT, "x:1").startsWith(position));
  assertEquals(bench.counter("k"), ["none", ":-2"]);
  bench.ask("DEL", "k");
  bench.ask("ZADD", "hasp:queue:l", 5, "x:1");
  assertEquals([bench.count(ACQUIRE_OR_WAIT, "k", HINT, "x:1"), bench.queue("k")], [
    `:${HINT}`,
    [],
  ]);
  assertEquals([bench.count(ACQUIRE_OR_WAIT, "l", HINT), bench.queue("l")], [`:${HINT}`, ["x:1"]]);
});

Deno.test("RAISE raises to the token, or answers with what is higher", () => {
  const bench = new MemoryBench();
  bench.count(ACQUIRE_COUNTED, "k", HINT);
  const token = HINT + 9_000_000;
  for (const asked of [token, HINT]) {
    assertEquals(bench.raise("k", asked), `:${token}`);
    assertEquals(bench.counter("k"), [`${token}`, `:${8 * DAY_MS + 10_000}`]);
    bench.ask("PEXPIRE", "hasp:fence:k", 5);
  }
});

Deno.test("RAISE starts a missing counter from the server's clock if that is above the token", () => {
  const bench = new MemoryBench();
  bench.ask("SET", "k", "v");
  assertEquals(bench.raise("k", NOW_US - DAY_US), `:${NOW_US}`);
  assertEquals(bench.counter("k"), [`${NOW_US}`, LIFE]);
});

Deno.test("RAISE raises nothing if a key is not ours or missing", () => {
  const bench = new MemoryBench();
  bench.count(ACQUIRE_OR_WAIT, "k l", HINT);
  bench.ask("SET", "l", "w");
  for (const keys of ["k l", "l", "gone", "k gone"]) {
    assertEquals(bench.raise(keys, HINT + 9), ":0");
  }
  assertEquals([bench.counter("k")[0], bench.counter("gone")[0]], [`${HINT}`, "none"]);
});

Deno.test("the scripts that count refuse a counter of another type", () => {
  const bench = new MemoryBench();
  bench.ask("ZADD", "hasp:fence:k", 1, "x");
  const error = (sha1: string) => `-${WRONGTYPE} script: ${sha1}, on @user_script.`;
  assertEquals(bench.count(ACQUIRE_OR_WAIT, "k", HINT), error(ACQUIRE_OR_WAIT.sha1));
  assertEquals(bench.count(ACQUIRE_COUNTED, "k", HINT), `-${WRONGTYPE}: hasp:fence:k`);
  assertEquals(bench.raise("k", HINT), error(RAISE.sha1));
});
