/** Every way for `count` places to have one of the values each. */
export function combinations<Value>(values: readonly Value[], count: number): Value[][] {
  if (count === 0) return [[]];
  return combinations(values, count - 1).flatMap((rest) => values.map((value) => [...rest, value]));
}
