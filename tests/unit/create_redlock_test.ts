import { assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { createRedlock, type CreateRedlockOptions } from "../../src/create_redlock.ts";
import { QuorumError } from "../../src/errors.ts";
import { NODES_MAX } from "../../src/client_nodes.ts";
import { Redlock } from "../../src/redlock.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { wire } from "../support/fake_transport.ts";
import { connectionEvents, create, setCommand } from "../support/faked_redlock.ts";
import { startFakeClock } from "../../src/testing/mod.ts";
import { NAME } from "../support/stream_bench.ts";

const CREATE = "Cannot create lock client as";
const CONNECT = "Cannot connect to Redis as";
const FORMS = "it must be a string, a URL or an object with a 'host'";

/** The error of a lock client that cannot be made. */
function refusal(addresses: unknown, options?: unknown): Error {
  return assertThrows(() =>
    createRedlock(addresses as string[], options as CreateRedlockOptions)
  ) as Error;
}

/** As many addresses of different servers. */
function addressesOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `redis://h${index}`);
}

// Addresses

const USE = "Cannot use Redis address as";
const EMPTY = `${USE} it is empty: it must begin with 'redis://', without quotes`;

for (
  const [addresses, message] of [
    [[], `${CREATE} 'addresses' must be a non-empty array`],
    [undefined, `${USE} ${FORMS}: current type is 'undefined'`],
    [null, `${USE} ${FORMS}: current type is 'null'`],
    ["", EMPTY],
    [" , ", EMPTY],
    [new Set(["redis://h"]), `${USE} ${FORMS}: its 'host' is undefined`],
    [Promise.resolve("redis://h"), `${USE} ${FORMS}: await it`],
  ] as const
) {
  Deno.test(`createRedlock() refuses ${Deno.inspect(addresses)} in place of addresses`, () => {
    const error = refusal(addresses);
    assertInstanceOf(error, TypeError);
    assertEquals(error.message, message);
  });
}

for (
  const addresses of [
    "redis://:s3cret@a,redis://b:7000/2, rediss://c",
    "\n redis://:s3cret@a\tredis://b:7000/2\r\nrediss://c ,",
    ["redis://:s3cret@a redis://b:7000/2", new URL("rediss://c")],
    [
      { host: "a", password: "s3cret" },
      { host: "b", port: 7000, db: 2 },
      { host: "c", tls: {}, maxRetriesPerRequest: null },
    ],
  ]
) {
  Deno.test(`createRedlock() takes ${Deno.inspect(addresses)}`, async () => {
    const { redlock, network } = create(addresses as string, { waitMs: 0 });
    redlock.acquire("a").catch(() => {});
    await runMicrotasks();
    assertEquals(network.targets, [
      { kind: "tcp", hostname: "a", port: 6379 },
      { kind: "tcp", hostname: "b", port: 7000 },
      { kind: "tls", hostname: "c", port: 6379, tls: {} },
    ]);
    await redlock.close();
  });
}

Deno.test("createRedlock() takes one URL, or one object, as one server", async () => {
  for (const address of [new URL("redis://h"), { host: "h" }, "redis://h"]) {
    const { redlock, network } = create(address);
    redlock.acquire("a").catch(() => {});
    await runMicrotasks();
    assertEquals(network.targets.length, 1);
    await redlock.close();
  }
});

Deno.test("createRedlock() takes 31 servers and asks each, and refuses one more", async () => {
  const error = refusal(addressesOf(NODES_MAX + 1));
  assertInstanceOf(error, RangeError);
  assertEquals(
    error.message,
    `${CREATE} 'addresses' must have at most 31 elements: current value is 32`,
  );
  const { redlock, network } = create(addressesOf(NODES_MAX), { waitMs: 0 });
  const acquiring = redlock.acquire("a");
  await runMicrotasks();
  assertEquals(network.targets.length, NODES_MAX);
  for (const transport of network.transports) transport.feed("+OK\r\n");
  const lock = await acquiring;
  await runMicrotasks();
  assertEquals(lock.votes.length, NODES_MAX);
  const closing = redlock.close();
  await runMicrotasks();
  for (const transport of network.transports) transport.feed(":1\r\n");
  await closing;
});

for (
  const [first, second, name] of [
    ["redis://h", "redis://h:6379/", "redis://h:6379"],
    ["redis://h", "redis://H", "redis://h:6379"],
    ["redis://h", "redis://%68", "redis://h:6379"],
    ["redis://h/2", "redis://h/3", "redis://h:6379/3"],
    ["redis://h", "rediss://h", "rediss://h:6379"],
    ["redis://:hunter2@h", "redis://user:hunter3@h", "redis://h:6379"],
    ["redis://[::1]", "redis://[0:0:0:0:0:0:0:1]/4", "redis://[::1]:6379/4"],
    ["redis+unix:///r.sock", "redis+unix:///r.sock?db=1", "redis+unix:///r.sock?db=1"],
  ] as const
) {
  Deno.test(`createRedlock() refuses ${first} and ${second} as one server`, () => {
    const error = refusal([first, "redis://other", second]);
    assertInstanceOf(error, TypeError);
    assertEquals(
      error.message,
      `${CREATE} server ${name} is listed twice: each vote needs its own server`,
    );
  });
}

