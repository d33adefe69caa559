import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { isMessage } from "../../../src/redis/reply.ts";
import { ConnectionBench, test } from "../../support/connection_bench.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeTransport, PING, wire } from "../../support/fake_transport.ts";
import { NAME } from "../../support/stream_bench.ts";

const decoder = new TextDecoder();

// Targets

for (
  const [address, target] of [
    ["redis://h", { kind: "tcp", hostname: "h", port: 6379 }],
    ["redis://[::1]:7", { kind: "tcp", hostname: "::1", port: 7 }],
    ["rediss://h", { kind: "tls", hostname: "h", port: 6379, tls: { serverName: "s" } }],
    ["redis+unix:///run/r.sock", { kind: "unix", path: "/run/r.sock" }],
  ] as const
) {
  test(`Connection connects to ${address} for the first command, and not before`, async (bench) => {
    bench.use({ tls: { serverName: "s" } }, address);
    await runMicrotasks();
    assertEquals(bench.network.targets, []);
    await bench.submit(1);
    assertEquals([bench.network.targets, bench.transport.writes], [[target], [PING]]);
  });
}

test("Connection lets the process end while it is idle", async (bench) => {
  let unrefs = 0;
  bench.network.make = () => Object.assign(new FakeTransport(), { unref: () => unrefs++ });
  await bench.open();
  assertEquals([unrefs, bench.clock.timersAlive], [1, 0]);
});

// Writing

test.open("Connection writes in one piece what one tick queues, its microtasks included", async (bench) => {
  queueMicrotask(() => bench.queue(3));
  bench.queue(1, "SET", "k", "é");
  await bench.submit(2);
  assertEquals(bench.transport.writes, [wire("SET", "k", "é") + PING + PING]);
});

test.open("Connection writes early what a long tick queues, and the rest at its end", async (bench) => {
  for (let index = 0; index < 700; index++) bench.queue(index);
  assertEquals(bench.written, PING.repeat(256)); // one write at a time
  await runMicrotasks();
  assertEquals(bench.written, PING.repeat(700));
});

test.open("Connection has one write under way, reads meanwhile, and then writes all that was queued, part by part", async (bench) => {
  const { transport } = bench;
  const write = transport.write.bind(transport);
  const first = Promise.withResolvers<void>();
  transport.write = async (bytes) => {
    const written = await write(bytes.subarray(0, 20));
    await first.promise;
    return written;
  };
  for (const id of [1, 2, 3]) await bench.submit(id);
  await bench.feed(":1\r\n");
  assertEquals([transport.writes, bench.replies], [[PING], [[1, 1]]]);
  first.resolve();
  await runMicrotasks();
  assertEquals([transport.writes.length, bench.written], [3, PING + PING + PING]);
});

Deno.test("Connection writes no further part of a command once it is lost", async () => {
  const bench = await new ConnectionBench().open();
  const first = Promise.withResolvers<number>();
  let writes = 0;
  bench.transport.write = () => (writes++, first.promise);
  await bench.submit(1);
  bench.connection.lose("was lost");
  first.resolve(1);
  await runMicrotasks();
  assertEquals(writes, 1);
  await bench.close();
});

test.open("Connection limits the commands that wait, and keeps room for those that undo others", (bench) => {
  const message =
    `Connection to ${NAME} has at least ${QUEUE_LENGTH_MAX} commands waiting for replies`;
  for (let index = 0; index < QUEUE_LENGTH_MAX; index++) {
    assertEquals(bench.connection.crowded, undefined);
    bench.queue(index);
  }
  assertEquals(bench.connection.crowded?.message, message);
  assertStrictEquals(bench.connection.crowded, bench.connection.crowded);
  for (let index = 0; index < QUEUE_LENGTH_MAX; index++) bench.queue(index);
  assertEquals(bench.replies, []);
});

// Reading

test.open("Connection gives a reply bytes of its own, and reads one that is longer than its buffer", async (bench) => {
  const text = "x".repeat(50_000);
  for (const id of [1, 2]) bench.queue(id);
  await bench.feed("$3\r\nabc\r\n");
  await bench.feed(`$${text.length}\r\n${text}\r\n`);
  const texts = bench.replies.map(([, reply]) => decoder.decode(reply as Uint8Array));
  assertEquals(texts, ["abc", text]);
});

test.open("Connection lets other work have its turn while a server sends arrays without end", async (bench) => {
  for (let id = 0; id < 20; id++) {
    bench.queue(id);
    bench.transport.feed(`*4000\r\n${":1\r\n".repeat(4_000)}`);
  }
  await runMicrotasks();
  const read = bench.replies.length;
  assert(read >= 4 && read <= 6, `${read} arrays were read without a turn`);
  await bench.advance(0);
  assertEquals(bench.replies.length, 20);
});

