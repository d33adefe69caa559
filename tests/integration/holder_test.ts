/** Who holds a lock, as other clients see it on real servers. */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createRedlock, LockHeldError } from "../../mod.ts";
import { hasp, startHasp } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { gone, onAll, shareServers } from "../support/shared_servers.ts";

const shared = shareServers(3, { rights: ["+client|setname"] });
const WAIT_MS = 100;

Deno.test("a client that waited without success learns who holds the lock, with its label", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { label: "web-3:1234" });
  await using other = createRedlock(servers.urls);
  await using lock = await redlock.acquire("job");
  await eventually(async () => {
    assertEquals(await onAll(servers, "GET", "job"), Array(3).fill(lock.value));
  });
  assertMatch(lock.value, /^[\da-f]{40}:[\da-z]{6}:web-3:1234$/u);
  // once it is connected for notifications, and so asks with a ticket
  await eventually(async () => {
    const acquiring = other.acquire("job", { waitMs: WAIT_MS });
    const error = await assertRejects(() => acquiring, LockHeldError);
    const [{ holder, label, acquiredAt }] = error.holders;
    assertEquals([holder, label], [lock.holder, "web-3:1234"]);
    assert(acquiredAt instanceof Date);
    assert(error.message.includes('"job": someone else (web-3:1234) holds it;'), error.message);
    for (const text of [error.message, JSON.stringify(error)]) assert(!text.includes(lock.value));
  });
});

Deno.test("a lock with a label is handed on to the next waiter at its release", async () => {
  await using servers = shared.lend();
  const clients = ["a", "b"].map((label) => createRedlock(servers.urls, { label }));
  await using one = clients[0];
  await using other = clients[1];
  const lock = await one.acquire("job", { ttlMs: 60_000 });
  const waiting = other.acquire("job", { waitMs: 50_000 });
  await eventually(async () => assertEquals((await one.inspect("job")).waiters, 1));
  await lock.extend();
  assertEquals(await lock.release(), true);
  const next = await waiting;
  const { holders: [{ holder, label }] } = await one.inspect("job");
  assertEquals([holder, label], [next.holder, "b"]);
  assertEquals(await next.release(), true);
  await gone(servers, "job");
});

Deno.test("hasp run has its host and process as its label, or --label, and names its connections", async () => {
  await using servers = shared.lend();
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
