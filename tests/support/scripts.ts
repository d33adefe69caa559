/**
 * Every Lua script of the library, for tests that go through all of them.
 *
 * @module
 */
import * as acquire from "../../src/redis_node/scripts/acquire.ts";
import * as adopt from "../../src/redis_node/scripts/adopt.ts";
import * as creation from "../../src/redis_node/scripts/creation.ts";
import * as extend from "../../src/redis_node/scripts/extend.ts";
import * as fencing from "../../src/redis_node/scripts/fencing.ts";
import * as pool from "../../src/redis_node/scripts/pool.ts";
import * as queue from "../../src/redis_node/scripts/queue.ts";
import * as readers from "../../src/redis_node/scripts/readers.ts";
import * as release from "../../src/redis_node/scripts/release.ts";
import { TRIAL } from "../../src/redis_node/scripts/trial.ts";

/** What the modules of scripts export, by name. */
export const scripts = {
  ...acquire,
  ...adopt,
  ...creation,
  ...extend,
  ...fencing,
  ...pool,
  ...queue,
  ...readers,
  ...release,
  TRIAL,
};
