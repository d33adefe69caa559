/**
 * A server in memory on the network of this machine, with faults on demand.
 *
 * @module
 */
import { systemClock } from "../../time/clock.ts";
import type { Listener, StreamHandler, StreamPeer } from "../../transport/node_listener.ts";
import { rangeError } from "../../validate.ts";
import { checkDelayMs } from "../delay.ts";
import { Inbox } from "./inbox.ts";
import { MemoryRedis, type MemoryRedisOptions, type MemoryRestartOptions } from "./memory_redis.ts";
import type { TestNode } from "../test_node.ts";
import { countTraffic, serverClosed, serverStarted } from "../time/traffic.ts";

/** Starts to listen on a port; 0 for any free port. */
export type Listen = (
  port: number,
  accept: (peer: StreamPeer) => StreamHandler,
) => Promise<Listener>;

/** A {@linkcode TestNode} over TCP. Dispose of it with {@linkcode stop}. */
export class TcpNode implements TestNode {
  readonly port: number;
  readonly #listen: Listen;
  readonly #password: string | undefined;
  readonly #server: MemoryRedis;
  readonly #inbox = new Inbox();
  #listener: Listener | undefined;
  /** By how much its wall clock is ahead of the right one. */
  #aheadMs = 0;
  #cutOff = false;
  #stopped = false;
  /** Crashes and restarts happen one after the other. */
  #changed: Promise<void> = Promise.resolve();

  /**
   * @param port The port.
   * @param listen Starts to listen.
   * @param options The clock and the password.
   */
  constructor(port: number, listen: Listen, options: MemoryRedisOptions) {
    this.port = port;
    this.#listen = listen;
    this.#password = options.password;
    const { clock = systemClock } = options;
    const wallMs = () => clock.wallMs() + this.#aheadMs;
    // It reads the wall clock alone.
    this.#server = new MemoryRedis({ ...options, clock: { ...systemClock, wallMs } });
  }

  get address(): string {
    const password = this.#password;
    const credentials = password === undefined ? "" : `:${encodeURIComponent(password)}@`;
    return `redis://${credentials}127.0.0.1:${this.port}`;
  }

  crash(): Promise<void> {
    return this.#next(() => this.#close());
  }

  restart(options?: MemoryRestartOptions): Promise<void> {
    return this.#next(async () => {
      if (this.#stopped) throw new Error(`Cannot restart node ${this.port} as it was closed`);
      await this.#close();
      this.#server.restart(options);
      await this.#open();
    });
  }

  hang(): void {
    this.#checkRunning("hang");
    this.#inbox.held = true;
  }

  partition(): void {
    this.#checkRunning("partition");
    this.#cutOff = true;
    this.#inbox.held = true;
  }

  resume(): void {
    this.#checkRunning("resume");
    this.#cutOff = false;
    this.#inbox.held = false;
  }

  slow(delayMs: number): void {
    checkDelayMs("slow node", delayMs);
    this.#inbox.delayMs = delayMs;
  }

  skewClock(aheadMs: number): void {
    if (!Number.isSafeInteger(aheadMs)) {
      throw rangeError("skew clock", "aheadMs", "must be a safe integer", aheadMs);
    }
    this.#aheadMs = aheadMs;
  }

  fill(isFull?: boolean): void {
    this.#server.fill(isFull);
  }

  flush(): void {
    this.#server.flush();
  }

  /** Starts it for the first time. */
  start(): Promise<void> {
    return this.#next(async () => {
      await this.#open();
      serverStarted();
    });
  }

  /** Crashes it for good. Idempotent. */
  async stop(): Promise<void> {
    const first = !this.#stopped;
    this.#stopped = true;
    await this.crash();
    if (first) await serverClosed();
  }

  #next(change: () => Promise<void>): Promise<void> {
    const changed = this.#changed.then(change);
    this.#changed = changed.catch(() => {});
    return changed;
  }

  async #open(): Promise<void> {
    this.#listener = await this.#listen(this.port, (peer) => this.#accept(peer));
  }

  async #close(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    this.#inbox.clear();
    await listener?.close();
    this.#cutOff = false;
    this.#inbox.clear(); // requests that arrived while the connections were closed
    this.#inbox.held = false;
  }

  #checkRunning(action: string): void {
    if (this.#listener) return;
    throw new Error(`Cannot ${action} node ${this.port} as it is not running: restart it first`);
  }

  #accept(peer: StreamPeer): StreamHandler {
    countTraffic();
    const send = (bytes: Uint8Array) => {
      countTraffic();
      peer.send(bytes);
    };
    const session = this.#server.session({
      onMessage: send,
      onEnd: () => queueMicrotask(() => peer.end()), // behind the last replies
    });
    return {
      onData: (bytes) => {
        countTraffic();
        this.#inbox.add(session, () => {
          const replies = session.push(bytes);
          if (replies.length > 0) send(replies);
        });
      },
      onClose: () => {
        countTraffic();
        if (this.#cutOff || !this.#listener) this.#inbox.drop(session);
        this.#inbox.add(session, () => session.close());
      },
    };
  }
}
