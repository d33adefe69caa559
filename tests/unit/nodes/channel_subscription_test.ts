import { assertEquals } from "@std/assert";
import {
  type ChannelClient,
  type ChannelListener,
  ChannelSubscription,
} from "../../../src/nodes/channel_subscription.ts";
import type { SubscriberOwner } from "../../../src/redis/subscriber.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "../../support/fake_clock.ts";

const RETRY_MS = 500;
const RETRY_MS_MAX = 30_000;
const SUBSCRIBE_MS_MAX = 10_000;
const PING_MS = 10_000;
const CLOSE_MS_MAX = 250;

/** One call of the client's function, and what the test makes of it. */
interface Attempt {
  readonly listener: ChannelListener;
  readonly channel: string;
  /** The server confirms it. */
  confirm(): Promise<void>;
  fail(error: unknown): Promise<void>;
  /** How often it was ended. */
  ended: number;
}

/** A subscription on faked time, through a client in the test's hands. */
class Bench implements SubscriberOwner {
  /** Whether the client calls `onLost` before it returns. */
  losesAtOnce = false;
  /** Whether the server can be asked to publish. */
  reachable = true;
  /** Whether messages arrive. */
  silent = false;
  /** How many messages were published. */
  published = 0;
  readonly events: string[] = [];
  readonly attempts: Attempt[] = [];
  readonly clock = new FakeClock();
  readonly #wheel = new TimerWheel(this.clock);
  readonly #subscription: ChannelSubscription;

  constructor() {
    const client: ChannelClient = {
      subscribe: (channel, listener) => this.#begin(channel, listener),
      publish: (channel) => this.#publish(channel),
    };
    this.#subscription = new ChannelSubscription(client, this.#wheel, "news", this);
  }

  #begin(channel: string, listener: ChannelListener): Promise<() => unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<() => unknown>();
    const attempt: Attempt = {
      listener,
      channel,
      ended: 0,
      confirm: () => {
        resolve(() => attempt.ended++);
        return runMicrotasks();
      },
      fail: (error) => {
        reject(error);
        return runMicrotasks();
      },
    };
    this.attempts.push(attempt);
    if (this.losesAtOnce) listener.onLost();
    return promise;
  }

  #publish(channel: string): Promise<boolean> {
    if (!this.reachable) return Promise.resolve(false);
    this.published++;
    assertEquals(channel, "news");
    if (!this.silent) this.attempt.listener.onMessage("");
    return Promise.resolve(true);
  }

  /** The latest attempt. */
  get attempt(): Attempt {
    return this.attempts.at(-1)!;
  }

  /** How often each attempt was ended. */
  get ended(): number[] {
    return this.attempts.map(({ ended }) => ended);
  }

  close(): Promise<void> {
    return advanceUntil(this.clock, this.#subscription.close());
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
    if (bytes.length > 0) this.events.push(`message: ${new TextDecoder().decode(bytes)}`);
  }
}

/** Registers a test; nothing may keep the process alive at its end. */
function test(name: string, run: (bench: Bench) => Promise<void>): void {
  Deno.test(`ChannelSubscription ${name}`, async () => {
    const bench = new Bench();
    await runMicrotasks();
    await run(bench);
    await bench.close();
    assertEquals(bench.clock.timersAlive, 0);
  });
}

test("subscribes at once, and passes text and bytes on", async (bench) => {
  assertEquals([bench.attempt.channel, bench.events], ["news", []]);
  await bench.attempt.confirm();
  bench.attempt.listener.onMessage("one");
  bench.attempt.listener.onMessage(new TextEncoder().encode("two"));
  assertEquals(bench.events, ["subscribed", "message: one", "message: two"]);
});

test("ends what was lost, and subscribes again after a delay", async (bench) => {
  await bench.attempt.confirm();
  bench.attempt.listener.onLost();
  assertEquals(bench.events, ["subscribed", "unsubscribed"]);
  await bench.clock.advance(RETRY_MS - 10);
  assertEquals(bench.ended, [1]);
  await bench.clock.advance(20);
  await bench.attempt.confirm();
  assertEquals([bench.events.at(-1), bench.ended], ["subscribed", [1, 0]]);
});

test("receives nothing more from a subscription that was lost", async (bench) => {
  const first = bench.attempt;
  await first.confirm();
  first.listener.onLost();
  first.listener.onLost();
  first.listener.onMessage("late");
  await bench.clock.advance(RETRY_MS + 10);
  await bench.attempt.confirm();
  first.listener.onLost();
  first.listener.onMessage("later");
  await bench.clock.advance(RETRY_MS_MAX);
  assertEquals(bench.events, ["subscribed", "unsubscribed", "subscribed"]);
  assertEquals(bench.ended, [1, 0]);
});

test("waits longer after each failure in a row, and starts over once it is subscribed", async (bench) => {
  const delays: number[] = [];
  for (let failures = 0; failures < 9; failures++) {
    await bench.attempt.fail(new Error("socket closed"));
    const [count, failedMs] = [bench.attempts.length, bench.clock.monotonicMs()];
    while (bench.attempts.length === count) await bench.clock.advance(8);
    delays.push(bench.clock.monotonicMs() - failedMs);
  }
  const expected = delays.map((_, failures) => Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX));
  assertEquals(delays.map((delay, index) => delay >= expected[index]), delays.map(() => true));
  assertEquals(delays.map((delay, index) => delay < expected[index] + 32), delays.map(() => true));
  await bench.attempt.confirm();
  bench.attempt.listener.onLost();
  await bench.clock.advance(RETRY_MS + 16);
  assertEquals(bench.attempts.length, 11);
});

