/**
 * Loads every part of the library beforehand: time that a test moves by hand does not wait for modules.
 *
 * @module
 */
import { loadParts } from "../../src/testing/load_parts.ts";

await loadParts();
