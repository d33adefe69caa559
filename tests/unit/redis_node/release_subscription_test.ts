import { assertEquals } from "@std/assert";
import type { ReplyReceiver } from "../../../src/redis/wire.ts";
import { ConnectionError, ReplyError } from "../../../src/redis/errors.ts";
import type { RawReply } from "../../../src/redis/reply.ts";
import type {
  ChannelListener,
  CommandSender,
  LockCommand,
  SubscribeChannel,
} from "../../../src/redis_node/command_sender.ts";
import { ReleaseSubscription } from "../../../src/redis_node/release_subscription.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "../../support/fake_clock.ts";

const RETRY_MS = 50;
const RETRY_MS_MAX = 1_000;
const STABLE_MS = 2_000;
const CLOSE_MS_MAX = 250;
const HEARD_MS_MAX = 2_000;
const PROBE_MS = 10_000;
/** The clock of the tests goes on in steps of this, in milliseconds. */
const STEP_MS = 8;

/** One call of the client's function, and what the test makes of it. */
interface Attempt {
  readonly listener: ChannelListener;
  readonly channel: string;
  readonly signal: AbortSignal;
  /** The server confirms it. */
  confirm(): Promise<void>;
  fail(error: unknown): Promise<void>;
  /** How often it was ended. */
  ended: number;
}

/** A subscription on faked time, through a client in the test's hands. */
class Bench {
  /** Whether the client calls `onLost` before it returns. */
  losesAtOnce = false;
  /** What the server replies to a message; nothing if it cannot be reached. */
  receivers: RawReply | undefined = 1;
  /** Whether messages arrive. */
  silent = false;
  /** After how long the server replies, in milliseconds. */
  delayMs = 0;
  /** How many messages were published. */
  published = 0;
  readonly events: string[] = [];
  readonly attempts: Attempt[] = [];
  readonly clock = new FakeClock();
  readonly wheel = new TimerWheel(this.clock);
  readonly subscription: ReleaseSubscription;

  constructor(thirdParty = true) {
    const commands: CommandSender = {
      readyAtMs: 0,
      receivedAtMs: 0,
      open: true,
      password: undefined,
      crowded: undefined,
      leave() {},
      submit: (...sent) => this.#execute(...sent),
      close: () => Promise.resolve(),
    };
    const subscribe: SubscribeChannel = (...args) => this.#begin(...args);
    const server = {
      name: "a",
      wheel: this.wheel,
      thirdParty,
      newSender: () => commands,
      subscribe,
    };
    this.subscription = new ReleaseSubscription(server, commands);
    this.open();
  }

  open(): void {
    this.subscription.subscribe({
      id: "me",
      onSubscribed: () => this.events.push("subscribed"),
      onUnsubscribed: () => this.events.push("unsubscribed"),
      onRefused: (_nodeIndex, error) => this.events.push(`refused: ${error.message}`),
      onQueueMessage: (_nodeIndex, { ticketId }) => this.events.push(`message: ${ticketId}`),
    }, 0);
  }

  #begin(
    channel: string,
    listener: ChannelListener,
    signal: AbortSignal,
  ): Promise<() => unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<() => unknown>();
    const attempt: Attempt = {
      listener,
      channel,
      signal,
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

  #execute<Sent extends LockCommand>(
    command: Sent,
    receiver: ReplyReceiver<Sent>,
    tag = 0,
    delayMs = this.delayMs,
  ): void {
    if (delayMs > 0) {
      this.wheel.after(delayMs, () => this.#execute(command, receiver, tag, 0));
      return;
    }
    const { args: [name, channel] } = command;
    if (this.receivers === undefined) {
      const error = new ConnectionError("no reply", { address: "a", outcome: "unknown" });
      return receiver.onFailure(error, command, tag);
    }
    if (name === "TIME") return receiver.onReply(["1700000000", "0"], command, tag);
    this.published++;
    assertEquals(channel, this.attempt.channel);
    if (!this.silent) this.attempt.listener.onMessage("");
    receiver.onReply(this.receivers, command, tag);
  }

  /** The latest attempt. */
  get attempt(): Attempt {
    return this.attempts.at(-1)!;
  }

  /** How often each attempt was ended. */
  get ended(): number[] {
    return this.attempts.map(({ ended }) => ended);
  }

  /** Waits until the client is asked again, and returns for how long, in milliseconds. */
  async retried(): Promise<number> {
    const [{ length }, startMs] = [this.attempts, this.clock.monotonicMs()];
    while (this.attempts.length === length) await this.clock.advance(STEP_MS);
    return this.clock.monotonicMs() - startMs;
  }

  close(): Promise<unknown> {
    return advanceUntil(this.clock, this.subscription.close());
  }
}

/** Registers a test; nothing may keep the process alive at its end. */
function test(name: string, run: (bench: Bench) => Promise<void>, thirdParty = true): void {
  Deno.test(`ReleaseSubscription ${name}`, async () => {
    const bench = new Bench(thirdParty);
    await runMicrotasks();
    await run(bench);
    await bench.close();
    assertEquals([bench.clock.timersAlive, bench.wheel.size], [0, 0]);
  });
}

test("subscribes at once, and passes text and bytes on", async (bench) => {
  assertEquals([bench.attempt.channel, bench.events], ["hasp:wake:me", []]);
  await bench.attempt.confirm();
  bench.attempt.listener.onMessage("me:1");
  bench.attempt.listener.onMessage(new TextEncoder().encode("me:2"));
  assertEquals(bench.events, ["subscribed", "message: me:1", "message: me:2"]);
});

test("that is closed in the tick in which it is opened asks for nothing", async (bench) => {
  const { length } = bench.attempts;
  await bench.close();
  bench.open();
  await bench.close();
  assertEquals(bench.attempts.length, length);
});

