/**
 * Every option of the lock with its default and its limits, in one place.
 *
 * @module
 */
import {
  checkFiniteMs,
  checkNotNegative,
  checkNumber,
  checkOptions,
  checkPositiveMs,
  checkSignal,
  checkType,
  rangeError,
} from "./validate.ts";
import { quoted } from "./errors.ts";
import type { EventListener } from "./events.ts";
import { validityMs } from "./time/validity.ts";

/** Shortest TTL, in milliseconds. */
export const TTL_MS_MIN = 10;
/** Longest TTL, in milliseconds: one day. */
export const TTL_MS_MAX = 86_400_000;
/** Most resources of one lock: each is a key of one script that blocks its node while it runs. */
export const RESOURCES_MAX = 1_000;
/** The default of `nodeTimeoutMs` is the TTL divided by this, within the two limits below. */
const NODE_TIMEOUT_DIVISOR = 20;
const NODE_TIMEOUT_MS_MIN = 50;
const NODE_TIMEOUT_MS_MAX = 1_000;

/**
 * Draws one fencing token.
 *
 * @param resources What was locked.
 * @param signal Aborts when the lock is lost.
 */
export type TokenSource = (
  resources: readonly string[],
  signal: AbortSignal,
) => number | Promise<number>;

/** Options of the lock client, each of which can be given anew with each call. `undefined` means the default. */
export interface RedlockOptions {
  /**
   * How long the keys live on the nodes, in milliseconds: a crashed holder blocks the resource for so long. An
   * integer from 10 to 86 400 000, greater than its own drift allowance.
   *
   * @default {30000}
   */
  ttlMs?: number;
  /**
   * Longest time that `acquire` waits for the lock, in milliseconds, from the call on; the last attempt may
   * end one `nodeTimeoutMs` later. 0 makes one attempt, `Infinity` waits for ever.
   *
   * @default {10000}
   */
  waitMs?: number;
  /**
   * Ends the call: it rejects with the signal's reason, and what was set so far is taken back. In `using` it
   * also aborts `lock.signal` while the routine runs.
   */
  signal?: AbortSignal;
  /**
   * Longest wait for one node's answer to one command, in milliseconds; more than 0 and finite.
   *
   * @default {ttlMs / 20, within 50 and 1000}
   */
  nodeTimeoutMs?: number;
  /**
   * By how much the clocks of nodes and clients may run apart, as a share of the TTL; from 0 up to but not
   * including 1.
   *
   * @default {0.01}
   */
  driftFactor?: number;
  /**
   * The first delay between two attempts where the call polls, in milliseconds; doubled each time, and drawn anew
   * between 0 and itself ("full jitter"). Not negative, finite.
   *
   * @default {100}
   */
  retryDelayMs?: number;
  /**
   * The longest delay between two attempts, in milliseconds, before the jitter. Not negative, finite.
   *
   * @default {2000}
   */
  retryDelayMaxMs?: number;
  /**
   * Whether a call that waits is woken by the release of the lock, first come first served, and does not poll. Where
   * servers refuse to tell (`SUBSCRIBE`, `PUBLISH`), it polls all the same.
   *
   * @default {true}
   */
  notify?: boolean;
  /**
   * Whether each lock has a fencing token: a number greater than that of every lock before on the same resources. See
   * "Is it safe?" in the README.
   *
   * @default {false}
   */
  fencing?: boolean;
  /**
   * Draws the fencing token elsewhere, in place of the nodes: from a sequence of a database, say. It is asked when the
   * lock has been won, and must answer with a greater safe integer each time. Where it throws, the lock is released,
   * and the call rejects with its error.
   */
  tokenSource?: TokenSource;
  /**
   * Whether the lock is extended for as long as it is held.
   *
   * @default {false in acquire and tryAcquire, true in using}
   */
  autoExtend?: boolean;
  /**
   * How often one lock may be extended; after that it is lost when its validity ends. The Redis page asks for
   * such a limit, as a holder that hangs would keep the resource for ever. An integer, or `Infinity`.
   *
   * @default {1000}
   */
  extensionsMax?: number;
  /**
   * What stands before the resource in the key's name. The key is nothing but this and the resource, so that
   * other Redlock clients exclude this one and are excluded by it.
   *
   * @default {""}
   */
  keyPrefix?: string;
  /**
   * For how long a node's grants do not count after it was restarted or emptied, in milliseconds: as it may have
   * forgotten locks that still run. To be at least the longest TTL in use, and the same for all clients. A fresh cluster
   * grants no lock for so long. Not negative, finite; 0 switches it off.
   *
   * @default {0}
   */
  restartGuardMs?: number;
  /**
   * For how long this client does not take a resource again after a lock of its own on it was lost or ran out, in
   * milliseconds; not after a release that was confirmed. It counts for every later call of the client, each of which
   * waits as it would for a lock that others hold. Not negative, finite.
   *
   * @default {0}
   */
  cooldownMs?: number;
  /** Told what happens. Contention is no error. A listener that throws changes nothing. */
  onEvent?: EventListener;
}

