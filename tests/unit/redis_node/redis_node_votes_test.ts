import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import type { QuorumRequest } from "../../../src/quorum/quorum_node.ts";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeRequest, ticketOf } from "../../support/fake_request.ts";
import { laterRelease, NOSCRIPT, type Operation, test } from "../../support/redis_node_bench.ts";
import { LOST, NAME } from "../../support/stream_bench.ts";

const ticket = ticketOf();
const counterHint = 77;
const POOL = { keys: ["k", "l"], place: 0, free: [] };
const POSITION = "*8\r\n:700\r\n:2\r\n:5\r\n:77\r\n:1700000000250000\r\n:1\r\n$1\r\nv\r\n:60\r\n";
const POOL_POSITION = POSITION.replace("*8", "*10") + ":2\r\n:1\r\n";
const COUNTS = Object.fromEntries(
  [1, 2, 3, 4, 1_000_001, 1_700_000_000_000_000, Number.MAX_SAFE_INTEGER]
    .map((count) => [`:${count}\r\n`, "granted"]),
);

/** Every kind of request, and which replies mean what. Any other reply is a failure. */
const KINDS: readonly (readonly [
  what: string,
  Operation,
  keys: readonly string[],
  Partial<QuorumRequest>,
  meanings: Readonly<Record<string, string>>,
])[] = [
  ["one key", "acquire", ["k"], {}, {
    "+OK\r\n": "granted",
    "$-1\r\n": "denied",
    "*-1\r\n": "denied",
  }],
  ["several keys", "acquire", ["k", "l"], {}, { ":1\r\n": "granted", ":0\r\n": "denied" }],
  ["one key that counts", "acquire", ["k"], { counterHint }, { ":0\r\n": "denied", ...COUNTS }],
  ["several keys that counts", "acquire", ["k", "l"], { counterHint }, {
    ":0\r\n": "denied",
    ...COUNTS,
  }],
  ["one with a ticket", "acquire", ["k"], { ticket }, {
    ":1\r\n": "granted",
    [POSITION]: "queued",
  }],
  ["one with a ticket that counts", "acquire", ["k"], { ticket, counterHint }, {
    [POSITION]: "queued",
    ...COUNTS,
  }],
  ["one key", "adopt", ["k"], { replaces: "w", counterHint }, {
    ":0\r\n": "denied",
    ":-1\r\n": "missing",
    ...COUNTS,
  }],
  ["one key without a counter", "adopt", ["k"], { replaces: "w" }, {
    ":1\r\n": "granted",
    ":0\r\n": "denied",
    ":-1\r\n": "missing",
  }],
  ["one of a pool", "acquire", ["k"], { pool: POOL }, {
    ":1\r\n": "granted",
    ":0\r\n": "denied",
    "*1\r\n:1\r\n": "denied",
  }],
  ["one of a pool with a ticket", "acquire", ["k"], { pool: POOL, ticket }, {
    ":1\r\n": "granted",
    [POOL_POSITION]: "queued",
  }],
  ["one in shared mode", "acquire", ["k"], { mode: "shared" }, {
    ":1\r\n": "granted",
    ":0\r\n": "denied",
  }],
  ["one in shared mode with a ticket", "acquire", ["k"], { mode: "shared", ticket }, {
    ":1\r\n": "granted",
    [POSITION]: "queued",
  }],
  ["one key", "extend", ["k"], {}, {
    ":1\r\n": "granted",
    ":0\r\n": "denied",
    ":-1\r\n": "missing",
  }],
  ["one key", "raiseCounters", ["k"], {}, {
    ":0\r\n": "denied",
    ":-1\r\n": "denied",
    ...COUNTS,
  }],
  ["one key that lives on", "release", ["k"], { keptMs: () => 5 }, {
    ":1\r\n": "granted",
    ":0\r\n": "denied",
    ":-1\r\n": "denied",
  }],
  ["one key", "release", ["k"], {}, {
    ":1\r\n": "granted",
    ":0\r\n": "denied",
    ":2\r\n": "granted",
  }],
  ["one key that gets a value back", "release", ["k"], { replaces: "w" }, {
    ":1\r\n": "granted",
    ":0\r\n": "denied",
  }],
  ["several keys", "extend", ["k", "l"], {}, {
    "*2\r\n:1\r\n:1\r\n": "granted",
    "*2\r\n:-1\r\n:1\r\n": "missing",
    "*2\r\n:-1\r\n:0\r\n": "denied",
  }],
  ["several keys", "release", ["k", "l"], {}, {
    "*2\r\n:1\r\n:1\r\n": "granted",
    "*2\r\n:2\r\n:1\r\n": "granted",
    "*2\r\n:2\r\n:0\r\n": "denied",
  }],
];

