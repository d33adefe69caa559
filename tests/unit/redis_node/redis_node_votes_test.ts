import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import type { LockRequest } from "../../../src/quorum/lock_node.ts";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { ConnectionError, ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import { RELEASE } from "../../../src/redis_node/scripts/release.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import { Bench, laterRelease, LOST, NAME, NOSCRIPT } from "../../support/redis_node_bench.ts";

// How it votes

for (
  const [operation, keys, reply, outcome] of [
    ["acquire", ["k"], "+OK\r\n", "granted"],
    ["acquire", ["k"], "$-1\r\n", "denied"],
    ["acquire", ["k"], "*-1\r\n", "denied"],
    ["acquire", ["k", "l"], ":1\r\n", "granted"],
    ["acquire", ["k", "l"], ":0\r\n", "denied"],
    ["extend", ["k"], ":1\r\n", "granted"],
    ["extend", ["k"], ":0\r\n", "denied"],
    ["extend", ["k"], ":2\r\n", "denied"],
    ["release", ["k"], ":1\r\n", "granted"],
    ["release", ["k"], ":0\r\n", "denied"],
    ["release", ["k"], ":3\r\n", "granted"],
  ] as const
) {
  Deno.test(`RedisNode.${operation}() of ${keys.length} is ${outcome} by ${JSON.stringify(reply)}, at the time of the reply`, async () => {
    const bench = new Bench();
    const request = bench.ask(operation, new FakeRequest(keys), 7);
    await bench.clock.advance(30);
    const atMs = bench.clock.monotonicMs();
    await bench.answer(reply);
    assertEquals(request.answers, [[outcome, 7, atMs]]);
    await bench.close();
  });
}

for (const operation of ["acquire", "extend", "release"] as const) {
  for (
    const reply of ["+ok\r\n", "+QUEUED\r\n", "$2\r\nOK\r\n", "$1\r\n1\r\n", ":4\r\n", ":-1\r\n"]
      .concat(":9007199254740993\r\n", "*1\r\n:1\r\n", "*0\r\n", "+\r\n")
      .concat("*3\r\n:500\r\n:0\r\n:1\r\n", operation === "release" ? [] : ":3\r\n")
      .concat(operation === "extend" ? [] : ":2\r\n")
      .concat(operation === "acquire" ? [":0\r\n", ":1\r\n"] : ["+OK\r\n", "$-1\r\n", "*-1\r\n"])
  ) {
    Deno.test(`RedisNode.${operation}() fails on the unexpected reply ${JSON.stringify(reply)}`, async () => {
      const bench = new Bench();
      const request = bench.ask(operation, new FakeRequest(), 2);
      await runMicrotasks();
      await bench.answer(reply);
      assertEquals(request.answers, [
        ["failed", 2, `Cannot read vote as ${NAME} sent another reply`],
      ]);
      assertInstanceOf(request.errors[0], ProtocolError);
      await bench.close();
    });
  }

  Deno.test(`RedisNode.${operation}() fails on an error reply, which it passes on`, async () => {
    const bench = new Bench();
    const request = bench.ask(operation, new FakeRequest(), 30);
    await runMicrotasks();
    await bench.answer("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    assertEquals(request.answers, [
      ["failed", 30, "OOM command not allowed when used memory > 'maxmemory'."],
    ]);
    assertInstanceOf(request.errors[0], ReplyError);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() fails at once while the node is down`, async () => {
    const bench = new Bench();
    await bench.open();
    await bench.hangUp();
    assertEquals(bench.ask(operation).answers, [["failed", 0, LOST]]);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() fails once the node is closed`, async () => {
    const bench = new Bench();
    await bench.close();
    assertEquals(bench.ask(operation).answers, [
      ["failed", 0, `Connection to ${NAME} was closed`],
    ]);
  });
}

for (const [reply, othersWait] of [[":3\r\n", true], [":1\r\n", undefined]] as const) {
  Deno.test(`RedisNode.release() says ${othersWait ? "that others wait" : "of nobody that waits"} by ${JSON.stringify(reply)}`, async () => {
    const bench = new Bench();
    const request: FakeRequest & LockRequest = new FakeRequest();
    bench.ask("release", request);
    await runMicrotasks();
    await bench.answer(reply);
    assertEquals(request.hasWaiters, othersWait);
    await bench.close();
  });
}

for (
  const reply of ["+OK\r\n", "$-1\r\n", "*-1\r\n", ":2\r\n", ":3\r\n", ":1700000000000000\r\n"]
) {
  Deno.test(`RedisNode.acquire() of several keys fails on the unexpected reply ${JSON.stringify(reply)}`, async () => {
    const bench = new Bench();
    const request = bench.ask("acquire", new FakeRequest(["k", "l"]), 2);
    await runMicrotasks();
    await bench.answer(reply);
    assertEquals(request.answers, [
      ["failed", 2, `Cannot read vote as ${NAME} sent another reply`],
    ]);
    await bench.close();
  });
}

Deno.test("RedisNode.extend() answers that keys are missing by 2, where the request knows that", async () => {
  const bench = new Bench();
  await bench.open();
  const missing: (number | undefined)[][] = [];
  const request = Object.assign(new FakeRequest(["k", "l"]), {
    missing: (nodeIndex: number, atMs?: number) => void missing.push([nodeIndex, atMs]),
  });
  bench.ask("extend", request, 6);
  await runMicrotasks();
  await bench.answer(":2\r\n");
  assertEquals([missing, request.answers], [[[6, bench.clock.monotonicMs()]], []]);
  await bench.close();
});

for (
  const [keys, reply] of [
    [["k"], "$-1\r\n"],
    [["k", "l"], ":0\r\n"],
  ] as const
) {
  Deno.test(`RedisNode.acquire() of ${keys.length} that is denied says that no key stands there`, async () => {
    const bench = new Bench();
    const request = new FakeRequest(keys);
    request.maybeSet = 0b10001;
    bench.ask("acquire", request, 2);
    assertEquals(request.maybeSet, 0b10101);
    await runMicrotasks();
    await bench.answer(reply);
    assertEquals([request.answers[0][0], request.maybeSet], ["denied", 0b10001]);
    await bench.close();
  });
}

Deno.test("RedisNode.extend() that is denied says nothing of whether a key stands there", async () => {
  const bench = new Bench();
  await bench.open();
  for (const reply of [":0\r\n", ":2\r\n"]) {
    const request = Object.assign(new FakeRequest(), { maybeSet: 0b100 });
    bench.ask("extend", request, 2);
    await runMicrotasks();
    await bench.answer(reply);
    assertEquals([request.answers[0][0], request.maybeSet], ["denied", 0b100]);
  }
  await bench.close();
});

Deno.test("RedisNode tells each seat its own reply", async () => {
  const bench = new Bench();
  const ballots = [0, 13, 30].map((nodeIndex) =>
    bench.ask("acquire", new FakeRequest(), nodeIndex)
  );
  await runMicrotasks();
  await bench.answer("+OK\r\n$-1\r\n-ERR no\r\n");
  const atMs = bench.clock.monotonicMs();
  assertEquals(ballots.map(({ answers }) => answers), [
    [["granted", 0, atMs]],
    [["denied", 13, atMs]],
    [["failed", 30, "ERR no"]],
  ]);
  await bench.close();
});

// A crowd

Deno.test("RedisNode refuses what sets keys while too many commands wait, but not what takes them back", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const crowd = new FakeRequest();
  for (let count = 0; count < QUEUE_LENGTH_MAX; count++) bench.ask("acquire", crowd);
  assertEquals(crowd.answers, []);
  const message =
    `Connection to ${NAME} has ${QUEUE_LENGTH_MAX} commands waiting for replies already`;
  for (const operation of ["acquire", "extend"] as const) {
    const refused = bench.ask(operation, new FakeRequest(), 3);
    assertEquals(refused.answers, [["failed", 3, message]]);
    assertInstanceOf(refused.errors[0], ConnectionError);
    assertEquals(refused.maybeSet, 0);
  }
  const release = bench.ask("release");
  await runMicrotasks();
  assertEquals(release.answers, []);
  assert(transport.written.endsWith(wire("EVALSHA", RELEASE.sha1, "1", "k", "v")));
  await bench.close();
});

