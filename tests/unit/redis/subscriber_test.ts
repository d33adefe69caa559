import { assertEquals } from "@std/assert";
import { parseAddress } from "../../../src/redis/address.ts";
import { Subscriber, type SubscriberOwner } from "../../../src/redis/subscriber.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { PING, wire } from "../../support/fake_transport.ts";
import { StreamBench, testOn } from "../../support/stream_bench.ts";

const IDLE_MS = 30_000;
const RETRY_MS = 500;

const SUBSCRIBE = wire("SUBSCRIBE", "news");
const SUBSCRIBED = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
const PONG = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";

function message(text: string): string {
  return `*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$${text.length}\r\n${text}\r\n`;
}

/** A subscription to one channel on faked time and streams, and the calls of its owner. */
class Bench extends StreamBench implements SubscriberOwner {
  readonly events: string[] = [];
  #subscriber: Subscriber | undefined = undefined;

  /** Begins to subscribe. */
  async start(clientName?: string): Promise<this> {
    const options = { ...this.options, stallTimeoutMs: 2_000, clientName };
    this.#subscriber = new Subscriber(parseAddress("redis://h"), options, this.wheel, "news", this);
    await runMicrotasks();
    return this;
  }

  /** Subscribes, and forgets how. */
  async subscribed(): Promise<this> {
    await this.start();
    await this.answer(SUBSCRIBED);
    this.events.length = 0;
    return this;
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

  override closeSubject(): Promise<void> {
    return this.#subscriber!.close();
  }
}

const test = Object.assign(testOn(() => new Bench().start()), {
  raw: testOn(() => new Bench()),
  subscribed: testOn(() => new Bench().subscribed()),
});

test("Subscriber subscribes at once, on a connection of its own, and reports that", async (bench) => {
  assertEquals([bench.transport.writes, bench.events], [[SUBSCRIBE], []]);
  await bench.answer(SUBSCRIBED + message("one"));
  assertEquals([bench.events, bench.written], [["subscribed", "message: one"], ""]);
});

test.raw("Subscriber logs in and subscribes in one write", async (bench) => {
  await bench.start("worker");
  assertEquals(bench.transport.writes, [wire("CLIENT", "SETNAME", "worker") + SUBSCRIBE]);
  await bench.answer("+OK\r\n" + SUBSCRIBED);
  assertEquals(bench.events, ["subscribed"]);
});

for (const mode of ["refuse", "accept"] as const) {
  test.raw(`Subscriber subscribes once on the next connection if it had to ${mode} the first`, async (bench) => {
    bench.network.mode = mode;
    await bench.start();
    if (mode === "accept") await bench.hangUp(); // before the reply
    assertEquals(bench.events, ["unsubscribed"]);
    assertEquals(await bench.reconnect(), SUBSCRIBE);
    await bench.answer(SUBSCRIBED);
    assertEquals(bench.events, ["unsubscribed", "subscribed"]);
  });
}

test.subscribed("Subscriber passes messages on as they come, byte for byte", async (bench) => {
  await bench.feed(message("one") + message("") + message("\r\n:1").slice(0, -3));
  assertEquals(bench.events, ["message: one", "message: "]);
  await bench.feed(message("\r\n:1").slice(-3));
  assertEquals(bench.events.slice(2), ["message: \r\n:1"]);
});

// Whether it still exists

for (
  const reply of [
    ...[PONG, "-NOPERM no 'ping'\r\n", "-ERR unknown command 'PING'\r\n", "-BUSY no\r\n"],
    ...["+PONG\r\n", SUBSCRIBED],
  ]
) {
  test.subscribed(`Subscriber sends a PING after 30 s of silence, and takes ${JSON.stringify(reply)} for a sign of life`, async (bench) => {
    for (let pings = 0; pings < 3; pings++) {
      await bench.advance(IDLE_MS - 1);
      assertEquals(bench.written, "");
      await bench.advance(1);
      assertEquals(bench.transport.writes, [PING]);
      await bench.answer(reply);
    }
    assertEquals([bench.events, bench.network.targets.length], [[], 1]);
  });
}

test.subscribed("Subscriber takes a message for a sign of life while a PING is due", async (bench) => {
  await bench.advance(IDLE_MS);
  for (let waitedMs = 0; waitedMs < 5_000; waitedMs += 900) {
    bench.transport.feed(message("one"));
    await bench.advance(900);
  }
  assertEquals([bench.transport.closed, bench.events.includes("unsubscribed")], [false, false]);
});

for (const how of ["hangs up", "is silent"]) {
  test.subscribed(`Subscriber subscribes again each time the server ${how}, and sends PINGs there`, async (bench) => {
    for (let cuts = 0; cuts < 3; cuts++) {
      const { transport } = bench;
      await bench.advance(how === "hangs up" ? IDLE_MS / 2 : IDLE_MS + 1_900);
      assertEquals([bench.written, bench.events], [how === "hangs up" ? "" : PING, []]);
      if (how === "hangs up") await bench.hangUp();
      assertEquals(await bench.reconnect(), SUBSCRIBE);
      assertEquals([transport.closed, bench.events], [true, ["unsubscribed"]]);
      await bench.answer(SUBSCRIBED);
      assertEquals(bench.events, ["unsubscribed", "subscribed"]);
      bench.events.length = 0;
    }
    await bench.advance(IDLE_MS - 1);
    assertEquals(bench.written, "");
    await bench.advance(1);
    assertEquals(bench.transport.writes, [PING]);
  });
}

// Refusals

for (const refusal of ["NOPERM no access to channel", "ERR unknown command 'SUBSCRIBE'"]) {
  test(`Subscriber is refused for good by ${refusal}`, async (bench) => {
    await bench.answer(`-${refusal}\r\n`);
    assertEquals([bench.events, bench.transport.closed], [[`refused: ${refusal}`], true]);
    await bench.advance(10 * IDLE_MS);
    assertEquals([bench.events.length, bench.network.targets.length, bench.wheel.size], [1, 1, 0]);
  });
}

for (
  const error of ["LOADING Redis is loading", "NOAUTH Log in", "ERR max number of clients reached"]
) {
  test(`Subscriber subscribes again half a second after ${error}, then ever more rarely`, async (bench) => {
    for (const delayMs of [RETRY_MS, 2 * RETRY_MS, 4 * RETRY_MS]) {
      await bench.answer(`-${error}\r\n`);
      await bench.advance(delayMs - 1);
      assertEquals(bench.written, "");
      await bench.advance(1);
      assertEquals(bench.transport.writes, [SUBSCRIBE]);
    }
    assertEquals(bench.events, Array(3).fill("unsubscribed"));
    await bench.answer(SUBSCRIBED);
    assertEquals(bench.events.at(-1), "subscribed");
  });

  test(`Subscriber subscribes once on a connection made within half a second of ${error}`, async (bench) => {
    await bench.answer(`-${error}\r\n`);
    await bench.hangUp();
    await bench.reconnect();
    await bench.advance(2 * RETRY_MS);
    assertEquals(bench.transport.writes, [SUBSCRIBE]);
  });
}

// Closing

test.subscribed("Subscriber.close() ends the connection, and connects no more after a cut", async (bench) => {
  await bench.hangUp();
  await bench.close();
  await bench.advance(IDLE_MS);
  assertEquals([bench.transport.closed, bench.network.targets.length], [true, 1]);
});

for (
  const [what, act] of [
    ["the reply and a message", (bench: Bench) => bench.answer(SUBSCRIBED + message("one"))],
    ["LOADING", (bench: Bench) => bench.answer("-LOADING no\r\n")],
    ["NOPERM", (bench: Bench) => bench.answer("-NOPERM no\r\n")],
    ["the end of the stream", (bench: Bench) => bench.hangUp()],
  ] as const
) {
  test(`Subscriber.close() reports nothing of ${what} meanwhile, and leaves no timer`, async (bench) => {
    const closing = bench.closeSubject();
    await act(bench);
    await advanceUntil(bench.clock, closing);
    assertEquals([bench.events, bench.wheel.size, bench.network.targets.length], [[], 0, 1]);
  });
}

test("Subscriber.close() sends no SUBSCRIBE that waited for a busy server", async (bench) => {
  await bench.answer("-LOADING no\r\n");
  await bench.close();
  assertEquals(bench.written, "");
});
