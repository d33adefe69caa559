import { assertEquals } from "@std/assert";
import { LineBench as Bench, WRONGTYPE } from "../../support/line_bench.ts";

Deno.test("MemoryRedis wakes by RELEASE the first in line alone, which keeps its place", () => {
  const bench = new Bench("x", "y");
  bench.ask("SET", "k", "v");
  bench.lineUp("k", "x:1:5", "y:1:5");
  assertEquals(bench.release("k"), ":3");
  assertEquals([bench.told, bench.line("k")], [["x < x:1:5:k"], ["x:1:5", "y:1:5"]]);
  assertEquals(bench.standing("k"), []);
});

Deno.test("MemoryRedis drops by RELEASE those whom nobody hears, up to one who is heard", () => {
  const bench = new Bench("y");
  bench.ask("SET", "k", "v");
  bench.lineUp("k", "gone:1:5", "gone:2:5", "nonsense", "", "y:é:5", "gone:3:5");
  assertEquals(bench.release("k"), ":3");
  assertEquals([bench.told, bench.line("k").length], [["y < y:é:5:k"], 2]);
});

Deno.test("MemoryRedis answers RELEASE with 1 where nobody in line is heard, and the line is gone", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "v");
  bench.lineUp("k", "gone:1:5", "gone:2:5");
  assertEquals([bench.release("k"), bench.line("k"), bench.standing("k")], [":1", [], []]);
});

for (
  const [what, holder, reply, told] of [
    ["another's", "w", ":0", []],
    ["gone", undefined, ":0", ["x < x:1:5:k"]],
  ] as const
) {
  Deno.test(`MemoryRedis ${told.length ? "wakes" : "does not wake"} the first in line by RELEASE of a key that is ${what}`, () => {
    const bench = new Bench("x");
    if (holder) bench.ask("SET", "k", holder);
    bench.lineUp("k", "x:1:5");
    assertEquals([bench.release("k"), bench.told], [reply, [...told]]);
    assertEquals([bench.line("k"), bench.standing("k")], [["x:1:5"], holder ? ["k"] : []]);
  });
}

Deno.test("MemoryRedis wakes by RELEASE of several keys the first in each line", () => {
  const bench = new Bench("x", "y");
  for (const key of ["k", "l", "m", "n"]) bench.ask("SET", key, "v");
  bench.lineUp("k", "gone:1:5");
  bench.lineUp("l", "y:7:5", "x:1:5");
  bench.lineUp("m", "x:1:5");
  assertEquals(bench.release("k l m n"), ":3");
  assertEquals(bench.told, ["y < y:7:5:l", "x < x:1:5:m"]);
  assertEquals(["k", "l", "m"].map((key) => bench.line(key)), [[], ["y:7:5", "x:1:5"], ["x:1:5"]]);
});

Deno.test("MemoryRedis releases what is the caller's, and answers 0 where one key is another's", () => {
  const bench = new Bench("x");
  bench.ask("SET", "k", "v");
  bench.ask("SET", "l", "w");
  bench.lineUp("k", "x:1:5");
  bench.lineUp("l", "x:2:5");
  assertEquals([bench.release("k l"), bench.told], [":0", ["x < x:1:5:k"]]);
  assertEquals(bench.standing("k", "l"), ["l"]);
});

Deno.test("MemoryRedis releases beside a key of another type, wakes for the rest, and answers the error", () => {
  const bench = new Bench("x");
  bench.ask("RPUSH", "l", "v");
  bench.ask("SET", "k", "v");
  bench.lineUp("k", "x:1:5");
  bench.lineUp("l", "x:2:5");
  assertEquals([bench.release("l k"), bench.told], [`-${WRONGTYPE}`, ["x < x:1:5:k"]]);
  assertEquals(bench.standing("k", "l"), ["l"]);
});

Deno.test("MemoryRedis releases a key whose line is of another type", () => {
  const bench = new Bench("x");
  bench.ask("SET", "k", "v");
  bench.ask("SET", "{k}:waiters", "x:1:5");
  assertEquals([bench.release("k"), bench.told, bench.standing("k")], [":1", [], []]);
});

