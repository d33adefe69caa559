/**
 * What an example uses of Vitest: its types are checked with this, and it runs with the real one,
 * which is not installed here because it brings a bundler along.
 */

type Routine = () => unknown;

/** What a value, or a promise, is compared with. */
interface Expectation {
  readonly rejects: { toThrow(error: unknown): Promise<void> };
  toEqual(expected: unknown): void;
}

export declare function test(name: string, routine: Routine): void;
export declare function beforeEach(routine: Routine): void;
export declare function afterEach(routine: Routine): void;
export declare function afterAll(routine: Routine): void;
export declare function expect(value: unknown): Expectation;
export declare const vi: {
  useFakeTimers(): void;
  useRealTimers(): void;
  advanceTimersByTimeAsync(ms: number): Promise<void>;
};
