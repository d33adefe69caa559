/**
 * Durations as people write and read them: `30s`, `1.5h`.
 *
 * @module
 */
import { InvalidArgumentError } from "commander";

const UNITS_MS: { readonly [unit: string]: number | undefined } = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const DURATION = /^(\d+(?:\.\d+)?)([a-z]+)$/u;

/**
 * Reads a duration: a number and its unit `ms`, `s`, `m` or `min`, `h` or `d`, or `0`.
 *
 * @param text What the user wrote.
 * @returns Milliseconds, rounded to an integer.
 * @throws {InvalidArgumentError} If it is no duration. A number without a unit is refused, because
 * it is seconds to some programs and milliseconds to others.
 */
export function parseDuration(text: string): number {
  if (text === "0") return 0;
  if (/^\d+(\.\d+)?$/u.test(text)) {
    throw new InvalidArgumentError(`Its unit is missing: write '${text}s', for example`);
  }
  const [, amount, unit = ""] = DURATION.exec(text) ?? [];
  const unitMs = Object.hasOwn(UNITS_MS, unit) ? UNITS_MS[unit] : undefined;
  if (amount === undefined || unitMs === undefined) {
    throw new InvalidArgumentError(
      "It must be a number and a unit of ms, s, m, h or d, such as '30s'",
    );
  }
  return Math.round(Number(amount) * unitMs);
}

/** Reads a duration like {@linkcode parseDuration}, or `forever`, which is `Infinity`. */
export function parseLimit(text: string): number {
  return text === "forever" ? Infinity : parseDuration(text);
}

/** Writes a duration for people: `850 ms`, `12.3 s`, `2 min 5 s`, `3 d 4 h`. */
export function formatDuration(durationMs: number): string {
  if (durationMs === Infinity) return "forever";
  if (durationMs < 1_000) return `${Math.round(durationMs)} ms`;
  const seconds = durationMs / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const parts = [
    ...[["d", seconds / 86_400], ["h", seconds / 3_600 % 24]] as const,
    ...[["min", seconds / 60 % 60], ["s", seconds % 60]] as const,
  ];
  const first = parts.findIndex(([, count]) => count >= 1);
  return parts.slice(first, first + 2).filter(([, count]) => count >= 1)
    .map(([unit, count]) => `${Math.floor(count)} ${unit}`).join(" ");
}