const REPLIES = [
  ...["+OK", "+ok", "+QUEUED", "+", "$2\r\nOK", "$1\r\n1", "$-1", "*-1", "*0", "*1\r\n:1"],
  ...[":0", ":1", ":2", ":3", ":4", ":-1", ":1000001", ":1700000000000000", ":9007199254740991"],
  ...["*2\r\n:1\r\n:1", "*2\r\n:2\r\n:1", "*2\r\n:2\r\n:0", "*2\r\n:1\r\n$-1", "*2\r\n:1\r\n:3"],
  ...["*2\r\n:-1\r\n:1", "*2\r\n:-1\r\n:0"],
  ...[":9007199254740993", "*3\r\n:500\r\n:0\r\n:1", "*4\r\n:700\r\n:0\r\n:1\r\n:1"],
  ...[
    "*6\r\n:700\r\n:0\r\n:1\r\n:1\r\n:1\r\n$1\r\nv",
    "*8\r\n$3\r\n700\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n$1\r\nv\r\n:0",
    "*8\r\n:700\r\n$-1\r\n:1\r\n:1\r\n:1\r\n:1\r\n$1\r\nv\r\n:0",
    "*8\r\n:700\r\n:0\r\n+1\r\n:1\r\n:1\r\n:1\r\n$1\r\nv\r\n:0",
    "*8\r\n:700\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n*0\r\n:0",
  ],
].map((reply) => `${reply}\r\n`).concat(POSITION, POOL_POSITION);

for (const [what, operation, keys, parts, meanings] of KINDS) {
  test.queueing(`RedisNode.${operation}() of ${what} reads each reply as what it answers to this command, and fails on any other`, async (bench) => {
    for (const reply of REPLIES) {
      const outcome = meanings[reply] ?? "failed";
      const request = new FakeRequest(keys, parts);
      bench.ask(operation, request, 2);
      await bench.advance(30);
      const atMs = bench.clock.monotonicMs();
      await bench.answer(reply);
      const [answer, ...more] = request.answers;
      assertEquals([answer[0], answer[1], more], [outcome, 2, []], reply);
      assertEquals(request.unsent, false);
      const releases = operation === "release" && meanings[reply] === "granted";
      assertEquals(request.hasWaiters, releases && reply.includes(":2"));
      if (outcome === "failed") {
        assertEquals(answer[2], `Cannot read vote as ${NAME} sent an unexpected reply`);
        assertInstanceOf(request.errors[0], ProtocolError);
        continue;
      }
      const counts = (operation === "raiseCounters" || parts.counterHint !== undefined) &&
        outcome === "granted";
      const position = {
        remainingMs: 701,
        ahead: 2,
        length: 5,
        score: 77,
        timeMs: 1_700_000_000_250,
        foreign: true,
        value: "v",
        turnMs: 60,
        ...reply === POOL_POSITION ? { free: 2, turnPlace: 0 } : {},
      };
      const detail = counts ? Number(reply.slice(1)) : outcome === "queued" ? position : undefined;
      assertEquals(answer.slice(2), detail === undefined ? [atMs] : [atMs, detail]);
    }
  });

  test.queueing(`RedisNode.${operation}() of ${what} fails on an error reply, at once while the node is down, and once it is closed`, async (bench) => {
    const request = () => new FakeRequest(keys, parts);
    const refused = await bench.send(operation, request(), 30);
    await bench.answer("-OOM command not allowed\r\n");
    assertEquals(refused.answers, [["failed", 30, "OOM command not allowed"]]);
    assertInstanceOf(refused.errors[0], ReplyError);
    assertEquals(refused.unsent, false);
    const lost = await bench.send(operation, request(), 2);
    await bench.hangUp();
    assertEquals([lost.answers, lost.unsent], [[["failed", 2, LOST]], false]);
    const down = bench.ask(operation, request(), 2);
    assertEquals([down.answers, down.unsent], [[["failed", 2, LOST]], true]);
    await bench.close();
    assertEquals(bench.ask(operation, request()).answers, [[
      "failed",
      0,
      `Connection to ${NAME} was closed`,
    ]]);
  });
}

