/**
 * The suite in a Cloudflare Worker, on the npm package: a request brings the context, the response
 * tells what became of each case.
 */

import * as main from "@hasp/redlock";
import * as operate from "@hasp/redlock/operate";
import * as redis from "@hasp/redlock/redis";
import * as testing from "@hasp/redlock/testing";
import { type Context, type Outcome, runCases } from "../context.ts";
import { suite } from "../suite.ts";

export default {
  async fetch(request: Request): Promise<Response> {
    const context: Context = await request.json();
    const outcomes: Outcome[] = [];
    await runCases(
      (register) => suite(register, { main, operate, redis, testing }, context),
      (outcome) => outcomes.push(outcome),
    );
    // Left open: it must not keep the request from ending.
    await main.createRedlock(context.urls).inspect(context.prefix);
    return new Response(outcomes.map((outcome) => JSON.stringify(outcome)).join("\n"));
  },
};
