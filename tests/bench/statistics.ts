/** The few statistics that the bench reports. */

/**
 * The smallest sample that at least `share` (0 to 1) of the samples do not exceed; NaN without
 * samples.
 */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** The middle of the samples; NaN without samples. */
export function median(samples: readonly number[]): number {
  return percentile(samples, 0.5);
}
