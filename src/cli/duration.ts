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
 * From this many milliseconds on a duration is shown in seconds, and from that many seconds on
 * without a fraction.
 */
const SECONDS_FROM_MS = 1_000;
const WHOLE_SECONDS_FROM_MS = 60_000;
/** The parts of a duration of a minute or more, the largest first. */
const PARTS = ["d", "h", "min", "s"] as const;
/** How many parts are shown. */
const PARTS_SHOWN = 2;

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
  if (durationMs < SECONDS_FROM_MS) return `${Math.round(durationMs)} ms`;
  if (durationMs < WHOLE_SECONDS_FROM_MS) return `${(durationMs / 1_000).toFixed(1)} s`;
  const parts: string[] = [];
  let restMs = durationMs;
  for (const unit of PARTS) {
    const unitMs = UNITS_MS[unit]!;
    const count = Math.floor(restMs / unitMs);
    restMs -= count * unitMs;
    if (count > 0 || parts.length > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, PARTS_SHOWN).filter((part) => !part.startsWith("0 ")).join(" ");
}
