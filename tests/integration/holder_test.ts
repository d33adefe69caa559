/** Who holds a lock, as other clients see it on real servers. */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createRedlock, LockHeldError } from "../../mod.ts";
import { hasp, startHasp } from "../support/command_line.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";

const shared = shareServers(3, { rights: ["+client|setname"] });
const { test } = shared;

test("hasp run has its host and process as its label, or --label, and names its connections", async (servers) => {
  const run = (...label: string[]) =>
    startHasp(["run", "-r", "job", ...label, "--", "sh", "-c", "echo here; cat"], servers);
  for (const [args, expected] of [[[], /:\d+$/], [["--label", "me, now"], /^me, now$/]] as const) {
    await using program = run(...args);
    await program.line(/^here$/);
    const { stdout } = await hasp(["inspect", "--json", "job"], servers);
    const [{ holders: [{ holder: id, label }] }] = JSON.parse(stdout);
    assertMatch(label, expected);
    const table = await hasp(["inspect", "job"], servers);
    assertMatch(table.stdout, new RegExp(`^job +held +${id} ${RegExp.escape(label)} `, "mu"));
    const names = String(await servers[0].command("CLIENT", "LIST"));
    assertMatch(names, / name=hasp:\S+:\d+ /u);
    await program.closeInput();
    await program.end();
  }
  const long = await hasp(["run", "-r", "job", "--label", "x".repeat(65), "--", "true"], servers);
  assertEquals(long.code, 125);
  assertMatch(long.stderr, /'label' must be at most 64 printable ASCII characters/u);
});

/** Long enough for an answer to a waiting call's ticket. */
const TICKET_WAIT_MS = 500;

for (
  const [type, ...command] of [
    ["string", "SETRANGE", "job", "2000000", "x"], // longer than any reply may be
    ["list", "RPUSH", "job", "x"],
    ["hash", "HSET", "job", "a", "b"],
    ["zset", "ZADD", "job", "1", "x"],
    ["stream", "XADD", "job", "*", "a", "b"],
  ]
) {
  Deno.test(`inspect() and acquire() say that a ${type} without a TTL is in the way, however long it is`, async () => {
    await using servers = shared.lend(3);
    await using redlock = createRedlock(servers.urls);
    await onAll(servers, ...command);
    const { held, remainingMs, foreign } = await redlock.inspect("job");
    assertEquals([held, remainingMs], [true, Infinity]);
    const holds = type === "string" ? "" : `holds a ${type} and `;
    assertEquals(foreign, `${holds}has no TTL, so no lock library set it`);
    await assertRejects(
      () => redlock.acquire("job", { waitMs: TICKET_WAIT_MS }),
      LockHeldError,
      "its key has no TTL, so no lock library set it",
    );
    assertEquals(await onAll(servers, "TYPE", "job"), [type, type, type]);
  });
}
