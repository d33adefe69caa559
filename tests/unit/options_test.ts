import { assertEquals, assertThrows } from "@std/assert";
import {
  checkTtlMs,
  type RedlockOptions,
  resolveOptions,
  TTL_MS_MAX,
  TTL_MS_MIN,
} from "../../src/options.ts";

const DEFAULTS = {
  ttlMs: 30_000,
  waitMs: 10_000,
  signal: undefined,
  nodeTimeoutMs: 1_000,
  driftFactor: 0.01,
  retryDelayMs: 100,
  retryDelayMaxMs: 2_000,
  notify: true,
  fencing: false,
  tokenSource: undefined,
  autoExtend: undefined,
  extensionsMax: Infinity,
  keyPrefix: "",
  restartGuardMs: 0,
  cooldownMs: 0,
  onEvent: undefined,
  validityMs: 29_698,
} as const;

/** The options that this file knows; one more in the source makes the first test fail. */
const KNOWN = Object.keys(DEFAULTS).filter((name) => name !== "validityMs");

function resolve(options?: object, base?: RedlockOptions) {
  return resolveOptions("acquire lock", options as RedlockOptions, base);
}

Deno.test("resolveOptions() fills in every default", () => {
  assertEquals(resolve(), DEFAULTS);
  assertEquals(resolve({}), DEFAULTS);
});

Deno.test("resolveOptions() takes undefined for the default", () => {
  const nothing = Object.fromEntries(KNOWN.map((name) => [name, undefined]));
  assertEquals(resolve(nothing), DEFAULTS);
  assertEquals(resolve(nothing, nothing), DEFAULTS);
});

const onEvent = () => {};
const tokenSource = () => 1;
const { signal } = new AbortController();
const GIVEN = {
  ttlMs: 5_000,
  waitMs: 0,
  signal,
  nodeTimeoutMs: 70,
  driftFactor: 0,
  retryDelayMs: 0,
  retryDelayMaxMs: 0,
  notify: false,
  fencing: true,
  tokenSource,
  autoExtend: false,
  extensionsMax: 0,
  keyPrefix: "app:",
  restartGuardMs: 8_000,
  cooldownMs: 70,
  onEvent,
} satisfies RedlockOptions;
const RESOLVED = { ...GIVEN, fencing: false, validityMs: 4_998 };

Deno.test("resolveOptions() has the nodes count only where tokens do not come from elsewhere", () => {
  assertEquals(resolve({ fencing: true }).fencing, true);
  assertEquals(resolve({ fencing: true, tokenSource }).fencing, false);
  assertEquals(resolve({ fencing: true }, { tokenSource }).fencing, false);
});

Deno.test("resolveOptions() takes what is given, falsy values too", () => {
  assertEquals(resolve(GIVEN), RESOLVED);
});

Deno.test("resolveOptions() takes the client's own option where the call gives none", () => {
  const nothing = Object.fromEntries(KNOWN.map((name) => [name, undefined]));
  assertEquals(resolve(undefined, GIVEN), RESOLVED);
  assertEquals(resolve({}, GIVEN), RESOLVED);
  assertEquals(resolve(nothing, GIVEN), RESOLVED);
});

Deno.test("resolveOptions() takes the call's option before the client's own", () => {
  const settings = resolve({ ttlMs: 1_000, keyPrefix: "" }, GIVEN);
  assertEquals([settings.ttlMs, settings.keyPrefix, settings.waitMs], [1_000, "", 0]);
});

for (
  const [ttlMs, nodeTimeoutMs] of [[10, 50], [1_000, 50], [1_020, 51], [20_000, 1_000], [
    86_400_000,
    1_000,
  ]]
) {
  Deno.test(`resolveOptions() derives a nodeTimeoutMs of ${nodeTimeoutMs} from a TTL of ${ttlMs}`, () => {
    assertEquals(resolve({ ttlMs }).nodeTimeoutMs, nodeTimeoutMs);
    assertEquals(resolve({ ttlMs }, { ttlMs: 5_000 }).nodeTimeoutMs, nodeTimeoutMs);
  });
}

