/** Faked time and faked streams, for tests of what talks to one server. */
import type { ConnectionOptions } from "../../src/redis/connection.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "./fake_clock.ts";
import { FakeNetwork, type FakeTransport, PING } from "./fake_transport.ts";

/** The name of the server at `redis://h`. */
export const NAME = "redis://h:6379";

/** The message of its errors after it hung up. */
export const LOST = `Connection to ${NAME} was lost: the server closed the connection`;
export const LOST_UNANSWERED = LOST.replace(
  "lost",
  "lost (a server with TLS needs rediss://; a proxy may have no server)",
);

/** The reply to a PING. */
export const PONG = "+PONG\r\n";

/** Longer than the first delay before connecting again, in milliseconds. */
export const RECONNECT_MS = 100;

/** A clock, a timer wheel and a network in a test's hands. */
export class StreamBench {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork();
  /** The jitter of delays, from 0 to 1. */
  fraction = 0.5;
  readonly wheel: TimerWheel = new TimerWheel(this.clock, {
    value: (suffix = "") => `value${suffix}`,
    fraction: () => this.fraction,
  });
  /** A server is found silent only if a test sets a limit. */
  readonly options: ConnectionOptions = {
    connect: this.network.connect,
    connectTimeoutMs: 1_000,
    stallTimeoutMs: Infinity,
    replyTimeoutMs: Infinity,
    tls: {},
    clientName: undefined,
  };

  /** The stream that was opened last. */
  get transport(): FakeTransport {
    return this.network.last;
  }

  /** The text that was written on it since the last {@linkcode answer}. */
  get written(): string {
    return this.transport.written;
  }

  /** Delivers bytes on the last stream. */
  async feed(bytes: string): Promise<void> {
    this.transport.feed(bytes);
    await runMicrotasks();
  }

  /** Delivers a reply on the last stream, and forgets what was written before it. */
  answer(reply: string): Promise<void> {
    return this.transport.answer(reply);
  }

  /** Moves time, and runs what follows from it. */
  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await runMicrotasks();
  }

  /** Lets the server end the last stream. */
  async hangUp(): Promise<void> {
    this.transport.end();
    await runMicrotasks();
  }

  /**
   * Waits for the next connection, on which the server answers, and returns what is written on it
   * then. Where there is a login, it returns that, and the server has answered nothing.
   */
  async reconnect(): Promise<string> {
    if (await this.nextStream() === PING) await this.answer(PONG);
    return this.written;
  }

  /**
   * Waits for the next connection and returns what is written on it at once.
   *
   * @throws {Error} If there is none within five seconds.
   */
  async nextStream(): Promise<string> {
    const count = this.network.transports.length;
    this.network.mode = "accept";
    for (let waitedMs = 0; this.network.transports.length === count; waitedMs += RECONNECT_MS) {
      if (waitedMs >= 5_000) throw new Error("Cannot connect again within 5000 ms");
      await this.advance(RECONNECT_MS);
    }
    return this.written;
  }

  /** Closes what the test is about. */
  protected closeSubject(): Promise<unknown> {
    return Promise.resolve();
  }

  /**
   * Closes everything.
   *
   * @throws {Error} If a timer is left.
   */
  async close(): Promise<void> {
    await advanceUntil(this.clock, this.closeSubject());
    const left = this.wheel.size;
    this.wheel.close();
    if (left + this.clock.timers > 0) throw new Error(`${left} timers are left`);
  }
}

/**
 * Returns a function that defines tests, each with a bench of its own, which is closed behind it.
 */
export function testOn<Bench extends { close(): Promise<void> }>(
  create: () => Bench | Promise<Bench>,
): (title: string, act: (bench: Bench) => void | Promise<void>) => void {
  return (title, act) =>
    Deno.test(title, async () => {
      const bench = await create();
      await act(bench);
      await bench.close();
    });
}
