import { assertEquals } from "@std/assert";
import { parseAddress } from "../../../src/redis/address.ts";
import { redisServer } from "../../../src/redis_node/redis_server.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { PING, wire } from "../../support/fake_transport.ts";
import { StreamBench, testOn } from "../../support/stream_bench.ts";

const IDLE_MS = 30_000;

const SUBSCRIBE = wire("SUBSCRIBE", "news");
const SUBSCRIBED = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
const PONG = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";

function message(text: string): string {
  return `*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$${text.length}\r\n${text}\r\n`;
}

/** A subscription to one channel on faked time and streams, and what became of it. */
class Bench extends StreamBench {
  readonly events: string[] = [];
  readonly #ended = new AbortController();
  #end: (() => unknown) | undefined = undefined;

  /** Begins to subscribe. */
  async start(clientName?: string): Promise<this> {
    const options = { ...this.options, stallTimeoutMs: 2_000, clientName };
    const { subscribe } = redisServer(parseAddress("redis://h"), options, this.wheel);
    subscribe!("news", {
      onMessage: (bytes) => {
        this.events.push(`message: ${new TextDecoder().decode(bytes as Uint8Array)}`);
      },
      onLost: () => {
        this.events.push("lost");
        this.#ended.abort(); // as the node does
      },
    }, this.#ended.signal).then((end) => {
      this.#end = end;
      this.events.push("subscribed");
    }, (error) => this.events.push(`failed: ${error.message}`));
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

  abort(): Promise<void> {
    this.#ended.abort();
    return runMicrotasks();
  }

  override async closeSubject(): Promise<void> {
    await this.abort();
    await this.#end?.();
  }
}

const test = Object.assign(testOn(() => new Bench().start()), {
  raw: testOn(() => new Bench()),
  subscribed: testOn(() => new Bench().subscribed()),
});

test.raw("redisServer().subscribe() logs in and subscribes in one write", async (bench) => {
  await bench.start("worker");
  assertEquals(bench.transport.writes, [wire("CLIENT", "SETNAME", "worker") + SUBSCRIBE]);
  await bench.answer("+OK\r\n" + SUBSCRIBED);
  assertEquals(bench.events, ["subscribed"]);
});

for (
  const reply of [
    ...[PONG, "-NOPERM no 'ping'\r\n", "-ERR unknown command 'PING'\r\n", "-BUSY no\r\n"],
    ...["+PONG\r\n", SUBSCRIBED],
  ]
) {
  test.subscribed(`redisServer().subscribe() sends a PING after 30 s of silence, and takes ${JSON.stringify(reply)} for a sign of life`, async (bench) => {
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

test.subscribed("redisServer().subscribe() takes a message for a sign of life while a PING is due", async (bench) => {
  await bench.advance(IDLE_MS);
  for (let waitedMs = 0; waitedMs < 5_000; waitedMs += 900) {
    bench.transport.feed(message("one"));
    await bench.advance(900);
  }
  assertEquals([bench.transport.closed, bench.events.includes("lost")], [false, false]);
});

for (const error of ["NOPERM no access to channel", "LOADING Redis is loading"]) {
  test(`redisServer().subscribe() rejects with ${error}, when its connection is closed`, async (bench) => {
    await bench.answer(`-${error}\r\n`);
    assertEquals([bench.events, bench.transport.closed], [[`failed: ${error}`], true]);
  });
}

for (
  const [what, act] of [
    ["the reply and a message", (bench: Bench) => bench.answer(SUBSCRIBED + message("one"))],
    ["LOADING", (bench: Bench) => bench.answer("-LOADING no\r\n")],
    ["the end of the stream", (bench: Bench) => bench.hangUp()],
  ] as const
) {
  test(`redisServer().subscribe() whose signal aborts ends its connection, whatever ${what} says meanwhile`, async (bench) => {
    const aborted = bench.abort();
    await act(bench);
    await advanceUntil(bench.clock, aborted);
    await bench.advance(IDLE_MS);
    assertEquals([bench.transport.closed, bench.wheel.size], [true, 0]);
    assertEquals(bench.network.targets.length, 1);
  });
}
