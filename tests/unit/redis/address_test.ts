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

const BAD: readonly (readonly [address: unknown, reason: string])[] = [
  ["", "it is not a URL such as 'redis://10.0.0.1:6379'"],
  ["10.0.0.1:6379", "it is not a URL such as 'redis://10.0.0.1:6379'"],
  ["redis://:hunter2@", "it is not a URL such as 'redis://10.0.0.1:6379'"],
  ["redis://:hunter2@host:99999", "it is not a URL such as 'redis://10.0.0.1:6379'"],
  ["redis://[::1", "it is not a URL such as 'redis://10.0.0.1:6379'"],
  ["redis://", "it names no host"],
  ["redis:/host", "it names no host"],
  ["redis://host:0", "its port must not be 0"],
  ["redis://:hunter2@host/x", "its database must be an integer from 0 to 2147483647"],
  ["redis://host/-1", "its database must be an integer from 0 to 2147483647"],
  ["redis://host/1.5", "its database must be an integer from 0 to 2147483647"],
  ["redis://host/1/2", "its database must be an integer from 0 to 2147483647"],
  ["redis://host/2147483648", "its database must be an integer from 0 to 2147483647"],
  ["redis://:hunter2@host?db=1", "it must have no '?' and no '#' part"],
  ["redis://:hunter2@host#1", "it must have no '?' and no '#' part"],
  ["redis://us%FFer:hunter2@host", "its user is not percent-encoded UTF-8"],
  ["redis://:hunter2%FF@host", "its password is not percent-encoded UTF-8"],
  ["redis+unix://host/run/redis.sock", "a socket is written 'redis+unix:///path/to.sock'"],
  ["redis+unix://", "a socket is written 'redis+unix:///path/to.sock'"],
  ["redis+unix:///", "a socket is written 'redis+unix:///path/to.sock'"],
  ["redis+unix:///a%00b", "its path must not contain NUL"],
  ["redis+unix:///a%FF", "its path is not percent-encoded UTF-8"],
  ["redis+unix:///a?database=1", "a socket's only parameter is 'db'"],
  ["redis+unix:///a#1", "a socket's only parameter is 'db'"],
  ["redis+unix:///a?db=x", "its database must be an integer from 0 to 2147483647"],
  [
    "http://user:hunter2@host",
    "its scheme must be 'redis', 'rediss' or 'redis+unix': current value is 'http'",
  ],
  [5, "it must be a string or a URL: current type is 'number'"],
  [null, "it must be a string or a URL: current type is 'object'"],
  [undefined, "it must be a string or a URL: current type is 'undefined'"],
];

for (const [address, reason] of BAD) {
  Deno.test(`parseAddress() refuses ${JSON.stringify(address)}`, () => {
    const error = assertThrows(() => parseAddress(address as string), TypeError);
    assertEquals(error.message, `Cannot use Redis address as ${reason}`);
    assertEquals(error.cause, undefined);
  });
}

Deno.test("parseAddress() gives one server the same identity, whatever database and credentials", () => {
  const servers = ["redis://h", "redis://u:p@H:6379/4", "rediss://h/1"]
    .map((address) => parseAddress(address).server);
  assertEquals(servers, ["h:6379", "h:6379", "h:6379"]);
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