Deno.test("createRedlock() refuses what is no address, names its place, and shows no password", () => {
  for (
    const [address, shown, reason] of [
      [
        "redis://user:hunter2@h:0",
        "redis://h:0",
        "its port must be an integer from 1 to 65535",
      ],
      [undefined, "addresses[1]", `${FORMS}: current type is 'undefined'`],
    ] as const
  ) {
    const error = refusal(["redis://good", address]);
    assertInstanceOf(error, TypeError);
    assertEquals(error.message, `Cannot use Redis address ${shown} as ${reason}`);
    assertEquals(Deno.inspect(error, { depth: 10 }).includes("hunter"), false);
  }
});

// Options

const OPTIONS = "ttlMs, waitMs, signal, nodeTimeoutMs, driftFactor, retryDelayMs, " +
  "retryDelayMaxMs, notify, fencing, autoExtend, extensionsMax, keyPrefix, " +
  "label, restartGuardMs, cooldownMs, any, mode, atLeastMs, onEvent, connectTimeoutMs, tls, clientName, credentials, connect";
const POSITIVE = "must be a finite number greater than 0: current value is";

for (
  const [options, Class, message] of [
    [{ connectTimeoutMs: 0 }, RangeError, `${CONNECT} 'connectTimeoutMs' ${POSITIVE} 0`],
    [{ tls: true }, TypeError, `${CONNECT} 'tls' must be an object: current type is 'boolean'`],
    [{ nodeTimeoutMs: 0 }, RangeError, `${CREATE} 'nodeTimeoutMs' ${POSITIVE} 0`],
    ...["stallTimeoutMs", "ttl"].map((name) =>
      [
        { [name]: 1 },
        TypeError,
        `${CREATE} option '${name}' is unknown: valid options are ${OPTIONS}`,
      ] as const
    ),
    [null, TypeError, `${CREATE} 'options' must be an object: current type is 'null'`],
  ] as const
) {
  Deno.test(`createRedlock() refuses ${Deno.inspect(options)}`, () => {
    const error = refusal(["redis://h"], options);
    assertInstanceOf(error, Class);
    assertEquals(error.message, message);
  });
}

Deno.test("createRedlock() takes undefined options as left out", async () => {
  const undefineds = Object.fromEntries(OPTIONS.split(", ").map((name) => [name, undefined]));
  const redlock = createRedlock(["redis://h"], undefineds);
  assertInstanceOf(redlock, Redlock);
  await redlock.close();
});

Deno.test("createRedlock() takes TLS settings that an object inherits, or that are getters of its class", async () => {
  const pem = (name: string) => `-----BEGIN ${name}`;
  class Settings {
    readonly caCerts = [pem("ca")];
    get cert() {
      return pem("cert");
    }
    get key() {
      return pem("key");
    }
  }
  const settings = Object.create(
    { serverName: "s" },
    Object.getOwnPropertyDescriptors(new Settings()),
  );
  Object.setPrototypeOf(Object.getPrototypeOf(settings), Settings.prototype);
  const { redlock, network } = create(["rediss://h"], { tls: settings });
  const trying = redlock.tryAcquire("a").catch(() => {});
  await runMicrotasks();
  const [target] = network.targets as unknown as [{ tls: unknown }];
  assertEquals(target.tls, {
    caCerts: [pem("ca")],
    cert: pem("cert"),
    key: pem("key"),
    serverName: "s",
  });
  network.last.end();
  await trying;
  await redlock.close();
});

Deno.test("createRedlock() has its options reach the lock and the connection", async () => {
  const { redlock, network } = create(["rediss://user:pw@h/2"], {
    ttlMs: 5_000,
    keyPrefix: "app:",
    clientName: "hasp",
    tls: { serverName: "s" },
  });
  const trying = redlock.tryAcquire("a");
  await runMicrotasks();
  assertEquals(network.targets, [
    {
      kind: "tls",
      hostname: "h",
      port: 6379,
      tls: { caCerts: undefined, cert: undefined, key: undefined, serverName: "s" },
    },
  ]);
  assertEquals(
    network.last.writes,
    [wire("AUTH", "user", "pw") + wire("SELECT", "2") + wire("CLIENT", "SETNAME", "hasp")],
  );
  network.last.writes.length = 0;
  network.last.feed("+OK\r\n+OK\r\n+OK\r\n");
  await runMicrotasks();
  network.last.feed("$-1\r\n");
  assertEquals(await trying, undefined);
  assertEquals(network.last.writes[0], setCommand(network.last, "app:a", "5000"));
  const closing = redlock.close();
  await runMicrotasks();
  network.last.feed(":0\r\n");
  await closing;
});

for (const [nodeTimeoutMs, stallTimeoutMs] of [[50, 2_000], [1_000, 2_000], [3_000, 6_000]]) {
  Deno.test(`createRedlock() with a nodeTimeoutMs of ${nodeTimeoutMs} lets a connection be silent for ${stallTimeoutMs} ms`, async () => {
    using clock = startFakeClock();
    const { redlock, network, events } = create(["redis://h"], { nodeTimeoutMs, ttlMs: 60_000 });
    const trying = redlock.tryAcquire("a").catch((error) => error);
    await clock.tick(stallTimeoutMs - 10);
    assertEquals(network.transports[0].closed, false);
    await clock.tick(stallTimeoutMs / 4 + 30); // each look lets the sockets be read before
    assertEquals(network.transports[0].closed, true);
    assertEquals(connectionEvents(events), [
      ["node-disconnected", NAME, `Connection to ${NAME} was silent for ${stallTimeoutMs} ms`],
    ]);
    assertInstanceOf(await trying, QuorumError);
    const closing = redlock.close();
    await clock.tick(600);
    await closing;
  });
}
