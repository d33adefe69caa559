import { assertEquals, assertMatch } from "@std/assert";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { QUEUE_LEAD_MS, queueOf } from "../../../src/redis_node/scripts/queue.ts";
import { RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
import { MemoryBench as Bench, SCORE, WRONGTYPE } from "../../support/memory_bench.ts";

const LEAD_US = QUEUE_LEAD_MS * 1_000;

// ACQUIRE_OR_WAIT

for (const stuck of ["", " x:1 "]) {
  Deno.test(`ACQUIRE_OR_WAIT gives a key that is free and unwanted to a ticket that is ${stuck ? "" : "not "}overdue, for the TTL`, () => {
    const bench = new Bench();
    assertEquals(bench.join("k", "x:1", SCORE, stuck), ":1");
    assertEquals([bench.ask("GET", "k"), bench.ask("PTTL", "k")], ["$1\r\nv", ":1000"]);
    assertEquals(bench.existing(queueOf("k")), []);
  });
}

Deno.test("ACQUIRE_OR_WAIT orders tickets by their scores, then by their names, and keeps their places", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w", "PX", 900);
  assertEquals(bench.join("k", "c:1", SCORE), [900, 0, 1, SCORE]);
  assertEquals(bench.join("k", "b:1", SCORE + 5), [900, 1, 2, SCORE + 5]);
  assertEquals(bench.join("k", "a:1", SCORE + 5), [900, 1, 3, SCORE + 5]);
  assertEquals(bench.join("k", "d:1", SCORE - 5), [900, 0, 4, SCORE - 5]);
  const order = ["d:1", "c:1", "a:1", "b:1"];
  assertEquals(bench.queue("k"), order);
  for (const stuck of ["", " x:1 "]) {
    assertEquals(bench.join("k", "a:1", SCORE - 9, stuck), [900, 2, 4, SCORE + 5]);
  }
  assertEquals([bench.queue("k"), bench.ask("GET", "k"), bench.messages], [order, "$1\r\nw", []]);
});

Deno.test("ACQUIRE_OR_WAIT says whether one of the keys has what is no value of this library", () => {
  const bench = new Bench();
  const ours = "0123456789abcdef".repeat(3).slice(0, 40);
  const foreign = (keys: string) => {
    const reply = bench.call(ACQUIRE_OR_WAIT, keys, "v", 1_000, "", "x:1", "", SCORE);
    return Number(reply.split("\r\n")[6].slice(1));
  };
  bench.ask("SET", "a", ours);
  bench.ask("SET", "b", `${ours.slice(1)}-`);
  bench.ask("SET", "c", `${ours}0`);
  bench.ask("SET", "d", "");
  bench.ask("ZADD", "e", 1, "member");
  bench.ask("SET", "f", `${ours}:web-3:1234`);
  assertEquals(["a", "a free", "b", "c", "d", "e", "a b", "b a", "f"].map(foreign), [
    ...[0, 0, 1, 1],
    ...[1, 1, 1, 1, 0],
  ]);
});

Deno.test("ACQUIRE_OR_WAIT lets a new ticket pass only those that came at most a bounded time before the last", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  bench.join("k", "early:1", SCORE - LEAD_US);
  bench.join("k", "last:1", SCORE);
  assertEquals(bench.join("k", "x:1", SCORE - LEAD_US - 1), [-1, 2, 3, SCORE + 1]);
  assertEquals(bench.join("k", "y:1", SCORE + 1 - LEAD_US), [-1, 1, 4, SCORE + 1 - LEAD_US]);
});

Deno.test("ACQUIRE_OR_WAIT cuts a score that is ahead of the node's clock, and moves nobody by it later", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  const limit = bench.nowMs * 1_000 + LEAD_US;
  assertEquals(bench.join("k", "x:1", limit + 60_000_000), [-1, 0, 1, limit]);
  bench.nowMs += 10;
  assertEquals(bench.join("k", "x:1", limit + 60_000_000), [-1, 0, 1, limit]);
  bench.nowMs -= 3_600_000; // the clock steps back: a ticket that comes now is behind the others
  assertEquals(bench.join("k", "y:1", limit), [-1, 1, 2, limit + 1]);
});

