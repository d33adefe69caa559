/**
 * The named scenarios: faults that analyses of Redlock and users of other lock clients speak of,
 * each with what must come of it. `P` is about processes, `N` about nodes, `W` about the wire, `G`
 * about the algorithm, `E` about extending, `H` about handing over, `Q` about waiting, `A` about
 * any one of several, `S` about shared mode.
 */
import { EXTENSION_SCENARIOS } from "./scenarios_extending.ts";
import { GROUP_SCENARIOS } from "./scenarios_groups.ts";
import { HANDING_OVER_SCENARIOS } from "./scenarios_handing_over.ts";
import { HEALING_SCENARIOS } from "./scenarios_healing.ts";
import { NODE_SCENARIOS } from "./scenarios_nodes.ts";
import { POOL_SCENARIOS } from "./scenarios_pools.ts";
import { PROCESS_SCENARIOS } from "./scenarios_processes.ts";
import type { Scenario } from "./scenario.ts";
import { PROTECTION_SCENARIOS } from "./scenarios_protection.ts";
import { READER_SCENARIOS } from "./scenarios_readers.ts";
import { REGRESSION_SCENARIOS } from "./scenarios_regressions.ts";
import { REPLACING_SCENARIOS } from "./scenarios_replacing.ts";
import { WAITING_SCENARIOS } from "./scenarios_waiting.ts";
import { WIRE_SCENARIOS } from "./scenarios_wire.ts";

/** All of them. */
export const SCENARIOS: readonly Scenario[] = [
  ...PROCESS_SCENARIOS,
  ...NODE_SCENARIOS,
  ...REPLACING_SCENARIOS,
  ...WIRE_SCENARIOS,
  ...EXTENSION_SCENARIOS,
  ...HANDING_OVER_SCENARIOS,
  ...HEALING_SCENARIOS,
  ...GROUP_SCENARIOS,
  ...WAITING_SCENARIOS,
  ...POOL_SCENARIOS,
  ...READER_SCENARIOS,
  ...PROTECTION_SCENARIOS,
  ...REGRESSION_SCENARIOS,
];
