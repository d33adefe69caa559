/**
 * Loads every part of the library beforehand: time that a test moves by hand does not wait for modules.
 *
 * @module
 */
import * as lock from "../../src/lock/parts.ts";

await Promise.all(Object.values(lock).map((part) => part.load()));
