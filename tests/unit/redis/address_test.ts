import { assertEquals, assertThrows } from "@std/assert";
import {
  type Address,
  type AddressParts,
  parseAddress,
  type RedisAddress,
  splitAddresses,
} from "../../../src/redis/address.ts";

type Parts = Partial<Omit<RedisAddress, "target">> & {
  kind?: "tcp" | "tls";
  hostname?: string;
  port?: number;
  target?: { kind: "unix"; path: string };
};

/** An address, the name by which it is shown, and what of it is not as in `redis://10.0.0.1`. */
const GOOD: readonly (readonly [address: string, name: string, parts?: Parts])[] = [
  ["redis://10.0.0.1", "redis://10.0.0.1:6379"],
  ["redis://10.0.0.1/", "redis://10.0.0.1:6379"],
  ["redis://10.0.0.1/0", "redis://10.0.0.1:6379"],
  ["redis://10.0.0.1/00", "redis://10.0.0.1:6379"],
  ["redis://10.0.0.1:", "redis://10.0.0.1:6379"],
  ["redis://10.0.0.1:06379", "redis://10.0.0.1:6379"],
  ["REDIS://10.0.0.1", "redis://10.0.0.1:6379"],
  ["redis://\t10.0.0.1", "redis://10.0.0.1:6379"],
  ["redis://@10.0.0.1", "redis://10.0.0.1:6379"],
  ["redis://10.0.0.1:7000", "redis://10.0.0.1:7000", { port: 7000 }],
  ["redis://10.0.0.1/3", "redis://10.0.0.1:6379/3", { database: 3 }],
  ["redis://10.0.0.1/../1", "redis://10.0.0.1:6379/1", { database: 1 }],
  ["redis://10.0.0.1/2147483647", "redis://10.0.0.1:6379/2147483647", { database: 2147483647 }],
  ["rediss://10.0.0.1", "rediss://10.0.0.1:6379", { kind: "tls" }],
  ["valkey://10.0.0.1", "valkey://10.0.0.1:6379"],
  ["valkeys://10.0.0.1/1", "valkeys://10.0.0.1:6379/1", { kind: "tls", database: 1 }],
  ["redis://Example.COM", "redis://example.com:6379", { hostname: "example.com" }],
  ["redis://[::1]:7000/2", "redis://[::1]:7000/2", { hostname: "::1", port: 7000, database: 2 }],
  ["redis://[2001:DB8::1]", "redis://[2001:db8::1]:6379", { hostname: "2001:db8::1" }],
  ["redis://:secret@10.0.0.1", "redis://10.0.0.1:6379", { password: "secret" }],
  ["redis://us:secret@10.0.0.1", "redis://10.0.0.1:6379", { username: "us", password: "secret" }],
  ["redis://us@10.0.0.1", "redis://10.0.0.1:6379", { username: "us", password: "" }],
  ["redis://a@b@10.0.0.1", "redis://10.0.0.1:6379", { username: "a@b", password: "" }],
  ["redis://:a@x@10.0.0.1", "redis://10.0.0.1:6379", { password: "a@x" }],
  ["redis://us%40er:p%3A%2F%40%25%C3%A9@10.0.0.1", "redis://10.0.0.1:6379", {
    username: "us@er",
    password: "p:/@%é",
  }],
  ...([
    ["redis+unix:///run/redis.sock", "/run/redis.sock"],
    ["redis+unix:///run/redis.sock?db=2", "/run/redis.sock", 2],
    ["redis+unix:///run/my%20redis%3F.sock", "/run/my redis?.sock"],
    ["redis+unix:////a.sock", "//a.sock"],
    ["redis+unix:///a/%2e%2e/b", "/b"],
    ["redis+unix:///..%2Fb", "/../b"],
    ["redis+unix:///a?db=1&db=2", "/a", 1],
  ] as const).map(([address, path, database = 0]) => {
    const name = `redis+unix://${path}${database ? `?db=${database}` : ""}`;
    const parts = { target: { kind: "unix", path }, database, server: path } as const;
    return [address, name, parts] as const;
  }),
];