/** The options after defaults and checks, and what follows from them. */
export interface Settings {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly nodeTimeoutMs: number;
  readonly driftFactor: number;
  readonly retryDelayMs: number;
  readonly retryDelayMaxMs: number;
  readonly notify: boolean;
  /** Whether the nodes count: not where the tokens come from elsewhere. */
  readonly fencing: boolean;
  readonly tokenSource: TokenSource | undefined;
  readonly autoExtend: boolean | undefined;
  readonly extensionsMax: number;
  readonly keyPrefix: string;
  readonly restartGuardMs: number;
  readonly cooldownMs: number;
  readonly onEvent: EventListener | undefined;
  /** TTL less drift, in milliseconds. */
  readonly validityMs: number;
}

const NAMES: { readonly [Name in keyof Required<RedlockOptions>]: true } = {
  ttlMs: true,
  waitMs: true,
  signal: true,
  nodeTimeoutMs: true,
  driftFactor: true,
  retryDelayMs: true,
  retryDelayMaxMs: true,
  notify: true,
  fencing: true,
  tokenSource: true,
  autoExtend: true,
  extensionsMax: true,
  keyPrefix: true,
  restartGuardMs: true,
  cooldownMs: true,
  onEvent: true,
};

/** The names of all options of the lock. */
export const LOCK_OPTION_NAMES: readonly string[] = Object.keys(NAMES);

/**
 * Fills in what `options` leaves out and checks the rest.
 *
 * @param attempt What cannot be done otherwise, for messages: `acquire lock`.
 * @param options What the caller gave.
 * @param base What the client was made with.
 * @returns The settings of one call.
 * @throws {TypeError} If an option is unknown or of the wrong type.
 * @throws {RangeError} If an option is out of range.
 */
export function resolveOptions(
  attempt: string,
  options: RedlockOptions | undefined,
  base?: RedlockOptions,
): Settings {
  if (options !== undefined) checkOptions(attempt, options, LOCK_OPTION_NAMES);
  const given = options ?? base ?? {};
  const inherited = base ?? {};
  const {
    ttlMs = inherited.ttlMs ?? 30_000,
    waitMs = inherited.waitMs ?? 10_000,
    signal = inherited.signal,
    nodeTimeoutMs: givenNodeTimeoutMs = inherited.nodeTimeoutMs,
    driftFactor = inherited.driftFactor ?? 0.01,
    retryDelayMs = inherited.retryDelayMs ?? 100,
    retryDelayMaxMs = inherited.retryDelayMaxMs ?? 2_000,
    notify = inherited.notify ?? true,
    fencing = inherited.fencing ?? false,
    tokenSource = inherited.tokenSource,
    autoExtend = inherited.autoExtend,
    extensionsMax = inherited.extensionsMax ?? 1_000,
    keyPrefix = inherited.keyPrefix ?? "",
    onEvent = inherited.onEvent,
  } = given;
  checkTtlMs(attempt, ttlMs, driftFactor);
  const nodeTimeoutMs = givenNodeTimeoutMs === undefined
    ? defaultNodeTimeoutMs(ttlMs)
    : givenNodeTimeoutMs;
  checkNotNegative(attempt, "waitMs", waitMs);
  checkPositiveMs(attempt, "nodeTimeoutMs", nodeTimeoutMs);
  checkFiniteMs(attempt, "retryDelayMs", retryDelayMs);
  checkFiniteMs(attempt, "retryDelayMaxMs", retryDelayMaxMs);
  checkNotNegative(attempt, "extensionsMax", extensionsMax);
  if (extensionsMax !== Infinity && !Number.isSafeInteger(extensionsMax)) {
    throw rangeError(attempt, "extensionsMax", "must be a safe integer or Infinity", extensionsMax);
  }
  checkType(attempt, "notify", notify, "boolean");
  checkType(attempt, "fencing", fencing, "boolean");
  checkType(attempt, "tokenSource", tokenSource, "function");
  checkType(attempt, "autoExtend", autoExtend, "boolean");
  checkType(attempt, "keyPrefix", keyPrefix, "string");
  checkType(attempt, "onEvent", onEvent, "function");
  checkSignal(attempt, signal);
  return {
    ttlMs,
    waitMs,
    signal,
    nodeTimeoutMs,
    driftFactor,
    retryDelayMs,
    retryDelayMaxMs,
    notify,
    fencing: fencing && !tokenSource,
    tokenSource,
    autoExtend,
    extensionsMax,
    keyPrefix,
    ...resolveProtection(attempt, given, inherited),
    onEvent,
    validityMs: validityMs(ttlMs, driftFactor),
  };
}

