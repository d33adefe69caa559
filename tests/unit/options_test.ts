import { assert, assertEquals, assertThrows } from "@std/assert";
import { LockOptions, type RedlockOptions, TTL_MS_MAX, TTL_MS_MIN } from "../../src/options.ts";
import { typeOf } from "../../src/validate.ts";
import { quoted } from "../../src/printable.ts";

const DEFAULTS = {
  ttlMs: 30_000,
  waitMs: 10_000,
  nodeTimeoutMs: 1_000,
  driftFactor: 0.01,
  retryDelayMs: 100,
  retryDelayMaxMs: 2_000,
  notify: true,
  fencing: false,
  extensionsMax: Infinity,
  keyPrefix: "",
  label: "",
  restartGuardMs: 0,
  cooldownMs: 0,
  any: false,
  mode: "exclusive",
  atLeastMs: 0,
  signal: undefined,
  autoExtend: undefined,
  onEvent: undefined,
  validityMs: 29_698,
} as const;

function resolve(options?: object, client: RedlockOptions = {}) {
  return new LockOptions("create lock client", client).resolve("acquire lock", options);
}

/** Asserts that options are refused for a reason. */
function assertRefused(options: unknown, Class: ErrorConstructor, reason: string): void {
  assertEquals(
    assertThrows(() => resolve(options as object), Class).message,
    `Cannot acquire lock as ${reason}`,
  );
}

const GIVEN = {
  ttlMs: 5_000,
  waitMs: 0,
  signal: new AbortController().signal,
  nodeTimeoutMs: 70,
  driftFactor: 0,
  retryDelayMs: 0,
  retryDelayMaxMs: 0,
  notify: false,
  fencing: true,
  autoExtend: false,
  extensionsMax: 0,
  keyPrefix: "app:",
  label: "web-3:1234",
  restartGuardMs: 8_000,
  cooldownMs: 70,
  any: true,
  mode: "exclusive",
  atLeastMs: 80,
  onEvent: () => {},
} satisfies RedlockOptions;
const RESOLVED = { ...GIVEN, validityMs: 4_998 };
const KNOWN = Object.keys(GIVEN);
const UNDEFINED = Object.fromEntries(KNOWN.map((name) => [name, undefined]));

Deno.test("LockOptions has a default for every option, also for one that is undefined", () => {
  // one more in the source makes this fail
  assertEquals(Object.keys(resolve()), [...KNOWN, "validityMs"]);
  for (const options of [undefined, {}, UNDEFINED]) {
    assertEquals(resolve(options), DEFAULTS);
    assertEquals(resolve(options, UNDEFINED), DEFAULTS);
  }
});

Deno.test("LockOptions takes the call's options, falsy values too, before the client's own", () => {
  assertEquals(resolve(GIVEN), RESOLVED);
  for (const options of [undefined, {}, UNDEFINED]) assertEquals(resolve(options, GIVEN), RESOLVED);
  const settings = resolve({ ttlMs: 1_000, keyPrefix: "" }, GIVEN);
  assertEquals([settings.ttlMs, settings.keyPrefix, settings.waitMs], [1_000, "", 0]);
});

Deno.test("LockOptions derives nodeTimeoutMs from the TTL, within its bounds", () => {
  for (
    const [ttlMs, nodeTimeoutMs] of [
      [10, 50],
      [1_000, 50],
      [1_020, 51],
      [20_000, 1_000],
      [86_400_000, 1_000],
    ]
  ) {
    assertEquals(resolve({ ttlMs }).nodeTimeoutMs, nodeTimeoutMs);
    assertEquals(resolve({ ttlMs }, { ttlMs: 5_000 }).nodeTimeoutMs, nodeTimeoutMs);
  }
});

const FINITE = "must be a finite number of at least 0";