Deno.test("ACQUIRE_OR_WAIT moves a ticket back whose client asks for it", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  bench.enqueue("k", "x:1", "y:1");
  assertEquals(bench.join("k", "x:1", SCORE + 7), [-1, 1, 2, SCORE + 7]);
  assertEquals(bench.queue("k"), ["y:1", "x:1"]);
});

Deno.test("ACQUIRE_OR_WAIT returns how long the key is held, in whole milliseconds: -1 forever, 0 in its last one", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  assertEquals(bench.join("k", "x:1"), [-1, 0, 1, SCORE]);
  bench.ask("PEXPIRE", "k", 50);
  bench.nowMs += 50;
  assertEquals(bench.join("k", "x:1"), [0, 0, 1, SCORE]);
});

Deno.test("ACQUIRE_OR_WAIT keeps a queue for three minutes after the last ask for a place in it", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  bench.join("k", "x:1");
  bench.nowMs += 100_000;
  bench.join("k", "x:1");
  assertEquals(bench.ask("PTTL", queueOf("k")), ":180000");
  bench.nowMs += 180_001;
  assertEquals(bench.queue("k"), []);
});

Deno.test("ACQUIRE_OR_WAIT keeps a free key for the first that is subscribed, and notifies it and the next", () => {
  const bench = new Bench("x", "y");
  bench.enqueue("k", "gone:1", "x:1", "y:1");
  assertEquals(bench.join("k", "z:1", SCORE + 9), [-2, 2, 3, SCORE + 9]);
  assertEquals([bench.messages, bench.existing("k")], [["x:1", "y:1+50:x:1"], []]);
  assertEquals(bench.queue("k"), ["x:1", "y:1", "z:1"]);
});

Deno.test("ACQUIRE_OR_WAIT sends no second message to the ticket that asks, which has the reply", () => {
  const bench = new Bench("x", "y");
  bench.enqueue("k", "x:1", "y:1");
  assertEquals([bench.join("k", "y:1"), bench.messages], [[-2, 1, 2, SCORE + 1], ["x:1"]]);
});

Deno.test("ACQUIRE_OR_WAIT gives a free key to the first in its queue, which leaves, and reports that to the next", () => {
  const bench = new Bench("x", "y");
  bench.enqueue("k", "gone:1", "x:1", "y:1", "x:2");
  assertEquals([bench.join("k", "x:1"), bench.queue("k")], [":1", ["y:1", "x:2"]]);
  assertEquals(bench.messages, ["y:1-", "x:2-"]);
});

Deno.test("ACQUIRE_OR_WAIT notifies the second, the fifth and the last, each with more patience", () => {
  const bench = new Bench("f", "x", "y");
  bench.enqueue("k", "f:1:70", "x:2", "x:3", "x:4", "x:5:300", "x:6", "y:1");
  bench.join("k", "z:1", SCORE + 9);
  assertEquals(bench.messages, [
    ...["f:1:70", "x:2+70:f:1:70", "x:5:300+120:f:1:70", "y:1+350:f:1:70"],
  ]);
  const reply = bench.call(ACQUIRE_OR_WAIT, "k", "v", 1_000, "", "z:1", "", SCORE);
  assertEquals(reply.split("\r\n").slice(-3), [":350", "$6", "f:1:70"]);
});

Deno.test("ACQUIRE_OR_WAIT believes no patience of more than a second", () => {
  const bench = new Bench("f", "x");
  bench.enqueue("k", "f:1:9999", "x:1");
  bench.join("k", "z:1", SCORE + 9);
  assertEquals(bench.messages, ["f:1:9999", "x:1+1000:f:1:9999"]);
});

