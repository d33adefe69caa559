import { assert, assertEquals, assertLessOrEqual, assertRejects } from "@std/assert";
import { createRedlock, QuorumError, type RedlockEvent } from "../../mod.ts";
import { check } from "../../src/operate/mod.ts";
import { connect } from "../../src/transport/deno.ts";
import type { Connect } from "../../src/transport/transport.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, type ServerGroup, startServers } from "../support/servers.ts";

const PASSWORD = "replicated";
/** Both servers, to a client that looks the name up. */
const NAME = `redis://:${PASSWORD}@name`;
const REPLICA = /leads to a replica.*: READONLY You can't write against a read only replica/u;

/** Two servers behind one name: the second follows the first. */
class Pair implements AsyncDisposable {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  readonly #servers: AsyncDisposable;
  /** The server that the name leads to. */
  target: RedisServer;
  dials = 0;

  static async start(): Promise<Pair> {
    const servers = await startServers(2, {
      password: PASSWORD,
      config: [`masterauth ${PASSWORD}`, "repl-diskless-sync-delay 0"],
    });
    const pair = new Pair(servers);
    await follow(servers[1], servers[0]);
    return pair;
  }

  constructor(servers: ServerGroup<2>) {
    [this.primary, this.replica] = servers;
    this.target = this.primary;
    this.#servers = servers;
  }

  /** Looks the name up, as a client of managed Redis does with each connection. */
  readonly connect: Connect = (_, options) => {
    this.dials++;
    return connect({ kind: "tcp", hostname: "127.0.0.1", port: this.target.port }, options);
  };

  /** The primary becomes a replica of the other one; connections stay open. */
  async failOver(): Promise<void> {
    await this.replica.command("REPLICAOF", "NO", "ONE");
    await follow(this.primary, this.replica);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#servers[Symbol.asyncDispose]();
  }
}

async function follow(replica: RedisServer, primary: RedisServer): Promise<void> {
  await replica.command("REPLICAOF", "127.0.0.1", primary.port);
  await eventually(async () => {
    const info = String(await replica.command("INFO", "replication"));
    return info.includes("master_link_status:up");
  });
}

Deno.test("a client follows a name to the new primary, keeps its locks, and its waiters are notified there", async () => {
  await using pair = await Pair.start();
  const events: RedlockEvent[] = [];
  const options = { ttlMs: 3_000, connect: pair.connect };
  await using redlock = createRedlock([NAME], {
    ...options,
    onEvent: (event) => events.push(event),
  });
  await using other = createRedlock([NAME], options);
  const held = await redlock.acquire("held", { autoExtend: true });
  const waiting = other.acquire("held", { waitMs: 20_000 });
  waiting.catch(() => {}); // if the test fails before
  await eventually(async () => (await redlock.inspect("held")).waiters === 1);
  await eventually(async () => await pair.replica.command("EXISTS", "held") === 1);

  await pair.failOver();
  pair.target = pair.replica;
  const lock = await redlock.acquire("another", { waitMs: 5_000 });
  assertEquals(await lock.release(), true);
  const { error } = events.find((event) => event.type === "node-disconnected")!;
  assert(REPLICA.test(error.message), error.message);
  await eventually(() => held.extensions > 1);
  assert(held.held);
  assertEquals(
    await pair.replica.command("PUBSUB", "CHANNELS", "hasp:wake:*").then(String) !== "",
    true,
  );
  assertEquals(await held.release(), true);
  const next = await waiting;
  assert(next.held);
  await next.release();
});

Deno.test("a client of a server that stays a replica connects ever more rarely, and its votes and check() say why", async () => {
  await using pair = await Pair.start();
  await using redlock = createRedlock([NAME], { connect: pair.connect, onEvent() {} });
  await (await redlock.acquire("free")).release();
  await pair.failOver();
  pair.dials = 0;
  const seen = new Set<string>();
  const refused = async () => {
    const error = await assertRejects(() => redlock.tryAcquire("free"), QuorumError);
    seen.add(error.votes[0].error!.message);
  };
  for (const endMs = performance.now() + 5_000; performance.now() < endMs;) {
    await refused();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assertLessOrEqual(pair.dials, 12); // a hundred without a pause
  // the reply itself, and the errors of the connections that were left for it
  assert(seen.size > 1);
  assert([...seen].some((message) => REPLICA.test(message)), [...seen].join());
  for (let times = 0; times < 5; times++) {
    await refused(); // so the node's own connection is down
    const { findings } = await check(redlock);
    assert(
      findings.some(({ code }) => code === "REPLICA"),
      findings.map(({ message }) => message).join(),
    );
  }
});
