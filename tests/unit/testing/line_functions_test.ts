import { assertEquals } from "@std/assert";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { LEAVE } from "../../../src/redis_node/scripts/queue.ts";
import { LineBench as Bench, WRONGTYPE } from "../../support/line_bench.ts";

// ACQUIRE_OR_WAIT

for (const claim of [0, 1, 2] as const) {
  Deno.test(`MemoryRedis gives a key that is free and unwanted to a claim of ${claim}, for the TTL`, () => {
    const bench = new Bench();
    assertEquals([bench.acquire("k", "x:1:5", claim, 700), bench.ask("PTTL", "k")], ["1", ":700"]);
    assertEquals([bench.ask("GET", "k"), bench.line("k")], ["$1\r\nv", []]);
  });
}

Deno.test("MemoryRedis puts a claim of 0 last, those of 1 and 2 first, and whoever stands there already nowhere else", () => {
  const bench = new Bench();
  const line = ["d:1:400", "c:1:500", "a:1:1000", "b:1:2000"];
  bench.ask("SET", "k", "w", "PX", 900);
  assertEquals(bench.acquire("k", "a:1:1000"), "900 0 1");
  assertEquals(bench.acquire("k", "b:1:2000"), "900 1 2");
  assertEquals(bench.acquire("k", "c:1:500", 1), "900 0 3");
  assertEquals(bench.acquire("k", "d:1:400", 2), "900 0 4");
  assertEquals(bench.line("k"), line);
  for (const claim of [0, 1, 2] as const) {
    assertEquals(bench.acquire("k", "a:1:1000", claim), "900 2 4");
  }
  assertEquals([bench.line("k"), bench.ask("GET", "k"), bench.told], [line, "$1\r\nw", []]);
});

for (
  const [what, line, entry, expected] of [
    ["who came later by its own word", ["a:1:100", "b:1:250"], "c:1:200", [0, 2, 1]],
    ["all who came just later", ["a:1:250", "b:1:300"], "c:1:200", [2, 0, 1]],
    ["nobody who came before", ["a:1:100", "b:1:150"], "c:1:200", [0, 1, 2]],
    ["who came at once, by name", ["a:1:200", "d:1:200"], "c:1:200", [0, 2, 1]],
    ["who came a tenth of a second later", ["a:1:300"], "c:1:200", [1, 0]],
    ["nobody who came later than that", ["a:1:300.5"], "c:1:200", [0, 1]],
    ["nobody behind such a one", ["a:1:250", "b:1:9000"], "c:1:200", [0, 1, 2]],
    ["nobody before whoever came earlier", ["a:1:250", "b:1:150"], "c:1:200", [0, 1, 2]],
    ["who came a part of a millisecond later", ["a:1:200.5"], "c:1:200.25", [1, 0]],
    ["nobody without a time", ["nonsense", "a:1:"], "c:1:200", [0, 1, 2]],
    ["who has no time, where it came just before that", ["nonsense"], "c:1:-50", [1, 0]],
  ] as const
) {
  Deno.test(`MemoryRedis lets a newcomer pass ${what}`, () => {
    const bench = new Bench();
    bench.ask("SET", "k", "w");
    bench.lineUp("k", ...line);
    const order = expected.map((index) => [...line, entry][index]);
    const place = `${order.indexOf(entry)} ${order.length}`;
    assertEquals([bench.acquire("k", entry), bench.line("k")], [`-1 ${place}`, order]);
  });
}

for (
  const [what, line, entry, expected] of [
    ["nobody who came long before", ["a:1:99", "b:1:300"], "c:1:200", [0, 2, 1]],
    ["whoever came later", ["a:1:250", "b:1:100"], "c:1:200", [2, 0, 1]],
    ["whoever came at once, by name", ["d:1:200"], "c:1:200", [1, 0]],
    ["nobody who came just before", ["a:1:100", "b:1:150", "d:1:250"], "c:1:200", [0, 1, 3, 2]],
    ["nobody who came at once, by name", ["a:1:200", "d:1:200"], "c:1:200", [0, 2, 1]],
  ] as const
) {
  Deno.test(`MemoryRedis puts one that goes to the front before ${what}`, () => {
    const order = expected.map((index) => [...line, entry][index]);
    const place = `${order.indexOf(entry)} ${order.length}`;
    for (const claim of [1, 2] as const) {
      const bench = new Bench();
      bench.ask("SET", "k", "w");
      bench.lineUp("k", ...line);
      assertEquals([bench.acquire("k", entry, claim), bench.line("k")], [`-1 ${place}`, order]);
    }
    const bench = new Bench();
    bench.ask("SET", "k", "v");
    bench.lineUp("k", ...line);
    bench.release("k", entry, "stay");
    // Nobody listens, so that those before it are dropped; its own entry is not told.
    assertEquals(bench.line("k"), order.slice(order.indexOf(entry)));
  });
}