test.open("Connection reads other replies without a turn, because each answers a command", async (bench) => {
  for (let id = 0; id < QUEUE_LENGTH_MAX; id++) bench.queue(id);
  await bench.feed("+OK\r\n".repeat(QUEUE_LENGTH_MAX));
  assertEquals(bench.replies.length, QUEUE_LENGTH_MAX);
});

test("Connection reads into 1 kB until a read fills it, then into twice as much, up to 16 kB", async (bench) => {
  bench.network.make = () => new FakeTransport(); // one of promises
  const { transport } = await bench.open();
  const lengths: number[] = [];
  const read = transport.read.bind(transport);
  transport.read = (buffer) => {
    lengths.push(buffer.length);
    return read(buffer);
  };
  bench.queue(1);
  bench.queue(2);
  await bench.feed(":1\r\n");
  assertEquals(lengths, [1_024]);
  await bench.feed(`$60000\r\n${"x".repeat(60_000)}\r\n`);
  assertEquals(lengths.slice(1, 6), [2_048, 4_096, 8_192, 16_384, 16_384]);
  assertEquals(bench.replies.length, 2);
});

// Messages of channels

const MESSAGE = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n";
const RECEIVED = ["news: hi"];

/** A connection that notes messages among the replies. */
const testSubscribed = (title: string, act: Parameters<typeof test>[1]) =>
  test(title, async (bench) => {
    bench.use({
      takesMessage(reply) {
        if (!isMessage(reply)) return false;
        const [, ...parts] = reply;
        bench.replies.push([parts.map((part) => decoder.decode(part)).join(": ")]);
        return true;
      },
    });
    await bench.open();
    await act(bench);
  });

for (
  const [what, bytes, received] of [
    ["before", `${MESSAGE}:1\r\n:2\r\n`, [RECEIVED, [1, 1], [2, 2]]],
    ["between", `:1\r\n${MESSAGE}${MESSAGE}:2\r\n`, [[1, 1], RECEIVED, RECEIVED, [2, 2]]],
    ["after", `:1\r\n:2\r\n${MESSAGE}`, [[1, 1], [2, 2], RECEIVED]],
  ] as const
) {
  testSubscribed(
    `Connection passes replies on in order, with messages ${what} them, whole and byte by byte`,
    async (bench) => {
      for (const pieces of [[bytes], bytes]) {
        bench.replies.length = 0;
        for (const id of [1, 2]) bench.queue(id);
        for (const piece of pieces) await bench.feed(piece);
        assertEquals<unknown>(bench.replies, received);
      }
    },
  );
}

testSubscribed(
  "Connection passes messages on while no reply is due, also an empty one and one that looks like a reply",
  async (bench) => {
    const head = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n";
    await bench.feed(MESSAGE);
    await bench.feed(`${head}$0\r\n\r\n${head}$4\r\n:1\r\n\r\n`);
    assertEquals(bench.replies, [RECEIVED, ["news: "], ["news: :1\r\n"]]);
    assertEquals([bench.events, bench.transport.closed], [[], false]);
  },
);

for (
  const [what, reply] of [
    ["a notice of a subscription", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"],
    ["a PONG of a subscriber", "*2\r\n$4\r\npong\r\n$0\r\n\r\n"],
    ["another array of three", "*3\r\n$7\r\nmassage\r\n$4\r\nnews\r\n$2\r\nhi\r\n"],
    ["an array of four", "*4\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n:1\r\n"],
    ["a message whose text is a number", "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n:1\r\n"],
    ["the word alone", "$7\r\nmessage\r\n"],
  ] as const
) {
  testSubscribed(`Connection with a subscription takes ${what} for a reply`, async (bench) => {
    await bench.submit(1);
    await bench.feed(reply);
    assertEquals(bench.replies.map(([first]) => first), [1]);
  });
}

test.open("Connection without a subscription takes what looks like a message for a reply", async (bench) => {
  await bench.submit(1, "LRANGE", "list", "0", "-1");
  await bench.feed(MESSAGE);
  const [[, words]] = bench.replies as [number, Uint8Array[]][];
  assertEquals(words.map((word) => decoder.decode(word)), ["message", "news", "hi"]);
});

testSubscribed(
  "Connection with a subscription is lost by a reply that nobody asked for",
  async (bench) => {
    await bench.feed(`${MESSAGE}:1\r\n+more\r\n`);
    assertEquals(bench.replies, [RECEIVED]);
    assertEquals(bench.events, [`Connection to ${NAME} sent a reply that nobody asked for`]);
  },
);

test.open("Connection writes what a test has submitted that had faked queueMicrotask", async (bench) => {
  const { queueMicrotask } = globalThis;
  globalThis.queueMicrotask = () => {};
  bench.queue(1);
  globalThis.queueMicrotask = queueMicrotask;
  await bench.submit(2);
  assertEquals(bench.written, PING.repeat(2));
});