Deno.test("ACQUIRE_OR_WAIT gives a free key to a ticket that has waited for the first, and drops all who are ahead", () => {
  const bench = new Bench("x", "y", "z");
  bench.enqueue("k", "x:1", "x:2", "y:1", "z:1");
  assertEquals(bench.join("k", "y:1", SCORE + 2, " w:1 "), [-2, 2, 4, SCORE + 2]);
  bench.messages.length = 0;
  assertEquals(bench.join("k", "y:1", SCORE + 2, " w:1 x:1 "), ":1");
  assertEquals([bench.queue("k"), bench.messages], [["z:1"], ["x:1", "x:2", "z:1-"]]);
});

Deno.test("ACQUIRE_OR_WAIT gives an overtaken ticket its place back for a second, and none afterwards", () => {
  for (const [lateMs, order] of [[990, ["x:1", "z:1"]], [1_010, ["z:1", "x:1"]]] as const) {
    const bench = new Bench();
    bench.enqueue("k", "x:1", "y:1");
    bench.ask("ZADD", queueOf("k"), SCORE + 2 * LEAD_US, "z:1");
    assertEquals(bench.join("k", "y:1", SCORE + 1, " x:1 "), ":1");
    bench.ask("PEXPIRE", "k", 60_000);
    bench.nowMs += lateMs;
    bench.join("k", "x:1", SCORE);
    assertEquals(bench.queue("k"), [...order]);
  }
});

Deno.test("ACQUIRE_OR_WAIT drops the first alone for a ticket that is in no queue", () => {
  const bench = new Bench();
  bench.enqueue("k", "x:1", "x:2");
  assertEquals(bench.join("k", "y:1", SCORE, " x:1 "), ":1");
  assertEquals(bench.queue("k"), ["x:2"]);
});

Deno.test("ACQUIRE_OR_WAIT sets all of several keys, and takes the ticket out of every queue", () => {
  const bench = new Bench();
  bench.enqueue("k", "x:1", "y:1");
  bench.enqueue("m", "x:1");
  assertEquals(bench.join("k l m", "x:1"), ":1");
  assertEquals(bench.existing("k", "l", "m"), ["k", "l", "m"]);
  assertEquals([bench.queue("k"), bench.queue("m")], [["y:1"], []]);
});

Deno.test("ACQUIRE_OR_WAIT sets none of several keys if one is held, and puts the ticket into all queues", () => {
  const bench = new Bench("y");
  bench.ask("SET", "l", "w", "PX", 300);
  bench.ask("SET", "n", "w", "PX", 700);
  bench.enqueue("m", "y:1", "y:2");
  assertEquals(bench.join("k l m n", "x:1", SCORE + 9), [700, 2, 3, SCORE + 9]);
  assertEquals([bench.existing("k", "l", "m", "n"), bench.messages], [["l", "n"], []]);
  const queues = ["k", "l", "m", "n"].map((key) => bench.queue(key));
  assertEquals(queues, [["x:1"], ["x:1"], ["y:1", "y:2", "x:1"], ["x:1"]]);
});

Deno.test("ACQUIRE_OR_WAIT gives a ticket for several keys its score back in a queue that it was dropped from", () => {
  const bench = new Bench();
  bench.ask("SET", "l", "w");
  bench.join("k l", "x:1", SCORE);
  bench.ask("ZREM", queueOf("k"), "x:1");
  bench.ask("ZADD", queueOf("k"), SCORE + 2 * LEAD_US, "y:1");
  assertEquals(bench.join("k l", "x:1", SCORE), [-1, 0, 2, SCORE]);
  assertEquals(bench.queue("k"), ["x:1", "y:1"]);
});

