/** `createRedlock()` of `redlock-universal` on `ioredis`. */

import { TTL_MS } from "./contender.ts";
import { IoredisContender } from "./ioredis.ts";
import { load } from "./packages.ts";

interface Handle {
  readonly id: string;
}

interface UniversalLock {
  acquire(): Promise<Handle>;
  release(handle: Handle): Promise<boolean>;
}

interface Exported {
  IoredisAdapter: new (client: unknown) => unknown;
  createRedlock(config: { adapters: unknown[]; key: string; ttl: number }): UniversalLock;
}

/** Contender of `redlock-universal`. */
export class RedlockUniversal extends IoredisContender {
  #exported?: Exported;
  #adapters: unknown[] = [];

  protected override async create(clients: readonly unknown[]): Promise<void> {
    const exported = await load("redlock-universal") as Exported;
    this.#adapters = clients.map((client) => new exported.IoredisAdapter(client));
    this.#exported = exported;
  }

  protected override copy(): RedlockUniversal {
    return new RedlockUniversal();
  }

  override async pair(resource: string): Promise<void> {
    const lock = this.#lock(resource);
    const handle = await lock.acquire();
    if (!await lock.release(handle)) throw new Error(`Lock "${resource}" was not released`);
  }

  override async hold(resource: string): Promise<Handle> {
    return await this.#lock(resource).acquire();
  }

  #lock(key: string): UniversalLock {
    return this.#exported!.createRedlock({ adapters: this.#adapters, key, ttl: TTL_MS });
  }
}
