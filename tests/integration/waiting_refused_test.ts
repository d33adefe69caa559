/**
 * Waiting if the server, or a proxy in front of it, refuses what notifications need: calls poll,
 * and the holder of the lock sees no error.
 */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, type RedlockEvent, type RedlockOptions } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { manualUser } from "../support/manual_user.ts";
import { type RedisServer, startServers } from "../support/servers.ts";
import { onAll } from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";
import {
  lineUp,
  openClients,
  queueOfLength,
  soon,
  subscriptions,
} from "../support/waiting_clients.ts";

const POLLING_MS = 50;
/** Polls soon, where it has to. */
const PROMPT: RedlockOptions = {
  ttlMs: TTL_MS,
  waitMs: TTL_MS,
  retryDelayMs: 5,
  retryDelayMaxMs: POLLING_MS,
};
const QUEUE = "hasp:queue:job";

type NotifyRefusedEvent = RedlockEvent & { type: "notify-refused" };

/** How Redis and Valkey say that a right for a command in a script is missing. */
const NO_RIGHT = /can't run this command|no permissions to run/u;
/** What a user lacks, and why no node tells such a user of releases. */
const REFUSED: readonly [what: string, rules: string, reason: RegExp][] = [
  ["SUBSCRIBE", "~* &* +@all -subscribe", /^NOPERM .*'subscribe'/],
  ["PUBLISH", "~* &* +@all -publish", /^NOPERM .*'publish'/],
  ["a channel", "~* resetchannels +@all", /^NOPERM .*channel/],
  ["ZADD", "~* &* +@all -zadd", NO_RIGHT],
  ["TIME", "~* &* +@all -time", NO_RIGHT],
  ["PEXPIRE", "~* &* +@all -pexpire", NO_RIGHT],
  ["all commands on sorted sets", "~* &* +@all -@sortedset", NO_RIGHT],
];

for (const [what, rules, reason] of REFUSED) {
  Deno.test(`a user without ${what} waits by polling, and each node says once why`, async () => {
    await using servers = await startServers(3, { users: [`locker on >secret ${rules}`] });
    // It must not subscribe, although its releases say that somebody waits.
    await using holder = createRedlock(urlsOf(servers), { ...PROMPT, notify: false });
    const refused: NotifyRefusedEvent[] = [];
    await using redlock = createRedlock(urlsOf(servers), {
      ...PROMPT,
      onEvent: (event) => {
        if (event.type === "notify-refused") refused.push(event);
      },
    });
    for (let round = 0; round < 3; round++) {
      const lock = await holder.acquire("job");
      const acquiring = redlock.acquire("job");
      acquiring.catch(() => {});
      // of the third it may not have asked what it takes
      await eventually(() => assert(refused.length >= 2));
      assert(await lock.release());
      const next = await deadline(acquiring, 2_000 + SLACK_MS);
      assert(await next.release());
    }
    const nodes = refused.map(({ node }) => node);
    assertEquals(new Set(nodes).size, nodes.length);
    assert(nodes.every((node) => servers.urls.includes(node)));
    for (const { error } of refused) {
      assertMatch(error.message, reason);
      assert(!error.message.includes("secret"));
    }
    const listenedTo = servers.filter(({ url }) => !nodes.includes(url)).length;
    await eventually(async () => { // a server may learn late that a connection is closed
      const open = (await subscriptions(servers)).reduce((sum, count) => sum + count);
      assert(open <= listenedTo);
    });
    await queueOfLength(servers, QUEUE, 0);
  });
}

/** Every command that only waiting takes. */
const WAITING_COMMANDS = "pexpire publish subscribe time zadd zcard zrange zrank zrem zscore"
  .split(" ");

Deno.test("locks work, contended too, whichever of the commands is missing that only waiting takes", async () => {
  const users = WAITING_COMMANDS.map((name) => `no-${name} on >secret ~* &* +@all -${name}`);
  await using servers = await startServers(3, { users });
  const failures: string[] = [];
  await Promise.all(WAITING_COMMANDS.map(async (name) => {
    const urls = urlsOf(servers, `no-${name}`);
    await using clients = openClients(urls, 3, PROMPT);
    let inside = 0;
    const turns = clients.map(async (client) => {
      for (let round = 0; round < 3; round++) {
        const lock = await client.acquire(name, { waitMs: 20_000 });
        assertEquals(++inside, 1);
        inside--;
        assert(await lock.release());
      }
    });
    await Promise.all(turns).catch((error) => failures.push(`${name}: ${error}`));
  }));
  assertEquals(failures, []);
});

Deno.test("a user that may touch its keys alone, not their queues, takes locks and gives them back", async () => {
  await using servers = await startServers(3, { users: ["locker on >secret ~job* &* +@all"] });
  await using clients = openClients(urlsOf(servers), 2, PROMPT);
  const lock = await clients[0].acquire("job");
  const acquiring = clients[1].acquire("job");
  acquiring.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, POLLING_MS));
  await lock.extend();
  assert(await lock.release());
  const next = await deadline(acquiring, 10_000);
  assert(await next.release());
  assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0]);
});

Deno.test("a user without ZREM gives its lock back though a client that is gone is in the queue", async () => {
  const users = ["locker on >secret ~* &* +@all -zrem"];
  await using servers = await startServers(3, { users });
  await using clients = openClients(urlsOf(servers), 1, PROMPT);
  const lock = await clients[0].acquire("job");
  await onAll(servers, "ZADD", QUEUE, 1, "gone:1");
  assert(await lock.release());
  const next = await soon(clients[0].acquire("job"));
  assert(await next.release());
});

Deno.test("a permission that is taken away while somebody waits has it poll", async () => {
  // If a user loses the right to all channels, Redis 6.2 keeps its subscriptions.
  const users = ["locker on >secret ~* resetchannels &hasp:* +@all"];
  await using servers = await startServers(3, { users });
  await using clients = openClients(urlsOf(servers), 2, { ...PROMPT, ttlMs: 2_000 });
  const lock = await clients[0].acquire("job", { autoExtend: true });
  const { acquiring } = await lineUp(clients[1], "job", servers);
  await onAll(servers, "ACL", "SETUSER", "locker", "resetchannels"); // ends their subscriptions
  await eventually(async () => assertEquals(await subscriptions(servers), [0, 0, 0]));
  await lock.release();
  await (await deadline(acquiring, 2_000 + SLACK_MS)).release();
});

Deno.test("a user who lacks any one right of the manual leaves no key that does not expire", async () => {
  await using servers = await startServers(1);
  const [server] = servers;
  const rights = manualUser().filter((rule) => rule.startsWith("+"));
  for (const lacking of rights) {
    const others = rights.filter((right) => right !== lacking);
    const user = "ACL SETUSER locker reset on >secret ~* &*".split(" ");
    await server.command(...user, ...others);
    await using redlock = createRedlock(urlsOf(servers), { ttlMs: TTL_MS });
    for (const options of [{ mode: "shared" }, { fencing: true }] satisfies RedlockOptions[]) {
      const lock = await redlock.tryAcquire("job", options).catch(() => undefined);
      await lock?.release().catch(() => {});
    }
    for (const key of await server.command("KEYS", "*") as string[]) {
      assert(Number(await server.command("PTTL", key)) !== -1, `${key} without ${lacking}`);
    }
    await server.command("FLUSHALL");
  }
});

function urlsOf(servers: readonly RedisServer[], user = "locker"): string[] {
  return servers.map(({ port }) => `redis://${user}:secret@127.0.0.1:${port}`);
}
