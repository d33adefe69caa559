/** The suite in Deno, on the source as JSR serves it, with the network as its only permission. */

import * as main from "../../../mod.ts";
import * as operate from "../../../src/operate/mod.ts";
import * as redis from "../../../src/redis/mod.ts";
import * as testing from "../../../src/testing/mod.ts";
import { type Context, runCases } from "../context.ts";
import { suite } from "../suite.ts";

const context: Context = JSON.parse(Deno.args[0]!);
await runCases(
  (register) => suite(register, { main, operate, redis, testing }, context),
  (outcome) => console.log(JSON.stringify(outcome)),
);
// Left open: it must not keep the process from ending.
await main.createRedlock(context.urls).inspect(context.prefix);
