/**
 * Every option of the lock, with its default and its limits.
 *
 * @module
 */
import {
  BOOLEAN,
  check,
  checkOptions,
  FINITE,
  FUNCTION,
  KEY_TEXT,
  NOT_NEGATIVE,
  numberThat,
  POSITIVE,
  rangeError,
  type Rule,
  SIGNAL,
  textThat,
  typeError,
} from "./validate.ts";
import type { EventListener } from "./events.ts";
import { validityMs } from "./time/validity.ts";

/** Shortest TTL, in milliseconds. */
export const TTL_MS_MIN = 10;
/** Longest TTL, in milliseconds: one day. */
export const TTL_MS_MAX = 86_400_000;
/** The default of `nodeTimeoutMs` is the TTL divided by this, within the two limits below. */
const NODE_TIMEOUT_DIVISOR = 20;
const NODE_TIMEOUT_MS_MIN = 50;
const NODE_TIMEOUT_MS_MAX = 1_000;

/**
 * Who else may hold a resource: nobody, or others in shared mode.
 *
 * @experimental until 1.0
 */
export type LockMode = "exclusive" | "shared";

/**
 * Options of a lock client, and of each of its calls. A missing or `undefined` option has its
 * default.
 */
export interface RedlockOptions {
  /**
   * Time to live of the lock's keys on the nodes, in milliseconds: how long the resource stays
   * blocked if its holder crashes. An integer from 10 to 86 400 000 (one day), greater than its own
   * drift allowance.
   *
   * @default {30000}
   */
  ttlMs?: number | undefined;
  /**
   * Longest time that `acquire` and `using` wait for the lock, in milliseconds, counted from the
   * call. The call may settle one `nodeTimeoutMs` later, because the last attempt may take that
   * long. 0 waits for no other holder, as `tryAcquire`; `Infinity` waits without a limit.
   *
   * @default {10000}
   */
  waitMs?: number | undefined;
  /**
   * Signal that aborts the call. The call then rejects with the signal's reason, and the client
   * releases what it has set. In `using`, the signal also aborts `lock.signal` while the routine
   * runs.
   *
   * @default {no signal}
   */
  signal?: AbortSignal | undefined;
  /**
   * Timeout for one node's answer to one command, in milliseconds; greater than 0 and finite. It
   * starts when the command is sent, or when the first connection to the node is ready. A
   * connection is replaced if replies are due on it and it is silent for 2 s, or for twice the
   * client's own `nodeTimeoutMs` if that is longer: so set a timeout above 2 000 for the client,
   * not only for a call.
   *
   * @default {ttlMs / 20, but at least 50 and at most 1000}
   */
  nodeTimeoutMs?: number | undefined;
  /**
   * Largest difference in speed between the clocks of nodes and clients, as a fraction; at least 0
   * and less than 1. The validity of a lock is shorter than its TTL by this fraction of it, and by
   * 2 ms.
   *
   * @default {0.01}
   */
  driftFactor?: number | undefined;
  /**
   * First delay between two attempts of a call that polls, in milliseconds; at least 0 and finite.
   * The delay doubles with each poll in a row, and the actual delay is random between 0 and it
   * ("full jitter"). It is also the longest delay of the first client in the queue while a client
   * of another library has the lock.
   *
   * @default {100}
   */
  retryDelayMs?: number | undefined;
  /**
   * Longest delay between two attempts of a call that polls, in milliseconds, before the jitter; at
   * least 0 and finite. The first client in a queue asks, too, if nothing notifies it: first after
   * 50 to 100 % of this, or of 500 ms if that is longer, then less and less often.
   *
   * @default {2000}
   */
  retryDelayMaxMs?: number | undefined;
  /**
   * Whether a waiting call queues up on the nodes and is notified when the lock is released, first
   * come, first served. If `false`, or if the servers refuse `SUBSCRIBE` or `PUBLISH`, it polls.
   *
   * @default {true}
   */
  notify?: boolean | undefined;
  /**
   * Whether each lock has a fencing token: a number greater than that of every earlier lock on any
   * of its resources. The store that the lock protects must reject writes whose token is smaller
   * than one that it has seen.
   *
   * @default {false}
   */
  fencing?: boolean | undefined;
  /**
   * Whether the lock is extended automatically while it is held, for the first time after a third
   * of its TTL. It ends if its handle and its `signal` are garbage-collected, because nobody could
   * release it then.
   *
   * @default {false in acquire and tryAcquire, true in using}
   */
  autoExtend?: boolean | undefined;
  /**
   * Most extensions of one lock; after these, the lock is lost when its validity ends. An integer
   * of at least 0, or `Infinity`. With a limit, a holder that hangs cannot block the resource
   * forever. A limit in time is often easier to choose: pass `AbortSignal.timeout(…)` as `signal`
   * to `using`.
   *
   * @default {Infinity}
   */
  extensionsMax?: number | undefined;
  /**
   * Prefix of the lock's keys. The key of a resource is the prefix followed by the resource, and
   * nothing else, so other Redlock clients that use the same key are excluded too. No key may begin
   * with `hasp:`, because the names of the library's other keys do.
   *
   * @default {""}
   */
  keyPrefix?: string | undefined;
  /**
   * Who holds the locks, for people: at most 64 printable ASCII characters, such as `web-3:1234`.
   * It is part of the value of the lock's keys, so everybody who may inspect the lock can read it:
   * {@linkcode Inspection.holders}, {@linkcode LockHeldError.holders} and `hasp watch` show it. It
   * must not be a secret. `""` for none.
   *
   * @default {host:pid, if the runtime says both without asking for a permission}
   */
  label?: string | undefined;
  /**
   * How long a node's grants do not count after the node restarted or lost its keys, in
   * milliseconds, because it may have lost locks that are still held. At least the longest `ttlMs`
   * that any client uses, and finite; less than the call's own is a `RangeError`. 0 turns the guard
   * off. Nodes of your own have no guard: with these, anything but 0 is a `TypeError`. With the
   * guard, new servers grant no lock until they are this old.
   *
   * @default {0}
   */
  restartGuardMs?: number | undefined;
  /**
   * Cooldown of a resource, in milliseconds; at least 0 and finite, 0 turns it off. After this
   * client has lost a lock, let it expire, or released it without a confirmation, it does not
   * acquire that resource again for this long. A confirmed release starts no cooldown, and ends
   * none. Calls during a cooldown wait, as for a lock that somebody else holds; `adopt()` does not.
   *
   * @experimental until 1.0
   * @default {0}
   */
  cooldownMs?: number | undefined;
  /**
   * Whether the call locks any one of several resources, whichever is free first, in place of all
   * of them: {@linkcode Lock.resources} says which. `resource` must be an array of 1 to 52 names
   * then, such as that of {@linkcode slots}.
   *
   * @experimental until 1.0
   * @default {false}
   */
  any?: boolean | undefined;
  /**
   * Who else may hold the resource. `shared`: any number of locks in this mode are held together,
   * such as by callers that only read. `exclusive`: the lock is held alone. Both wait in one queue.
   * `shared` goes with neither `fencing` nor `any`.
   *
   * @experimental until 1.0
   * @default {"exclusive"}
   */
  mode?: LockMode | undefined;
  /**
   * For how long the resource stays locked at least, in milliseconds from the winning attempt on: 0
   * to `ttlMs`. An earlier release, or the end of the client, ends the lock, but its keys live on
   * for the rest, and waiting calls ask when that is over. At most `ttlMs`, so that it holds if the
   * process is killed, too. A lock that is lost because its keys are gone ends earlier.
   *
   * @experimental until 1.0
   * @default {0}
   */
  atLeastMs?: number | undefined;
  /**
   * Called for every event; as an option of a call, for those of its lock, and not of nodes. An
   * exception that it throws is ignored. Without it, a client warns by `console.warn` when a node
   * has been unreachable for a minute, when a lock was lost, and when a hundred clients are open:
   * once each.
   *
   * @default {no listener}
   */
  onEvent?: EventListener | undefined;
}