for (const [pttl, remainingMs] of [[-1, Infinity], [-2, 0], [0, 1]]) {
  test.queueing(`RedisNode.acquire() with a ticket reads a PTTL of ${pttl} as a key that lives for ${remainingMs} ms`, async (bench) => {
    const request = await bench.send("acquire", new FakeRequest("k", { ticket }));
    await bench.answer(POSITION.replace(":700", `:${pttl}`));
    const [, , , position] = request.answers[0];
    assertEquals((position as { remainingMs: number }).remainingMs, remainingMs);
  });
}

// Whether a key may be set

test("RedisNode.acquire() says that nothing was sent if no connection could be made", async (bench) => {
  bench.network.mode = "refuse";
  const request = await bench.send("acquire", new FakeRequest(), 2);
  const message = `Connection to ${NAME} could not be made: connection refused`;
  assertEquals([request.answers, request.unsent], [[["failed", 2, message]], true]);
});

test.opened("RedisNode.acquire() says that nothing was sent if its script could not be sent after NOSCRIPT", async (bench) => {
  const request = await bench.send("acquire", new FakeRequest(["k", "l"]), 2);
  await bench.feed(`${NOSCRIPT}*x\r\n`); // the stream breaks in the tick that brought the reply
  assertEquals([request.outcomes, request.unsent], [["failed"], true]);
});

// A crowd

test.queueing("RedisNode refuses what sets keys while too many commands wait, but not what takes them back", async (bench) => {
  const crowd = new FakeRequest();
  for (let count = 0; count < QUEUE_LENGTH_MAX; count++) bench.ask("acquire", crowd);
  assertEquals(crowd.answers, []);
  const message =
    `Connection to ${NAME} has at least ${QUEUE_LENGTH_MAX} commands waiting for replies`;
  const refused = [
    bench.ask("acquire", Object.assign(new FakeRequest(), { set: true })),
    bench.ask("acquire", Object.assign(new FakeRequest(), { set: true })),
    bench.ask("acquire", new FakeRequest("k", { ticket })),
    bench.ask("extend", Object.assign(new FakeRequest(), { set: true })),
    // no key can be set, so a server that hangs gets no more of these
    bench.ask("release"),
  ];
  const release = bench.release();
  await runMicrotasks(); // most are sent, or refused, at the end of their tick
  for (const { answers, unsent } of refused) {
    assertEquals([answers, unsent], [[["failed", 0, message]], true]);
  }
  assertEquals([release.answers, bench.written.endsWith(laterRelease())], [[], true]);
  await bench.answer("+OK\r\n+OK\r\n"); // room for one more
  for (const answers of [0, 1]) {
    assertEquals((await bench.send("acquire")).answers.length, answers);
  }
});

// Servers that are too old

const NOT_DETERMINISTIC =
  "ERR Error running script (call to f_ef9652faca7c0fa35799c0e3911ab250ec991f42): @user_script:8: " +
  "@user_script: 8: Write commands not allowed after non deterministic commands";

