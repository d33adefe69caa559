import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { parseAddress } from "../../src/redis/address.ts";
import { type ConnectionOptions, QUEUE_LENGTH_MAX } from "../../src/redis/connection.ts";
import { ConnectionError, ProtocolError, ReplyError } from "../../src/redis/errors.ts";
import { RedisNode } from "../../src/redis_node.ts";
import { ACQUIRE_ALL, EXTEND, RELEASE } from "../../src/scripts.ts";
import { TimerWheel } from "../../src/timer_wheel.ts";
import { FakeBallot } from "../support/fake_ballot.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "../support/fake_clock.ts";
import { FakeNetwork, type FakeTransport, wire } from "../support/fake_transport.ts";

const NAME = "redis://h:6379";
const NOSCRIPT = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
const LOST = `Connection to ${NAME} was lost: the server closed the connection`;
/** Longer than the first delay before connecting again. */
const RECONNECT_MS = 100;
/** How long a release waits for a busy server. */
const BUSY_DELAY_MS = 500;
/** How many releases are kept. */
const LEFTOVERS_MAX = 4_096;

type Operation = "acquire" | "extend" | "release";

/** A node on faked time and streams. */
class Bench {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork();
  readonly wheel: TimerWheel;
  readonly node: RedisNode;
  /** What the observer heard. */
  readonly events: string[] = [];

  constructor(options: Partial<ConnectionOptions> = {}, address = "redis://h") {
    this.wheel = new TimerWheel(this.clock, { value: () => "value", fraction: () => 0.5 });
    this.node = new RedisNode(
      parseAddress(address),
      {
        connect: this.network.connect,
        connectTimeoutMs: 1_000,
        stallTimeoutMs: Infinity,
        tls: {},
        clientName: undefined,
        ...options,
      },
      this.wheel,
      {
        onConnected: (node) => this.events.push(`${node} connected`),
        onDisconnected: (node, error) => this.events.push(`${node}: ${error.message}`),
      },
    );
  }

  /** Asks the node in one seat. */
  ask(operation: Operation, ballot = new FakeBallot(), seat = 0): FakeBallot {
    this.node[operation](ballot, seat);
    return ballot;
  }

  /** The same, for a release of what may stand. */
  release(ballot = new FakeBallot(), seat = 0): FakeBallot {
    ballot.mayStand |= 1 << seat;
    return this.ask("release", ballot, seat);
  }

  /** Makes the first connection. */
  async open(): Promise<FakeTransport> {
    this.ask("acquire");
    await runMicrotasks();
    await this.answer("+OK\r\n");
    this.events.length = 0;
    return this.network.last;
  }

  /** Has a reply come, and forgets what was written before it. */
  async answer(reply: string): Promise<void> {
    this.network.last.writes.length = 0;
    this.network.last.feed(reply);
    await runMicrotasks();
  }

  /** Has the server hang up. */
  async hangUp(): Promise<void> {
    this.network.last.end();
    await runMicrotasks();
  }

  /** Waits for the next connection and returns what was written on it. */
  async reconnect(): Promise<string> {
    const count = this.network.transports.length;
    this.network.mode = "accept";
    for (let waitedMs = 0; this.network.transports.length === count; waitedMs += RECONNECT_MS) {
      assert(waitedMs < 5_000);
      await this.clock.advance(RECONNECT_MS);
    }
    await runMicrotasks();
    return this.network.last.written;
  }

  async close(): Promise<void> {
    await advanceUntil(this.clock, this.node.close());
    this.wheel.close();
    assertEquals(this.clock.timers, 0);
  }
}

/** A leftover release on the wire. */
function leftover(value = "v", ...keys: string[]): string {
  const named = keys.length > 0 ? keys : ["k"];
  return wire("EVAL", RELEASE.source, String(named.length), ...named, value);
}

// What it is

Deno.test("RedisNode has its address without credentials for a name", () => {
  assertEquals(new Bench({}, "redis://user:hunter2@h/3").node.name, "redis://h:6379/3");
});

Deno.test("RedisNode connects when it is first asked, and not before", async () => {
  const bench = new Bench();
  await runMicrotasks();
  assertEquals(bench.network.targets, []);
  bench.ask("acquire");
  assertEquals(bench.network.targets, [{ kind: "tcp", hostname: "h", port: 6379 }]);
  await bench.close();
});

