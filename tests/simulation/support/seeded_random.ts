/** Randomness of which one seed decides everything. */

/**
 * Added to the state for each number: 2^32 divided by the golden ratio, so that the states spread
 * evenly.
 */
const STEP = 0x9e3779b9;
const TWO_TO_32 = 2 ** 32;

/** A generator of numbers that any two runtimes make alike. */
export class SeededRandom {
  #state: number;

  /** @param seed What makes this generator differ from others. */
  constructor(seed: string | number) {
    this.#state = hashOf(String(seed));
  }

  /** A number from 0 up to but not including 1. */
  fraction(): number {
    this.#state = (this.#state + STEP) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / TWO_TO_32;
  }

  /** Whether something of that probability happens. */
  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** A number from `min` to `max`, in thousandths. */
  between(min: number, max: number): number {
    return Math.round((min + (max - min) * this.fraction()) * 1_000) / 1_000;
  }

  /** An integer from `min` to `max`, both included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  /** One of several. */
  pick<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)];
  }

  /** Some of several, at least one, in their order. */
  some<T>(choices: readonly T[]): T[] {
    const chosen = choices.filter(() => this.chance(0.5));
    return chosen.length > 0 ? chosen : [this.pick(choices)];
  }
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
