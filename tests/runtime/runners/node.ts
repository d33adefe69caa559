/** The suite in Node, Bun and Deno, on the npm package. */

import * as main from "@hasp/redlock";
import * as operate from "@hasp/redlock/operate";
import * as redis from "@hasp/redlock/redis";
import * as testing from "@hasp/redlock/testing";
import process from "node:process";
import { type Context, runCases } from "../context.ts";
import { suite } from "../suite.ts";

const context: Context = JSON.parse(process.argv[2]!);
await runCases(
  (register) => suite(register, { main, operate, redis, testing }, context),
  (outcome) => console.log(JSON.stringify(outcome)),
);
// Left open: it must not keep the process from ending.
await main.createRedlock(context.urls).inspect(context.prefix);