/** The numbers among the options: the rules, what breaks them, and what is just within range. */
const RANGES: Record<string, [within: number[], ...rules: [rule: string, outside: number[]][]]> = {
  ttlMs: [
    [TTL_MS_MIN, TTL_MS_MAX],
    [
      "must be an integer from 10 to 86400000",
      [0, -1, 1, 9, 10.5, NaN, Infinity, -Infinity, 86_400_001, 2 ** 53],
    ],
  ],
  waitMs: [[0, 0.5, Infinity], ["must not be negative", [-1, NaN, -Infinity]]],
  nodeTimeoutMs: [[0.5, 1e9], ["must be a finite number greater than 0", [0, -1, NaN, Infinity]]],
  driftFactor: [[0, 0.999], ["must be at least 0 and less than 1", [-0.1, 1, 2, NaN, Infinity]]],
  retryDelayMs: [[0, 0.5], [FINITE, [-1, NaN, Infinity]]],
  retryDelayMaxMs: [[0, 0.5], [FINITE, [-1, NaN, Infinity]]],
  restartGuardMs: [[0, 30_000, 30_000.5], [FINITE, [-1, NaN, Infinity]]],
  cooldownMs: [[0, 0.5], [FINITE, [-1, NaN, Infinity]]],
  atLeastMs: [[0, 0.5, 30_000], [FINITE, [-1, NaN, Infinity]]],
  extensionsMax: [
    [0, 1, Infinity],
    ["must be a safe integer of at least 0, or Infinity", [-1, NaN, 1.5, 2 ** 53]],
  ],
};

for (const [name, [within, ...rules]] of Object.entries(RANGES)) {
  Deno.test(`LockOptions takes a number within range as ${name}, and nothing else`, () => {
    for (const value of within) assertEquals(Reflect.get(resolve({ [name]: value }), name), value);
    for (const [rule, outside] of rules) {
      for (const value of outside) {
        const reason = `'${name}' ${rule}: current value is ${value}`;
        assertRefused({ [name]: value }, RangeError, reason);
      }
    }
    for (const value of ["1", null, {}, 1n, true]) {
      const reason = `'${name}' must be a number: current type is '${typeOf(value)}'`;
      assertRefused({ [name]: value }, TypeError, reason);
    }
  });
}

Deno.test("LockOptions refuses a TTL that its own drift allowance eats up", () => {
  for (const [ttlMs, driftFactor] of [[10, 0.8], [1_000, 0.998], [10, 0.99]]) {
    const reason = "'ttlMs' must be greater than its own drift allowance: current value is";
    assertRefused({ ttlMs, driftFactor }, RangeError, `${reason} ${ttlMs}`);
  }
});

Deno.test("LockOptions takes atLeastMs up to the TTL, and refuses more", () => {
  assertEquals(resolve({ ttlMs: 1_000, atLeastMs: 1_000 }).atLeastMs, 1_000);
  for (
    const [options, base, ttlMs, atLeastMs] of [
      [{ atLeastMs: 30_001 }, {}, 30_000, 30_001],
      [{ ttlMs: 999 }, { atLeastMs: 1_000 }, 999, 1_000],
    ] as const
  ) {
    assertEquals(
      assertThrows(() => resolve(options, base), RangeError).message,
      `Cannot acquire lock as 'atLeastMs' must be at most 'ttlMs', which is ${ttlMs}: current value is ${atLeastMs}`,
    );
  }
});

Deno.test("LockOptions takes a guard that is 0 or at least as long as the TTL, and refuses a shorter one", () => {
  for (const restartGuardMs of [0, 1_000, 60_000]) {
    assertEquals(resolve({ ttlMs: 1_000, restartGuardMs }).restartGuardMs, restartGuardMs);
  }
  for (
    const [options, base, ttlMs, guardMs] of [
      [{ restartGuardMs: 999, ttlMs: 1_000 }, {}, 1_000, 999],
      [{ restartGuardMs: 2_000 }, {}, 30_000, 2_000],
      [{ ttlMs: 5_000 }, { ttlMs: 1_000, restartGuardMs: 1_000 }, 5_000, 1_000],
      [{ restartGuardMs: 1 }, { ttlMs: 1_000 }, 1_000, 1],
    ] as const
  ) {
    assertEquals(
      assertThrows(() => resolve(options, base), RangeError).message,
      `Cannot acquire lock as 'restartGuardMs' must be 0 or at least 'ttlMs', which is ${ttlMs}: current value is ${guardMs}`,
    );
  }
});

