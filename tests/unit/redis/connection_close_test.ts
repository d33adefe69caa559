import { assertEquals } from "@std/assert";
import { ConnectionBench, test } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import { NAME } from "../../support/stream_bench.ts";

const CLOSED = `Connection to ${NAME} was closed`;

const STATES: Readonly<Record<string, (bench: ConnectionBench) => unknown>> = {
  "that never connected": () => {},
  "that is connecting": (bench) => {
    bench.network.mode = "wait";
    return bench.submit(1);
  },
  "that is logging in": async (bench) => {
    bench.use({}, "redis://:pw@h");
    await bench.submit(1);
    bench.transport.writesHang = true;
  },
  "that is open": (bench) => bench.open(),
  "that has half a reply": async (bench) => {
    await bench.open();
    await bench.submit(1);
    await bench.feed("$3\r\na");
  },
  "with a write that hangs": async (bench) => {
    (await bench.open()).transport.writesHang = true;
    await bench.submit(1);
    bench.queue(2);
  },
  "whose stream does not even close": async (bench) => {
    const { transport } = await bench.open();
    transport.writesHang = transport.closeHangs = true;
    await bench.submit(1);
  },
  "that waits before connecting again": async (bench) => {
    await bench.open();
    await bench.hangUp();
  },
  "that is connecting again": async (bench) => {
    await bench.open();
    bench.network.mode = "wait";
    await bench.hangUp();
    await bench.advance(100);
  },
};

for (const [state, prepare] of Object.entries(STATES)) {
  test(`Connection.close() of one ${state} settles, again too, and leaves nothing`, async (bench) => {
    await prepare(bench);
    const { network, clock, connection } = bench;
    const attempts = network.targets.length;
    await advanceUntil(clock, connection.close(), 600);
    await connection.close();
    assertEquals(bench.wheel.size, 0);
    assertEquals(network.transports.every(({ closed }) => closed), true);
    for (const { accept } of network.pending) assertEquals(accept().closed, false);
    await bench.advance(10_000);
    assertEquals(network.transports.every(({ closed }) => closed), true);
    assertEquals([network.targets.length, clock.timers], [attempts, 0]);
    assertEquals(bench.replies.filter(([, message]) => message !== CLOSED), []);
    bench.queue("late");
    assertEquals(bench.replies.at(-1), ["late", CLOSED, "not-sent"]);
  });
}

test.open("Connection.close() waits for no further reply once its client has waited long enough", async (bench) => {
  for (const command of [1, 2, 3]) bench.queue(command, "DEL", "k");
  let closed = false;
  bench.connection.close().then(() => closed = true);
  await bench.advance(200);
  await bench.feed(":1\r\n");
  await bench.advance(200);
  await bench.feed(":1\r\n");
  assertEquals(bench.transport.closed, false);
  bench.wheel.close();
  await bench.advance(0);
  assertEquals([closed, bench.transport.closed, bench.clock.timers], [true, true, 0]);
});

test.open("Connection.close() waits a moment for the replies that are due, and has room for what undoes others alone", async (bench) => {
  bench.queue(1, "DEL", "k");
  const { connection } = bench;
  const closing = connection.close();
  assertEquals([connection.open, connection.crowded?.message], [false, CLOSED]);
  bench.queue(2, "DEL", "l");
  await bench.advance(100);
  const written = wire("DEL", "k") + wire("DEL", "l");
  assertEquals([bench.written, bench.transport.closed], [written, false]);
  bench.transport.feed(":1\r\n:0\r\n");
  await closing;
  assertEquals([bench.replies, bench.transport.closed], [[[1, 1], [2, 0]], true]);
});

for (const last of ["read", "write"]) {
  Deno.test(`Connection.close() waits until the last ${last} of its stream has settled`, async () => {
    const bench = await new ConnectionBench().open();
    const { transport } = bench;
    const written = Promise.withResolvers<number>();
    if (last === "write") transport.write = () => written.promise;
    transport.closeHangs = last === "read";
    await bench.submit(1);
    await bench.feed("+PONG\r\n");
    let closed = false;
    bench.connection.close().then(() => closed = true);
    await runMicrotasks();
    assertEquals([closed, transport.closed], [false, true]);
    transport.end();
    written.resolve(1);
    await runMicrotasks();
    assertEquals(closed, true);
    await bench.close();
  });
}

test.open("Connection.close() waits for as long as replies keep coming, and no longer", async (bench) => {
  for (let count = 0; count < 5; count++) bench.queue(count, "DEL", "k");
  const closing = bench.connection.close();
  for (let count = 0; count < 4; count++) {
    await bench.advance(200);
    bench.transport.feed(":1\r\n");
  }
  await bench.advance(200);
  assertEquals([bench.replies.length, bench.transport.closed], [4, false]);
  await bench.advance(250);
  await closing;
  const unanswered = [4, `Connection to ${NAME} was closed`, "unknown"];
  assertEquals([bench.replies.at(-1), bench.transport.closed], [unanswered, true]);
});

test.open("Connection.close() waits for 20 seconds at most, although replies keep coming", async (bench) => {
  for (let count = 0; count < 200; count++) bench.queue(count, "DEL", "k");
  bench.connection.close();
  for (let passedMs = 0; passedMs < 20_000; passedMs += 200) {
    assertEquals(bench.transport.closed, false);
    await bench.advance(200);
    bench.transport.feed(":1\r\n");
  }
  assertEquals(bench.transport.closed, true);
});

test.open("Connection.close() within a reply decodes no more of the chunk that brought it", async (bench) => {
  bench.onReply = (reply) => {
    bench.replies.push([reply]);
    bench.connection.close();
  };
  bench.queue(1);
  await bench.feed("+ONE\r\n+TWO\r\n*x\r\n");
  assertEquals([bench.replies, bench.events], [[["ONE"]], []]);
});
