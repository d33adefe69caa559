/**
 * `redlock@4` on `ioredis`.
 *
 * @module
 */

import { type Contender, TTL_MS } from "./contender.ts";
import { load, openIoredis } from "./ioredis.ts";

interface Redlock4Lock {
  unlock(): Promise<unknown>;
}

interface Redlock4Client {
  lock(resource: string, ttlMs: number): Promise<Redlock4Lock>;
  on(event: "clientError", listener: () => void): void;
}

/** {@linkcode Contender} of `redlock4`. */
export class Redlock4 implements Contender {
  #redlock?: Redlock4Client;
  #disconnect = (): void => {};

  async open(urls: readonly string[]): Promise<void> {
    const { clients, disconnect } = await openIoredis(urls);
    const { default: Redlock } = await load("redlock4") as {
      default: new (clients: unknown[], options?: unknown) => Redlock4Client;
    };
    this.#disconnect = disconnect;
    this.#redlock = new Redlock(clients);
    this.#redlock.on("clientError", () => {});
  }

  async pair(resource: string): Promise<void> {
    const lock = await this.#redlock!.lock(resource, TTL_MS);
    await lock.unlock();
  }

  hold(resource: string): Promise<unknown> {
    return this.#redlock!.lock(resource, TTL_MS);
  }

  close(): Promise<void> {
    this.#disconnect();
    return Promise.resolve();
  }
}
