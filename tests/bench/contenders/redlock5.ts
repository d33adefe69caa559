/** `redlock@5.0.0-beta.2` on `ioredis`, and `@sesamecare-oss/redlock`, which has the same API. */

import { type QueuedLock, TTL_MS } from "./contender.ts";
import { IoredisContender } from "./ioredis.ts";
import { load } from "./packages.ts";

interface Redlock5Client {
  acquire(resources: string[], ttlMs: number): Promise<QueuedLock>;
  on(event: "error", listener: () => void): void;
}

type Redlock5Constructor = new (clients: readonly unknown[]) => Redlock5Client;

/** Contender of `redlock5`, or of another package with its API. */
export class Redlock5 extends IoredisContender {
  readonly #name: string;
  #redlock?: Redlock5Client;

  constructor(name = "redlock5") {
    super();
    this.#name = name;
  }

  protected override async create(clients: readonly unknown[]): Promise<void> {
    const exported = await load(this.#name) as {
      default: Redlock5Constructor;
      Redlock?: Redlock5Constructor;
    };
    this.#redlock = new (exported.Redlock ?? exported.default)(clients);
    this.#redlock.on("error", () => {});
  }

  protected override copy(): Redlock5 {
    return new Redlock5(this.#name);
  }

  override async pair(resource: string): Promise<void> {
    const lock = await this.#redlock!.acquire([resource], TTL_MS);
    await lock.release();
  }

  override hold(resource: string): Promise<unknown> {
    return this.#redlock!.acquire([resource], TTL_MS);
  }

  queue(resource: string): Promise<QueuedLock> {
    return this.#redlock!.acquire([resource], TTL_MS);
  }
}
