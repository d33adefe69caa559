/** `redlock@4` on `ioredis`. */

import { TTL_MS } from "./contender.ts";
import { IoredisContender } from "./ioredis.ts";
import { load } from "./packages.ts";

interface Redlock4Lock {
  unlock(): Promise<unknown>;
}

interface Redlock4Client {
  lock(resource: string, ttlMs: number): Promise<Redlock4Lock>;
  on(event: "clientError", listener: () => void): void;
}

/** Contender of `redlock4`. */
export class Redlock4 extends IoredisContender {
  #redlock?: Redlock4Client;

  protected override async create(clients: readonly unknown[]): Promise<void> {
    const { default: Redlock } = await load("redlock4") as {
      default: new (clients: readonly unknown[]) => Redlock4Client;
    };
    this.#redlock = new Redlock(clients);
    this.#redlock.on("clientError", () => {});
  }

  protected override copy(): Redlock4 {
    return new Redlock4();
  }

  override async pair(resource: string): Promise<void> {
    const lock = await this.#redlock!.lock(resource, TTL_MS);
    await lock.unlock();
  }

  override hold(resource: string): Promise<unknown> {
    return this.#redlock!.lock(resource, TTL_MS);
  }
}
