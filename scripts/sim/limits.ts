/**
 * How much is simulated, as the command line of the simulator says it.
 *
 * @module
 */
import { availableParallelism } from "node:os";

const HOUR_MS = 3_600_000;
/** How many seeds are run if nothing else is asked for. */
export const SEEDS = 1_000;

/** What the command line says about it. */
export interface Limits {
  /** A number of seeds, or `a..b` for those from `a` up to `b`. */
  readonly seeds?: string;
  /** How many hours are simulated. */
  readonly hours?: string;
  /** How many seeds are run at the same time. */
  readonly threads?: string;
}

/**
 * The seeds to run: with hours, and no number of seeds, as many as it takes.
 *
 * @throws {TypeError} If there is no such seed.
 */
export function seedRange({ seeds, hours }: Limits): { from: number; to: number } {
  if (seeds === undefined) return { from: 0, to: hours === undefined ? SEEDS : Infinity };
  const [, from = "0", to] = /^(?:(\d{1,15})\.\.)?(\d{1,15})$/u.exec(seeds) ?? [];
  if (Number(from) < Number(to)) return { from: Number(from), to: Number(to) };
  throw new TypeError(
    `--seeds must be a count, or a..b with a less than b: current value is "${seeds}"`,
  );
}

/**
 * How long may be simulated, in milliseconds.
 *
 * @throws {TypeError} If it is not a positive number.
 */
export function limitMs({ hours = "Infinity" }: Limits): number {
  if (Number(hours) > 0) return Number(hours) * HOUR_MS;
  throw new TypeError(`--hours must be a number greater than 0: current value is "${hours}"`);
}

/**
 * How many threads run seeds: as many as there are cores, if nothing else is asked for.
 *
 * @throws {TypeError} If it is not a positive integer.
 */
export function threadCount({ threads = String(availableParallelism()) }: Limits): number {
  const count = Number(threads);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new TypeError(`--threads must be a positive integer: current value is "${threads}"`);
}
