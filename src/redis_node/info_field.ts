/**
 * Reading a reply to `INFO`.
 *
 * @module
 */

/** A field of a reply to `INFO`, which has lines of `name:value`. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "mu").exec(info)?.[1];
}
