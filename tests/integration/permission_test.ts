import { assertEquals, assertMatch } from "@std/assert";
import { plainCommand } from "../support/plain_command.ts";

Deno.test("acquire() without --allow-net says so at once, however long it may wait", async () => {
  const program = new URL("../programs/no_permission.ts", import.meta.url).href;
  const { success, stdout } = await plainCommand(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-config", "--no-check", program],
    stderr: "inherit",
    signal: AbortSignal.timeout(120_000),
  }).output();
  assertEquals(success, true);
  assertMatch(
    new TextDecoder().decode(stdout),
    /^Cannot acquire lock "report": the node failed; waited \d+ ms; permanent error: Connection to redis:\/\/127\.0\.0\.1:6379 could not be made: Requires net access to "127\.0\.0\.1:6379".*--allow-net/u,
  );
});