/** The options that have no default; every other one has a value once that is filled in. */
type Optional = "signal" | "nodeTimeoutMs" | "autoExtend" | "onEvent";

/** Options with their defaults. */
type CompleteOptions = Readonly<
  Required<Omit<RedlockOptions, Optional>> & Pick<RedlockOptions, Optional>
>;

/** The options with defaults, checked, and what follows from them. */
export interface Settings extends CompleteOptions {
  readonly nodeTimeoutMs: number;
  /** TTL less drift, in milliseconds. */
  readonly validityMs: number;
}

/** A label: see {@linkcode RedlockOptions.label}. */
const LABEL = /^[ -~]{0,64}$/u;

/** The default of each option, and the rule for it by itself. */
type OptionTable = {
  readonly [Name in keyof CompleteOptions]-?: readonly [CompleteOptions[Name], Rule];
};
const OPTIONS = /* @__PURE__ */ optionTable();
type OptionName = keyof typeof OPTIONS;
/** The names of all options of the lock. */
const NAMES = /* @__PURE__ */ Object.keys(OPTIONS) as OptionName[];

/**
 * The options of a client, and the settings of its calls: those of the last call are kept, because
 * most programs call with the same options again and again, and locks with the same settings share
 * one object.
 */
export class LockOptions {
  /** The settings of calls without options. */
  readonly defaults: Settings;
  readonly #options: CompleteOptions;
  /** The options of the last call that had some, and its settings. */
  #last: { readonly given: RedlockOptions; readonly settings: Settings };