Deno.test("RedisNode.readyAtMs is when its first connecting was over", async () => {
  const bench = new Bench();
  bench.network.mode = "wait";
  bench.ask("acquire");
  assertEquals(bench.node.readyAtMs, Infinity);
  await bench.clock.advance(70);
  const readyAtMs = bench.clock.monotonicMs();
  bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals(bench.node.readyAtMs, readyAtMs);
  await bench.close();
});

Deno.test("RedisNode tells its observer of connections, under its name", async () => {
  const bench = new Bench();
  bench.ask("acquire");
  await runMicrotasks();
  await bench.hangUp();
  await bench.reconnect();
  assertEquals(bench.events, [`${NAME} connected`, `${NAME}: ${LOST}`, `${NAME} connected`]);
  await bench.close();
});

// What it writes

for (
  const [operation, keys, words] of [
    ["acquire", ["k"], ["SET", "k", "v", "NX", "PX", "1000"]],
    ["acquire", ["k", "l"], ["EVALSHA", ACQUIRE_ALL.sha1, "2", "k", "l", "v", "1000"]],
    ["extend", ["k"], ["EVALSHA", EXTEND.sha1, "1", "k", "v", "1000"]],
    ["extend", ["k", "l"], ["EVALSHA", EXTEND.sha1, "2", "k", "l", "v", "1000"]],
    ["release", ["k"], ["EVALSHA", RELEASE.sha1, "1", "k", "v"]],
    ["release", ["k", "l"], ["EVALSHA", RELEASE.sha1, "2", "k", "l", "v"]],
    ["acquire", ["é𝄞 \r\n"], ["SET", "é𝄞 \r\n", "v", "NX", "PX", "1000"]],
    ["extend", ["é𝄞"], ["EVALSHA", EXTEND.sha1, "1", "é𝄞", "v", "1000"]],
    ["release", ["é", "𝄞"], ["EVALSHA", RELEASE.sha1, "2", "é", "𝄞", "v"]],
  ] as const
) {
  Deno.test(`RedisNode.${operation}() of ${JSON.stringify(keys)} writes ${words[0]}`, async () => {
    const bench = new Bench();
    bench.ask(operation, new FakeBallot(keys));
    await runMicrotasks();
    assertEquals(bench.network.last.written, wire(...words));
    await bench.close();
  });
}

for (const operation of ["acquire", "extend", "release"] as const) {
  Deno.test(`RedisNode.${operation}() encodes its command once for all nodes`, async () => {
    const [bench, other] = [new Bench(), new Bench()];
    const ballot = bench.ask(operation);
    const { shared } = ballot;
    assertInstanceOf(shared, Uint8Array);
    other.ask(operation, ballot, 1);
    assertStrictEquals(ballot.shared, shared);
    await runMicrotasks();
    assertEquals(other.network.last.written, bench.network.last.written);
    await Promise.all([bench.close(), other.close()]);
  });
}

Deno.test("RedisNode writes a key of many bytes whole", async () => {
  const bench = new Bench();
  const key = "ü".repeat(100_000);
  bench.ask("acquire", new FakeBallot(key));
  await runMicrotasks();
  assertEquals(bench.network.last.written, wire("SET", key, "v", "NX", "PX", "1000"));
  await bench.close();
});

Deno.test("RedisNode writes what one tick asks in one piece, in order", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const ballot = bench.ask("acquire");
  ballot.shared = undefined;
  bench.ask("release", ballot);
  await runMicrotasks();
  assertEquals(transport.writes, [
    wire("SET", "k", "v", "NX", "PX", "1000") + wire("EVALSHA", RELEASE.sha1, "1", "k", "v"),
  ]);
  await bench.close();
});

// Scripts that the server does not know