test("waits longer after each loss in a row, and starts over once a subscription has lasted", async (bench) => {
  const delays: number[] = [];
  for (let losses = 0; losses < 12; losses++) {
    if (losses % 2 === 0) await bench.attempt.fail(new Error("socket closed"));
    else {
      await bench.attempt.confirm();
      await bench.clock.advance(STABLE_MS / 2); // a server that accepts it and ends it soon
      bench.attempt.listener.onLost();
      await runMicrotasks();
    }
    delays.push(await bench.retried());
  }
  const longest = delays.map((_, losses) => Math.min(RETRY_MS * 2 ** losses, RETRY_MS_MAX));
  assertEquals(delays.map((delay, at) => delay >= longest[at] / 2), delays.map(() => true));
  assertEquals(
    delays.map((delay, at) => delay < longest[at] + 2 * STEP_MS),
    delays.map(() => true),
  );
  for (const lose of [() => bench.attempt.listener.onLost(), () => bench.close()]) {
    await bench.attempt.confirm();
    await bench.clock.advance(STABLE_MS);
    await lose();
    bench.open(); // if nobody waited
    await runMicrotasks();
    await bench.attempt.fail(new Error("socket closed"));
    assertEquals(await bench.retried() < RETRY_MS + 2 * STEP_MS, true);
  }
});

test("subscribes again if the client has not within ten seconds", async (bench) => {
  const { signal } = bench.attempt;
  await bench.clock.advance(9_000);
  assertEquals([bench.attempts.length, bench.events], [1, []]);
  await bench.clock.advance(1_100);
  assertEquals([bench.attempts.length, signal.aborted, bench.events], [2, true, ["unsubscribed"]]);
});

test("counts the messages to itself that reach nobody since one did", async (bench) => {
  await bench.attempt.confirm();
  for (const receivers of [0, 1, 0, 1]) {
    bench.receivers = receivers;
    if (receivers === 0) bench.subscription.onOpen(); // asks at once, and again after 100 ms
    await bench.clock.advance(150);
  }
  assertEquals(bench.attempts.length, 1);
});

test("subscribes at once when commands are possible again", async (bench) => {
  for (let losses = 0; losses < 10; losses++) {
    await bench.attempt.fail(new Error("socket closed"));
    if (losses < 9) await bench.retried();
  }
  const { length } = bench.attempts;
  bench.subscription.onOpen();
  await runMicrotasks();
  assertEquals(bench.attempts.length, length + 1);
  bench.subscription.onOpen(); // while that is under way
  await bench.attempt.confirm();
  bench.subscription.onOpen();
  await runMicrotasks();
  assertEquals([bench.attempts.length, bench.published], [length + 1, 2]);
});

test("of a client subscribes again if its messages to itself no longer arrive, and reports once that it is subscribed", async (bench) => {
  await bench.attempt.confirm();
  await bench.clock.advance(4 * (PROBE_MS + HEARD_MS_MAX) + 50);
  assertEquals([bench.published, bench.attempts.length, bench.events], [5, 1, ["subscribed"]]);
  bench.silent = true;
  await bench.clock.advance(PROBE_MS + 2 * HEARD_MS_MAX);
  assertEquals([bench.events, bench.ended.slice(0, 1)], [["subscribed", "unsubscribed"], [1]]);
  bench.silent = false;
  await bench.attempt.confirm();
  await bench.clock.advance(4 * PROBE_MS);
  assertEquals([bench.events.at(-1), bench.attempts.length], ["subscribed", 2]);
});

test("on a connection of its own is probed once", async (bench) => {
  await bench.attempt.confirm();
  await bench.clock.advance(10 * PROBE_MS);
  assertEquals([bench.published, bench.attempts.length], [1, 1]);
}, false);

test("judges by the last of its messages to itself", async (bench) => {
  await bench.attempt.confirm();
  await bench.clock.advance(HEARD_MS_MAX - STEP_MS);
  bench.delayMs = 3 * STEP_MS;
  bench.subscription.onOpen();
  await bench.clock.advance(2 * HEARD_MS_MAX);
  assertEquals([bench.events, bench.published], [["subscribed"], 2]);
});

test("stays while the server cannot be asked for a message", async (bench) => {
  await bench.attempt.confirm();
  bench.receivers = undefined;
  await bench.clock.advance(2 * PROBE_MS);
  assertEquals([bench.ended, bench.published], [[0], 1]);
  bench.receivers = 1;
  await bench.clock.advance(2 * PROBE_MS);
  assertEquals([bench.events.at(-1), bench.attempts.length], ["subscribed", 1]);
});

test("tries again after an error of the server that may pass", async (bench) => {
  await bench.attempt.fail(new ReplyError("LOADING Redis is loading the dataset in memory"));
  await bench.retried();
  await bench.attempt.confirm();
  assertEquals(bench.events, ["unsubscribed", "subscribed"]);
});

test("that is closed before it is confirmed is ended once it is", async (bench) => {
  const beforeMs = bench.clock.monotonicMs();
  await bench.close();
  assertEquals(bench.clock.monotonicMs() - beforeMs < CLOSE_MS_MAX + 50, true);
  await bench.attempt.confirm();
  assertEquals([bench.events, bench.ended], [[], [1]]);
});

test("closes although the client fails to subscribe meanwhile, whose signal aborts", async (bench) => {
  const closed = bench.close();
  assertEquals(bench.attempt.signal.aborted, true);
  await bench.attempt.fail(new ReplyError("NOPERM"));
  await closed;
  assertEquals([bench.events, bench.attempts.length], [[], 1]);
});
