import { assert, assertEquals, assertThrows } from "@std/assert";
import { createRedlock } from "../../../src/create_redlock.ts";
import { parseAddress } from "../../../src/redis/address.ts";
import { RedisClient } from "../../../src/redis/client.ts";
import { type ClientOptions, resolveClientOptions } from "../../../src/redis/client_options.ts";

const SECURE = [parseAddress("redis://h"), parseAddress("valkeys://i")];
const NAMES =
  "connectTimeoutMs, tls, clientName, credentials, connect, stallTimeoutMs, replyTimeoutMs, replyBytesMax, replyElementsMax";

const TIMEOUT = "must be a finite number greater than 0: current value is";
const LIMIT = "must be greater than 0: current value is";
const CLIENT_NAME = "'clientName' must be printable ASCII without spaces: current value is";

const PEM = "-----BEGIN CERTIFICATE-----";
const TOGETHER = "'tls.cert' and 'tls.key' need each other";
const CA_CERTS = "'tls.caCerts' must be an array of PEM texts: current type is";

const BAD: readonly (readonly [options: unknown, reason: string])[] = [
  [null, "'options' must be an object: current type is 'null'"],
  [5, "'options' must be an object: current type is 'number'"],
  [{ timeoutMs: 5 }, `option 'timeoutMs' is unknown: valid options are ${NAMES}`],
  [{ connectTimeoutMs: 0 }, `'connectTimeoutMs' ${TIMEOUT} 0`],
  [{ connectTimeoutMs: "1" }, "'connectTimeoutMs' must be a number: current type is 'string'"],
  [{ stallTimeoutMs: -1 }, `'stallTimeoutMs' ${LIMIT} -1`],
  [{ replyTimeoutMs: 0 }, `'replyTimeoutMs' ${LIMIT} 0`],
  [{ replyBytesMax: 0 }, `'replyBytesMax' ${LIMIT} 0`],
  [{ replyElementsMax: -1 }, `'replyElementsMax' ${LIMIT} -1`],
  [{ tls: null }, "'tls' must be an object: current type is 'null'"],
  [{ tls: "x" }, "'tls' must be an object: current type is 'string'"],
  [{ tls: { caCerts: PEM } }, `${CA_CERTS} 'string'`],
  [{ tls: { caCerts: [1] } }, `${CA_CERTS} 'Array'`],
  [{ tls: { caCerts: [PEM, "/etc/ca.crt"] } }, `${CA_CERTS} 'Array'`],
  [
    { tls: { serverName: "" } },
    "'tls.serverName' must be a non-empty string: current type is 'empty string'",
  ],
  [{ tls: { cert: 1, key: PEM } }, "'tls.cert' must be a PEM text: current type is 'number'"],
  [{ tls: { cert: PEM, key: "k" } }, "'tls.key' must be a PEM text: current type is 'string'"],
  [{ tls: { cert: PEM } }, TOGETHER],
  [{ tls: { key: PEM } }, TOGETHER],
  [
    { tls: { rejectUnauthorized: false } },
    "option 'tls.rejectUnauthorized' is unknown: valid options are caCerts, cert, key, serverName",
  ],
  [{ connect: {} }, "'connect' must be a function: current type is 'Object'"],
  [{ credentials: "pw" }, "'credentials' must be a function: current type is 'string'"],
  ...["a b", "", "a\n", "é"].map((clientName) => {
    return [{ clientName }, `${CLIENT_NAME} ${JSON.stringify(clientName)}`] as const;
  }),
];

for (const [options, reason] of BAD) {
  Deno.test(`RedisClient refuses the options ${Deno.inspect(options)}`, () => {
    const create = () => new RedisClient("valkeys://i", options as ClientOptions);
    const Class = / value is /u.test(reason) ? RangeError : TypeError;
    assertEquals(assertThrows(create, Class).message, `Cannot connect to Redis as ${reason}`);
  });
}

for (const tls of [{}, { caCerts: [PEM] }, { serverName: "redis.test" }]) {
  Deno.test(`RedisClient refuses the TLS settings ${Deno.inspect(tls)} without an address for TLS`, () => {
    for (
      const create of [
        () => new RedisClient("redis+unix:///run/redis.sock", { tls }),
        () => createRedlock(["redis://h", "redis://i"], { tls }),
      ]
    ) {
      assertEquals(
        assertThrows(create, TypeError).message,
        "Cannot connect to Redis as 'tls' needs an address that begins with 'rediss://' or 'valkeys://'",
      );
    }
  });
}

Deno.test("resolveClientOptions() fills in defaults, and derives the longest wait for a reply", () => {
  const undefineds = Object.fromEntries(NAMES.split(", ").map((name) => [name, undefined]));
  for (const options of [undefined, {}, undefineds]) {
    const { connect: _, ...defaults } = resolveClientOptions(options, [parseAddress("redis://h")]);
    assertEquals(defaults, {
      connectTimeoutMs: 1_000,
      stallTimeoutMs: 2_000,
      replyTimeoutMs: 10_000,
      replyBytesMax: 536_870_912,
      replyElementsMax: 1_048_576,
      tls: {},
      clientName: undefined,
      credentials: undefined,
    });
  }
  assertEquals(resolveClientOptions({ stallTimeoutMs: 500 }).replyTimeoutMs, 2_500);
  assertEquals(resolveClientOptions({ stallTimeoutMs: Infinity }).replyTimeoutMs, Infinity);
});

Deno.test("resolveClientOptions() takes Infinity for every limit of replies", () => {
  const names = ["stallTimeoutMs", "replyTimeoutMs", "replyBytesMax", "replyElementsMax"] as const;
  const resolved = resolveClientOptions(Object.fromEntries(names.map((name) => [name, Infinity])));
  assertEquals(names.map((name) => resolved[name]), names.map(() => Infinity));
});

Deno.test("resolveClientOptions() keeps its own copy of the TLS settings", () => {
  const caCerts = [PEM];
  const given = { caCerts, serverName: "redis.test" };
  const { tls } = resolveClientOptions({ tls: given }, SECURE);
  caCerts.push("two");
  given.serverName = "other.test";
  const [cert, key] = [undefined, undefined];
  assertEquals(tls, { caCerts: [PEM], cert, key, serverName: "redis.test" });
  assert(tls !== given);
});
