/**
 * A program that cron starts on every machine at the same minute, and that does its work on one of
 * them: `0 3 * * *  node node_cron.js nightly-report`.
 *
 * @module
 */

import { createRedlock, LockHeldError } from "@hasp/redlock";
import { connect } from "@hasp/redlock/redis";
import process from "node:process";
import { once, sendInvoice } from "./once.ts";

const [name] = process.argv.slice(2);
const today = new Date().toISOString().slice(0, 10);

await using redlock = createRedlock(process.env.HASP_NODES, { waitMs: 60_000 });
await using store = await connect(process.env.STORE_URL!);
try {
  const done = await once(redlock, store, `${name}:${today}`, sendInvoice);
  console.log(done ? "done here" : "done elsewhere");
} catch (error) {
  if (!(error instanceof LockHeldError)) throw error;
  console.log("still being done elsewhere");
}
