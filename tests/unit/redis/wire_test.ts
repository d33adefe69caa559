import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { ProtocolError } from "../../../src/redis/errors.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeTransport } from "../../support/fake_transport.ts";
import { WireBench } from "../../support/wire_bench.ts";

const encoder = new TextEncoder();

/** Says whether `promise` has settled. */
function watch(promise: Promise<unknown>): () => boolean {
  let settled = false;
  const settle = () => settled = true;
  promise.then(settle, settle);
  return () => settled;
}

// Opening

Deno.test("Wire lets the process end although its stream is open", async () => {
  let unrefs = 0;
  const transport = Object.assign(new FakeTransport(), { unref: () => void unrefs++ });
  const bench = new WireBench(transport);
  assertEquals(unrefs, 1);
  await bench.wire.close();
});

Deno.test("Wire writes nothing before it is told to", async () => {
  const bench = new WireBench();
  await runMicrotasks();
  assertEquals([bench.taken, bench.transport.writes], [0, []]);
  await bench.wire.close();
});

// Writing

Deno.test("Wire.flush() has one write a tick, however often it is called", async () => {
  const bench = new WireBench();
  bench.send("a", "b", "c");
  assertEquals(bench.transport.writes, []); // later in this tick more may come
  await runMicrotasks();
  assertEquals(bench.transport.writes, ["abc"]);
  bench.send("d");
  await runMicrotasks();
  assertEquals(bench.transport.writes, ["abc", "d"]);
  await bench.wire.close();
});

Deno.test("Wire.flush() takes in what microtasks of the same tick queue before the write", async () => {
  const bench = new WireBench();
  queueMicrotask(() => bench.send("b"));
  bench.send("a");
  await runMicrotasks();
  assertEquals(bench.transport.writes, ["ab"]);
  await bench.wire.close();
});

Deno.test("Wire.flush() with nothing to write writes nothing, and the next one works", async () => {
  const bench = new WireBench();
  bench.wire.flush();
  await runMicrotasks();
  assertEquals([bench.taken, bench.transport.writes], [1, []]);
  bench.send("a");
  await runMicrotasks();
  assertEquals(bench.transport.writes, ["a"]);
  await bench.wire.close();
});

for (const writeBytesMax of [1, 2, 3, 4]) {
  Deno.test(`Wire goes on with what is left where a write takes ${writeBytesMax} bytes at the most`, async () => {
    const bench = new WireBench();
    bench.transport.writeBytesMax = writeBytesMax;
    bench.send("abcdefgh");
    await runMicrotasks();
    assertEquals(bench.transport.written, "abcdefgh");
    assertEquals(bench.transport.writes.length, Math.ceil(8 / writeBytesMax));
    await bench.wire.close();
  });
}

Deno.test("Wire writes what is queued between two short writes behind the rest of the first piece", async () => {
  const bench = new WireBench();
  const { transport } = bench;
  transport.writeBytesMax = 2;
  const write = transport.write.bind(transport);
  transport.write = (bytes) => {
    if (transport.writes.length === 1) bench.send("XY");
    return write(bytes);
  };
  bench.send("abcde");
  await runMicrotasks();
  assertEquals(transport.writes, ["ab", "cd", "e", "XY"]);
  await bench.wire.close();
});

Deno.test("Wire.flush() while a write is under way waits for it, then writes what came in one piece", async () => {
  const bench = new WireBench();
  const { transport } = bench;
  const write = transport.write.bind(transport);
  const first = Promise.withResolvers<void>();
  transport.write = async (bytes) => {
    const written = await write(bytes);
    await first.promise;
    return written;
  };
  bench.send("a");
  await runMicrotasks();
  bench.send("b");
  await runMicrotasks();
  bench.send("c");
  await runMicrotasks();
  assertEquals(transport.writes, ["a"]);
  first.resolve();
  await runMicrotasks();
  assertEquals(transport.writes, ["a", "bc"]);
  await bench.wire.close();
});

Deno.test("Wire reads on while a write does not settle", async () => {
  const bench = new WireBench();
  bench.transport.writesHang = true;
  bench.send("a");
  await runMicrotasks();
  bench.send("b");
  bench.transport.feed("+OK\r\n");
  await runMicrotasks();
  assertEquals(bench.events, ["bytes", "OK"]);
  assertEquals(bench.transport.writes, ["a"]);
  await bench.wire.close();
});

// Reading

Deno.test("Wire tells of bytes before the replies in them, and of incomplete ones too", async () => {
  const bench = new WireBench();
  bench.transport.feed("+O");
  await runMicrotasks();
  assertEquals(bench.events, ["bytes"]);
  bench.transport.feed("K\r\n:7\r\n$-1\r\n");
  await runMicrotasks();
  assertEquals(bench.events, ["bytes", "bytes", "OK", 7, null]);
  await bench.wire.close();
});

Deno.test("Wire reads a reply that is longer than its buffer", async () => {
  const bench = new WireBench();
  const text = "x".repeat(50_000);
  bench.transport.feed(`$${text.length}\r\n${text}\r\n+OK\r\n`);
  await runMicrotasks();
  const replies = bench.events.filter((event) => event !== "bytes");
  assertInstanceOf(replies[0], Uint8Array);
  assertEquals(new TextDecoder().decode(replies[0]), text);
  assertEquals(replies.slice(1), ["OK"]);
  await bench.wire.close();
});

Deno.test("Wire gives a reply bytes of its own, which later reads leave alone", async () => {
  const bench = new WireBench();
  bench.transport.feed("$3\r\nabc\r\n");
  await runMicrotasks();
  bench.transport.feed("$3\r\nxyz\r\n");
  await runMicrotasks();
  const [, first] = bench.events;
  assertEquals(first, encoder.encode("abc"));
  await bench.wire.close();
});