test("ends a subscription that is lost before it is confirmed, once it is", async (bench) => {
  const first = bench.attempt;
  first.listener.onLost();
  await bench.clock.advance(RETRY_MS + 16);
  await bench.attempt.confirm();
  await first.confirm();
  assertEquals([bench.events, bench.ended], [["unsubscribed", "subscribed"], [1, 0]]);
});

test("reports once that it is lost, if the client calls onLost and rejects too", async (bench) => {
  bench.attempt.listener.onLost();
  await bench.attempt.fail(new Error("socket closed"));
  await bench.clock.advance(RETRY_MS + 16);
  assertEquals([bench.events, bench.attempts.length], [["unsubscribed"], 2]);
});

test("subscribes again after a client that calls onLost at once, and ends what it began", async (bench) => {
  await bench.attempt.confirm();
  bench.attempt.listener.onLost();
  bench.losesAtOnce = true;
  await bench.clock.advance(RETRY_MS + 16);
  bench.losesAtOnce = false;
  await bench.attempt.confirm();
  await bench.clock.advance(2 * RETRY_MS + 16);
  await bench.attempt.confirm();
  assertEquals(bench.events, ["subscribed", "unsubscribed", "unsubscribed", "subscribed"]);
  assertEquals(bench.ended, [1, 1, 0]);
});

test("subscribes again if the client does not settle in time", async (bench) => {
  const first = bench.attempt;
  await bench.clock.advance(SUBSCRIBE_MS_MAX + RETRY_MS + 50);
  assertEquals([bench.events, bench.attempts.length], [["unsubscribed"], 2]);
  await bench.attempt.confirm();
  await first.confirm();
  assertEquals([bench.events.at(-1), bench.ended], ["subscribed", [1, 0]]);
  await bench.clock.advance(SUBSCRIBE_MS_MAX * 2);
  assertEquals(bench.attempts.length, 2);
});

test("subscribes again if its messages to itself no longer arrive", async (bench) => {
  await bench.attempt.confirm();
  await bench.clock.advance(4 * PING_MS + 50);
  assertEquals([bench.published, bench.attempts.length], [4, 1]);
  bench.silent = true;
  await bench.clock.advance(2 * PING_MS);
  assertEquals([bench.events, bench.ended], [["subscribed", "unsubscribed"], [1]]);
  bench.silent = false;
  await bench.clock.advance(RETRY_MS + 16);
  await bench.attempt.confirm();
  await bench.clock.advance(4 * PING_MS);
  assertEquals([bench.events.at(-1), bench.attempts.length], ["subscribed", 2]);
});

test("stays subscribed while the server cannot be asked for a message", async (bench) => {
  await bench.attempt.confirm();
  bench.reachable = false;
  await bench.clock.advance(5 * PING_MS);
  assertEquals([bench.events, bench.published], [["subscribed"], 0]);
  bench.reachable = true;
  await bench.clock.advance(2 * PING_MS);
  assertEquals([bench.events, bench.published], [["subscribed"], 2]);
});

test("gives up for good if the server refuses the command, whose words it makes printable", async (bench) => {
  await bench.attempt.fail(new Error("NOPERM this user\x1b[2J has no permissions"));
  await bench.clock.advance(RETRY_MS_MAX * 2);
  const message = "NOPERM this user\\u{1b}[2J has no permissions";
  assertEquals([bench.events, bench.attempts.length], [[`refused: ${message}`], 1]);
});

test("tries again after an error of the server that may pass", async (bench) => {
  await bench.attempt.fail(new Error("LOADING Redis is loading the dataset in memory"));
  await bench.clock.advance(RETRY_MS + 16);
  await bench.attempt.confirm();
  assertEquals(bench.events, ["unsubscribed", "subscribed"]);
});

test("is ended by close(), and reports nothing more", async (bench) => {
  await bench.attempt.confirm();
  await bench.close();
  assertEquals(bench.ended, [1]);
  bench.attempt.listener.onMessage("late");
  bench.attempt.listener.onLost();
  await bench.clock.advance(RETRY_MS_MAX);
  assertEquals([bench.events, bench.attempts.length], [["subscribed"], 1]);
});

test("is ended by close() while it waits to subscribe again", async (bench) => {
  await bench.attempt.confirm();
  bench.attempt.listener.onLost();
  await bench.close();
  await bench.clock.advance(RETRY_MS_MAX);
  assertEquals([bench.ended, bench.attempts.length], [[1], 1]);
});

test("that is closed before it is confirmed is ended once it is", async (bench) => {
  const beforeMs = bench.clock.monotonicMs();
  await bench.close();
  assertEquals(bench.clock.monotonicMs() - beforeMs < CLOSE_MS_MAX + 50, true);
  await bench.attempt.confirm();
  assertEquals([bench.events, bench.ended], [[], [1]]);
});

test("closes although the client fails to subscribe meanwhile", async (bench) => {
  const closed = bench.close();
  await bench.attempt.fail(new Error("NOPERM"));
  await closed;
  assertEquals([bench.events, bench.attempts.length], [[], 1]);
});
