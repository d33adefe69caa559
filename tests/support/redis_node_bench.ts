/**
 * One node on faked time and streams, asked as a quorum asks it.
 *
 * @module
 */
import { parseAddress } from "../../src/redis/address.ts";
import type { ConnectionOptions } from "../../src/redis/connection.ts";
import { RedisNode } from "../../src/redis_node.ts";
import { RELEASE } from "../../src/scripts.ts";
import { TimerWheel } from "../../src/timer_wheel.ts";
import { FakeBallot } from "./fake_ballot.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "./fake_clock.ts";
import { FakeNetwork, type FakeTransport, wire } from "./fake_transport.ts";

/** The name of the node at `redis://h`. */
export const NAME = "redis://h:6379";

/** What its errors say where the server hung up. */
export const LOST = `Connection to ${NAME} was lost: the server closed the connection`;

/** The reply of a server that does not know a script. */
export const NOSCRIPT = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

/** How long a release waits for a busy server. */
export const BUSY_DELAY_MS = 500;

/** Longer than the first delay before connecting again. */
export const RECONNECT_MS = 100;

/** What a node is asked to count votes on. */
export type Operation = "acquire" | "extend" | "release";

/** A node on faked time and streams. */
export class Bench {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork();
  readonly wheel: TimerWheel;
  readonly node: RedisNode;
  /** What the observer heard. */
  readonly events: string[] = [];

  constructor(options: Partial<ConnectionOptions> = {}, address = "redis://h") {
    this.wheel = new TimerWheel(this.clock, { value: () => "value", fraction: () => 0.5 });
    this.node = new RedisNode(
      parseAddress(address),
      {
        connect: this.network.connect,
        connectTimeoutMs: 1_000,
        stallTimeoutMs: Infinity,
        tls: {},
        clientName: undefined,
        ...options,
      },
      this.wheel,
      {
        onConnected: (node) => this.events.push(`${node} connected`),
        onDisconnected: (node, error) => this.events.push(`${node}: ${error.message}`),
      },
    );
  }

  /** Asks the node in one seat. */
  ask(operation: Operation, ballot = new FakeBallot(), seat = 0): FakeBallot {
    this.node[operation](ballot, seat);
    return ballot;
  }

  /** The same, for a release of what may stand. */
  release(ballot = new FakeBallot(), seat = 0): FakeBallot {
    ballot.mayStand |= 1 << seat;
    return this.ask("release", ballot, seat);
  }

  /** Makes the first connection. */
  async open(): Promise<FakeTransport> {
    this.ask("acquire");
    await runMicrotasks();
    await this.answer("+OK\r\n");
    this.events.length = 0;
    return this.network.last;
  }

  /** Has a reply come, and forgets what was written before it. */
  async answer(reply: string): Promise<void> {
    this.network.last.writes.length = 0;
    this.network.last.feed(reply);
    await runMicrotasks();
  }

  /** Has the server hang up. */
  async hangUp(): Promise<void> {
    this.network.last.end();
    await runMicrotasks();
  }

  /**
   * Waits for the next connection and returns what was written on it.
   *
   * @throws {Error} If none is made.
   */
  async reconnect(): Promise<string> {
    const count = this.network.transports.length;
    this.network.mode = "accept";
    for (let waitedMs = 0; this.network.transports.length === count; waitedMs += RECONNECT_MS) {
      if (waitedMs >= 5_000) throw new Error("Cannot connect again within 5000 ms");
      await this.clock.advance(RECONNECT_MS);
    }
    await runMicrotasks();
    return this.network.last.written;
  }

  /**
   * Closes the node.
   *
   * @throws {Error} If a timer is left.
   */
  async close(): Promise<void> {
    await advanceUntil(this.clock, this.node.close());
    this.wheel.close();
    if (this.clock.timers > 0) throw new Error(`${this.clock.timers} timers are left`);
  }
}

/** A leftover release on the wire. */
export function leftover(value = "v", ...keys: string[]): string {
  const named = keys.length > 0 ? keys : ["k"];
  return wire("EVAL", RELEASE.source, String(named.length), ...named, value);
}
