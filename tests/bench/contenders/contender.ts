/**
 * What the bench compares: one client library, or the floor under them all, behind one small
 * interface.
 */

/** How long every contender's locks live: longer than any measurement. */
export const TTL_MS = 30_000;

/** A lock that was waited for. */
export interface QueuedLock {
  release(): Promise<unknown>;
}

/** How long a contender may wait for a lock that others want, where it can be told. */
export const WAIT_MS = 60_000;

/** A library under measurement. */
export interface Contender {
  /** Connects to all nodes; resolves once {@linkcode pair} may be called. */
  open(urls: readonly string[]): Promise<void>;
  /** Told before a measurement which resources it uses, for what can be computed ahead. */
  prepare?(resources: readonly string[]): void;
  /** Acquires one lock and releases it. */
  pair(resource: string): Promise<void>;
  /** The same with a fencing token, which it resolves to. Left out: the contender has none. */
  pairFenced?(resource: string): Promise<number>;
  /** Acquires one lock and resolves to its handle. */
  hold(resource: string): Promise<unknown>;
  /**
   * Acquires one lock that extends itself, and calls back at each extension and if the lock is
   * lost.
   */
  keep?(
    resource: string,
    ttlMs: number,
    onExtended: () => void,
    onLost: () => void,
  ): Promise<QueuedLock>;
  /** Waits for a lock that others want too. Left out: the contender is not measured at that. */
  queue?(resource: string): Promise<QueuedLock>;
  /** Another client like this one, with connections of its own. */
  another?(): Promise<Contender>;
  /**
   * Has commands of one moment go out in one write, or each in its own. Left out: there is no such
   * choice.
   */
  pipeline?(on: boolean): void;
  /** Closes every connection, also where a node is gone. */
  close(): Promise<void>;
}

/** Makes contenders by name; each loads its library only when it is asked for. */
export const contenders: Record<string, () => Promise<Contender>> = {
  floor: async () =>
    "Deno" in globalThis
      ? new (await import("./floor_deno.ts")).DenoFloor()
      : new (await import("./floor_node.ts")).NodeFloor(),
  ours: async () => new (await import("./ours.ts")).Ours(),
  "ours-waiting": async () => new (await import("./ours.ts")).OursWaiting(),
  redlock4: async () => new (await import("./redlock4.ts")).Redlock4(),
  redlock5: async () => new (await import("./redlock5.ts")).Redlock5(),
  sesamecare: async () => new (await import("./redlock5.ts")).Redlock5("sesamecare"),
  "redis-semaphore": async () => new (await import("./redis_semaphore.ts")).RedisSemaphore(),
  "redlock-universal": async () => new (await import("./redlock_universal.ts")).RedlockUniversal(),
};