Deno.test("MemoryRedis takes an entry out of every line by RELEASE before it wakes, also where a key is another's", () => {
  const bench = new Bench("x", "y");
  bench.ask("SET", "k", "v");
  bench.ask("SET", "l", "w");
  bench.lineUp("k", "x:1:5", "y:1:5", "x:1:5");
  bench.lineUp("l", "y:1:5", "x:1:5");
  bench.ask("SET", "{m}:waiters", "x:1:5"); // of another type: it is left alone
  assertEquals([bench.release("k l m", "x:1:5", "leave"), bench.told], [":0", ["y < y:1:5:k"]]);
  assertEquals([bench.line("k"), bench.line("l")], [["y:1:5", "x:1:5"], ["y:1:5"]]);
});

Deno.test("MemoryRedis answers RELEASE with 1 where only the entry that it takes out stood in line", () => {
  const bench = new Bench("x");
  bench.ask("SET", "k", "v");
  bench.lineUp("k", "x:1:5");
  assertEquals([bench.release("k", "x:1:5", "leave"), bench.told, bench.line("k")], [":1", [], []]);
});

Deno.test("MemoryRedis puts an entry back to the front by RELEASE, without telling it, where it stays", () => {
  const bench = new Bench("x", "y");
  bench.ask("SET", "k", "v");
  bench.lineUp("k", "y:1:9000");
  assertEquals([bench.release("k", "x:1:5000", "stay"), bench.told], [":1", []]);
  assertEquals(bench.line("k"), ["x:1:5000", "y:1:9000"]);
  assertEquals([bench.ask("PTTL", "{k}:waiters"), bench.standing("k")], [":180000", []]);
});

Deno.test("MemoryRedis tells by RELEASE whoever comes before the entry that stays", () => {
  const bench = new Bench("x", "y");
  bench.ask("SET", "k", "v");
  bench.lineUp("k", "gone:1:1920", "y:1:1950", "x:2:2000");
  assertEquals(bench.release("k", "x:1:2000", "stay"), ":3");
  assertEquals(bench.told, ["y < y:1:1950:k"]);
  assertEquals(bench.line("k"), ["y:1:1950", "x:1:2000", "x:2:2000"]);
});

Deno.test("MemoryRedis leaves an entry where it stands, where it stays", () => {
  const bench = new Bench("y");
  bench.ask("SET", "k", "v");
  bench.lineUp("k", "y:1:1000", "x:1:5000");
  assertEquals([bench.release("k", "x:1:5000", "stay"), bench.told], [":3", ["y < y:1:1000:k"]]);
  assertEquals(bench.line("k"), ["y:1:1000", "x:1:5000"]);
});

Deno.test("MemoryRedis puts no entry into a line by RELEASE where the key was not the caller's", () => {
  const bench = new Bench("x", "y");
  bench.ask("SET", "k", "w");
  bench.ask("RPUSH", "m", "v");
  bench.lineUp("l", "y:1:5000");
  assertEquals(bench.release("k l", "x:1:1000", "stay"), ":0");
  assertEquals(bench.release("m", "x:1:1000", "stay"), `-${WRONGTYPE}`);
  assertEquals(["k", "l", "m"].map((key) => bench.line(key)), [[], ["y:1:5000"], []]);
  assertEquals(bench.told, ["y < y:1:5000:l"]);
});

Deno.test("MemoryRedis does not tell the entry that stays by RELEASE of a key that is gone", () => {
  const bench = new Bench("x");
  bench.lineUp("k", "x:1:5");
  assertEquals([bench.release("k", "x:1:5", "stay"), bench.told], [":0", []]);
});

Deno.test("MemoryRedis releases with an entry that stays where the line is of another type", () => {
  const bench = new Bench("x");
  bench.ask("SET", "k", "v");
  bench.ask("SET", "{k}:waiters", "x:1:5");
  assertEquals(bench.release("k", "x:1:5", "stay"), ":1");
  assertEquals([bench.standing("k"), bench.told], [[], []]);
});
