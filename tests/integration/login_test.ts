import * as scripts from "../support/scripts.ts";
import { assert, assertEquals, assertFalse, assertInstanceOf, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, LockHeldError, QuorumError } from "../../mod.ts";
import { connect, ConnectionError, ReplyError } from "../../src/redis/mod.ts";
import type { Script } from "../../src/redis_node/scripts/script.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, startServer, startServers } from "../support/servers.ts";
import { onAll } from "../support/shared_servers.ts";
import { SLACK_MS } from "../support/times.ts";
import { openClients, PATIENT, queueOfLength } from "../support/waiting_clients.ts";

/** Every character that means something in a URL, in RESP or to a shell, and some beyond ASCII. */
const PASSWORD = "p@ss:w/o?r#d%41&+=$-1*2ß🔑";
const USER = "al:ice@home/1%ü";

/** What it takes to lock. */
const LOCKING_COMMANDS = "mget set get del exists pttl pexpire eval evalsha".split(" ");
/** What it takes to be notified, beyond polling. */
const WAITING_COMMANDS = [
  ...LOCKING_COMMANDS,
  ..."subscribe publish pubsub ping time".split(" "),
  ..."zadd zcard zrange zrank zrem zremrangebyscore zscore".split(" "),
];
const WAITING_RULES =
  "~lock:* ~hasp:queue:lock:* ~hasp:turn:lock:* resetchannels &hasp:wake:* -@all " +
  WAITING_COMMANDS.map((name) => `+${name}`).join(" ");

Deno.test("a wrong password is refused with the server's reason and without the password", async () => {
  await using server = await startServer({ password: PASSWORD });
  const address = `redis://:wrong%20one@127.0.0.1:${server.port}`;
  const error = await assertRejects(() => connect(address), ConnectionError);
  assertEquals(
    error.message,
    `Connection to redis://127.0.0.1:${server.port} was refused: ${(error.cause as Error).message}`,
  );
  assertInstanceOf(error.cause, ReplyError);
  assertEquals(
    error.cause.message,
    "WRONGPASS invalid username-password pair or user is disabled.",
  );
  assertShowsNone(error, ["wrong one", "wrong%20one", PASSWORD, encodeURIComponent(PASSWORD)]);
});

Deno.test("an ACL user with percent-encoded name and password logs in", async () => {
  const users = [`${USER} on >${PASSWORD} ~* &* +@all`];
  await using server = await startServer({ users });
  const login = `${encodeURIComponent(USER)}:${encodeURIComponent(PASSWORD)}`;
  await using client = await connect(`redis://${login}@127.0.0.1:${server.port}`);
  assertEquals(await client.send(["ACL", "WHOAMI"]), USER);
});

Deno.test("the lock works for an ACL user with its keys and few commands, and not beyond them", async () => {
  const commands = LOCKING_COMMANDS.map((name) => `+${name}`).join(" ");
  const users = [`locker on >secret ~lock:* resetchannels -@all ${commands}`];
  await using servers = await startServers(3, { users });
  const addresses = servers.map(({ port }) => `redis://locker:secret@127.0.0.1:${port}`);
  await using redlock = createRedlock(addresses, { keyPrefix: "lock:", waitMs: Infinity });
  await assertLocks(redlock, servers, "invoice:42", "lock:invoice:42");
  assertEquals((await redlock.inspect("invoice:42")).held, false);

  const beyond = redlock.acquire("invoice:42", { keyPrefix: "other:" });
  const error = await assertRejects(() => beyond, QuorumError);
  for (const { outcome, error: reason } of error.votes.filter((vote) => vote.error)) {
    assertEquals([outcome, (reason as ReplyError).prefix], ["failed", "NOPERM"]);
  }
  assertShowsNone(error, ["locker", "secret"]);
});

Deno.test("an ACL user with its keys, their queues and its channels is notified, and inspects the queue", async () => {
  const users = [`waiter on >secret ${WAITING_RULES}`];
  await using servers = await startServers(3, { users });
  const addresses = servers.map(({ port }) => `redis://waiter:secret@127.0.0.1:${port}`);
  const refused: string[] = [];
  await using clients = openClients(addresses, 3, {
    ...PATIENT,
    keyPrefix: "lock:",
    onEvent: (event) => {
      if (event.type === "notify-refused") refused.push(event.error.message);
    },
  });
  for (const resource of ["invoice:42", "invoice:{42}"]) {
    const queue = `hasp:queue:lock:${resource}`;
    const lock = await clients[0].acquire(resource);
    const first = clients[1].acquire(resource);
    await queueOfLength(servers, queue, 1);
    const second = clients[2].acquire(resource, { waitMs: 100 });
    await assertRejects(() => second, LockHeldError); // has left the queue
    await onAll(servers, "ZADD", queue, 1, "gone:1"); // is to be passed over
    assertEquals((await clients[0].inspect(resource)).waiters, 2);
    await lock.extend();
    assert(await lock.release());
    assert(await (await deadline(first, SLACK_MS)).release());
    await queueOfLength(servers, queue, 0);
  }
  await using both = await clients[0].acquire(["invoice:42", "invoice:{42}"]);
  const first = clients[1].acquire(["invoice:42", "invoice:43"]);
  await queueOfLength(servers, "hasp:queue:lock:invoice:42", 1);
  assert(await both.release());
  assert(await (await deadline(first, SLACK_MS)).release());
  assertEquals(refused, []);
});

