/**
 * What the library writes on the console.
 *
 * @module
 */

/** Keeps what is written by `console.warn`, until the end of the block. */
export class Warnings implements Disposable {
  /** The texts. */
  readonly texts: unknown[] = [];
  readonly #warn = console.warn;

  /** @param warn What the console does instead of writing; by default, nothing. */
  constructor(warn: () => unknown = () => {}) {
    console.warn = (...data: unknown[]) => {
      this.texts.push(...data);
      return warn();
    };
  }

  [Symbol.dispose](): void {
    console.warn = this.#warn;
  }
}
