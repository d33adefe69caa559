/**
 * Parts of the library that are loaded when they are first needed, because a program that acquires and releases a lock
 * needs few of them.
 *
 * A part is loaded before the work that needs it begins, and never between a command and what undoes it. Once it is
 * loaded nobody waits for it.
 *
 * @module
 */

/** A module that is loaded on demand. */
export class Part<Module> {
  /** The module, once it is loaded: not its promise, because a worker must not wait for a promise of another request. */
  loaded: Module | undefined = undefined;
  readonly #name: string;
  readonly #load: () => Promise<Module>;

  /**
   * @param name What the part is for, as the end of a sentence.
   * @param load Imports the module, by a literal `import()`, so that bundlers find it.
   */
  constructor(name: string, load: () => Promise<Module>) {
    this.#name = name;
    this.#load = load;
  }

  /**
   * Loads the module.
   *
   * @throws {Error} If it cannot be loaded; the next call tries again.
   */
  async load(): Promise<Module> {
    try {
      return this.loaded ??= await this.#load();
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`Cannot load the lock client's part for ${this.#name}: ${why}`, { cause });
    }
  }
}