Deno.test("ACQUIRE_OR_WAIT waits for a key of another type as for any that is held, and does not touch it", () => {
  const bench = new Bench();
  bench.ask("ZADD", "k", 1, "v");
  for (const stuck of ["", " x:1 "]) {
    assertEquals(bench.join("k", "x:1", SCORE, stuck), [-1, 0, 1, SCORE]);
  }
  assertEquals(bench.ask("ZCARD", "k"), ":1");
});

for (
  const [what, held, stuck] of [["free", 0, ""], ["free", 0, " y:1 "], ["held", 1, ""]] as const
) {
  Deno.test(`ACQUIRE_OR_WAIT refuses a ticket${stuck ? " that is overdue" : ""} if the queue's key of a ${what} key has another type`, () => {
    const bench = new Bench();
    if (held) bench.ask("SET", "k", "w");
    bench.ask("SET", queueOf("k"), "theirs");
    assertMatch(String(bench.join("k", "x:1", SCORE, stuck)), new RegExp(WRONGTYPE));
    assertEquals([bench.existing("k").length, bench.ask("GET", queueOf("k"))], [
      held,
      "$6\r\ntheirs",
    ]);
  });
}

// RELEASE, RELEASE_QUEUED

for (const ticket of [undefined, "z:1"]) {
  const how = ticket ? "RELEASE_QUEUED" : "RELEASE";

  Deno.test(`${how} notifies the first that is subscribed and the next, and drops those before`, () => {
    const bench = new Bench("x", "y");
    bench.ask("SET", "k", "v");
    bench.enqueue("k", "gone:1", "nonsense", "x:1", "gone:2", "y:1");
    assertEquals([bench.release("k", ticket), bench.messages], [":2", ["x:1", "y:1+50:x:1"]]);
    assertEquals(bench.queue("k"), ["x:1", "gone:2", "y:1"]);
    assertEquals(bench.existing("k"), []);
    assertEquals([bench.release("k", ticket), bench.messages.slice(2)], [
      ":0",
      ["x:1", "y:1+50:x:1"],
    ]);
  });

  for (
    const [what, value, reply, messages] of [
      ["its own", "v", ":2", ["x:1", "y:1+50:x:1"]],
      ["gone", undefined, ":0", ["x:1", "y:1+50:x:1"]],
      ["another's", "w", ":0", []],
    ] as const
  ) {
    Deno.test(`${how} of a key that is ${what} ${messages.length ? "notifies" : "does not notify"} the first`, () => {
      const bench = new Bench("x", "y");
      if (value) bench.ask("SET", "k", value);
      bench.enqueue("k", "x:1", "y:1");
      assertEquals([bench.release("k", ticket), bench.messages], [reply, messages]);
      assertEquals(bench.existing("k"), value === "w" ? ["k"] : []);
    });
  }

  Deno.test(`${how} returns 1 if nobody in the queue is subscribed, and the queue is gone`, () => {
    const bench = new Bench();
    bench.ask("SET", "k", "v");
    bench.enqueue("k", "gone:1", "gone:2");
    assertEquals([bench.release("k", ticket), bench.existing(queueOf("k"))], [":1", []]);
  });

  Deno.test(`${how} deletes a key whose queue's key holds something else, and leaves that`, () => {
    const bench = new Bench();
    bench.ask("SET", "k", "v");
    bench.ask("SET", queueOf("k"), "theirs");
    assertEquals([bench.release("k", ticket), bench.existing("k", queueOf("k"))], [":1", [
      queueOf("k"),
    ]]);
  });

  Deno.test(`${how} refuses a key of another type`, () => {
    const bench = new Bench();
    bench.ask("ZADD", "k", 1, "v");
    assertMatch(bench.release("k", ticket), new RegExp(WRONGTYPE));
    assertEquals(bench.ask("ZCARD", "k"), ":1");
  });
}

