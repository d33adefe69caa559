/**
 * Who holds a lock, in a form that may be shown: the value itself must stay secret, because it is
 * enough to release the lock.
 *
 * The value of this library's locks is 40 random hexadecimal digits, `:`, the second of the
 * acquisition since 1970 in base 36, `:`, and the label.
 *
 * @module
 */
import type { TimerWheel } from "./time/timer_wheel.ts";

/** Who holds a lock, as `inspect()`, `list()` and {@linkcode LockHeldError} show it. */
export interface Holder {
  /**
   * 8 hexadecimal digits that identify the acquisition, such as `7c1f09be`: the same while one
   * holder keeps the lock, and {@linkcode Lock.holder} of its lock. They are a hash of the lock's
   * value, which itself is enough to release the lock, but cannot be computed from the hash.
   */
  readonly holder: string;
  /**
   * Its `label`, such as `web-3:1234`. `undefined` if it has none, or is a client of another
   * library.
   */
  readonly label: string | undefined;
  /**
   * When it acquired the lock, by its own clock, in whole seconds. `undefined` if it is a client of
   * another library.
   */
  readonly acquiredAt: Date | undefined;
}

/** The two numbers of FNV-1a with 32 bits. */
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** A value of this library: its random digits, its second, and its label. */
const OWN_VALUE = /^[\da-f]{40}:([\da-z]{1,8}):([ -~]{0,64})$/u;

/**
 * What all values of one second and label end with. Another text for each value would take a client
 * in Bun a sixth more CPU, and elsewhere a twentieth.
 */
let ending = "";
let endingSecond = NaN;
let endingLabel = "";

/** A value for one attempt; before 1970, its second is 0. */
export function newValue({ clock, random }: TimerWheel, label: string): string {
  const second = Math.max(Math.floor(clock.wallMs() / 1_000), 0);
  if (second !== endingSecond || label !== endingLabel) {
    endingSecond = second;
    endingLabel = label;
    ending = `:${second.toString(36)}:${label}`;
  }
  return random.value(ending);
}

/** Whether a value has the form of this library's values. */
export function isOwnValue(value: unknown): value is string {
  return typeof value === "string" && OWN_VALUE.test(value);
}

/**
 * The id of the holder of a lock, by the lock's value: the hash FNV-1a of the whole value as 8
 * hexadecimal digits, so 32 bits, which give away little of its 160.
 */
export function holderOf(value: string): string {
  let hash = FNV_OFFSET;
  for (let index = 0; index < value.length; index++) {
    hash = Math.imul(hash ^ value.charCodeAt(index), FNV_PRIME);
  }
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** What may be shown of a lock's holder, by the lock's value, which may be anybody's. */
export function describeHolder(value: string): Holder {
  const [, second, label] = OWN_VALUE.exec(value) ?? [];
  return {
    holder: holderOf(value),
    label: label || undefined,
    acquiredAt: second === undefined ? undefined : new Date(Number.parseInt(second, 36) * 1_000),
  };
}