for (
  const [name, values, kind] of [
    ["autoExtend", [1, null], "boolean"],
    ["fencing", [1, "true", null], "boolean"],
    ["keyPrefix", [5], "string"],
    ["onEvent", [{}], "function"],
  ] as const
) {
  Deno.test(`LockOptions refuses ${name} if it is no ${kind}`, () => {
    for (const value of values) {
      const reason = `'${name}' must be a ${kind}: current type is '${typeOf(value)}'`;
      assertRefused({ [name]: value }, TypeError, reason);
    }
  });
}

Deno.test("LockOptions refuses what is no signal, unknown options, and options that are no object", () => {
  const polyfill = { aborted: false, addEventListener() {}, removeEventListener() {} };
  for (const signal of [{}, null, new AbortController(), polyfill]) {
    const reason = `'signal' must be an AbortSignal: current type is '${typeOf(signal)}'`;
    assertRefused({ signal }, TypeError, reason);
  }
  for (
    const name of ["ttl", "retryCount", "toString", "constructor", "hasOwnProperty", "validityMs"]
  ) {
    const reason = `option '${name}' is unknown: valid options are ${KNOWN.join(", ")}`;
    assertRefused({ [name]: 1 }, TypeError, reason);
  }
  for (const options of [null, "ttlMs", true, () => {}]) {
    const reason = `'options' must be an object: current type is '${typeOf(options)}'`;
    assertRefused(options, TypeError, reason);
  }
  const hint = "current type is 'number', pass { ttlMs: 5 } for a TTL";
  assertRefused(5, TypeError, `'options' must be an object: ${hint}`);
});

Deno.test("LockOptions takes a label of up to 64 printable ASCII characters", () => {
  for (const label of ["", "web-3:1234", "a pod, of rack 7", "~".repeat(64)]) {
    assertEquals(resolve({ label }).label, label);
  }
  assertRefused({ label: 5 }, TypeError, "'label' must be a string: current type is 'number'");
  for (const label of ["~".repeat(65), "a\nb", "é", "\x7f", "\u{1f512}"]) {
    const rule = "'label' must be at most 64 printable ASCII characters";
    assertRefused({ label }, RangeError, `${rule}: current value is ${quoted(label)}`);
  }
});

Deno.test("LockOptions gives calls with equal options one object, and others their own", () => {
  const options = new LockOptions("create lock client", { ttlMs: 20_000 });
  const settingsOf = (given: RedlockOptions) => options.resolve("acquire lock", given);
  const settings = settingsOf({ ttlMs: 5_000 });
  assert(settingsOf({ ttlMs: 5_000, waitMs: undefined }) === settings);
  assertThrows(() => settingsOf({ ttlMs: 5_000, waitMS: undefined } as RedlockOptions), TypeError);
  assert(settingsOf(Object.create({ ttlMs: 5_000 })) === settings);
  assertEquals(settingsOf({ waitMs: 10_000 }), options.defaults);
  assertEquals(settingsOf({ nodeTimeoutMs: 250 }).ttlMs, 20_000);
  const derived = settingsOf({ ttlMs: 5_000 });
  assertEquals([derived.nodeTimeoutMs, settingsOf({ nodeTimeoutMs: 250 }).ttlMs], [250, 20_000]);
  const { signal } = new AbortController();
  assertEquals(settingsOf({ ttlMs: 5_000, signal }).signal, signal);
  assertEquals(settingsOf({ ttlMs: 5_000 }).signal, undefined);
});

Deno.test("LockOptions refuses a prefix of keys with a lone surrogate", () => {
  const reason =
    "'keyPrefix' must be well-formed Unicode, without lone surrogates: current type is 'string'";
  for (const keyPrefix of ["\ud800", "app\udc00:", "\udc00\ud800"]) {
    assertRefused({ keyPrefix }, TypeError, reason);
  }
  const { keyPrefix } = new LockOptions("create lock client", { keyPrefix: "🔒" }).defaults;
  assertEquals(keyPrefix, "🔒");
});