for (const [address, name, parts] of GOOD) {
  Deno.test(`parseAddress() reads ${address}`, () => {
    const { kind = "tcp", hostname = "10.0.0.1", port = 6379, ...others }: Parts = parts ?? {};
    const { username = "", password = "" } = others;
    const expected = {
      target: { kind, hostname, port },
      username: undefined,
      password: undefined,
      secrets: [username, password].filter((secret) => secret).sort((a, b) => b.length - a.length),
      database: 0,
      name,
      server: name.replaceAll(/^\w+:\/\/|\/\d+$/gu, ""),
      ...others,
    };
    assertEquals(parseAddress(address), expected);
    assertEquals(parseAddress(new URL(address)), expected);
  });
}

/** Addresses as ioredis takes them, and the URL that means the same. */
const PARTS: readonly (readonly [AddressParts, url: string])[] = [
  [{ host: "h" }, "redis://h"],
  [{ host: "H", port: "7000", db: "2", username: null, password: "" }, "redis://h:7000/2"],
  [{ host: "::1", port: 7000 }, "redis://[::1]:7000"],
  [{ host: "h", path: null, tls: {} }, "rediss://h"],
  [{ host: "h", tls: true }, "rediss://h"],
  [{ host: "h", tls: false }, "redis://h"],
  [
    { host: "h", username: "us@er", password: "p:/@%é, x" },
    "redis://us%40er:p%3A%2F%40%25%C3%A9%2C%20x@h",
  ],
  [{ host: "h", username: "us" }, "redis://us@h"],
  [{ path: "/run/my redis?.sock", db: 2 }, "redis+unix:///run/my%20redis%3F.sock?db=2"],
];

for (const [parts, url] of PARTS) {
  Deno.test(`parseAddress() reads ${Deno.inspect(parts)} as ${url}`, () => {
    assertEquals(parseAddress(parts), parseAddress(url));
  });
}

Deno.test("parseAddress() takes the login of a socket from an object, and ignores how a client retries", () => {
  const options = { path: "/r.sock", password: "secret", lazyConnect: true, retryStrategy() {} };
  const { target, password, secrets } = parseAddress(options);
  assertEquals({ target, password, secrets }, {
    target: { kind: "unix", path: "/r.sock" },
    password: "secret",
    secrets: ["secret"],
  });
});

for (
  const [text, addresses] of [
    ["redis://a", ["redis://a"]],
    ["redis://a,rediss://b redis+unix:///c", ["redis://a", "rediss://b", "redis+unix:///c"]],
    [" ,\nredis://a\r\n\r\nREDIS://b,\t", ["redis://a", "REDIS://b"]],
    ["redis://:a,b c@h, redis://d", ["redis://:a,b c@h", "redis://d"]],
    ["redis://a b", ["redis://a b"]],
    [" , ", [""]],
    ["", [""]],
  ] as const
) {
  Deno.test(`splitAddresses() takes ${Deno.inspect(text)} apart`, () => {
    assertEquals(splitAddresses(text), [...addresses]);
  });
}

/** Shown in place of an address of which nothing can be shown. */
const PLACE = "addresses[2]";
const ENCODED = "its credentials must be percent-encoded: they contain";
const FORMS = "it must be a string, a URL or an object with a 'host'";
const TYPE = `${FORMS}: current type is`;
const OVER_HTTP = "over HTTP, lock by upstashNode() of @hasp/redlock/upstash";
const USE_CLIENT = "lock on your client instead, with commandNode() of @hasp/redlock/nodes";
const IS_CLIENT =
  `it is a client: pass the URL or the options that the client was made from, or ${USE_CLIENT}`;
const elsewhere = (name: string) => `'${name}' finds the server in another way: ${USE_CLIENT}`;
const SCHEMES = "its scheme must be 'redis', 'rediss', 'valkey', 'valkeys' or 'redis+unix'";