/** The options that keep a resource from being taken too early. */
function resolveProtection(
  attempt: string,
  given: RedlockOptions,
  inherited: RedlockOptions,
): Pick<Settings, "restartGuardMs" | "cooldownMs"> {
  const {
    restartGuardMs = inherited.restartGuardMs ?? 0,
    cooldownMs = inherited.cooldownMs ?? 0,
  } = given;
  checkFiniteMs(attempt, "restartGuardMs", restartGuardMs);
  checkFiniteMs(attempt, "cooldownMs", cooldownMs);
  return { restartGuardMs, cooldownMs };
}

/**
 * Checks a TTL together with the drift that is taken off it.
 *
 * @throws {TypeError} If one is no number.
 * @throws {RangeError} If one is out of range, or nothing is left of the TTL.
 */
export function checkTtlMs(attempt: string, ttlMs: number, driftFactor: number): void {
  checkNumber(attempt, "ttlMs", ttlMs);
  checkNumber(attempt, "driftFactor", driftFactor);
  if (!(driftFactor >= 0 && driftFactor < 1)) {
    throw rangeError(attempt, "driftFactor", "must be at least 0 and less than 1", driftFactor);
  }
  if (!Number.isSafeInteger(ttlMs) || ttlMs <= 0) {
    throw rangeError(attempt, "ttlMs", "must be a positive safe integer", ttlMs);
  }
  if (ttlMs < TTL_MS_MIN || ttlMs > TTL_MS_MAX) {
    throw rangeError(attempt, "ttlMs", `must be from ${TTL_MS_MIN} to ${TTL_MS_MAX}`, ttlMs);
  }
  if (validityMs(ttlMs, driftFactor) <= 0) {
    throw rangeError(attempt, "ttlMs", "must be greater than its own drift allowance", ttlMs);
  }
}

/**
 * The resources of a call as a list.
 *
 * @throws {TypeError} If `resource` is not a non-empty string of well-formed Unicode, or a non-empty array of them
 *   without duplicates.
 * @throws {RangeError} If it has more than {@linkcode RESOURCES_MAX} elements.
 */
export function checkResources(
  attempt: string,
  resource: string | readonly string[],
): readonly string[] {
  const resources = Array.isArray(resource) ? [...resource] : [resource];
  if (resources.length === 0) {
    throw new TypeError(`Cannot ${attempt} as 'resource' must not be an empty array`);
  }
  if (resources.length > RESOURCES_MAX) {
    const rule = `must have at most ${RESOURCES_MAX} elements`;
    throw rangeError(attempt, "resource", rule, resources.length);
  }
  for (const name of resources) {
    if (typeof name !== "string" || name === "") {
      throw new TypeError(
        `Cannot ${attempt} as 'resource' must be a non-empty string or an array of non-empty strings`,
      );
    }
    if (!isWellFormed(name)) {
      throw new TypeError(
        `Cannot ${attempt} as 'resource' must be well-formed Unicode, without lone surrogates`,
      );
    }
  }
  if (resources.length > 1 && new Set(resources).size < resources.length) {
    const twice = resources.find((name, index) => resources.indexOf(name) < index)!;
    throw new TypeError(`Cannot ${attempt} as resource ${quoted(twice)} is listed twice`);
  }
  return resources;
}

/** Two strings with different lone surrogates would be one key: UTF-8 has no place for either. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function isWellFormed(text: string): boolean {
  return !LONE_SURROGATE.test(text);
}

function defaultNodeTimeoutMs(ttlMs: number): number {
  return Math.min(Math.max(ttlMs / NODE_TIMEOUT_DIVISOR, NODE_TIMEOUT_MS_MIN), NODE_TIMEOUT_MS_MAX);
}
