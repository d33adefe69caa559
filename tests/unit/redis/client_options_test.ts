import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { createRedlock } from "../../../src/create_redlock.ts";
import { parseAddress } from "../../../src/redis/address.ts";
import {
  type ClientOptions,
  RedisClient,
  resolveClientOptions,
} from "../../../src/redis/client.ts";

const PLAIN = [parseAddress("redis://h")];
const SECURE = [parseAddress("redis://h"), parseAddress("valkeys://i")];

const COUNT_RULE = "must be a positive integer or Infinity: current value is";

const BAD: readonly (readonly [options: object, Class: typeof TypeError, reason: string])[] = [
  [
    { replyTimeoutMs: 0 },
    RangeError,
    "'replyTimeoutMs' must be a finite number greater than 0: current value is 0",
  ],
  [{ replyBytesMax: 0 }, RangeError, `'replyBytesMax' ${COUNT_RULE} 0`],
  [{ replyBytesMax: 1.5 }, RangeError, `'replyBytesMax' ${COUNT_RULE} 1.5`],
  [{ replyElementsMax: -1 }, RangeError, `'replyElementsMax' ${COUNT_RULE} -1`],
  [{ replyElementsMax: NaN }, RangeError, `'replyElementsMax' ${COUNT_RULE} NaN`],
  [
    { replyElementsMax: "9" },
    TypeError,
    "'replyElementsMax' must be a number: current type is 'string'",
  ],
  [{ tls: { caCerts: "PEM" } }, TypeError, "'tls.caCerts' must be an array of strings"],
  [{ tls: { caCerts: [1] } }, TypeError, "'tls.caCerts' must be an array of strings"],
  [{ tls: { serverName: "" } }, TypeError, "'tls.serverName' must be a non-empty string"],
  [{ tls: { cert: 1, key: "k" } }, TypeError, "'tls.cert' must be a non-empty string"],
  [{ tls: { cert: "c" } }, TypeError, "'tls.cert' needs 'tls.key'"],
  [{ tls: { key: "k" } }, TypeError, "'tls.key' needs 'tls.cert'"],
  [
    { tls: { rejectUnauthorized: false } },
    TypeError,
    "option 'tls.rejectUnauthorized' is unknown: valid options are caCerts, cert, key, serverName",
  ],
];

for (const [options, Class, reason] of BAD) {
  Deno.test(`resolveClientOptions() refuses ${Deno.inspect(options)}`, () => {
    const resolve = () => resolveClientOptions(options as ClientOptions, SECURE);
    assertEquals(assertThrows(resolve, Class).message, `Cannot connect to Redis as ${reason}`);
  });
}

for (const tls of [{}, { caCerts: ["PEM"] }, { serverName: "redis.test" }]) {
  Deno.test(`resolveClientOptions() refuses the TLS settings ${Deno.inspect(tls)} without an address for TLS`, () => {
    const message =
      "Cannot connect to Redis as 'tls' needs an address that begins with 'rediss://' or 'valkeys://'";
    for (
      const resolve of [
        () => resolveClientOptions({ tls }, PLAIN),
        () => new RedisClient("redis+unix:///run/redis.sock", { tls }),
        () => createRedlock(["redis://h", "redis://i"], { tls }),
      ]
    ) {
      assertEquals(assertThrows(resolve, TypeError).message, message);
    }
    assertEquals(resolveClientOptions({ tls }, SECURE).tls, tls);
  });
}

Deno.test("resolveClientOptions() fills in defaults, and derives the longest wait for a reply", () => {
  const { connect: _, ...defaults } = resolveClientOptions({}, PLAIN);
  assertEquals(defaults, {
    connectTimeoutMs: 1_000,
    stallTimeoutMs: 2_000,
    replyTimeoutMs: 10_000,
    replyBytesMax: 536_870_912,
    replyElementsMax: 1_048_576,
    tls: {},
    clientName: undefined,
  });
  assertEquals(resolveClientOptions({ stallTimeoutMs: 500 }).replyTimeoutMs, 2_500);
  assertEquals(resolveClientOptions({ stallTimeoutMs: Infinity }).replyTimeoutMs, Infinity);
});

Deno.test("resolveClientOptions() takes Infinity for every limit of replies", () => {
  const limits = {
    stallTimeoutMs: Infinity,
    replyTimeoutMs: Infinity,
    replyBytesMax: Infinity,
    replyElementsMax: Infinity,
  };
  const { stallTimeoutMs, replyTimeoutMs, replyBytesMax, replyElementsMax } = resolveClientOptions(
    limits,
  );
  assertEquals({ stallTimeoutMs, replyTimeoutMs, replyBytesMax, replyElementsMax }, limits);
});

Deno.test("resolveClientOptions() keeps its own copy of the TLS settings", () => {
  const caCerts = ["one"];
  const given = { caCerts, serverName: "redis.test" };
  const { tls } = resolveClientOptions({ tls: given }, SECURE);
  caCerts.push("two");
  given.serverName = "other.test";
  assertEquals(tls, { caCerts: ["one"], serverName: "redis.test" });
  assertStrictEquals(tls === given, false);
});
