import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { ProtocolError } from "../../../src/redis/errors.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeTransport } from "../../support/fake_transport.ts";
import { WireBench } from "../../support/wire_bench.ts";

/** An array of `length` elements on the wire. */
function array(length: number): string {
  return `*${length}\r\n${":1\r\n".repeat(length)}`;
}

Deno.test("Wire lets other work have its turn while a server sends arrays without end", async () => {
  const bench = new WireBench();
  const turns = () => bench.events.filter((event) => event === "turn").length;
  for (let times = 0; times < 20; times++) bench.transport.feed(array(4_000));
  await runMicrotasks();
  const read = bench.events.filter(Array.isArray).length;
  assert(read >= 4 && read <= 6, `${read} arrays were read without a turn`);
  assertEquals(turns(), 1);
  bench.turns[0]();
  await runMicrotasks();
  assertEquals(turns(), 2);
  for (let turn = 1; turn < bench.turns.length; turn++) {
    bench.turns[turn]();
    await runMicrotasks();
  }
  assertEquals(bench.events.filter(Array.isArray).length, 20);
  await bench.wire.close();
});

Deno.test("Wire asks for no turn while a server sends other replies, as each answers a command", async () => {
  const bench = new WireBench();
  bench.transport.feed("+OK\r\n".repeat(50_000));
  await runMicrotasks();
  assertEquals(bench.events.filter((event) => event === "OK").length, 50_000);
  assertEquals(bench.turns.length, 0);
  await bench.wire.close();
});

Deno.test("Wire.close() while other work has its turn reads nothing more", async () => {
  const bench = new WireBench();
  for (let times = 0; times < 8; times++) bench.transport.feed(array(4_000));
  await runMicrotasks();
  const read = bench.events.filter(Array.isArray).length;
  const closing = bench.wire.close();
  bench.turns[0]();
  await closing;
  assertEquals(bench.events.filter(Array.isArray).length, read);
});

Deno.test("Wire decodes no more of a chunk once it was closed", async () => {
  const bench = new WireBench(new FakeTransport(), { password: "hunter2" });
  let seen = 0;
  bench.onReplyHook = () => {
    if (++seen === 1) bench.wire.close();
  };
  bench.transport.feed("-\r\n".repeat(5_000));
  await runMicrotasks();
  assertEquals(seen, 1);
  await bench.wire.close();
});

Deno.test("Wire is lost by a reply that is longer than its options allow", async () => {
  const bench = new WireBench(new FakeTransport(), { replyBytesMax: 10, replyElementsMax: 2 });
  bench.transport.feed("*2\r\n:1\r\n:2\r\n*3\r\n");
  await runMicrotasks();
  const [, reply, lost, cause] = bench.events;
  assertEquals([reply, lost], [[1, 2], "lost"]);
  assertInstanceOf(cause, ProtocolError);
});
