/**
 * The version of the package.
 *
 * @module
 */

/** The version in `deno.json`, as a test compares. */
export const VERSION = "0.1.0";