Deno.test("MemoryRedis sorts in by the first of equal entries, as LINSERT finds it", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  bench.lineUp("k", "b:1:1100", "a:1:1000", "b:1:1100", "b:1:1100");
  assertEquals(bench.acquire("k", "c:1:1050"), "-1 0 5");
  bench.ask("SET", "l", "w");
  bench.lineUp("l", "a:1:1000", "b:1:1050", "a:1:1000", "b:1:2000");
  assertEquals(bench.acquire("l", "c:1:1060", 1), "-1 1 5");
});

Deno.test("MemoryRedis tells with a place for how long the key lives, -1 for ever", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  assertEquals(bench.acquire("k", "x:1:5"), "-1 0 1");
  bench.ask("PEXPIRE", "k", 50);
  bench.nowMs += 50;
  assertEquals(bench.acquire("k", "x:1:5"), "0 0 1");
});

Deno.test("MemoryRedis forgets a line three minutes after somebody last asked for a place in it", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  bench.acquire("k", "x:1:5");
  bench.nowMs += 100_000;
  bench.acquire("k", "x:1:5");
  assertEquals(bench.ask("PTTL", "{k}:waiters"), ":180000");
  bench.nowMs += 180_001;
  assertEquals(bench.line("k"), []);
});

Deno.test("MemoryRedis keeps a free key for the first in line, whom a claim of 0 has woken", () => {
  const bench = new Bench("x");
  bench.lineUp("k", "gone:1:5", "x:1:5");
  assertEquals(bench.acquire("k", "y:1:5"), "-2 1 2");
  assertEquals([bench.told, bench.standing("k")], [["x < x:1:5:k"], []]);
  assertEquals(bench.line("k"), ["x:1:5", "y:1:5"]);
});

Deno.test("MemoryRedis gives a free key to a claim of 0 where nobody before it is heard, or it is first", () => {
  const bench = new Bench("x", "y");
  bench.lineUp("k", "gone:1:5", "gone:2:5", "y:1:5", "x:1:5");
  assertEquals([bench.acquire("k", "y:1:5"), bench.line("k")], ["1", ["x:1:5"]]);
  bench.lineUp("l", "gone:1:5");
  assertEquals([bench.acquire("l", "y:2:5"), bench.line("l"), bench.told], ["1", [], []]);
});

Deno.test("MemoryRedis gives a free key to a claim of 1, which leaves the line and wakes nobody", () => {
  const bench = new Bench("x");
  bench.lineUp("k", "x:1:5", "y:1:5", "x:2:5", "y:1:5");
  assertEquals([bench.acquire("k", "y:1:5", 1), bench.told], ["1", []]);
  assertEquals(bench.line("k"), ["x:1:5", "x:2:5", "y:1:5"]);
});

Deno.test("MemoryRedis gives a free key to a claim of 2, and sends the first in line to the end", () => {
  const bench = new Bench("x");
  bench.lineUp("k", "x:1:5", "x:2:5", "y:1:5", "x:3:5");
  assertEquals([bench.acquire("k", "y:1:5", 2), bench.told], ["1", []]);
  assertEquals(bench.line("k"), ["x:2:5", "x:3:5", "x:1:5"]);
});

Deno.test("MemoryRedis leaves a line its life where a claim of 2 sends the first to the end", () => {
  const bench = new Bench();
  bench.lineUp("k", "x:1:5", "y:1:5");
  bench.ask("PEXPIRE", "{k}:waiters", 500);
  bench.acquire("k", "y:1:5", 2);
  assertEquals([bench.line("k"), bench.ask("PTTL", "{k}:waiters")], [["x:1:5"], ":500"]);
});

Deno.test("MemoryRedis gives a free key to a claim of 2 that is first or in no line, and moves nobody", () => {
  const bench = new Bench();
  bench.lineUp("k", "y:1:5", "x:1:5", "x:2:5");
  bench.lineUp("l", "x:1:5", "x:2:5");
  assertEquals([bench.acquire("k", "y:1:5", 2), bench.acquire("l", "y:1:5", 2)], ["1", "1"]);
  assertEquals([bench.line("k"), bench.line("l")], [["x:1:5", "x:2:5"], ["x:1:5", "x:2:5"]]);
});

Deno.test("MemoryRedis sets all of several keys, and takes the caller out of every line", () => {
  const bench = new Bench();
  bench.lineUp("k", "x:1:5", "y:1:5");
  bench.lineUp("m", "y:1:5", "x:1:5");
  assertEquals(bench.acquire("k l m", "x:1:5", 1), "1");
  assertEquals(bench.standing("k", "l", "m"), ["k", "l", "m"]);
  assertEquals([bench.line("k"), bench.line("m")], [["y:1:5"], ["y:1:5"]]);
});

