import { assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import fc from "fast-check";
import { parseAddress } from "../../../src/redis/address.ts";

const SEED = 4_711;

const TCP = {
  kind: "tcp",
  hostname: "10.0.0.1",
  port: 6379,
  path: "",
  username: undefined,
  password: undefined,
  database: 0,
  name: "redis://10.0.0.1:6379",
  server: "10.0.0.1:6379",
} as const;
const UNIX = {
  kind: "unix",
  hostname: "",
  port: 0,
  path: "/run/redis.sock",
  username: undefined,
  password: undefined,
  database: 0,
  name: "redis+unix:///run/redis.sock",
  server: "/run/redis.sock",
} as const;

const GOOD = [
  ["redis://10.0.0.1", TCP],
  ["redis://10.0.0.1/", TCP],
  ["redis://10.0.0.1/0", TCP],
  ["redis://10.0.0.1:6379", TCP],
  ["REDIS://10.0.0.1", TCP],
  ["redis://10.0.0.1:7000", {
    ...TCP,
    port: 7000,
    name: "redis://10.0.0.1:7000",
    server: "10.0.0.1:7000",
  }],
  ["redis://10.0.0.1/3", { ...TCP, database: 3, name: "redis://10.0.0.1:6379/3" }],
  ["redis://10.0.0.1/2147483647", {
    ...TCP,
    database: 2147483647,
    name: "redis://10.0.0.1:6379/2147483647",
  }],
  ["rediss://10.0.0.1", { ...TCP, kind: "tls", name: "rediss://10.0.0.1:6379" }],
  ["valkey://10.0.0.1", { ...TCP, name: "valkey://10.0.0.1:6379" }],
  ["valkeys://10.0.0.1", { ...TCP, kind: "tls", name: "valkeys://10.0.0.1:6379" }],
  ["redis://Example.COM", {
    ...TCP,
    hostname: "example.com",
    name: "redis://example.com:6379",
    server: "example.com:6379",
  }],
  ["redis://[::1]:7000/2", {
    ...TCP,
    hostname: "::1",
    port: 7000,
    database: 2,
    name: "redis://[::1]:7000/2",
    server: "[::1]:7000",
  }],
  ["redis://[2001:DB8::1]", {
    ...TCP,
    hostname: "2001:db8::1",
    name: "redis://[2001:db8::1]:6379",
    server: "[2001:db8::1]:6379",
  }],
  ["redis://:secret@10.0.0.1", { ...TCP, password: "secret" }],
  ["redis://user:secret@10.0.0.1", { ...TCP, username: "user", password: "secret" }],
  ["redis://user@10.0.0.1", { ...TCP, username: "user", password: "" }],
  ["redis://us%40er:p%3A%2F%40%25%C3%A9@10.0.0.1", {
    ...TCP,
    username: "us@er",
    password: "p:/@%é",
  }],
  ["redis+unix:///run/redis.sock", UNIX],
  ["redis+unix:///run/redis.sock?db=2", {
    ...UNIX,
    database: 2,
    name: "redis+unix:///run/redis.sock?db=2",
  }],
  ["redis+unix:///run/my%20redis%3F.sock", {
    ...UNIX,
    path: "/run/my redis?.sock",
    name: "redis+unix:///run/my redis?.sock",
    server: "/run/my redis?.sock",
  }],
] as const;

for (const [address, parsed] of GOOD) {
  Deno.test(`parseAddress() takes ${address} apart`, () => {
    assertEquals(parseAddress(address), parsed);
    assertEquals(parseAddress(new URL(address)), parsed);
  });
}

const NO_SCHEME = "its scheme is missing: it must begin with 'redis://'";
const NO_URL = "it is not a URL such as 'redis://10.0.0.1:6379'";
const PORT = "its port must be an integer from 1 to 65535";
const DATABASE = "its database must be an integer from 0 to 2147483647";
const TAIL = "it must not have a part after '?' or '#'";
const UNIX_FORM =
  "the address of a socket must have the form 'redis+unix:///path/to.sock', without credentials";
const UNIX_TAIL = "the only parameter of a socket's address is 'db'";
const ENCODED = "its credentials must be percent-encoded: they contain";
const BRACKETS = "its IPv6 address must be in brackets, such as 'redis://[::1]:6379'";
const SCHEMES = "its scheme must be 'redis', 'rediss', 'valkey', 'valkeys' or 'redis+unix'";
/** What stands in place of an address of which nothing can be shown. */
const PLACE = "addresses[2]";

const BAD: readonly (readonly [address: unknown, shown: string, reason: string])[] = [
  ["", PLACE, NO_SCHEME],
  ["hunter2", PLACE, NO_SCHEME],
  ["10.0.0.1:6379", "10.0.0.1:6379", NO_SCHEME],
  ["localhost:6379", "localhost:6379", NO_SCHEME],
  ["user:hunter2@host:6379", "host:6379", NO_SCHEME],
  ["user:hunter2@host", "host", NO_SCHEME],
  ["redis:host:6379", PLACE, NO_SCHEME],
  ["redis:/host", PLACE, NO_SCHEME],
  ["redis://:hunter2@", PLACE, NO_URL],
  ["redis://:hunter2", PLACE, NO_URL],
  ["redis://[::1", PLACE, NO_URL],
  ["redis://[::1]x:1", "redis://[::1]", NO_URL],
  ["redis://a b", "redis://a", NO_URL],
  ["redis://", PLACE, "its host is missing"],
  ["redis://host:0", "redis://host:0", PORT],
  ["redis://:hunter2@host:99999", "redis://host:99999", PORT],
  ["redis://:hunter2@host:6379a", "redis://host", PORT],
  ["redis://[::1]:x", "redis://[::1]", PORT],
  ["redis://user:hunter2", "redis://user", PORT],
  ["redis://:hun/ter2@host", "redis://host", `${ENCODED} '/'`],
  ["redis://:hun#ter2@host:6380/1", "redis://host:6380", `${ENCODED} '#'`],
  ["redis://user:hun?ter2@[::1]:1", "redis://[::1]:1", `${ENCODED} '?'`],
  ["valkeys://user:hun?ter2@host", "valkeys://host", `${ENCODED} '?'`],
  ["redis://::1:6379", PLACE, BRACKETS],
  ["redis://:hunter2@2001:db8::1", "redis://2001", BRACKETS],
  ["redis://:hunter2@host/x", "redis://host", DATABASE],
  ["redis://host/-1", "redis://host", DATABASE],
  ["redis://host/1.5", "redis://host", DATABASE],
  ["redis://host/1/2", "redis://host", DATABASE],
  ["redis://host/2147483648", "redis://host", DATABASE],
  ["redis://:hunter2@host?db=1", "redis://host", TAIL],
  ["redis://:hunter2@host#1", "redis://host", TAIL],
  ["redis://us%FFer:hunter2@host", "redis://host", "its user is not percent-encoded UTF-8"],
  ["redis://:hunter2%FF@host", "redis://host", "its password is not percent-encoded UTF-8"],
  ["redis+unix://host/run/redis.sock", "redis+unix://host", UNIX_FORM],
  ["redis+unix://:hunter2@/run/redis.sock", PLACE, UNIX_FORM],
  ["redis+unix://", PLACE, UNIX_FORM],
  ["redis+unix:///", PLACE, UNIX_FORM],
  ["redis+unix:///a%00b", PLACE, "its path must not contain NUL"],
  ["redis+unix:///a%FF", PLACE, "its path is not percent-encoded UTF-8"],
  ["redis+unix:///a?database=1", PLACE, UNIX_TAIL],
  ["redis+unix:///a#1", PLACE, UNIX_TAIL],
  ["redis+unix:///a?db=x", PLACE, DATABASE],
  ["http://user:hunter2@host", "http://host", `${SCHEMES}: current value is 'http'`],
  [5, PLACE, "it must be a string or a URL: current type is 'number'"],
  [null, PLACE, "it must be a string or a URL: current type is 'object'"],
  [undefined, PLACE, "it must be a string or a URL: current type is 'undefined'"],
];

for (const [address, shown, reason] of BAD) {
  Deno.test(`parseAddress() refuses ${JSON.stringify(address)}`, () => {
    const error = assertThrows(() => parseAddress(address as string, PLACE), TypeError);
    assertEquals(error.message, `Cannot use Redis address ${shown} as ${reason}`);
    assertEquals(error.cause, undefined);
  });
}

Deno.test("parseAddress() leaves out an address that cannot be shown and has no known place", () => {
  const error = assertThrows(() => parseAddress("redis://:hunter2"), TypeError);
  assertEquals(error.message, `Cannot use Redis address as ${NO_URL}`);
});

Deno.test("parseAddress() shows a URL object too", () => {
  const error = assertThrows(() => parseAddress(new URL("redis://:hunter2@h/x")), TypeError);
  assertEquals(error.message, `Cannot use Redis address redis://h as ${DATABASE}`);
});

Deno.test("parseAddress() gives one server the same identity, whatever database and credentials", () => {
  const servers = ["redis://h", "redis://u:p@H:6379/4", "rediss://h/1", "valkey://h", "valkeys://h"]
    .map((address) => parseAddress(address).server);
  assertEquals(servers, new Array(5).fill("h:6379"));
});

Deno.test("parseAddress() decodes any credentials that were percent-encoded", () => {
  const text = fc.string({ unit: "grapheme", minLength: 1 });
  fc.assert(
    fc.property(text, text, (username, password) => {
      const user = encodeURIComponent(username);
      const parsed = parseAddress(`redis://${user}:${encodeURIComponent(password)}@h`);
      assertEquals([parsed.username, parsed.password], [username, password]);
      assertEquals(parsed.name, "redis://h:6379");
    }),
    { seed: SEED },
  );
});

Deno.test("parseAddress() shows no password in an error, wherever the address is wrong", () => {
  const password = fc.stringMatching(/^pw[a-z0-9%!*@]{4,12}$/u);
  const frame = fc.constantFrom(
    (secret: string) => `redis://user:${secret}@host:99999`,
    (secret: string) => `redis://:${secret}@host/x`,
    (secret: string) => `redis://:${secret}@`,
    (secret: string) => `redis:// :${secret}@host name`,
    (secret: string) => `http://user:${secret}@host`,
    (secret: string) => `redis://user:${secret}@host?db=1`,
    (secret: string) => `redis+unix://user:${secret}@/run/redis.sock`,
    (secret: string) => `redis+unix://user:${secret}@host/run/redis.sock`,
    (secret: string) => `redis://user:${secret}%FF@host`,
    (secret: string) => `user:${secret}@host:6379`,
    (secret: string) => `redis://:${secret}/x#y@host`,
    (secret: string) => `redis://user:a@b/${secret}@host`,
    (secret: string) => `redis://user:a#${secret}@host:6379`,
  );
  fc.assert(
    fc.property(password, frame, (secret, address) => {
      const error = assertThrows(() => parseAddress(address(secret)));
      assertInstanceOf(error, TypeError);
      const shown = Object.getOwnPropertyNames(error)
        .filter((name) => name !== "stack") // frames quote the source, and so the address
        .map((name) => String(Reflect.get(error, name)));
      assertEquals(shown.filter((text) => text.includes(secret)), []);
    }),
    { seed: SEED, numRuns: 300 },
  );
});
