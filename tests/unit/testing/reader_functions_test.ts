import { assertEquals } from "@std/assert";
import {
  ACQUIRE_SHARED,
  EXTEND_SHARED,
  READERS_PREFIX,
  RELEASE_SHARED,
  SHARED,
} from "../../../src/redis_node/scripts/readers.ts";
import { RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
import { MemoryBench as Bench, NOW_MS, SCORE } from "../../support/memory_bench.ts";

/** Makes a value a reader of "k", or puts its ticket in the queue. */
function read(bench: Bench, value: string, ...ticket: (string | number)[]): string {
  return bench.call(ACQUIRE_SHARED, "k", value, 1_000, ...ticket).split("\r\n")[0];
}

function queued(ticket: string, score = SCORE): (string | number)[] {
  return [ticket, "", score, ""];
}

Deno.test("ACQUIRE_SHARED keeps each reader's deadline, and the key as long as the latest", () => {
  const bench = new Bench();
  assertEquals([read(bench, "v", ""), bench.ask("GET", "k")], [":1", `$11\r\n${SHARED}`]);
  bench.nowMs += 400;
  assertEquals(read(bench, "w", ""), ":1");
  const deadline = (value: string) =>
    bench.ask("ZSCORE", READERS_PREFIX + "k", value).split("\r\n");
  assertEquals([deadline("v")[1], deadline("w")[1]], [`${NOW_MS + 1_000}`, `${NOW_MS + 1_400}`]);
  assertEquals(bench.ask("PTTL", "k"), ":1000");
  assertEquals(bench.call(RELEASE_SHARED, "k", "w"), ":1");
  assertEquals([bench.ask("PTTL", "k"), bench.ask("PTTL", READERS_PREFIX + "k")], [":600", ":600"]);
});

Deno.test("ACQUIRE_SHARED lets a reader in behind readers that wait, and not behind a writer", () => {
  const bench = new Bench("r", "w");
  read(bench, "v", "");
  bench.enqueue("k", "r:R1:50", "r:R2:50");
  assertEquals(read(bench, "v2", ...queued("r:R3:50", SCORE + 5)), ":1");
  bench.enqueue("k", "r:R1:50", "w:1:50");
  assertEquals(read(bench, "v3", ...queued("r:R4:50", SCORE + 9)), "*9");
  assertEquals(read(bench, "v4", ""), ":0");
  assertEquals(read(bench, "v5"), ":1"); // one that passes those that wait
});

Deno.test("ACQUIRE_SHARED drops a writer whose client is gone, wherever it is, and notifies the readers behind it", () => {
  const bench = new Bench("r");
  read(bench, "v", "");
  bench.enqueue("k", "r:R1:50", "gone:1:50", "gone:2:50", "r:R2:50");
  assertEquals(read(bench, "v2", ""), ":1");
  assertEquals(bench.queue("k"), ["r:R1:50", "r:R2:50"]);
  assertEquals(bench.messages, bench.queue("k")); // nobody else does when they can enter
});

Deno.test("ACQUIRE_SHARED looks at 64 tickets for a writer's, and then waits as behind one", () => {
  for (const [count, reply] of [[63, ":1"], [64, ":0"]] as const) {
    const bench = new Bench("r");
    read(bench, "v", "");
    bench.enqueue("k", ...Array.from({ length: count }, (_, index) => `r:R${index}:50`));
    assertEquals(read(bench, "v2", ""), reply);
  }
});

Deno.test("a reader that enters notifies the readers behind it up to the next writer, each once", () => {
  const bench = new Bench("r", "w");
  const tickets = ["r:R1:50", "r:R2:50", "r:R3:50", "r:R4:50", "r:R5:50", "r:R6:50"];
  bench.enqueue("k", ...tickets, "w:1:50");
  const roused = (ticket: string) => {
    bench.messages.length = 0;
    read(bench, ticket, ...queued(ticket));
    return bench.messages.filter((message) => !message.endsWith("-"));
  };
  const watches = "r:R6:50+50:r:R2:50";
  assertEquals(tickets.map(roused), [
    [...tickets.slice(1, 5), watches],
    [tickets[5]],
    [],
    [],
    [],
    [],
  ]);
  assertEquals(bench.queue("k"), ["w:1:50"]);
});

Deno.test("a reader that passes four others notifies those around its own place", () => {
  const bench = new Bench("r", "s");
  const stopped = ["s:R1:70", "s:R2:50", "s:R3:50", "s:R4:50"];
  const tickets = ["r:R5:50", "r:R6:50", "r:R7:50"];
  read(bench, "v", "");
  bench.enqueue("k", ...stopped, ...tickets);
  read(bench, "w", ...queued(tickets[1]));
  const messages = bench.messages.filter((message) => !message.endsWith("-"));
  const behind = [
    stopped[3],
    `${tickets[0]}+70:${stopped[0]}`,
    ...stopped.slice(2),
    tickets[0],
    tickets[2],
  ];
  assertEquals(messages, behind);
});

Deno.test("a ticket that leaves a queue lets the readers behind it in, if it was there", () => {
  const bench = new Bench("r");
  read(bench, "v", "");
  bench.enqueue("k", "w:1:50", "r:R1:50");
  bench.leave("k", "w:2:50");
  assertEquals(bench.messages, []);
  bench.leave("k", "w:1:50");
  assertEquals(bench.messages, ["r:R1:50"]);
});

Deno.test("a release of what did not hold the key notifies nobody while readers do", () => {
  const bench = new Bench("r", "w");
  read(bench, "v", "");
  bench.enqueue("k", "w:1:50", "r:R1:50");
  for (const script of [RELEASE_QUEUED, RELEASE_SHARED]) {
    assertEquals(bench.call(script, "k", "other", "w:1:50", SCORE), ":0");
  }
  assertEquals([bench.messages, bench.queue("k")], [[], ["w:1:50", "r:R1:50"]]);
});

Deno.test("EXTEND_SHARED prolongs only a reader whose deadline lies ahead, and shortens if it is to", () => {
  const bench = new Bench();
  read(bench, "v", "");
  const extend = (value: string, ttlMs: number, ...shortens: string[]) =>
    bench.call(EXTEND_SHARED, "k", value, ttlMs, ...shortens);
  assertEquals([extend("v", 3_000), bench.ask("PTTL", "k")], [":1", ":3000"]);
  assertEquals([extend("v", 500), bench.ask("PTTL", "k")], [":1", ":3000"]);
  assertEquals([extend("v", 500, "1"), bench.ask("PTTL", "k")], [":1", ":500"]);
  assertEquals(extend("w", 500), ":2");
  bench.nowMs += 501;
  assertEquals([extend("v", 500), bench.existing("k")], [":2", []]);
  bench.ask("SET", "k", "other");
  assertEquals(extend("v", 500), ":0");
});

Deno.test("ACQUIRE_SHARED that comes once more, and late, shortens no deadline", () => {
  const bench = new Bench();
  read(bench, "v", "");
  bench.call(EXTEND_SHARED, "k", "v", 3_000);
  assertEquals([read(bench, "v", ""), bench.ask("PTTL", "k")], [":1", ":3000"]);
});

Deno.test("readers of a key that was deleted by force do not come back with the next one", () => {
  const bench = new Bench();
  read(bench, "v", "");
  bench.ask("DEL", "k");
  assertEquals(read(bench, "w", ""), ":1");
  assertEquals(bench.ask("ZCARD", READERS_PREFIX + "k"), ":1");
  assertEquals(bench.call(RELEASE_SHARED, "k", "v"), ":0");
});