Deno.test("RELEASE_QUEUED of several keys deletes its own, and notifies the first of each that is free", () => {
  const bench = new Bench("x", "y");
  for (const [key, value] of [["k", "v"], ["l", "w"], ["n", "v"]]) bench.ask("SET", key, value);
  bench.ask("ZADD", "m", 1, "of another type");
  bench.enqueue("k l m n", "x:1");
  bench.enqueue("n", "y:1");
  assertMatch(bench.release("k l m n"), new RegExp(WRONGTYPE));
  assertEquals(bench.existing("k", "l", "m", "n"), ["l", "m"]);
  assertEquals(bench.messages, ["x:1", "x:1", "y:1+50:x:1"]);
});

Deno.test("RELEASE_QUEUED takes its ticket out of every queue before it notifies, also of a key that is another's", () => {
  const bench = new Bench("x", "y");
  bench.ask("SET", "k", "v");
  bench.ask("SET", "l", "w");
  bench.enqueue("k l", "x:1", "y:1");
  assertEquals([bench.release("k l", "x:1"), bench.messages], [":0", ["y:1"]]);
  assertEquals([bench.queue("k"), bench.queue("l")], [["y:1"], ["y:1"]]);
});

Deno.test("RELEASE_QUEUED puts a ticket back with its score, and does not notify it", () => {
  const bench = new Bench("x", "y");
  bench.ask("SET", "k", "v");
  bench.ask("ZADD", queueOf("k"), SCORE + 10 * LEAD_US, "y:1");
  assertEquals([bench.release("k", "x:1", SCORE), bench.messages], [":1", []]);
  assertEquals([bench.queue("k"), bench.ask("PTTL", queueOf("k"))], [["x:1", "y:1"], ":180000"]);
});

Deno.test("RELEASE_QUEUED that puts a ticket back notifies the one ahead of it", () => {
  const bench = new Bench("x", "y");
  bench.ask("SET", "k", "v");
  bench.enqueue("k", "y:1");
  assertEquals([bench.release("k", "x:1", SCORE + 5), bench.messages], [":2", ["y:1"]]);
  assertEquals(bench.queue("k"), ["y:1", "x:1"]);
});

Deno.test("RELEASE_QUEUED puts no ticket back for a key that did not hold the value", () => {
  const bench = new Bench("x");
  bench.ask("SET", "k", "w");
  assertEquals([bench.release("k l", "x:1", SCORE), bench.messages], [":0", []]);
  assertEquals([bench.queue("k"), bench.queue("l")], [[], []]);
});

Deno.test("RELEASE_QUEUED without a value leaves the queues, and notifies the first of those whose key is free", () => {
  const bench = new Bench("y");
  bench.ask("SET", "l", "w");
  bench.ask("SET", "n", "");
  bench.enqueue("k l m n", "x:1", "y:1");
  assertEquals([bench.leave("k l m n none", "x:1"), bench.messages], [":0", ["y:1", "y:1"]]);
  assertEquals(["k", "l", "m"].map((key) => bench.queue(key)), [["y:1"], ["y:1"], ["y:1"]]);
  assertEquals(bench.existing("l", "n"), ["l", "n"]);
});

Deno.test("RELEASE_QUEUED without a value notifies nobody if the ticket was in no queue", () => {
  const bench = new Bench("y");
  bench.enqueue("k", "y:1");
  assertEquals([bench.leave("k", "x:1"), bench.messages], [":0", []]);
});

Deno.test("the scripts of queues refuse a score that is no number, and go on", () => {
  const bench = new Bench();
  bench.ask("SET", "k", "w");
  for (const score of ["nan", "NaN", "", "abc"]) {
    assertMatch(bench.call(ACQUIRE_OR_WAIT, "k", "v", 1_000, "", "x:1", 0, score), /^-ERR/);
    assertEquals(bench.existing(queueOf("k")), []);
    bench.join("k", "y:1", SCORE);
    bench.call(RELEASE_QUEUED, "k", "w", "x:1", score);
    bench.ask("SET", "k", "w");
    bench.ask("DEL", queueOf("k"));
  }
});