  /**
   * @param action What fails otherwise, for messages: `create lock client`.
   * @param options The options of the client.
   * @param label The label without one among the options.
   * @param others The names of what else may be among the options.
   * @throws {TypeError} If an option is unknown or of the wrong type.
   * @throws {RangeError} If an option is out of range.
   */
  constructor(action: string, options: RedlockOptions, label = "", others?: readonly string[]) {
    const defaults = NAMES.map((name) => [name, OPTIONS[name][0]]);
    const base = { ...Object.fromEntries(defaults), label };
    this.#options = merged(action, base, copyOptions(action, options, others));
    this.defaults = settingsOf(action, this.#options);
    this.#last = { given: {}, settings: this.defaults };
  }

  /**
   * Checks the options of a call.
   *
   * @param action What fails otherwise, for messages: `acquire lock`.
   * @param options The options of the call. Each is read once, so that what the object becomes
   * later changes nothing.
   * @param others The names of what else may be among the options.
   * @returns The settings of the call.
   * @throws {TypeError} If an option is unknown or of the wrong type.
   * @throws {RangeError} If an option is out of range.
   */
  resolve(action: string, options?: RedlockOptions, others?: readonly string[]): Settings {
    if (options === undefined) return this.defaults;
    const given = copyOptions(action, options, others);
    const last = this.#last;
    if (hasAllOf(given, last.given) && hasAllOf(last.given, given)) return last.settings;
    const settings = settingsOf(action, merged(action, this.#options, given));
    this.#last = { given, settings };
    return settings;
  }
}

/**
 * Whether options have all that others have, which are known; one that is `undefined` need not be
 * there.
 */
function hasAllOf(options: RedlockOptions, others: RedlockOptions): boolean {
  for (const name in others) {
    const key = name as OptionName;
    if (!(key in OPTIONS) || options[key] !== others[key]) return false;
  }
  return true;
}

/**
 * A copy of the options that a caller passed, each read once. A plain object is copied as it is:
 * {@linkcode merged} refuses what is unknown. From an instance of a class, which may inherit
 * options, and from an object that may have others, the options of the lock are copied.
 */
function copyOptions(
  action: string,
  options: RedlockOptions,
  others?: readonly string[],
): RedlockOptions {
  const isPlain = options && Object.getPrototypeOf(options) === Object.prototype;
  if (isPlain && !others) return { ...options };
  checkOptions(action, options, [...NAMES, ...others ?? []]);
  return Object.fromEntries(NAMES.map((name) => [name, options[name]]));
}

/** Complete options with those of a call, which are checked, in place of their own. */
function merged(action: string, base: CompleteOptions, given: RedlockOptions): CompleteOptions {
  checkOptions(action, given, NAMES);
  const complete: Record<string, unknown> = { ...base };
  for (const name in given) {
    const value = given[name as OptionName];
    if (value === undefined) continue;
    checkOption(action, name as OptionName, value);
    complete[name] = value;
  }
  return complete as unknown as CompleteOptions;
}

/** Checks the value of an option by itself. */
export function checkOption(action: string, name: OptionName, value: unknown): void {
  check(action, name, value, OPTIONS[name][1]);
}

/**
 * A function, because bundlers keep a text that is made of others. How some options go together is
 * checked in {@linkcode settingsOf}, and the default of `nodeTimeoutMs` follows from the TTL.
 */
function optionTable(): OptionTable {
  const isTtl = (it: number) => Number.isInteger(it) && it >= TTL_MS_MIN && it <= TTL_MS_MAX;
  const isCount = (it: number) => it === Infinity || Number.isSafeInteger(it) && it >= 0;
  const isFraction = (it: number) => it >= 0 && it < 1;
  const isMode = (it: string) => it === "exclusive" || it === "shared";
  return {
    ttlMs: [30_000, numberThat(`must be an integer from ${TTL_MS_MIN} to ${TTL_MS_MAX}`, isTtl)],
    waitMs: [10_000, NOT_NEGATIVE],
    signal: [undefined, SIGNAL],
    nodeTimeoutMs: [undefined, POSITIVE],
    driftFactor: [0.01, numberThat("must be at least 0 and less than 1", isFraction)],
    retryDelayMs: [100, FINITE],
    retryDelayMaxMs: [2_000, FINITE],
    notify: [true, BOOLEAN],
    fencing: [false, BOOLEAN],
    autoExtend: [undefined, BOOLEAN],
    extensionsMax: [
      Infinity,
      numberThat("must be a safe integer of at least 0, or Infinity", isCount),
    ],
    keyPrefix: ["", KEY_TEXT],
    label: ["", textThat("must be at most 64 printable ASCII characters", (it) => LABEL.test(it))],
    restartGuardMs: [0, FINITE],
    cooldownMs: [0, FINITE],
    any: [false, BOOLEAN],
    mode: ["exclusive", textThat("must be 'exclusive' or 'shared'", isMode)],
    atLeastMs: [0, FINITE],
    onEvent: [undefined, FUNCTION],
  };
}

/** The settings by complete options, if these go together. */
function settingsOf(action: string, options: CompleteOptions): Settings {
  const { ttlMs, driftFactor, atLeastMs, mode } = options;
  checkTtlMs(action, ttlMs, options);
  if (atLeastMs > ttlMs) {
    throw rangeError(action, "atLeastMs", `must be at most 'ttlMs', which is ${ttlMs}`, atLeastMs);
  }
  for (const name of ["fencing", "any"] as const) {
    if (mode === "shared" && options[name]) {
      throw typeError(action, `'mode' must be 'exclusive' if '${name}' is true`);
    }
  }
  const { nodeTimeoutMs = defaultNodeTimeoutMs(ttlMs) } = options;
  return { ...options, nodeTimeoutMs, validityMs: validityMs(ttlMs, driftFactor) };
}

/**
 * Checks that a TTL in range leaves time for work, and that a node which may have lost locks is
 * kept out while they live.
 *
 * @throws {RangeError} If it does not.
 */
export function checkTtlMs(
  action: string,
  ttlMs: number,
  { driftFactor, restartGuardMs }: Pick<CompleteOptions, "driftFactor" | "restartGuardMs">,
): void {
  if (validityMs(ttlMs, driftFactor) <= 0) {
    throw rangeError(action, "ttlMs", "must be greater than its own drift allowance", ttlMs);
  }
  if (restartGuardMs === 0 || restartGuardMs >= ttlMs) return;
  const rule = `must be 0 or at least 'ttlMs', which is ${ttlMs}`;
  throw rangeError(action, "restartGuardMs", rule, restartGuardMs);
}

function defaultNodeTimeoutMs(ttlMs: number): number {
  return Math.min(Math.max(ttlMs / NODE_TIMEOUT_DIVISOR, NODE_TIMEOUT_MS_MIN), NODE_TIMEOUT_MS_MAX);
}
