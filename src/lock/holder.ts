/**
 * Who holds a lock, in a form that may be shown: the value itself must stay secret, because it is enough to release the
 * lock.
 *
 * @module
 */

/** The two numbers of FNV-1a with 32 bits. */
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** A value of this library with a label. */
const LABELLED = /^[\da-f]{40}:([ -~]{1,64})$/u;

/**
 * The holder by a lock's value: 8 hexadecimal digits that identify the acquisition, and, if the value has a label, a space
 * and the label. The digits are the hash FNV-1a of the whole value: 32 bits, so they give away little of its 160.
 */
export function holderOf(value: string): string {
  let hash = FNV_OFFSET;
  for (let index = 0; index < value.length; index++) {
    hash = Math.imul(hash ^ value.charCodeAt(index), FNV_PRIME);
  }
  const id = (hash >>> 0).toString(16).padStart(8, "0");
  const [, label] = LABELLED.exec(value) ?? []; // the value may be anybody's
  return label === undefined ? id : `${id} ${label}`;
}
