import { assertEquals } from "@std/assert";
import { Bench } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";

const decoder = new TextDecoder();
const MESSAGE = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n";
const HEARD = "news: hi";

/** A connection that writes messages down among the replies. */
function listeningBench(): Bench {
  const bench: Bench = new Bench({
    onMessage: (channel, message) => {
      bench.replies.push([`${decoder.decode(channel)}: ${decoder.decode(message)}`]);
    },
  });
  return bench;
}

for (
  const [what, bytes, heard] of [
    ["before", `${MESSAGE}:1\r\n:2\r\n`, [[HEARD], [1, 1], [2, 2]]],
    ["between", `:1\r\n${MESSAGE}${MESSAGE}:2\r\n`, [[1, 1], [HEARD], [HEARD], [2, 2]]],
    ["after", `:1\r\n:2\r\n${MESSAGE}`, [[1, 1], [2, 2], [HEARD]]],
  ] as const
) {
  Deno.test(`Connection hands out replies in order, with messages ${what} them`, async () => {
    const bench = listeningBench();
    const transport = await bench.open();
    bench.submit(1);
    bench.submit(2);
    await runMicrotasks();
    transport.feed(bytes);
    await runMicrotasks();
    assertEquals(bench.replies, heard as unknown);
    await advanceUntil(bench.clock, bench.connection.close());
  });

  Deno.test(`Connection hands out replies in order, with messages ${what} them that come byte by byte`, async () => {
    const bench = listeningBench();
    const transport = await bench.open();
    bench.submit(1);
    bench.submit(2);
    await runMicrotasks();
    for (const byte of bytes) transport.feed(byte);
    await runMicrotasks();
    assertEquals(bench.replies, heard as unknown);
    await advanceUntil(bench.clock, bench.connection.close());
  });
}

Deno.test("Connection takes messages while no reply is due, and stays open", async () => {
  const bench = listeningBench();
  const transport = await bench.open();
  transport.feed(MESSAGE);
  await runMicrotasks();
  transport.feed(MESSAGE);
  await runMicrotasks();
  assertEquals([bench.replies, bench.events, transport.closed], [[[HEARD], [HEARD]], [], false]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection takes a message of no bytes, and one that looks like a reply", async () => {
  const messages: string[] = [];
  const bench = new Bench({
    onMessage: (_channel, message) => messages.push(decoder.decode(message)),
  });
  const transport = await bench.open();
  bench.submit(1);
  await runMicrotasks();
  const head = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n";
  transport.feed(`${head}$0\r\n\r\n${head}$4\r\n:1\r\n\r\n:2\r\n`);
  await runMicrotasks();
  assertEquals([messages, bench.replies], [["", ":1\r\n"], [[1, 2]]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

for (
  const [what, reply] of [
    ["a notice of a subscription", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"],
    ["a PONG of a subscriber", "*2\r\n$4\r\npong\r\n$0\r\n\r\n"],
    ["another array of three", "*3\r\n$7\r\nmassage\r\n$4\r\nnews\r\n$2\r\nhi\r\n"],
    ["an array of four", "*4\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n:1\r\n"],
    ["a message that is none", "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n:1\r\n"],
    ["the word alone", "$7\r\nmessage\r\n"],
  ] as const
) {
  Deno.test(`Connection that listens takes ${what} for a reply`, async () => {
    const bench = listeningBench();
    const transport = await bench.open();
    bench.submit(1);
    await runMicrotasks();
    transport.feed(reply);
    await runMicrotasks();
    assertEquals(bench.replies.map(([first]) => first), [1]);
    await advanceUntil(bench.clock, bench.connection.close());
  });
}

Deno.test("Connection that listens to nothing takes what looks like a message for a reply", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1, "LRANGE", "list", "0", "-1");
  await runMicrotasks();
  transport.feed(MESSAGE);
  await runMicrotasks();
  const words = bench.replies.map(([, reply]) =>
    (reply as Uint8Array[]).map((word) => decoder.decode(word))
  );
  assertEquals(words, [["message", "news", "hi"]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection is lost by a reply that nobody asked for, also where it listens", async () => {
  const bench = listeningBench();
  const transport = await bench.open();
  transport.feed(`${MESSAGE}:1\r\n`);
  await runMicrotasks();
  assertEquals(bench.replies, [[HEARD]]);
  assertEquals(bench.events, ["Connection to redis://h:6379 sent a reply that nobody asked for"]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection logs in as ever where it listens", async () => {
  const heard: string[] = [];
  const bench = new Bench({
    clientName: "worker",
    onMessage: (_channel, message) => heard.push(decoder.decode(message)),
  });
  bench.submit(1);
  await runMicrotasks();
  const transport = bench.network.last;
  assertEquals(transport.written, wire("CLIENT", "SETNAME", "worker"));
  transport.feed("+OK\r\n");
  await runMicrotasks();
  transport.feed(`${MESSAGE}+PONG\r\n`);
  await runMicrotasks();
  assertEquals([heard, bench.replies], [["hi"], [[1, "PONG"]]]);
  await advanceUntil(bench.clock, bench.connection.close());
});
