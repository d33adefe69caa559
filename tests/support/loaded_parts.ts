/**
 * Loads every part of the library beforehand: time that a test moves by hand does not wait for modules.
 *
 * @module
 */
import * as lock from "../../src/lock/parts.ts";
import * as node from "../../src/redis_node/parts.ts";
import { warning } from "../../src/warnings.ts";

const parts = [...Object.values(lock), ...Object.values(node), warning];
await Promise.all(parts.map((part) => part.load()));
