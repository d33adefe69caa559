/**
 * The async context (`AsyncLocalStorage`) in which an object was made. Timers and sockets are
 * shared by all callers, so what a client calls from them would run in the context of the call that
 * needed them first, and keep it alive.
 *
 * @module
 */

/**
 * Calls functions in the async context in which it was made, a microtask later, in their order. A
 * promise carries the context, because every runtime calls what waits for a promise in the context
 * in which it began to wait. The context lives as long as this object.
 */
export class OwnContext {
  #calls: (() => void)[] | undefined;
  #begin!: () => void;

  constructor() {
    this.#wait();
  }

  /** Calls a function that throws nothing. */
  run(call: () => void): void {
    if (this.#calls) return void this.#calls.push(call);
    this.#calls = [call];
    this.#begin();
  }

  #wait(): void {
    const begun = new Promise<void>((resolve) => this.#begin = resolve);
    begun.then(() => {
      const calls = this.#calls!;
      this.#calls = undefined;
      this.#wait();
      for (const call of calls) call();
    });
  }
}
