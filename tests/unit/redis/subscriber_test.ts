import { assertEquals } from "@std/assert";
import { parseAddress } from "../../../src/redis/address.ts";
import type { ConnectionOptions } from "../../../src/redis/connection.ts";
import { Subscriber, type SubscriberOwner } from "../../../src/redis/subscriber.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeNetwork, type FakeTransport, PING, wire } from "../../support/fake_transport.ts";

const PING_MS = 10_000;
const RETRY_MS = 500;
/** Longer than the first delay before connecting again. */
const RECONNECT_MS = 100;

const SUBSCRIBE = wire("SUBSCRIBE", "news");
const SUBSCRIBED = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
const PONG = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";

function message(text: string): string {
  const { length } = new TextEncoder().encode(text);
  return `*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$${length}\r\n${text}\r\n`;
}

/** Listens to one channel on faked time and streams, and writes down what it is told. */
class Bench implements SubscriberOwner {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork();
  readonly wheel = new TimerWheel(this.clock, { value: () => "value", fraction: () => 0.5 });
  readonly events: string[] = [];
  readonly subscriber: Subscriber;

  constructor(options: Partial<ConnectionOptions> = {}, mode: FakeNetwork["mode"] = "accept") {
    this.network.mode = mode;
    this.subscriber = new Subscriber(
      parseAddress("redis://h"),
      {
        connect: this.network.connect,
        connectTimeoutMs: 1_000,
        stallTimeoutMs: 2_000,
        tls: {},
        clientName: undefined,
        ...options,
      },
      this.wheel,
      "news",
      this,
    );
  }

  /** Subscribes, and forgets how. */
  async open(): Promise<FakeTransport> {
    await runMicrotasks();
    await this.answer(SUBSCRIBED);
    this.events.length = 0;
    return this.network.last;
  }

  /** Has a reply come, and forgets what was written before it. */
  answer(reply: string): Promise<void> {
    return this.network.last.answer(reply);
  }

  /** Has the server hang up. */
  async hangUp(): Promise<void> {
    this.network.last.end();
    await runMicrotasks();
  }

  /** Closes it; no timer may be left. */
  async close(): Promise<void> {
    await advanceUntil(this.clock, this.subscriber.close());
    assertEquals(this.wheel.size, 0);
    this.wheel.close();
  }

  onSubscribed(): void {
    this.events.push("subscribed");
  }

  onUnsubscribed(): void {
    this.events.push("unsubscribed");
  }

  onRefused(error: Error): void {
    this.events.push(`refused: ${error.message}`);
  }

  onMessage(bytes: Uint8Array): void {
    this.events.push(`message: ${new TextDecoder().decode(bytes)}`);
  }
}

// Beginning

Deno.test("Subscriber subscribes at once, on a connection of its own, and says when it has", async () => {
  const bench = new Bench();
  await runMicrotasks();
  assertEquals(bench.network.last.writes, [SUBSCRIBE]);
  assertEquals(bench.events, []);
  await bench.answer(SUBSCRIBED);
  assertEquals([bench.events, bench.network.last.written], [["subscribed"], ""]);
  await bench.close();
});

Deno.test("Subscriber logs in before it subscribes", async () => {
  const bench = new Bench({ clientName: "worker" });
  await runMicrotasks();
  assertEquals(bench.network.last.written, wire("CLIENT", "SETNAME", "worker"));
  await bench.answer("+OK\r\n");
  assertEquals(bench.network.last.written, SUBSCRIBE);
  await bench.answer(SUBSCRIBED);
  assertEquals(bench.events, ["subscribed"]);
  await bench.close();
});

Deno.test("Subscriber subscribes once it can connect, and once", async () => {
  const bench = new Bench({}, "refuse");
  await runMicrotasks();
  assertEquals(bench.events, ["unsubscribed"]);
  bench.network.mode = "accept";
  await bench.clock.advance(RECONNECT_MS);
  assertEquals(bench.network.last.written, SUBSCRIBE);
  await bench.answer(SUBSCRIBED);
  assertEquals(bench.events, ["unsubscribed", "subscribed"]);
  await bench.close();
});

// Messages