const NOT_A_NUMBER = [["1", "string"], [null, "object"], [{}, "object"], [1n, "bigint"], [
  true,
  "boolean",
]] as const;
const NUMBERS = [
  "ttlMs",
  "waitMs",
  "nodeTimeoutMs",
  "driftFactor",
  "retryDelayMs",
  "retryDelayMaxMs",
  "extensionsMax",
  "restartGuardMs",
  "cooldownMs",
];

for (const name of NUMBERS) {
  for (const [value, type] of NOT_A_NUMBER) {
    Deno.test(`resolveOptions() refuses ${name}: ${Deno.inspect(value)}`, () => {
      assertEquals(
        assertThrows(() => resolve({ [name]: value }), TypeError).message,
        `Cannot acquire lock as '${name}' must be a number: current type is '${type}'`,
      );
    });
  }
}

const OUT_OF_RANGE: readonly (readonly [name: string, rule: string, values: number[]])[] = [
  ["ttlMs", "must be a positive safe integer", [0, -1, 1.5, NaN, Infinity, -Infinity, 2 ** 53]],
  ["ttlMs", "must be from 10 to 86400000", [1, 9, 86_400_001]],
  ["driftFactor", "must be at least 0 and less than 1", [-0.1, 1, 2, NaN, Infinity]],
  ["waitMs", "must not be negative", [-1, NaN, -Infinity]],
  ["nodeTimeoutMs", "must be a finite number greater than 0", [0, -1, NaN, Infinity]],
  ["retryDelayMs", "must be a finite number of at least 0", [-1, NaN, Infinity]],
  ["retryDelayMaxMs", "must be a finite number of at least 0", [-1, NaN, Infinity]],
  ["restartGuardMs", "must be a finite number of at least 0", [-1, NaN, Infinity]],
  ["cooldownMs", "must be a finite number of at least 0", [-1, NaN, Infinity]],
  ["extensionsMax", "must not be negative", [-1, NaN]],
  ["extensionsMax", "must be a safe integer or Infinity", [1.5, 2 ** 53]],
];

for (const [name, rule, values] of OUT_OF_RANGE) {
  for (const value of values) {
    Deno.test(`resolveOptions() refuses ${name}: ${value}`, () => {
      const message = `Cannot acquire lock as '${name}' ${rule}: current value is ${value}`;
      assertEquals(assertThrows(() => resolve({ [name]: value }), RangeError).message, message);
      assertEquals(assertThrows(() => resolve({}, { [name]: value }), RangeError).message, message);
    });
  }
}

const WITHIN_RANGE: readonly (readonly [name: string, values: number[]])[] = [
  ["ttlMs", [TTL_MS_MIN, TTL_MS_MAX]],
  ["driftFactor", [0, 0.999]],
  ["waitMs", [0, 0.5, Infinity]],
  ["nodeTimeoutMs", [0.5, 1e9]],
  ["retryDelayMs", [0, 0.5]],
  ["retryDelayMaxMs", [0, 0.5]],
  ["restartGuardMs", [0, 30_000, 30_000.5]],
  ["cooldownMs", [0, 0.5]],
  ["extensionsMax", [0, 1, Infinity]],
];

for (const [name, values] of WITHIN_RANGE) {
  for (const value of values) {
    Deno.test(`resolveOptions() takes ${name}: ${value}`, () => {
      assertEquals(Reflect.get(resolve({ [name]: value }), name), value);
    });
  }
}

for (const [ttlMs, driftFactor] of [[10, 0.8], [1_000, 0.998], [10, 0.99]]) {
  Deno.test(`resolveOptions() refuses a TTL of ${ttlMs} that a drift of ${driftFactor} eats up`, () => {
    assertEquals(
      assertThrows(() => resolve({ ttlMs, driftFactor }), RangeError).message,
      `Cannot acquire lock as 'ttlMs' must be greater than its own drift allowance: current value is ${ttlMs}`,
    );
  });
}

