/**
 * `redlock@5.0.0-beta.2` on `ioredis`.
 *
 * @module
 */

import { type Contender, type QueuedLock, TTL_MS } from "./contender.ts";
import { load, openIoredis } from "./ioredis.ts";

interface Redlock5Lock {
  release(): Promise<unknown>;
}

interface Redlock5Client {
  acquire(resources: string[], ttlMs: number): Promise<Redlock5Lock>;
  on(event: "error", listener: () => void): void;
}

/** {@linkcode Contender} of `redlock5`. */
export class Redlock5 implements Contender {
  #redlock?: Redlock5Client;
  #disconnect = (): void => {};
  #urls: readonly string[] = [];

  async open(urls: readonly string[]): Promise<void> {
    this.#urls = urls;
    const { clients, disconnect } = await openIoredis(urls);
    const { default: Redlock } = await load("redlock5") as {
      default: new (clients: unknown[], options?: unknown) => Redlock5Client;
    };
    this.#disconnect = disconnect;
    this.#redlock = new Redlock(clients);
    this.#redlock.on("error", () => {});
  }

  async pair(resource: string): Promise<void> {
    const lock = await this.#redlock!.acquire([resource], TTL_MS);
    await lock.release();
  }

  hold(resource: string): Promise<unknown> {
    return this.#redlock!.acquire([resource], TTL_MS);
  }

  queue(resource: string): Promise<QueuedLock> {
    return this.#redlock!.acquire([resource], TTL_MS);
  }

  async another(): Promise<Contender> {
    const another = new Redlock5();
    await another.open(this.#urls);
    return another;
  }

  close(): Promise<void> {
    this.#disconnect();
    return Promise.resolve();
  }
}