// Losing it

Deno.test("Wire is lost when the server ends the stream, and closes it", async () => {
  const bench = new WireBench();
  bench.transport.end();
  await runMicrotasks();
  const [event, cause] = bench.events;
  assertEquals(event, "lost");
  assertInstanceOf(cause, Error);
  assertEquals(cause.message, "the server closed the connection");
  assertEquals(bench.transport.closed, true);
});

Deno.test("Wire is lost when a read fails, with the failure as the cause", async () => {
  const bench = new WireBench();
  const failure = new Error("connection reset");
  bench.transport.fail(failure);
  await runMicrotasks();
  assertEquals([bench.events[0], bench.transport.closed], ["lost", true]);
  assertStrictEquals(bench.events[1], failure);
});

Deno.test("Wire is lost when a write fails, with the failure as the cause", async () => {
  const bench = new WireBench();
  const failure = bench.transport.writeError = new Error("broken pipe");
  bench.send("a");
  await runMicrotasks();
  assertEquals([bench.events[0], bench.transport.closed], ["lost", true]);
  assertStrictEquals(bench.events[1], failure);
});

Deno.test("Wire is lost by bytes that are no RESP2, after the replies before them", async () => {
  const bench = new WireBench();
  bench.transport.feed("+OK\r\n*x\r\n");
  await runMicrotasks();
  assertEquals(bench.events.slice(0, 3), ["bytes", "OK", "lost"]);
  assertInstanceOf(bench.events[3], ProtocolError);
  assertEquals(bench.transport.closed, true);
});

Deno.test("Wire is lost once where its read and its write fail together", async () => {
  const bench = new WireBench();
  bench.transport.writeError = new Error("broken pipe");
  bench.send("a");
  bench.transport.fail(new Error("connection reset"));
  await runMicrotasks();
  assertEquals(bench.events.filter((event) => event === "lost").length, 1);
});

Deno.test("Wire that was lost writes no more, and close() settles", async () => {
  const bench = new WireBench();
  bench.transport.end();
  await runMicrotasks();
  bench.send("a");
  await runMicrotasks();
  assertEquals([bench.taken, bench.transport.writes], [0, []]);
  await bench.wire.close();
  assertEquals(bench.events.filter((event) => event === "lost").length, 1);
});

// Closing

for (
  const [state, prepare] of [
    ["that is idle", () => {}],
    ["with a flush queued", (bench: WireBench) => bench.send("a")],
    ["with half a reply read", async (bench: WireBench) => {
      bench.transport.feed("$3\r\na");
      await runMicrotasks();
    }],
    ["with a write that hangs", async (bench: WireBench) => {
      bench.transport.writesHang = true;
      bench.send("a");
      await runMicrotasks();
    }],
    ["that wrote and was answered", async (bench: WireBench) => {
      bench.send("a");
      bench.transport.feed("+OK\r\n");
      await runMicrotasks();
    }],
    ["whose stream throws when it is closed", (bench: WireBench) => {
      const close = bench.transport.close.bind(bench.transport);
      bench.transport.close = () => {
        close();
        throw new Error("closed already");
      };
    }],
  ] as const
) {
  Deno.test(`Wire.close() of one ${state} settles, again too, and is no loss`, async () => {
    const bench = new WireBench();
    await prepare(bench);
    const writes = bench.transport.writes.length;
    await Promise.all([bench.wire.close(), bench.wire.close()]);
    await bench.wire.close();
    await runMicrotasks();
    assertEquals(bench.transport.closed, true);
    assertEquals(bench.transport.writes.length, writes);
    assertEquals(bench.events.includes("lost"), false);
  });
}

Deno.test("Wire.close() closes the stream at once, and only once", async () => {
  const bench = new WireBench();
  let closes = 0;
  const close = bench.transport.close.bind(bench.transport);
  bench.transport.close = () => {
    closes++;
    close();
  };
  const closing = bench.wire.close();
  assertEquals(closes, 1);
  await closing;
  await bench.wire.close();
  assertEquals(closes, 1);
});

for (const what of ["read", "write"] as const) {
  Deno.test(`Wire.close() waits for a ${what} that its stream leaves pending`, async () => {
    const bench = new WireBench();
    const { transport } = bench;
    const pending = Promise.withResolvers<number>();
    transport[what] = () => pending.promise;
    if (what === "read") { // the one under way was asked of the stream itself
      transport.feed("+OK\r\n");
      await runMicrotasks();
    } else bench.send("a");
    await runMicrotasks();
    const settled = watch(bench.wire.close());
    await runMicrotasks();
    assertEquals(settled(), false);
    pending.reject(new Error("late"));
    await runMicrotasks();
    assertEquals([settled(), bench.events.includes("lost")], [true, false]);
  });
}

Deno.test("Wire.flush() after close() writes nothing", async () => {
  const bench = new WireBench();
  await bench.wire.close();
  bench.send("a");
  await runMicrotasks();
  assertEquals([bench.taken, bench.transport.writes], [0, []]);
});

Deno.test("Wire tells of nothing that comes after close()", async () => {
  const bench = new WireBench();
  bench.transport.closeHangs = true;
  const closing = bench.wire.close();
  bench.transport.feed("+OK\r\n");
  await closing;
  assertEquals(bench.events, []);
});

Deno.test("Wire hands on no further reply of one chunk once its owner has closed it", async () => {
  const bench = new WireBench();
  const closing: Promise<void>[] = [];
  bench.onReplyHook = () => closing.push(bench.wire.close());
  bench.transport.feed("+ONE\r\n+TWO\r\n*x\r\n");
  await runMicrotasks();
  assert(closing.length > 0);
  await Promise.all(closing);
  assertEquals(bench.events, ["bytes", "ONE"]);
});