Deno.test("Subscriber passes messages on as they come, byte for byte", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.feed(message("one") + message("") + message("é\r\n:1").slice(0, -3));
  await runMicrotasks();
  assertEquals(bench.events, ["message: one", "message: "]);
  transport.feed(message("é\r\n:1").slice(-3));
  await runMicrotasks();
  assertEquals(bench.events.slice(2), ["message: é\r\n:1"]);
  await bench.close();
});

Deno.test("Subscriber hears a message that came with the reply to SUBSCRIBE", async () => {
  const bench = new Bench();
  await runMicrotasks();
  await bench.answer(SUBSCRIBED + message("one"));
  assertEquals(bench.events, ["subscribed", "message: one"]);
  await bench.close();
});

// Whether it still stands

Deno.test("Subscriber asks every 10 s for a sign of life", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  for (let pings = 0; pings < 3; pings++) {
    await bench.clock.advance(PING_MS - 1);
    assertEquals(transport.written, "");
    await bench.clock.advance(1);
    await runMicrotasks();
    assertEquals(transport.written, PING);
    await bench.answer(PONG);
  }
  assertEquals([bench.events, bench.network.transports.length], [[], 1]);
  await bench.close();
});

Deno.test("Subscriber subscribes on a new connection after silence, and asks there for signs of life", async () => {
  const bench = new Bench();
  const silent = await bench.open();
  await bench.clock.advance(PING_MS);
  await runMicrotasks();
  assertEquals(silent.written, PING);
  await bench.clock.advance(1_900);
  assertEquals(bench.events, []);
  await bench.clock.advance(1_200 + RECONNECT_MS);
  assertEquals([silent.closed, bench.events], [true, ["unsubscribed"]]);
  assertEquals(bench.network.last.written, SUBSCRIBE);
  await bench.answer(SUBSCRIBED);
  assertEquals(bench.events, ["unsubscribed", "subscribed"]);
  await bench.clock.advance(PING_MS);
  await runMicrotasks();
  assertEquals(bench.network.last.written, PING);
  await bench.close();
});

for (
  const reply of [
    ...["-NOPERM no 'ping'\r\n", "-ERR unknown command 'PING'\r\n", "-BUSY no\r\n"],
    ...["+PONG\r\n", SUBSCRIBED],
  ]
) {
  Deno.test(`Subscriber takes ${JSON.stringify(reply)} for a sign of life as well`, async () => {
    const bench = new Bench();
    const transport = await bench.open();
    await bench.clock.advance(PING_MS);
    await runMicrotasks();
    for (let pings = 0; pings < 3; pings++) {
      assertEquals(transport.writes, [PING]);
      await bench.answer(reply);
      await bench.clock.advance(RETRY_MS); // when it would subscribe again if it had been told so to SUBSCRIBE
      await runMicrotasks();
      assertEquals([transport.written, transport.closed], ["", false]);
      await bench.clock.advance(PING_MS - RETRY_MS);
      await runMicrotasks();
    }
    assertEquals([bench.events, bench.network.targets.length], [[], 1]);
    await bench.close();
  });
}

Deno.test("Subscriber takes a message for a sign of life while a PING is due", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  await bench.clock.advance(PING_MS);
  for (let waitedMs = 0; waitedMs < 5_000; waitedMs += 900) {
    transport.feed(message("one"));
    await bench.clock.advance(900);
  }
  assertEquals([transport.closed, bench.events.includes("unsubscribed")], [false, false]);
  await bench.close();
});

Deno.test("Subscriber subscribes again each time the server hangs up, and sends no second PING", async () => {
  const bench = new Bench();
  await bench.open();
  for (let cuts = 0; cuts < 3; cuts++) {
    await bench.clock.advance(PING_MS / 2);
    await bench.hangUp();
    assertEquals(bench.events, ["unsubscribed"]);
    await bench.clock.advance(RECONNECT_MS);
    assertEquals(bench.network.last.written, SUBSCRIBE);
    await bench.answer(SUBSCRIBED);
    assertEquals(bench.events, ["unsubscribed", "subscribed"]);
    bench.events.length = 0;
  }
  await bench.clock.advance(PING_MS - 1);
  assertEquals(bench.network.last.written, "");
  await bench.clock.advance(1);
  await runMicrotasks();
  assertEquals(bench.network.last.writes, [PING]);
  await bench.close();
});

