/** `RedlockMutex` of `redis-semaphore` on `ioredis`. */

import { TTL_MS } from "./contender.ts";
import { IoredisContender } from "./ioredis.ts";
import { load } from "./packages.ts";

interface Mutex {
  acquire(): Promise<void>;
  release(): Promise<void>;
}

type MutexConstructor = new (clients: readonly unknown[], key: string, options: unknown) => Mutex;

/** The same job for all: nobody extends the lock, so no interval is set up for it. */
const OPTIONS = { lockTimeout: TTL_MS, refreshInterval: 0 };

/** Contender of `redis-semaphore`. */
export class RedisSemaphore extends IoredisContender {
  #mutex?: MutexConstructor;
  #clients: readonly unknown[] = [];

  protected override async create(clients: readonly unknown[]): Promise<void> {
    const { RedlockMutex } = await load("redis-semaphore") as { RedlockMutex: MutexConstructor };
    this.#clients = clients;
    this.#mutex = RedlockMutex;
  }

  protected override copy(): RedisSemaphore {
    return new RedisSemaphore();
  }

  override async pair(resource: string): Promise<void> {
    const mutex = await this.hold(resource);
    await mutex.release();
  }

  override async hold(resource: string): Promise<Mutex> {
    const mutex = new this.#mutex!(this.#clients, resource, OPTIONS);
    await mutex.acquire();
    return mutex;
  }
}
