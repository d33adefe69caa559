import { assertEquals, assertStrictEquals } from "@std/assert";
import type { QuorumRequest } from "../../../src/quorum/quorum_node.ts";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import type { LockCommand } from "../../../src/redis_node/command_sender.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { ADOPT, GIVE_BACK } from "../../../src/redis_node/scripts/adopt.ts";
import { ACQUIRE_COUNTED, RAISE } from "../../../src/redis_node/scripts/fencing.ts";
import { RELEASE, RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeRequest, SCORE, TICKET_ID, ticketOf } from "../../support/fake_request.ts";
import { wire } from "../../support/fake_transport.ts";
import { NodeBench, NOSCRIPT, type Operation, test } from "../../support/redis_node_bench.ts";

/** A request that takes a script: what is asked, and how the script is called. */
interface Call {
  readonly what: string;
  readonly operation: Operation;
  /** Whether servers are expected to know the script. */
  readonly expected: boolean;
  /** The script with its source, and by its digest. */
  readonly whole: string;
  readonly digest: string;
  /** The reply that grants. */
  readonly grant: string;
  request(): FakeRequest;
}

const ticket = ticketOf();
const counterHint = 77;
const counterFloor = 88;
const TICKET = [TICKET_ID, SCORE] as const;

/** Every request about `keys` that takes a script. */
function callsOf(keys: readonly string[], value = "v", ttlMs = 1_000): Call[] {
  const set = [value, ttlMs] as const;
  const rows:
    readonly (readonly [Operation, Partial<QuorumRequest>, Script, readonly unknown[]])[] = [
      ...keys.length > 1
        ? [
          ["acquire", {}, ACQUIRE_OR_WAIT, [...set, ""]],
          ["acquire", { counterHint }, ACQUIRE_OR_WAIT, [...set, counterHint]],
        ] as const
        : [["acquire", { counterHint }, ACQUIRE_COUNTED, [...set, counterHint]]] as const,
      ["acquire", { ticket }, ACQUIRE_OR_WAIT, [...set, "", ...TICKET]],
      ["acquire", { ticket, counterHint }, ACQUIRE_OR_WAIT, [...set, counterHint, ...TICKET]],
      ["adopt", { replaces: "old" }, ADOPT, ["old", ...set, ""]],
      ["adopt", { replaces: "old", counterHint }, ADOPT, ["old", ...set, counterHint]],
      ["extend", {}, EXTEND, set],
      ["extend", { counterHint }, EXTEND, set],
      ["raiseCounters", { counterFloor }, RAISE, [value, counterFloor]],
      ["release", {}, RELEASE, [value]],
      ["release", { counterHint, keepsTicket: true }, RELEASE, [value]],
      ["release", { replaces: "old" }, GIVE_BACK, [value, "old"]],
      ["release", { ticket }, RELEASE_QUEUED, [value, TICKET_ID]],
      ["release", { ticket, keepsTicket: true }, RELEASE_QUEUED, [value, TICKET_ID, SCORE]],
    ];
  return rows.map(([operation, parts, { source, sha1 }, args]) => {
    const words = [keys.length, ...keys, ...args].map(String);
    return {
      what: `RedisNode.${operation}() of ${JSON.stringify(keys).slice(0, 20)} with ${
        JSON.stringify(parts)
      }`,
      operation,
      expected: parts.ticket !== undefined && !parts.keepsTicket,
      whole: wire("EVAL", source, ...words),
      digest: wire("EVALSHA", sha1, ...words),
      grant: keys.length > 1 && [EXTEND.sha1, RELEASE.sha1].includes(sha1)
        ? "*2\r\n:1\r\n:1\r\n"
        : ":1\r\n",
      request: () => new FakeRequest(keys, { value, ttlMs, ...parts }),
    };
  });
}

// Each character takes the most bytes that one can.
const [LONG_KEY, LONG_VALUE] = ["\uffff".repeat(30_000), "\uffff".repeat(40)];
const KEYS: readonly (readonly [keys: string[], value?: string, ttlMs?: number])[] = [
  [["k"]],
  [["é𝄞 \r\n"]],
  [["k", "{ü}:1"]],
  [["\uffff"], LONG_VALUE, Number.MAX_SAFE_INTEGER],
  [[LONG_KEY], LONG_VALUE, Number.MAX_SAFE_INTEGER],
];

for (const [keys, value = "v", ttlMs = 1_000] of KEYS.filter(([keys]) => keys.length === 1)) {
  test.listening(`RedisNode.acquire() of ${JSON.stringify(keys).slice(0, 20)} alone is a plain SET`, async (bench) => {
    await bench.send("acquire", new FakeRequest(keys, { value, ttlMs }));
    assertEquals(bench.written, wire("SET", keys[0], value, "NX", "PX", `${ttlMs}`));
  });
}

for (
  const { what, operation, expected, whole, digest, request } of KEYS.flatMap((row) =>
    callsOf(...row)
  )
) {
  const first = expected ? digest : whole;
  test.listening(`${what} sends its script ${expected ? "by its digest at once" : "whole the first time on a connection, then its digest"}`, async (bench) => {
    bench.transport.writes.length = 0;
    for (let times = 0; times < 2; times++) await bench.send(operation, request());
    assertEquals(bench.transport.writes, [first, digest]);
    await bench.hangUp();
    await bench.reconnect();
    await bench.answerProbe();
    await bench.send(operation, request());
    assertEquals(bench.written, first);
  });
}