for (
  const [version, refusal] of [
    [
      "3.2",
      `${NOT_DETERMINISTIC}. Call redis.replicate_commands() at the start of your script in ` +
      "order to switch to single commands replication mode. ",
    ],
    ["2.8", `${NOT_DETERMINISTIC} `],
  ]
) {
  const explanation = "ERR the server is too old: fencing tokens, the restart guard, shared mode " +
    "and waiting without polling need Redis 5 or newer";

  test.queueing(`RedisNode says that Redis ${version} is too old for fencing tokens, the guard and waiting`, async (bench) => {
    const counting = await bench.send("acquire", new FakeRequest("k", { counterHint }), 3);
    await bench.answer(`-${refusal}\r\n`);
    assertEquals(counting.answers, [["failed", 3, explanation]]);
    const error = counting.errors[0] as ReplyError;
    assert(error instanceof ReplyError && error.prefix === "ERR" && error.permanent);
    const guarded = await bench.send("acquire", new FakeRequest("k", { guardMs: 60_000 }), 3);
    await bench.answer(`+OK\r\n-${refusal}\r\n`);
    assertEquals(guarded.answers, [["failed", 3, explanation]]);
    await bench.send("acquire", new FakeRequest("k", { ticket }));
    await bench.answer(`-${refusal}\r\n`);
    assertEquals(bench.notices, [["unsupported", 3, explanation]]);
  });
}

test.queueing("RedisNode says what Dragonfly needs, and polls without it", async (bench) => {
  const refusal = "ERR Error running script (call to 976fb89fbb3c404c8c7bed59060c56521eb9ba69): " +
    "@user_script:3: script tried accessing undeclared key, key: hasp:queue:k";
  const explanation = "ERR the server refuses keys that a script builds: start Dragonfly with " +
    "--default_lua_flags=allow-undeclared-keys";
  const counting = await bench.send("acquire", new FakeRequest("k", { counterHint }), 3);
  await bench.answer(`-${refusal}\r\n`);
  assertEquals(counting.answers, [["failed", 3, explanation]]);
  const error = counting.errors[0] as ReplyError;
  assert(error instanceof ReplyError && error.permanent);
  await bench.send("acquire", new FakeRequest("k", { ticket }));
  await bench.answer(`-${refusal}\r\n`);
  assertEquals(bench.notices, [["unsupported", 3, explanation]]);
});

test.queueing("RedisNode leaves the place in the script out of an error of Redis 7", async (bench) => {
  const asked = await bench.send("acquire", new FakeRequest("k", { counterHint }));
  const refusal = "OOM command not allowed when used memory > 'maxmemory'.";
  await bench.answer(`-${refusal} script: 1d0c, on @user_script:156.\r\n`);
  assertEquals(asked.answers, [["failed", 0, refusal]]);
});

test.queueing("RedisNode says that a Sentinel can hold no lock", async (bench) => {
  const refusal = "ERR unknown command 'SET'";
  const asked = await bench.send("acquire");
  await bench.answer(`-${refusal}, with args beginning with: 'k' 'v' \r\n`);
  const explanation = `${refusal}: a Sentinel, or a server without Lua scripts, can hold no lock`;
  assertEquals(asked.answers, [["failed", 0, explanation]]);
});

for (
  const [refusal, inScript = ""] of [
    ["MOVED 3999 10.0.0.2:6379"],
    ["CROSSSLOT Keys in request don't hash to the same slot"],
    [
      "ERR Attempted to access a non local key in a cluster node", // Valkey 9.1
      " script: on @user_script:1.",
    ],
  ]
) {
  test.queueing(`RedisNode says what a cluster needs after ${refusal}`, async (bench) => {
    const asked = [
      await bench.send("acquire"),
      await bench.send("acquire", new FakeRequest("k", { ticket })),
    ];
    await bench.answer(`-${refusal}${inScript}\r\n`.repeat(2));
    const explanation = `${refusal}: the server is a node of a cluster, ` +
      "which takes commandNode() and a hash tag in each resource";
    for (const { answers, errors: [error] } of asked) {
      assertEquals(answers, [["failed", 0, explanation]]);
      assert(error instanceof ReplyError);
      assertEquals(error.permanent, inScript === ""); // a slot may be moving
      assertEquals(error.prefix, refusal.split(" ", 1)[0]);
    }
    assertEquals([bench.notices, bench.written], [[], ""]);
    const inspecting = assertRejects(() => bench.node.inspect("k"), ReplyError, explanation);
    await runMicrotasks();
    await bench.answer(`-${refusal}\r\n`.repeat(4));
    await inspecting;
  });
}