Deno.test("Subscriber subscribes again where the connection broke before it had", async () => {
  const bench = new Bench();
  await runMicrotasks();
  await bench.hangUp();
  await bench.clock.advance(RECONNECT_MS);
  assertEquals(bench.network.last.writes, [SUBSCRIBE]);
  await bench.answer(SUBSCRIBED);
  assertEquals(bench.events, ["unsubscribed", "subscribed"]);
  await bench.close();
});

// Refusals

for (const refusal of ["NOPERM no access to channel", "ERR unknown command 'SUBSCRIBE'"]) {
  Deno.test(`Subscriber is refused for good by ${refusal.split(" ", 1)[0]}`, async () => {
    const bench = new Bench();
    await runMicrotasks();
    await bench.answer(`-${refusal}\r\n`);
    assertEquals(bench.events, [`refused: ${refusal}`]);
    assertEquals(bench.network.last.closed, true);
    await bench.clock.advance(10 * PING_MS);
    assertEquals([bench.events.length, bench.network.targets.length], [1, 1]);
    assertEquals(bench.wheel.size, 0);
    await bench.close();
  });
}

for (
  const error of [
    "LOADING Redis is loading",
    "BUSY Redis is busy running a script",
    "ERR max number of clients reached",
  ]
) {
  const [prefix] = error.split(" ", 1);

  Deno.test(`Subscriber subscribes again half a second after ${prefix}, ever more rarely, until it has`, async () => {
    const bench = new Bench();
    await runMicrotasks();
    for (const delayMs of [RETRY_MS, 2 * RETRY_MS, 4 * RETRY_MS]) {
      await bench.answer(`-${error}\r\n`);
      await bench.clock.advance(delayMs - 1);
      assertEquals(bench.network.last.written, "");
      await bench.clock.advance(1);
      await runMicrotasks();
      assertEquals(bench.network.last.writes, [SUBSCRIBE]);
    }
    assertEquals(bench.events, Array(3).fill("unsubscribed"));
    await bench.answer(SUBSCRIBED);
    assertEquals(bench.events.at(-1), "subscribed");
    await bench.close();
  });

  Deno.test(`Subscriber subscribes once on a connection made within half a second of ${prefix}`, async () => {
    const bench = new Bench();
    await runMicrotasks();
    await bench.answer(`-${error}\r\n`);
    await bench.hangUp();
    await bench.clock.advance(RECONNECT_MS);
    assertEquals(bench.network.last.writes, [SUBSCRIBE]);
    await bench.clock.advance(2 * RETRY_MS);
    assertEquals(bench.network.last.writes, [SUBSCRIBE]);
    await bench.close();
  });
}

// Closing

Deno.test("Subscriber.close() ends the connection and leaves no timer", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  await bench.close();
  assertEquals([transport.closed, bench.clock.timers, bench.events], [true, 0, []]);
});

Deno.test("Subscriber.close() connects no more after a cut", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  await bench.close();
  await bench.clock.advance(PING_MS);
  assertEquals(bench.network.targets.length, 1);
});

Deno.test("Subscriber.close() sends no SUBSCRIBE that waited for a busy server", async () => {
  const bench = new Bench();
  await runMicrotasks();
  await bench.answer("-LOADING no\r\n");
  await bench.close();
  assertEquals(bench.network.last.written, "");
});

for (
  const [what, reply] of [
    ["the reply", SUBSCRIBED],
    ["a message", SUBSCRIBED + message("one")],
    ["LOADING", "-LOADING no\r\n"],
    ["NOPERM", "-NOPERM no\r\n"],
  ] as const
) {
  Deno.test(`Subscriber.close() says nothing of ${what} that comes while it closes, and leaves no timer`, async () => {
    const bench = new Bench();
    await runMicrotasks();
    const closing = bench.subscriber.close();
    await bench.answer(reply);
    await advanceUntil(bench.clock, closing);
    assertEquals([bench.events, bench.wheel.size], [[], 0]);
    await bench.close();
  });
}

Deno.test("Subscriber.close() says nothing of a connection that is lost while it closes", async () => {
  const bench = new Bench();
  await runMicrotasks();
  const closing = bench.subscriber.close();
  await bench.hangUp();
  await advanceUntil(bench.clock, closing);
  assertEquals([bench.events, bench.network.targets.length], [[], 1]);
  await bench.close();
});