Deno.test("RedisNode lets in what sets keys again once a reply made room", async () => {
  const bench = new Bench();
  await bench.open();
  for (let count = 0; count < QUEUE_LENGTH_MAX; count++) bench.ask("acquire");
  await runMicrotasks();
  await bench.answer("+OK\r\n");
  assertEquals(bench.ask("acquire").answers, []);
  assertEquals(bench.ask("acquire").answers.length, 1);
  await bench.close();
});

Deno.test("RedisNode sends a release for which there was no room once there is some", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const crowd = new FakeRequest();
  for (let count = 0; count < 2 * QUEUE_LENGTH_MAX; count++) bench.ask("release", crowd);
  const refused = bench.release(new FakeRequest("k", "refused"));
  assertEquals(refused.answers.map(([outcome]) => outcome), ["failed"]);
  await runMicrotasks();
  await bench.answer(":0\r\n".repeat(2 * QUEUE_LENGTH_MAX));
  await bench.clock.advance(refused.ttlMs - 1);
  await runMicrotasks();
  assertEquals(transport.written, laterRelease("refused"));
  await bench.close();
});

// Where a key may stand

for (const operation of ["acquire"] as const) {
  Deno.test(`RedisNode.${operation}() says that a key may stand, from the moment it is asked`, async () => {
    const bench = new Bench();
    const request = new FakeRequest();
    request.maybeSet = 0b1;
    bench.ask(operation, request, 2);
    assertEquals(request.maybeSet, 0b101);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() says that no key stands where it was not sent`, async () => {
    const bench = new Bench();
    bench.network.mode = "refuse";
    const request = new FakeRequest();
    request.maybeSet = 0b1001;
    bench.ask(operation, request, 2);
    await runMicrotasks();
    assertEquals(request.answers, [
      ["failed", 2, `Connection to ${NAME} could not be made: connection refused`],
    ]);
    assertEquals(request.maybeSet, 0b1001);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() says that no key stands while the node is down`, async () => {
    const bench = new Bench();
    await bench.open();
    await bench.hangUp();
    assertEquals(bench.ask(operation, new FakeRequest(), 2).maybeSet, 0);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() says that a key may stand where the reply got lost`, async () => {
    const bench = new Bench();
    await bench.open();
    const request = bench.ask(operation, new FakeRequest(), 2);
    await runMicrotasks();
    await bench.hangUp();
    assertEquals([request.answers, request.maybeSet], [[["failed", 2, LOST]], 0b100]);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() says that a key may stand where the server answered with an error`, async () => {
    const bench = new Bench();
    const request = bench.ask(operation, new FakeRequest(), 2);
    await runMicrotasks();
    await bench.answer("-BUSY Redis is busy running a script.\r\n");
    assertEquals(request.maybeSet, 0b100);
    await bench.close();
  });
}

for (const operation of ["extend", "release"] as const) {
  Deno.test(`RedisNode.${operation}() says nothing of whether a key may stand`, async () => {
    const bench = new Bench();
    const requests = [0b0, 0b111].map((maybeSet) => Object.assign(new FakeRequest(), { maybeSet }));
    for (const request of requests) bench.ask(operation, request, 1);
    await runMicrotasks();
    assertEquals(requests.map(({ maybeSet }) => maybeSet), [0b0, 0b111]);
    await bench.hangUp();
    assertEquals(requests.map(({ maybeSet }) => maybeSet), [0b0, 0b111]);
    await bench.close();
  });
}

Deno.test("RedisNode says that no key stands where the script was not sent after NOSCRIPT", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const request = bench.ask("acquire", new FakeRequest(["k", "l"]), 2);
  await runMicrotasks();
  transport.feed(`${NOSCRIPT}*x\r\n`); // the stream breaks in the tick that brought the reply
  await runMicrotasks();
  assertEquals(request.answers.map(([outcome]) => outcome), ["failed"]);
  assertEquals(request.maybeSet, 0);
  await bench.close();
});
