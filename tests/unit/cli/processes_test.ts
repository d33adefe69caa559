import { assertEquals } from "@std/assert";
import process from "node:process";
import { sendSignal } from "../../../src/cli/run/processes.ts";

for (const [code, isAllowed] of [["EPERM", false], ["ESRCH", true]] as const) {
  Deno.test(`sendSignal() returns ${isAllowed} after ${code}`, () => {
    const { kill } = process;
    process.kill = () => {
      throw Object.assign(new Error(), { code });
    };
    try {
      assertEquals(sendSignal(-1_000_000, "SIGTERM"), isAllowed);
    } finally {
      process.kill = kill;
    }
  });
}