for (
  const { what, operation, whole, digest, grant, request } of [["k"], ["k", "l"]].flatMap((keys) =>
    callsOf(keys)
  )
) {
  test.queueing(`${what} sends its script whole on NOSCRIPT`, async (bench) => {
    const requests = [];
    while (requests.length < 3) requests.push(await bench.send(operation, request()));
    requests.forEach((each) => each.encoded = undefined); // as a round does
    for (const _ of requests) {
      await bench.answer(NOSCRIPT);
      assertEquals(bench.written, whole);
    }
    await bench.answer(grant.repeat(3));
    assertEquals(requests.map(({ encoded }) => typeof encoded), Array(3).fill("undefined"));
    assertEquals(requests.map(({ outcomes }) => outcomes), Array(3).fill(["granted"]));
    await bench.send(operation, request());
    assertEquals(bench.written, digest);
  });

  test.queueing(`${what} fails on NOSCRIPT to the whole script`, async (bench) => {
    const asked = await bench.send(operation, request(), 4);
    await bench.answer(NOSCRIPT);
    await bench.answer(NOSCRIPT);
    assertEquals([bench.written, asked.answers], ["", [["failed", 4, NOSCRIPT.slice(1, -2)]]]);
  });

  test.queueing(`${what} that was cancelled ${operation === "release" ? "sends its script whole all the same" : "sends nothing more"} on NOSCRIPT`, async (bench) => {
    const asked = await bench.send(operation, request());
    asked.wanted = false;
    await bench.answer(NOSCRIPT);
    const sent = operation === "release";
    assertEquals([bench.written, asked.outcomes], sent ? [whole, []] : ["", ["failed"]]);
  });
}

for (const keys of [["k"], ["{é}:1", "l"]]) {
  test.opened(`RedisNode.leaveQueue() of ${JSON.stringify(keys)} sends its script, whole on NOSCRIPT and no more than that`, async (bench) => {
    const words = [`${keys.length}`, ...keys, TICKET_ID, TICKET_ID];
    bench.node.leaveQueue(keys, TICKET_ID);
    await runMicrotasks();
    assertEquals(bench.written, wire("EVALSHA", RELEASE_QUEUED.sha1, ...words));
    await bench.answer(NOSCRIPT);
    assertEquals(bench.written, wire("EVAL", RELEASE_QUEUED.source, ...words));
    await bench.answer(NOSCRIPT);
    assertEquals(bench.written, "");
  });
}

for (const reply of [":1\r\n", "-NOPERM no\r\n", "*0\r\n"]) {
  test.queueing(`RedisNode.leaveQueue() is done by ${JSON.stringify(reply)}, and leaves the next reply to its command`, async (bench) => {
    bench.node.leaveQueue(["k"], TICKET_ID);
    const request = await bench.send("acquire", new FakeRequest("k", { ticket }));
    await bench.answer(`${reply}:1\r\n`);
    await bench.advance(1_000);
    assertEquals([request.outcomes, bench.written, bench.notices], [["granted"], "", []]);
  });
}

test.queueing("RedisNode.leaveQueue() is sent while the node closes, if a reply asks for it", async (bench) => {
  const asked = await bench.send("acquire", new FakeRequest("k", { ticket }));
  asked.answer = () => bench.node.leaveQueue(["k"], TICKET_ID);
  const closing = bench.close();
  await bench.answer(":1\r\n");
  assertEquals(bench.written, wire("EVALSHA", RELEASE_QUEUED.sha1, "1", "k", TICKET_ID, TICKET_ID));
  await closing;
});

test.opened("RedisNode.leaveQueue() sends what did not arrive on the next connection", async (bench) => {
  const leave = wire("EVALSHA", RELEASE_QUEUED.sha1, "1", "k", TICKET_ID, TICKET_ID);
  await bench.hangUp();
  bench.node.leaveQueue(["k"], TICKET_ID);
  for (let breaks = 0; breaks < 3; breaks++) {
    assertEquals(await bench.reconnect(), leave);
    await bench.hangUp();
  }
  assertEquals(await bench.reconnect(), leave);
  await bench.answer(":1\r\n");
  await bench.hangUp();
  assertEquals(await bench.reconnect(), "");
  await bench.close();
  bench.node.leaveQueue(["k"], TICKET_ID);
});

// What goes to which node, and together

test.queueing("RedisNode encodes a command once for all nodes, and apart for those without queues", async (bench) => {
  const [other, plain] = [await new NodeBench().queueing(), await new NodeBench().opened()];
  const benches = [plain, plain, bench, other];
  const request = new FakeRequest("k", { ticket });
  for (const [index, { node }] of benches.entries()) node.ask("acquire", request, index);
  const encoded = request.encoded as LockCommand;
  const { bytes } = encoded;
  bench.ask("acquire", request);
  assertStrictEquals(request.encoded, encoded);
  assertStrictEquals(encoded.bytes, bytes);
  await runMicrotasks();
  const join = callsOf(["k"]).find(({ expected }) => expected)!.digest;
  const set = wire("SET", "k", "v", "NX", "PX", "1000");
  assertEquals(benches.map(({ written }) => written), [set + set, set + set, join + join, join]);
  await Promise.all([other.close(), plain.close()]);
});
