/**
 * Locks whose handle and signal were garbage-collected: nobody can release them, and nobody works under them. So they are
 * not extended any more.
 *
 * @module
 */

/** A lock that extends itself. */
export interface Forgettable {
  /** How many of its handle and its signals are not collected yet. */
  watched?: number;
  /** Called when all of them are. */
  onForgotten(): void;
}

/** Missing in some workers: there such a lock is extended until the client closes. */
const registry =
  /* @__PURE__ */ (() =>
    globalThis.FinalizationRegistry && new FinalizationRegistry(onCollected))();

/** Watches the handle of a lock, or a signal of it. */
export function watch(watched: object, lock: Forgettable): void {
  if (!registry) return;
  lock.watched = (lock.watched ?? 0) + 1;
  registry.register(watched, lock);
}

function onCollected(lock: Forgettable): void {
  if (--lock.watched! === 0) lock.onForgotten();
}
