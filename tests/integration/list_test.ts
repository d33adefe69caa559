/** `list(redlock)` and `hasp list` on real servers. */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createRedlock, QuorumError, type RedlockEvent } from "../../mod.ts";
import { list, type ListedLock } from "../../src/operate/mod.ts";
import { hasp } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { manualUser } from "../support/manual_user.ts";
import { startServers } from "../support/servers.ts";
import { ANOTHER, holdByAnother, onAll, shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(3);

/** More than two steps of a server. */
const MANY = 500;

async function listed(locks: AsyncIterable<ListedLock>): Promise<Map<string, ListedLock>> {
  const found = new Map<string, ListedLock>();
  for await (const lock of locks) {
    assert(!found.has(lock.resource), `${lock.resource} was listed twice`);
    found.set(lock.resource, lock);
  }
  return found;
}

test("list() shows each lock that begins with a prefix once, who holds it and how many wait", async (servers) => {
  await using redlock = createRedlock(servers.urls, { label: "web-3", keyPrefix: "app:" });
  await using other = createRedlock(servers.urls, { keyPrefix: "app:" });
  await using lock = await redlock.acquire("job:[1]*", { fencing: true });
  await using _another = await redlock.acquire("mail");
  const waiting = other.acquire("job:[1]*", { waitMs: 60_000 });
  await onAll(servers, "SET", "elsewhere", ANOTHER, "PX", 60_000);
  await eventually(async () => {
    const found = await listed(list(redlock, { prefix: "job:[" }));
    assertEquals([...found.keys()], ["job:[1]*"]);
    const { held, holders: [holder], waiters, votes, foreign } = found.get("job:[1]*")!;
    assertEquals([held, waiters, foreign], [true, 1, undefined]);
    assertEquals([holder.holder, holder.label], [lock.holder, "web-3"]);
    assertEquals(votes.map(({ outcome }) => outcome), ["held", "held", "held"]);
  });
  assertEquals([...(await listed(list(redlock))).keys()].sort(), ["job:[1]*", "mail"]);
  await lock.release();
  await (await waiting).release();
});

test("list() goes through more keys than fit into a step, and all that stay are listed", async (servers) => {
  const events: string[] = [];
  await using redlock = createRedlock(servers.urls, {
    onEvent: (event) => void events.push(event.type),
  });
  // 200 of these names would be too long a reply, and 18 of those
  for (const [count, length] of [[MANY, 10_000], [40, 60_000]]) {
    const script =
      `for i = 1, ${count} do redis.call('SET', ARGV[2] .. i, ARGV[1], 'PX', 60000) end`;
    const prefix = `job:${"x".repeat(length)}:`;
    await onAll(servers, "EVAL", script, 0, ANOTHER, prefix);
    const found = await listed(list(redlock, { prefix }));
    assertEquals(found.size, count);
    assert([...found.values()].every(({ held }) => held));
    for await (const _ of list(redlock)) break; // ends the list early
    assert(!events.includes("node-disconnected"));
    assertEquals((await redlock.inspect(`${prefix}1`)).held, true);
    await onAll(servers, "FLUSHALL");
  }
});

Deno.test("list() of a user who may only read goes on without a node that lacks the right, and names it in an event", async () => {
  const rights = manualUser().map((rule) => rule.replace(/^~.*/u, "~*"));
  const users = [`locker on ${rights.join(" ")} -scan -eval -evalsha -set -del`];
  await using servers = await startServers(3, { rights: ["+acl|setuser"] });
  await onAll(servers.slice(0, 1), "ACL", "SETUSER", ...users[0].split(" "));
  await onAll(servers.slice(1), "ACL", "SETUSER", ...users[0].split(" "), "+scan");
  const [password] = rights.filter((rule) => rule.startsWith(">"));
  const urls = servers.map(({ port }) => `redis://locker:${password.slice(1)}@127.0.0.1:${port}`);
  const events: RedlockEvent[] = [];
  await using redlock = createRedlock(urls, { onEvent: (event) => void events.push(event) });
  await holdByAnother(servers, "job");
  assertEquals([...(await listed(list(redlock))).keys()], ["job"]);
  const failures = events.filter((event) => event.type === "list-failed");
  assertEquals(failures.length, 1);
  assertMatch(failures[0].error.message, /NOPERM .*'scan'/);
  const { code, stdout, stderr } = await hasp(["list"], { urls });
  assertEquals(code, 0);
  assertMatch(stdout, /^job +held /m);
  assertMatch(stderr, /^hasp: redis:\S+ could not list its keys: NOPERM .*'scan'/);
  await onAll(servers, "ACL", "SETUSER", "locker", "-scan");
  const error = await assertRejects(() => listed(list(redlock)), QuorumError);
  assertMatch(
    error.message,
    /^Cannot list locks: 0 of 3 nodes answered, 3 failed, .*NOPERM .*'scan'/,
  );
});

test("hasp list prints a table of locks and residue, and lines of JSON for programs", async (servers) => {
  await holdByAnother(servers, "job:1", 60_000);
  await holdByAnother(servers.slice(0, 1), "job:2", 60_000);
  await holdByAnother(servers, "mail", 60_000);
  const text = await hasp(["list", "job:"], servers);
  assertEquals([text.code, text.stderr], [0, ""]);
  const [heading, ...rows] = text.stdout.trim().split("\n");
  assertMatch(heading, /^key +state +holder +since +expires in +waiting +nodes$/);
  const [held, residue] = rows.sort();
  assertMatch(held, /^job:1 +held +[\da-f]{8} +\? +(1 min|5\d\.\d s) +0 +3 held$/);
  assertMatch(residue, /^job:2 +residue +[\da-f]{8} +\? +\? +0 +1 held, 2 free$/);
  const json = await hasp(["list", "--json"], servers);
  const lines = json.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assertEquals(
    lines.map(({ resource, held }) => [resource, held]).sort(),
    [["job:1", true], ["job:2", false], ["mail", true]],
  );
  const nobody = await hasp(["list"], { urls: ["redis://127.0.0.1:1"] });
  assertEquals(nobody.code, 121);
});
