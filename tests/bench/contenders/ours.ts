/** This library. */

import { type Contender, type QueuedLock, TTL_MS, WAIT_MS } from "./contender.ts";

interface OurLock {
  fencingToken?: number;
  release(): Promise<boolean>;
}

/** Options of our calls that are measured. */
interface OurOptions {
  ttlMs: number;
  waitMs?: number;
  signal?: AbortSignal;
  autoExtend?: boolean;
  onEvent?(event: { type: string }): void;
}

/** The part of our client that is measured. */
interface OurRedlock {
  acquire(resource: string, options: OurOptions): Promise<OurLock>;
  tryAcquire(
    resource: string,
    options: { ttlMs: number; fencing?: boolean },
  ): Promise<OurLock | undefined>;
  close(): Promise<void> | void;
}

/** {@linkcode Contender} of `mod.ts`, with `ttlMs` given in each call. */
export class Ours implements Contender {
  #redlock?: OurRedlock;
  #urls: readonly string[] = [];

  async open(urls: readonly string[]): Promise<void> {
    this.#urls = urls;
    const { createRedlock } = await import(entryPoint()) as {
      createRedlock(urls: readonly string[]): OurRedlock;
    };
    // No waiting here: the first lock waits for connections still being made.
    this.#redlock = createRedlock(urls);
  }

  /** The client, once it is open. */
  protected get redlock(): OurRedlock {
    return this.#redlock!;
  }

  /** A contender of the same kind, not opened yet. */
  protected copy(): Ours {
    return new Ours();
  }

  async pair(resource: string): Promise<void> {
    const lock = await this.#redlock!.tryAcquire(resource, { ttlMs: TTL_MS });
    if (lock === undefined) throw new Error(`Lock "${resource}" is held`);
    await lock.release();
  }

  async pairFenced(resource: string): Promise<number> {
    const lock = await this.#redlock!.tryAcquire(resource, { ttlMs: TTL_MS, fencing: true });
    if (lock === undefined) throw new Error(`Lock "${resource}" is held`);
    await lock.release();
    return lock.fencingToken!;
  }

  async hold(resource: string): Promise<unknown> {
    return await this.#redlock!.tryAcquire(resource, { ttlMs: TTL_MS });
  }

  keep(
    resource: string,
    ttlMs: number,
    onExtended: () => void,
    onLost: () => void,
  ): Promise<QueuedLock> {
    const onEvent = ({ type }: { type: string }) => {
      if (type === "extended") onExtended();
      else if (type === "lost") onLost();
    };
    return this.#redlock!.acquire(resource, { ttlMs, autoExtend: true, onEvent });
  }

  queue(resource: string): Promise<QueuedLock> {
    return this.#redlock!.acquire(resource, { ttlMs: TTL_MS, waitMs: WAIT_MS });
  }

  async another(): Promise<Contender> {
    const another = this.copy();
    await another.open(this.#urls);
    return another;
  }

  async close(): Promise<void> {
    await this.#redlock!.close();
  }
}

/**
 * The same for calls that may wait and can be aborted: with `ttlMs`, `waitMs` and `signal` given in
 * each.
 */
export class OursWaiting extends Ours {
  readonly #signal = new AbortController().signal;

  protected override copy(): Ours {
    return new OursWaiting();
  }

  override async pair(resource: string): Promise<void> {
    const options = { ttlMs: TTL_MS, waitMs: WAIT_MS, signal: this.#signal };
    const lock = await this.redlock.acquire(resource, options);
    await lock.release();
  }
}

/**
 * The library: in Node and Bun the package as it is published, if a variable names it. Deno loads
 * more if it reads `process`.
 */
function entryPoint(): string {
  const source = new URL("../../../mod.ts", import.meta.url).href;
  if ("Deno" in globalThis) return source;
  return (globalThis as unknown as { process: Process }).process.env.BENCH_ENTRY ?? source;
}

interface Process {
  readonly env: Record<string, string | undefined>;
}