/** Reasons, and for each the addresses that it refuses and what is shown of them. */
const BAD: Readonly<Record<string, readonly (readonly [address: unknown, shown?: string])[]>> = {
  "its scheme is missing: it must begin with 'redis://', without quotes": [
    ['"redis://:hunter2@host:6379"', "host:6379"],
    ["'redis://host'"],
    ["hunter2"],
    ["10.0.0.1:6379", "10.0.0.1:6379"],
    ["localhost:6379", "localhost:6379"],
    ["user:hunter2@host:6379", "host:6379"],
    ["user:hunter2@host", "host"],
    ["redis:host:6379"],
    ["redis:/host"],
    ["redis:\\\\localhost"],
  ],
  "it is empty: it must begin with 'redis://', without quotes": [[""]],
  "its scheme is missing: it must begin with 'redis+unix://', without quotes": [["/tmp/r.sock"]],
  "it is not a URL such as 'redis://10.0.0.1:6379'": [
    ["redis://:hunter2@"],
    ["redis://:hunter2"],
    ["redis://[::1"],
    ["redis://[::1]x:1", "redis://[::1]"],
    ["redis://[::zz]:6379"],
    ["http://host:x", "http://host"],
  ],
  "each address of a list must begin with 'redis://', after a comma or white space": [
    ["redis://a b", "redis://a"],
    ["redis://a,b", "redis://a"],
    ["redis://:hunter2@a:1,b:2", "redis://a:1"],
    ["redis://:hunter2@a:1;redis://b:2", "redis://a:1"],
    ["redis://:hunter2@a:1; redis://:hunter2@b:2", "redis://b:2"],
    ["redis://a;b", "redis://a"],
  ],
  "it has both a 'path' and 'tls'": [[{ path: "/r.sock", tls: true }]],
  "its host is missing": [["redis://"]],
  "its port must be an integer from 1 to 65535": [
    [{ host: "h", port: 0 }],
    ...[65_536, 1.5, "6379/1"].map((port) => [{ host: "h", port }] as const),
    ["redis://host:0", "redis://host:0"],
    ["redis://:hunter2@host:99999", "redis://host:99999"],
    ["redis://:hunter2@host:6379a", "redis://host"],
    ["redis://[::1]:x", "redis://[::1]"],
    ["redis://user:hunter2", "redis://user"],
  ],
  [`${ENCODED} '/'`]: [
    ["redis://:hun/ter2@host", "redis://host"],
    ["redis://:hunter2/x@localhost", "redis://localhost"],
    ["redis://:h@unt/er2@host:1", "redis://host:1"],
  ],
  [`${ENCODED} '#'`]: [["redis://:hun#ter2@host:6380/1", "redis://host:6380"]],
  [`${ENCODED} '?'`]: [
    ["redis://user:hun?ter2@[::1]:1", "redis://[::1]:1"],
    ["valkeys://user:hun?ter2@host", "valkeys://host"],
    ["redis://hunter2?@localhost", "redis://localhost"],
  ],
  "its IPv6 address must be in brackets, such as 'redis://[::1]:6379'": [
    ["redis://::1:6379"],
    ["redis://:hunter2@2001:db8::1", "redis://2001"],
  ],
  "its database must be an integer from 0 to 2147483647": [
    ["redis://:hunter2@host/x", "redis://host"],
    ["redis://host/-1", "redis://host"],
    ["redis://host/1.5", "redis://host"],
    ["redis://host/1/2", "redis://host"],
    ["redis://host//1", "redis://host"],
    ["redis://host/%31", "redis://host"],
    ["redis://host/2147483648", "redis://host"],
    ["redis+unix:///a?db=x"],
    [new URL("redis://:hunter2@h/x"), "redis://h"],
    [{ host: "h", db: -1 }],
    [{ host: "h", db: "x@y" }],
  ],
  "it must not have a part after '?' or '#'": [
    ["redis://:hunter2@host?db=1", "redis://host"],
    ["redis://:hunter2@host#1", "redis://host"],
  ],
  "its user is not percent-encoded UTF-8": [["redis://us%FFer:hunter2@host", "redis://host"]],
  "its password is not percent-encoded UTF-8": [["redis://:hunter2%FF@host", "redis://host"]],
  "the address of a socket must have the form 'redis+unix:///path/to.sock', without credentials": [
    ["redis+unix://host/run/redis.sock", "redis+unix://host"],
    ["redis+unix://:hunter2@/run/redis.sock"],
    ["redis+unix://"],
    ["redis+unix:///"],
  ],
  "its path must not contain NUL": [["redis+unix:///a%00b"]],
  "its path is not percent-encoded UTF-8": [["redis+unix:///a%FF"]],
  "the only parameter of a socket's address is 'db'": [
    ["redis+unix:///a?database=1"],
    ["redis+unix:///a#1"],
  ],
  [`${SCHEMES}: current value is 'http'; ${OVER_HTTP}`]: [[
    "http://user:hunter2@host",
    "http://host",
  ]],
  [`${SCHEMES}: current value is 'ftp'`]: [["ftp://host", "ftp://host"]],
  "its host must be a name or an IP address, without a scheme and a port": [
    [{ host: "a/b" }],
    [{ host: "hunter2@b" }],
    [{ host: "a%41" }],
    [{ host: "h:6379" }],
    [{ host: "[::1]" }],
  ],
  [IS_CLIENT]: [
    [{ sendCommand() {}, options: { host: "h" } }],
    [{ send() {} }],
    [{ customCommand() {} }],
  ],
  [elsewhere("sentinels")]: [[{ sentinels: [{ host: "h" }], name: "mymaster" }]],
  [elsewhere("natMap")]: [[{ host: "h", natMap: {} }]],
  [elsewhere("nodes")]: [[{ nodes: [{ host: "h" }] }]],
  "its 'keyPrefix' must be the option 'keyPrefix' instead": [[{ host: "h", keyPrefix: "a:" }]],
  "the settings in its 'tls' must be in the option 'tls' instead": [
    [{ host: "h", tls: { rejectUnauthorized: false } }],
  ],
  [`${FORMS}: nodes go to new Redlock()`]: [
    [{ name: "a", acquire() {}, extend() {}, release() {}, inspect() {} }],
  ],
  [`${FORMS}: its 'host' is undefined`]: [[{}], [{ port: 6379, password: "hunter2" }]],
  [`${FORMS}: its 'host' is empty`]: [[{ host: "", port: 6379 }]],
  [`${FORMS}: ${OVER_HTTP}`]: [
    [{ url: "https://h", token: "hunter2" }],
    [{ get() {}, evalsha() {} }],
  ],
  [`${FORMS}: pass its 'url'`]: [[{ url: "redis://:hunter2@h" }]],
  [`${FORMS}: pass its 'connection'`]: [[{ connection: { host: "h", password: "hunter2" } }]],
  [`${FORMS}: pass its 'addresses'`]: [[{ addresses: ["redis://:hunter2@h"] }]],
  [`${FORMS}: pass its 'address'`]: [[{ address: "redis://:hunter2@h" }]],
  [`${FORMS}: move 'host' and 'port' out of its 'socket'`]: [[{ socket: { host: "h" } }]],
  [`${FORMS}: its 'hostname' must be named 'host'`]: [[{ hostname: "h" }]],
  [`${FORMS}: await it`]: [[Promise.resolve("redis://h")]],
  "its 'host' must be a string": [[{ host: 5 }]],
  "URI malformed": [[{ host: "\ud800" }]],
  "its 'password' must be a string": [[{ host: "h", password: 12345 }]],
  [`${TYPE} 'number'`]: [[5]],
  [`${TYPE} 'null'`]: [[null]],
  [`${TYPE} 'undefined'`]: [[undefined]],
};

for (const [reason, addresses] of Object.entries(BAD)) {
  for (const [address, shown = PLACE] of addresses) {
    Deno.test(`parseAddress() refuses ${Deno.inspect(address)} as ${reason}`, () => {
      const error = assertThrows(() => parseAddress(address as Address, PLACE), TypeError);
      assertEquals(error.message, `Cannot use Redis address ${shown} as ${reason}`);
      assertEquals(error.cause, undefined);
    });
  }
}

Deno.test("parseAddress() leaves out an address that cannot be shown and has no known place", () => {
  const { message } = assertThrows(() => parseAddress("redis://:hunter2"), TypeError);
  assertEquals(
    message,
    "Cannot use Redis address as it is not a URL such as 'redis://10.0.0.1:6379'",
  );
});