for (
  const [operation, keys, source, args] of [
    ["acquire", ["k", "l"], ACQUIRE_ALL.source, ["v", "1000"]],
    ["extend", ["k"], EXTEND.source, ["v", "1000"]],
    ["extend", ["k", "l"], EXTEND.source, ["v", "1000"]],
    ["release", ["k"], RELEASE.source, ["v"]],
    ["release", ["k", "l"], RELEASE.source, ["v"]],
  ] as const
) {
  const what = `RedisNode.${operation}() of ${keys.length}`;
  const script = wire("EVAL", source, String(keys.length), ...keys, ...args);

  Deno.test(`${what} sends the script whole on NOSCRIPT, and counts its reply`, async () => {
    const bench = new Bench();
    const ballot = bench.ask(operation, new FakeBallot(keys), 4);
    await runMicrotasks();
    await bench.answer(NOSCRIPT);
    assertEquals(bench.network.last.written, script);
    assertEquals(ballot.answers, []);
    await bench.answer(":1\r\n");
    assertEquals(ballot.answers, [["granted", 4, bench.clock.monotonicMs()]]);
    assertEquals(bench.network.last.written, "");
    await bench.close();
  });

  Deno.test(`${what} fails on NOSCRIPT to the whole script`, async () => {
    const bench = new Bench();
    const ballot = bench.ask(operation, new FakeBallot(keys));
    await runMicrotasks();
    await bench.answer(NOSCRIPT);
    await bench.answer(NOSCRIPT);
    assertEquals(bench.network.last.written, "");
    assertEquals(ballot.answers, [["failed", 0, NOSCRIPT.slice(1, -2)]]);
    await bench.close();
  });

  Deno.test(`${what} on NOSCRIPT when it is no longer wanted ${operation === "release" ? "sends the script all the same" : "fails, and sends nothing"}`, async () => {
    const bench = new Bench();
    const ballot = bench.ask(operation, new FakeBallot(keys));
    await runMicrotasks();
    ballot.wanted = false;
    await bench.answer(NOSCRIPT);
    const released = operation === "release";
    assertEquals(bench.network.last.written, released ? script : "");
    assertEquals(ballot.answers, released ? [] : [["failed", 0, NOSCRIPT.slice(1, -2)]]);
    await bench.close();
  });
}

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
  ] as const
) {
  Deno.test(`RedisNode.${operation}() of ${keys.length} is ${outcome} by ${JSON.stringify(reply)}, at the time of the reply`, async () => {
    const bench = new Bench();
    const ballot = bench.ask(operation, new FakeBallot(keys), 7);
    await bench.clock.advance(30);
    const atMs = bench.clock.monotonicMs();
    await bench.answer(reply);
    assertEquals(ballot.answers, [[outcome, 7, atMs]]);
    await bench.close();
  });
}