Deno.test("MemoryRedis sets none of several keys where one is held, and waits for that one alone", () => {
  const bench = new Bench("y");
  bench.ask("SET", "l", "w", "PX", 300);
  bench.ask("SET", "n", "w");
  bench.lineUp("k", "x:1:5", "y:1:5");
  bench.lineUp("m", "y:2:5", "x:1:5");
  bench.lineUp("n", "x:1:5", "y:3:5");
  assertEquals(bench.acquire("k l m n", "x:1:5", 1), "300 0 1");
  assertEquals(bench.standing("k", "l", "m", "n"), ["l", "n"]);
  const lines = ["k", "l", "m", "n"].map((key) => bench.line(key));
  assertEquals(lines, [["y:1:5"], ["x:1:5"], ["y:2:5"], ["y:3:5"]]);
  // It may have been woken for what it no longer waits for, where that is free.
  assertEquals(bench.told, ["y < y:1:5:k", "y < y:2:5:m"]);
});

Deno.test("MemoryRedis waits for a key that is free but others' turn, where a claim of 0 wants it among several", () => {
  const bench = new Bench("y");
  bench.lineUp("l", "y:1:5");
  assertEquals(bench.acquire("k l", "z:1:5"), "-2 1 2");
  assertEquals([bench.standing("k", "l"), bench.told], [[], ["y < y:1:5:l"]]);
});

Deno.test("MemoryRedis takes a key that is named twice as the script does", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  bench.lineUp("k", "y:1:5", "x:1:5");
  assertEquals(bench.acquire("k k", "x:1:5", 1), "-1 0 2");
  assertEquals(bench.line("k"), ["x:1:5", "y:1:5"]);
});

for (
  const [what, claim, held, line] of [
    ["a free key", 1, false, 53],
    ["a free key that others overdue", 2, false, 52],
    ["a held key", 0, true, 22],
  ] as const
) {
  Deno.test(`MemoryRedis refuses a claim of ${claim} on ${what} whose line is of another type`, () => {
    const bench = new Bench();
    if (held) bench.ask("SET", "k", "w");
    bench.ask("SET", "{k}:waiters", "x:1:5");
    const reply = bench.acquire("k", "x:1:5", claim);
    const where = `script: ${ACQUIRE_OR_WAIT.sha1}, on @user_script:${line}.`;
    assertEquals(reply, `-${WRONGTYPE} ${where}`);
    assertEquals(bench.standing("k").length, held ? 1 : 0);
  });
}

Deno.test("MemoryRedis waits for a key of another type as for any that is held, and never takes it", () => {
  const bench = new Bench();
  bench.ask("RPUSH", "k", "v");
  for (const claim of [0, 1, 2] as const) {
    assertEquals(bench.acquire("k", "x:1:5", claim), "-1 0 1");
  }
  assertEquals(bench.ask("LLEN", "k"), ":1");
});

// LEAVE

Deno.test("MemoryRedis passes on by LEAVE a wake-up for a key that is free", () => {
  const bench = new Bench("x", "y");
  bench.lineUp("k", "x:1:5", "gone:1:5", "y:1:5");
  assertEquals([bench.leave("k", "x:1:5"), bench.told], [":1", ["y < y:1:5:k"]]);
  assertEquals(bench.line("k"), ["y:1:5"]);
});

Deno.test("MemoryRedis wakes nobody by LEAVE where the key is held, or the caller does not stand in line", () => {
  const bench = new Bench("y");
  bench.ask("SET", "k", "w");
  bench.lineUp("k", "x:1:5", "y:1:5");
  bench.lineUp("l", "y:1:5");
  assertEquals([bench.leave("k l none", "x:1:5"), bench.told], [":1", []]);
  assertEquals([bench.line("k"), bench.line("l")], [["y:1:5"], ["y:1:5"]]);
});

Deno.test("MemoryRedis leaves several lines by LEAVE, and wakes where the key is free", () => {
  const bench = new Bench("y");
  bench.ask("SET", "l", "w");
  for (const key of ["k", "l", "m"]) bench.lineUp(key, "y:1:5", "x:1:5");
  assertEquals([bench.leave("k l m", "x:1:5"), bench.told], [":1", ["y < y:1:5:k", "y < y:1:5:m"]]);
  assertEquals(["k", "l", "m"].map((key) => bench.line(key)), [["y:1:5"], ["y:1:5"], ["y:1:5"]]);
});

Deno.test("MemoryRedis refuses LEAVE of a line of another type", () => {
  const bench = new Bench();
  bench.ask("SET", "{k}:waiters", "x:1:5");
  const where = `script: ${LEAVE.sha1}, on @user_script:19.`;
  assertEquals(bench.leave("k", "x:1:5"), `-${WRONGTYPE} ${where}`);
});