for (
  const [name, value, message] of [
    ["autoExtend", 1, "'autoExtend' must be a boolean: current type is 'number'"],
    ["autoExtend", null, "'autoExtend' must be a boolean: current type is 'object'"],
    ["fencing", 1, "'fencing' must be a boolean: current type is 'number'"],
    ["fencing", "true", "'fencing' must be a boolean: current type is 'string'"],
    ["fencing", null, "'fencing' must be a boolean: current type is 'object'"],
    ["tokenSource", 5, "'tokenSource' must be a function: current type is 'number'"],
    ["tokenSource", null, "'tokenSource' must be a function: current type is 'object'"],
    ["keyPrefix", 5, "'keyPrefix' must be a string: current type is 'number'"],
    ["onEvent", {}, "'onEvent' must be a function: current type is 'object'"],
    ["signal", {}, "'signal' must be an AbortSignal"],
    ["signal", null, "'signal' must be an AbortSignal"],
    ["signal", new AbortController(), "'signal' must be an AbortSignal"],
  ] as const
) {
  Deno.test(`resolveOptions() refuses ${name}: ${Deno.inspect(value)}`, () => {
    assertEquals(
      assertThrows(() => resolve({ [name]: value }), TypeError).message,
      `Cannot acquire lock as ${message}`,
    );
  });
}

for (
  const name of ["ttl", "retryCount", "toString", "constructor", "hasOwnProperty", "validityMs"]
) {
  Deno.test(`resolveOptions() refuses the unknown option ${name}`, () => {
    assertEquals(
      assertThrows(() => resolve({ [name]: 1 }), TypeError).message,
      `Cannot acquire lock as option '${name}' is unknown: valid options are ${KNOWN.join(", ")}`,
    );
  });
}

for (
  const [options, current] of [
    [null, "value is null"],
    [5, "type is 'number'"],
    ["ttlMs", "type is 'string'"],
    [true, "type is 'boolean'"],
    [() => {}, "type is 'function'"],
  ] as const
) {
  Deno.test(`resolveOptions() refuses options that are ${Deno.inspect(options)}`, () => {
    assertEquals(
      assertThrows(() => resolve(options as unknown as object), TypeError).message,
      `Cannot acquire lock as 'options' must be an object: current ${current}`,
    );
  });
}

Deno.test("checkTtlMs() says what cannot be done", () => {
  assertEquals(
    assertThrows(() => checkTtlMs("extend lock", 1.5, 0.01), RangeError).message,
    "Cannot extend lock as 'ttlMs' must be a positive safe integer: current value is 1.5",
  );
});

Deno.test("resolveOptions() refuses a guard that is on and shorter than the TTL", () => {
  const message =
    "Cannot acquire lock as 'restartGuardMs' must be 0 or at least 'ttlMs', which is ";
  for (
    const [options, base, ttlMs] of [
      [{ restartGuardMs: 999, ttlMs: 1_000 }, {}, 1_000],
      [{ restartGuardMs: 2_000 }, {}, 30_000],
      [{ ttlMs: 5_000 }, { ttlMs: 1_000, restartGuardMs: 1_000 }, 5_000],
      [{ restartGuardMs: 1 }, { ttlMs: 1_000 }, 1_000],
    ] as const
  ) {
    const error = assertThrows(() => resolveOptions("acquire lock", options, base), RangeError);
    const { restartGuardMs: guardMs } = { ...base, ...options } as RedlockOptions;
    assertEquals(error.message, `${message}${ttlMs}: current value is ${guardMs}`);
  }
});

Deno.test("resolveOptions() takes a guard as long as the TTL, and none", () => {
  for (const restartGuardMs of [0, 1_000, 60_000]) {
    const settings = resolveOptions("acquire lock", { ttlMs: 1_000, restartGuardMs });
    assertEquals(settings.restartGuardMs, restartGuardMs);
  }
});