for (const operation of ["acquire", "extend", "release"] as const) {
  for (
    const reply of ["+ok\r\n", "+QUEUED\r\n", "$2\r\nOK\r\n", "$1\r\n1\r\n", ":3\r\n", ":-1\r\n"]
      .concat(":9007199254740993\r\n", "*1\r\n:1\r\n", "*0\r\n", "+\r\n")
  ) {
    Deno.test(`RedisNode.${operation}() fails on the unexpected reply ${JSON.stringify(reply)}`, async () => {
      const bench = new Bench();
      const ballot = bench.ask(operation, new FakeBallot(), 2);
      await runMicrotasks();
      await bench.answer(reply);
      assertEquals(ballot.answers, [
        ["failed", 2, `Cannot read vote as ${NAME} sent another reply`],
      ]);
      assertInstanceOf(ballot.errors[0], ProtocolError);
      await bench.close();
    });
  }

  Deno.test(`RedisNode.${operation}() fails on an error reply, which it passes on`, async () => {
    const bench = new Bench();
    const ballot = bench.ask(operation, new FakeBallot(), 30);
    await runMicrotasks();
    await bench.answer("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    assertEquals(ballot.answers, [
      ["failed", 30, "OOM command not allowed when used memory > 'maxmemory'."],
    ]);
    assertInstanceOf(ballot.errors[0], ReplyError);
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

Deno.test("RedisNode tells each seat its own reply", async () => {
  const bench = new Bench();
  const ballots = [0, 13, 30].map((seat) => bench.ask("acquire", new FakeBallot(), seat));
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
  const crowd = new FakeBallot();
  for (let count = 0; count < QUEUE_LENGTH_MAX; count++) bench.ask("acquire", crowd);
  assertEquals(crowd.answers, []);
  const message =
    `Connection to ${NAME} has ${QUEUE_LENGTH_MAX} commands waiting for replies already`;
  for (const operation of ["acquire", "extend"] as const) {
    const refused = bench.ask(operation, new FakeBallot(), 3);
    assertEquals(refused.answers, [["failed", 3, message]]);
    assertInstanceOf(refused.errors[0], ConnectionError);
    assertEquals(refused.mayStand, 0);
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

Deno.test("RedisNode sends a release again after BUSY although another found no room before", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.release(new FakeBallot("k", "busy"));
  const crowd = new FakeBallot();
  for (let count = 1; count < 2 * QUEUE_LENGTH_MAX; count++) bench.ask("release", crowd);
  bench.release(new FakeBallot("k", "refused"));
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n" + ":0\r\n".repeat(2 * QUEUE_LENGTH_MAX - 1));
  await bench.clock.advance(BUSY_DELAY_MS);
  await runMicrotasks();
  assert(transport.written.includes(leftover("busy")));
  await bench.close();
});

Deno.test("RedisNode sends a release for which there was no room once there is some", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const crowd = new FakeBallot();
  for (let count = 0; count < 2 * QUEUE_LENGTH_MAX; count++) bench.ask("release", crowd);
  const refused = bench.release(new FakeBallot("k", "refused"));
  assertEquals(refused.answers.map(([outcome]) => outcome), ["failed"]);
  await runMicrotasks();
  await bench.answer(":0\r\n".repeat(2 * QUEUE_LENGTH_MAX));
  await bench.clock.advance(refused.ttlMs - 1);
  await runMicrotasks();
  assertEquals(transport.written, leftover("refused"));
  await bench.close();
});

// Where a key may stand

for (const operation of ["acquire", "extend"] as const) {
  Deno.test(`RedisNode.${operation}() says that a key may stand, from the moment it is asked`, async () => {
    const bench = new Bench();
    const ballot = new FakeBallot();
    ballot.mayStand = 0b1;
    bench.ask(operation, ballot, 2);
    assertEquals(ballot.mayStand, 0b101);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() says that no key stands where it was not sent`, async () => {
    const bench = new Bench();
    bench.network.mode = "refuse";
    const ballot = new FakeBallot();
    ballot.mayStand = 0b1001;
    bench.ask(operation, ballot, 2);
    await runMicrotasks();
    assertEquals(ballot.answers, [
      ["failed", 2, `Connection to ${NAME} could not be made: connection refused`],
    ]);
    assertEquals(ballot.mayStand, 0b1001);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() says that no key stands while the node is down`, async () => {
    const bench = new Bench();
    await bench.open();
    await bench.hangUp();
    assertEquals(bench.ask(operation, new FakeBallot(), 2).mayStand, 0);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() says that a key may stand where the reply got lost`, async () => {
    const bench = new Bench();
    await bench.open();
    const ballot = bench.ask(operation, new FakeBallot(), 2);
    await runMicrotasks();
    await bench.hangUp();
    assertEquals([ballot.answers, ballot.mayStand], [[["failed", 2, LOST]], 0b100]);
    await bench.close();
  });

  Deno.test(`RedisNode.${operation}() says that a key may stand where the server answered with an error`, async () => {
    const bench = new Bench();
    const ballot = bench.ask(operation, new FakeBallot(), 2);
    await runMicrotasks();
    await bench.answer("-BUSY Redis is busy running a script.\r\n");
    assertEquals(ballot.mayStand, 0b100);
    await bench.close();
  });
}

Deno.test("RedisNode.release() says nothing of whether a key may stand", async () => {
  const bench = new Bench();
  const ballots = [0b0, 0b111].map((mayStand) => Object.assign(new FakeBallot(), { mayStand }));
  for (const ballot of ballots) bench.ask("release", ballot, 1);
  await runMicrotasks();
  assertEquals(ballots.map(({ mayStand }) => mayStand), [0b0, 0b111]);
  await bench.hangUp();
  assertEquals(ballots.map(({ mayStand }) => mayStand), [0b0, 0b111]);
  await bench.close();
});

Deno.test("RedisNode says that no key stands where the script was not sent after NOSCRIPT", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const ballot = bench.ask("extend", new FakeBallot(), 2);
  await runMicrotasks();
  transport.feed(`${NOSCRIPT}*x\r\n`); // the stream breaks in the tick that brought the reply
  await runMicrotasks();
  assertEquals(ballot.answers.map(([outcome]) => outcome), ["failed"]);
  assertEquals(ballot.mayStand, 0);
  await bench.close();
});

// Leftovers

Deno.test("RedisNode keeps a release that was not sent, and sends it whole on the next connection", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  assertEquals(bench.release().answers, [["failed", 0, LOST]]);
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

Deno.test("RedisNode keeps a release of several keys", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release(new FakeBallot(["k", "é"]));
  assertEquals(await bench.reconnect(), leftover("v", "k", "é"));
  await bench.close();
});

Deno.test("RedisNode keeps a release whose reply got lost", async () => {
  const bench = new Bench();
  await bench.open();
  const ballot = bench.release();
  await runMicrotasks();
  await bench.hangUp();
  assertEquals(ballot.answers, [["failed", 0, LOST]]);
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

Deno.test("RedisNode keeps a release whose script was not sent after NOSCRIPT", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.release();
  await runMicrotasks();
  transport.feed(`${NOSCRIPT}*x\r\n`);
  await runMicrotasks();
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

Deno.test("RedisNode keeps a release that waited for a first connection that could not be made", async () => {
  const bench = new Bench();
  bench.network.mode = "refuse";
  bench.release();
  await runMicrotasks();
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

Deno.test("RedisNode keeps no release where no key of the seat can stand", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  const ballot = new FakeBallot();
  ballot.mayStand = 0b1011;
  bench.ask("release", ballot, 2);
  assertEquals(await bench.reconnect(), "");
  await bench.close();
});

for (const operation of ["acquire", "extend"] as const) {
  Deno.test(`RedisNode never sends ${operation}() again, whatever became of it`, async () => {
    const bench = new Bench();
    await bench.open();
    bench.ask(operation);
    await runMicrotasks();
    await bench.hangUp();
    bench.ask(operation);
    assertEquals(await bench.reconnect(), "");
    await bench.close();
  });
}

Deno.test("RedisNode sends leftovers in order, before anything else on the new connection", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release(new FakeBallot("k", "v1"));
  bench.release(new FakeBallot("l", "v2"));
  bench.network.mode = "wait";
  await bench.clock.advance(RECONNECT_MS);
  bench.network.pending[0].accept();
  while (bench.events.length < 2) await Promise.resolve();
  bench.ask("acquire");
  await runMicrotasks();
  assertEquals(
    bench.network.last.writes,
    [leftover("v1", "k") + leftover("v2", "l") + wire("SET", "k", "v", "NX", "PX", "1000")],
  );
  await bench.close();
});

for (const reply of [":1\r\n", ":0\r\n", "-WRONGTYPE Operation against a key\r\n", "-OOM no\r\n"]) {
  Deno.test(`RedisNode is done with a leftover by ${JSON.stringify(reply)}`, async () => {
    const bench = new Bench();
    await bench.open();
    await bench.hangUp();
    const ballot = bench.release();
    await bench.reconnect();
    await bench.answer(reply);
    await bench.clock.advance(BUSY_DELAY_MS);
    assertEquals(bench.network.last.written, "");
    await bench.hangUp();
    assertEquals(await bench.reconnect(), "");
    assertEquals(ballot.answers.length, 1); // whoever released heard the failure, and nothing since
    await bench.close();
  });
}

Deno.test("RedisNode hands no reply to a leftover to the command behind it", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release();
  await bench.reconnect();
  const ballot = bench.ask("acquire");
  await runMicrotasks();
  await bench.answer(":1\r\n$-1\r\n");
  assertEquals(ballot.answers.map(([outcome]) => outcome), ["denied"]);
  await bench.close();
});

Deno.test("RedisNode keeps a leftover again when its connection breaks too", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release();
  for (let breaks = 0; breaks < 3; breaks++) {
    assertEquals(await bench.reconnect(), leftover());
    await bench.hangUp();
  }
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

for (const busy of ["LOADING Redis is loading the dataset in memory", "BUSY Redis is busy"]) {
  const [prefix] = busy.split(" ");

  Deno.test(`RedisNode sends a release again half a second after ${prefix}`, async () => {
    const bench = new Bench();
    const transport = await bench.open();
    const ballot = bench.release();
    await runMicrotasks();
    await bench.answer(`-${busy}\r\n`);
    assertEquals(ballot.answers, [["failed", 0, busy]]);
    await bench.clock.advance(BUSY_DELAY_MS - 1);
    assertEquals(transport.written, "");
    await bench.clock.advance(1);
    await runMicrotasks();
    assertEquals(transport.writes, [leftover()]);
    await bench.answer(":1\r\n");
    await bench.clock.advance(2 * BUSY_DELAY_MS);
    assertEquals(transport.written, "");
    await bench.close();
  });

  Deno.test(`RedisNode sends a leftover again and again while the server says ${prefix}, within its TTL`, async () => {
    const bench = new Bench();
    const transport = await bench.open();
    const ballot = new FakeBallot();
    ballot.ttlMs = 3 * BUSY_DELAY_MS;
    bench.release(ballot);
    await runMicrotasks();
    const sent: string[] = [];
    for (let replies = 0; replies < 5; replies++) {
      await bench.answer(`-${busy}\r\n`);
      await bench.clock.advance(BUSY_DELAY_MS);
      await runMicrotasks();
      if (transport.written === "") break;
      sent.push(transport.written);
    }
    assertEquals(sent, [leftover(), leftover()]);
    await bench.close();
  });

  Deno.test(`RedisNode sends nothing again that would set a key after ${prefix}`, async () => {
    const bench = new Bench();
    const transport = await bench.open();
    bench.ask("acquire");
    bench.ask("extend");
    await runMicrotasks();
    await bench.answer(`-${busy}\r\n-${busy}\r\n`);
    await bench.clock.advance(2 * BUSY_DELAY_MS);
    assertEquals(transport.written, "");
    await bench.close();
  });
}

Deno.test("RedisNode sends several releases that met a busy server together", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.release(new FakeBallot("k", "v1"));
  bench.release(new FakeBallot("k", "v2"));
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n-BUSY no\r\n");
  await bench.clock.advance(BUSY_DELAY_MS);
  await runMicrotasks();
  assertEquals(transport.writes, [leftover("v1") + leftover("v2")]);
  await bench.close();
});

Deno.test("RedisNode sends a release that met a busy server on the next connection, if that is sooner, and once", async () => {
  const bench = new Bench();
  await bench.open();
  bench.release();
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n");
  await bench.hangUp();
  assertEquals(await bench.reconnect(), leftover());
  await bench.answer(":1\r\n");
  await bench.clock.advance(2 * BUSY_DELAY_MS);
  assertEquals(bench.network.last.written, "");
  await bench.close();
});

Deno.test("RedisNode keeps a release that met a busy server while it is down when the half second is over", async () => {
  const bench = new Bench();
  await bench.open();
  bench.release(Object.assign(new FakeBallot(), { ttlMs: 10_000 }));
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n");
  bench.network.mode = "refuse";
  await bench.hangUp();
  await bench.clock.advance(BUSY_DELAY_MS + 100);
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

for (const [passedMs, sent] of [[999, leftover()], [1_000, ""]] as const) {
  Deno.test(`RedisNode ${sent ? "sends" : "drops"} a leftover of a second when ${passedMs} ms have passed`, async () => {
    const bench = new Bench();
    await bench.open();
    bench.network.mode = "wait";
    await bench.hangUp();
    bench.release();
    await bench.clock.advance(passedMs);
    bench.network.pending[0].accept();
    await runMicrotasks();
    assertEquals(bench.network.last.written, sent);
    await bench.close();
  });
}

Deno.test("RedisNode counts a leftover's time from its first failure, however often it is kept again", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release();
  assertEquals(await bench.reconnect(), leftover());
  await bench.clock.advance(600);
  bench.network.mode = "refuse";
  await bench.hangUp();
  await bench.clock.advance(400);
  assertEquals(await bench.reconnect(), "");
  await bench.close();
});

Deno.test("RedisNode drops the oldest leftover for one more than it keeps", async () => {
  const bench = new Bench({ connectTimeoutMs: 60_000 });
  await bench.open();
  await bench.hangUp();
  for (let count = 0; count <= LEFTOVERS_MAX; count++) {
    bench.release(new FakeBallot(`key${count}`));
  }
  const expected = Array.from({ length: LEFTOVERS_MAX }, (_, index) => {
    return leftover("v", `key${index + 1}`);
  });
  assertEquals(await bench.reconnect(), expected.join(""));
  await bench.close();
});

Deno.test("RedisNode.close() forgets leftovers, and leaves no timer", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.release();
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n");
  await bench.close();
  await bench.clock.advance(2 * BUSY_DELAY_MS);
  assertEquals([transport.written, bench.network.transports.length], ["", 1]);
});

// Inspecting

Deno.test("RedisNode.inspect() asks for the value and the TTL in one piece", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const inspecting = bench.node.inspect("é");
  await runMicrotasks();
  assertEquals(transport.writes, [wire("GET", "é") + wire("PTTL", "é")]);
  await bench.answer("$1\r\nv\r\n:700\r\n");
  assertEquals(await inspecting, { value: "v", remainingMs: 700 });
  await bench.close();
});

for (
  const [what, replies, state] of [
    ["a key without a TTL", "$1\r\nv\r\n:-1\r\n", { value: "v", remainingMs: Infinity }],
    ["a key in its last millisecond", "$1\r\nv\r\n:0\r\n", { value: "v", remainingMs: 0 }],
    ["an empty value", "$0\r\n\r\n:5\r\n", { value: "", remainingMs: 5 }],
    ["a value that begins with a BOM", "$4\r\n\uFEFFv\r\n:5\r\n", {
      value: "\uFEFFv",
      remainingMs: 5,
    }],
    ["no key", "$-1\r\n:-2\r\n", undefined],
    ["a key that expired in between", "$1\r\nv\r\n:-2\r\n", undefined],
    ["a key that was set in between", "$-1\r\n:700\r\n", undefined],
  ] as const
) {
  Deno.test(`RedisNode.inspect() of ${what} is ${Deno.inspect(state)}`, async () => {
    const bench = new Bench();
    await bench.open();
    const inspecting = bench.node.inspect("k");
    await runMicrotasks();
    await bench.answer(replies);
    assertEquals(await inspecting, state);
    await bench.close();
  });
}

for (
  const [what, replies] of [
    ["GET", "-WRONGTYPE no string\r\n:-1\r\n"],
    ["PTTL", "$1\r\nv\r\n-WRONGTYPE no string\r\n"],
    ["both", "-WRONGTYPE no string\r\n-WRONGTYPE no other\r\n"],
  ] as const
) {
  Deno.test(`RedisNode.inspect() rejects with an error reply to ${what}`, async () => {
    const bench = new Bench();
    await bench.open();
    const rejected = assertRejects(() => bench.node.inspect("k"), ReplyError);
    await runMicrotasks();
    await bench.answer(replies);
    assertEquals((await rejected).message, "WRONGTYPE no string");
    await bench.close();
  });
}

for (
  const [what, replies] of [
    ["GET", ":5\r\n:700\r\n"],
    ["GET", "*0\r\n:700\r\n"],
    ["PTTL", "$1\r\nv\r\n$-1\r\n"],
    ["PTTL", "$1\r\nv\r\n+soon\r\n"],
  ] as const
) {
  Deno.test(`RedisNode.inspect() rejects where ${what} is answered by what is none: ${JSON.stringify(replies)}`, async () => {
    const bench = new Bench();
    await bench.open();
    const outcome = bench.node.inspect("k").catch((error) => error);
    await runMicrotasks();
    await bench.answer(replies);
    assertInstanceOf(await outcome, ProtocolError);
    await bench.close();
  });
}

Deno.test("RedisNode.inspect() rejects where the connection breaks between the two replies", async () => {
  const bench = new Bench();
  await bench.open();
  const rejected = assertRejects(() => bench.node.inspect("k"), ConnectionError);
  await runMicrotasks();
  await bench.answer("$1\r\nv\r\n");
  await bench.hangUp();
  assertEquals((await rejected).message, LOST);
  await bench.close();
});

Deno.test("RedisNode.inspect() rejects at once while the node is down", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  assertEquals((await assertRejects(() => bench.node.inspect("k"), ConnectionError)).message, LOST);
  await bench.close();
});
