/**
 * A server in memory on the network of this machine, with faults on demand.
 *
 * @module
 */
import { systemClock } from "../../time/clock.ts";
import type { StreamHandler, StreamPeer } from "../../transport/node_listener.ts";
import { rangeError } from "../../validate.ts";
import { checkDelayMs, type Faults, NO_FAULTS, Pipe, type Sink } from "../pipe.ts";
import { Port } from "../ports.ts";
import { MemoryRedis, type MemoryRedisOptions, type MemoryRestartOptions } from "./memory_redis.ts";
import type { TestNode } from "../test_node.ts";
import type { Network } from "../time/traffic.ts";

/** A {@linkcode TestNode} over TCP. Dispose of it with {@linkcode stop}. */
export class TcpNode implements TestNode {
  readonly port: number;
  readonly #listening: Port;
  readonly #password: string | undefined;
  readonly #server: MemoryRedis;
  readonly #faults: Faults = { ...NO_FAULTS };
  /** The requests of all connections. */
  #inbox = new Pipe(this.#faults);
  /** By how much its wall clock is ahead of the right one. */
  #aheadMs = 0;
  #cutOff = false;

  /**
   * @param port The port.
   * @param network Where it listens.
   * @param options The clock and the password.
   */
  constructor(port: number, network: Network, options: MemoryRedisOptions) {
    this.port = port;
    this.#listening = new Port(() => network.listen(port, (peer) => this.#accept(peer)));
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
    return this.#listening.change(() => this.#close());
  }

  restart(options?: MemoryRestartOptions): Promise<void> {
    return this.#listening.change(async () => {
      if (this.#listening.isOver) {
        throw new Error(`Cannot restart node ${this.port} as it was closed`);
      }
      await this.#close();
      this.#server.restart(options);
      this.#inbox = new Pipe(this.#faults);
      await this.#listening.open();
    });
  }

  hang(): void {
    this.#checkRunning("hang");
    this.#faults.hung = true;
  }

  partition(): void {
    this.#checkRunning("partition");
    this.#cutOff = true;
    this.#faults.hung = true;
  }

  resume(): void {
    this.#checkRunning("resume");
    this.#cutOff = false;
    this.#faults.hung = false;
    this.#inbox.flush();
  }

  slow(delayMs: number): void {
    checkDelayMs("slow node", delayMs);
    this.#faults.delayMs = delayMs;
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
    return this.#listening.start();
  }

  /** Crashes it for good. Idempotent. */
  stop(): Promise<void> {
    return this.#listening.end(() => this.#close());
  }

  async #close(): Promise<void> {
    this.#inbox.close();
    await this.#listening.close();
    this.#cutOff = false;
    this.#faults.hung = false;
  }

  #checkRunning(action: string): void {
    if (this.#listening.isOpen) return;
    throw new Error(`Cannot ${action} node ${this.port} as it is not running: restart it first`);
  }

  #accept(peer: StreamPeer): StreamHandler {
    const session = this.#server.session({
      onMessage: peer.send,
      onEnd: () => queueMicrotask(() => peer.end()), // behind the last replies
    });
    const requests: Sink = {
      send: (bytes) => {
        const replies = session.push(bytes);
        if (replies.length > 0) peer.send(replies);
      },
      end: () => session.close(),
    };
    return {
      onData: (bytes) => this.#inbox.push(bytes, requests),
      onClose: () => {
        if (this.#cutOff) this.#inbox.drop(requests);
        this.#inbox.push(undefined, requests);
      },
    };
  }
}