/** Scripts that are sent with an option alone: fencing tokens. */
const BY_OPTION: readonly Script[] = [scripts.ACQUIRE_COUNTED, scripts.RAISE];

Deno.test("an ACL user that waits has all commands that the scripts call, and no other but five", () => {
  const sources = Object.values(scripts).flatMap((it) => {
    if (typeof it !== "object" || BY_OPTION.includes(it)) return [];
    return [it.source];
  });
  const called = sources.flatMap((source) =>
    [...source.matchAll(/redis\.p?call\(\s*(.*?),/gs)].flatMap(([, name]) =>
      [...name.matchAll(/'([A-Z]+)'/g)].map(([, word]) => word.toLowerCase())
    )
  );
  const sent = ["eval", "evalsha", "ping", "set", "subscribe"];
  assertEquals(WAITING_COMMANDS.toSorted(), [...new Set([...called, ...sent])].sort());
});

Deno.test("a lock that its ACL user may take but not give back is released by its TTL, and disposal throws nothing", async () => {
  await using servers = await startServers(3, { users: ["taker on >secret ~* &* +set"] });
  const addresses = servers.map(({ port }) => `redis://taker:secret@127.0.0.1:${port}`);
  await using redlock = createRedlock(addresses, { ttlMs: 2_000 });
  {
    await using lock = await redlock.acquire("invoice:42");
    assert(lock.held);
    const error = await assertRejects(() => lock.release(), QuorumError);
    assert(
      error.message.startsWith('Cannot release lock "invoice:42": 0 of 3 nodes released it, '),
    );
    const failure = error.votes.find((vote) => vote.error)!.error;
    assertInstanceOf(failure, ReplyError);
    assertEquals(failure.prefix, "NOPERM");
  }
  await using next = await redlock.acquire("invoice:42", { waitMs: 10_000 });
  assert(next.held);
});

Deno.test("database 3 of an address gets the lock, and no other database, also after a reconnect", async () => {
  await using servers = await startServers(3, { rights: ["+select"] });
  await using redlock = createRedlock(servers.urls.map((url) => `${url}/3`));
  await using lock = await redlock.acquire("invoice:42");
  await eventually(() => assertKeyspace(servers, { db3: 1 }));
  await onAll(servers, "CLIENT", "KILL", "TYPE", "normal");
  await eventually(() => lock.extend().then(() => true, () => false)); // once it is connected again
  await assertKeyspace(servers, { db3: 1 });
  assert(await lock.release());
  await eventually(() => assertKeyspace(servers, {}));
});

async function assertLocks(
  redlock: ReturnType<typeof createRedlock>,
  servers: readonly RedisServer[],
  resource: string,
  key = resource,
): Promise<void> {
  const lock = await redlock.acquire(resource, { waitMs: 0 });
  await eventually(async () => {
    assertEquals(await onAll(servers, "GET", key), servers.map(() => lock.value));
  });
  await lock.extend();
  assertEquals(await redlock.tryAcquire(resource), undefined);
  const several = await redlock.acquire(["several", "of them"], { waitMs: 0 });
  await several.extend();
  assert(await several.release());
  assert(await lock.release());
}

/** How many keys each database has, on every server. */
async function assertKeyspace(
  servers: readonly RedisServer[],
  expected: Record<string, number>,
): Promise<void> {
  for (const text of await onAll(servers, "INFO", "keyspace")) {
    const keys = [...String(text).matchAll(/^(db\d+):keys=(\d+)/gm)];
    assertEquals(Object.fromEntries(keys.map(([, db, count]) => [db, Number(count)])), expected);
  }
}

function assertShowsNone(error: Error, secrets: readonly string[]): void {
  const shown = Deno.inspect(error, { depth: 9, strAbbreviateSize: Infinity }) + error.stack;
  for (const secret of secrets) assertFalse(shown.includes(secret), `shows ${secret}`);
}

Deno.test("a client outlives the rotation of its password, with its locks and its waiting calls", async () => {
  await using server = await startServer({ password: "first" });
  const address = `redis://127.0.0.1:${server.port}`;
  let password = "first";
  const credentials = (name: string) => {
    assertEquals(name, address);
    return Promise.resolve({ username: "default", password });
  };
  const options = { credentials, ttlMs: 3_000, onEvent() {} };
  await using redlock = createRedlock([address], options);
  await using other = createRedlock([address], options);
  const held = await redlock.acquire("report", { autoExtend: true });
  const waiting = other.acquire("report", { waitMs: 20_000 });
  waiting.catch(() => {}); // if the test fails before
  await eventually(async () => (await redlock.inspect("report")).waiters === 1);

  await server.command("CONFIG", "SET", "requirepass", "second");
  await server.command("CLIENT", "KILL", "TYPE", "pubsub");
  await server.command("CLIENT", "KILL", "USER", "default");
  const error = await assertRejects(() => {
    return redlock.acquire("another", { waitMs: 300 }); // the function has only the old password
  }, QuorumError);
  assert(error.message.includes("WRONGPASS"), error.message);
  password = "second";
  const lock = await redlock.acquire("another", { waitMs: 10_000 });
  assertEquals(await lock.release(), true);
  const { extensions } = held;
  await eventually(() => held.extensions > extensions);
  assert(held.held);
  await held.release();
  assert((await waiting).held);
  const clients = String(await server.command("CLIENT", "LIST", "TYPE", "pubsub"));
  assert(clients.includes("user=default"), clients);
});
