/** `forceRelease(redlock)` and `hasp release` on real servers. */

import { assertEquals, assertMatch } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { hasp } from "../support/command_line.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(3);
const WAIT_MS = 60_000;

test("hasp release frees the lock of the holder that is named, and says by its exit code who holds it else", async (servers) => {
  await using redlock = createRedlock(servers.urls, { label: "web-3:1234", ttlMs: WAIT_MS });
  const lock = await redlock.acquire("job");
  const release = (...args: string[]) => hasp(["release", ...args], servers);
  const other = await release("job", "--holder", "00000000");
  assertEquals([other.code, other.stdout], [120, ""]);
  const said = `hasp: Cannot release job: ${lock.holder} web-3:1234 holds it, not 00000000\n`;
  assertEquals(other.stderr, said);
  const first = await release("job", "--holder", lock.holder);
  assertEquals(first.code, 0);
  assertEquals(first.stdout, `job: released, ${lock.holder} no longer holds it\n`);
  assertEquals(await onAll(servers, "EXISTS", "job"), [0, 0, 0]);
  const again = await release("job", "--holder", lock.holder);
  assertEquals([again.code, again.stdout], [0, "job: free, nobody holds this key\n"]);
  await lock.release();
});

test("hasp release deletes residue, and keys that somebody has set by hand", async (servers) => {
  await onAll(servers.slice(0, 1), "SET", "job", "by hand");
  const listed = await hasp(["list", "--json"], servers);
  const { holders: [{ holder }], foreign } = JSON.parse(listed.stdout);
  assertEquals(foreign, "has no TTL, so no lock library set it");
  assertEquals((await hasp(["release", "job", "--holder", holder], servers)).code, 0);
  assertEquals(await onAll(servers, "EXISTS", "job"), [0, 0, 0]);
});

test("hasp release needs a holder, and a quorum of the nodes", async (servers) => {
  const missing = await hasp(["release", "job"], servers);
  assertEquals(missing.code, 125);
  assertMatch(missing.stderr, /required option '--holder <holder>'/);
  const malformed = await hasp(["release", "job", "--holder", "alice"], servers);
  assertEquals(malformed.code, 125);
  assertMatch(malformed.stderr, /'holder' must be 8 hexadecimal digits/);
  const urls = [servers.urls[0], "redis://127.0.0.1:1", "redis://127.0.0.1:2"];
  assertEquals((await hasp(["release", "job", "--holder", "00000000"], { urls })).code, 121);
});
