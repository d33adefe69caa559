/**
 * The address parser against hostile text: valid addresses that were mutated part by part. Seeds are fixed;
 * {@linkcode SEEN} keeps addresses that took a path of their own.
 */
import { assert, assertEquals, assertInstanceOf, assertLess } from "@std/assert";
import fc from "fast-check";
import { parseAddress, type RedisAddress } from "../../../src/redis/address.ts";

const SEED = 27_182;
const RUNS = 20_000;
/** How long one address may take, in milliseconds; they are at most some hundred thousand characters. */
const PARSED_WITHIN_MS = 5_000;
/** A password of its own look: it can't stand in a message by chance. */
const SECRET = "hunter2hunter2";

/** Parses, or says what was refused; whatever is thrown but a `TypeError` of ours fails the test. */
function parse(address: string): RedisAddress | string {
  try {
    return parseAddress(address);
  } catch (error) {
    assertInstanceOf(error, TypeError);
    assert(/^Cannot use Redis address (\S+ )?as /u.test(error.message), error.message);
    assertEquals(error.cause, undefined);
    return error.message;
  }
}

/** Writes an address in full. */
function print(address: RedisAddress): string {
  const { kind, hostname, port, path, username, password, database, name } = address;
  const user = username === undefined && password === undefined
    ? ""
    : `${encodeURIComponent(username ?? "")}:${encodeURIComponent(password ?? "")}@`;
  if (kind === "unix") {
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    return `redis+unix://${encoded}?db=${database}`;
  }
  const host = hostname.includes(":") ? `[${hostname}]` : hostname;
  return `${name.split(":", 1)}://${user}${host}:${port}/${database}`;
}

/** Mostly one of the `good`, at times one of the `odd`. */
function mostly(good: readonly string[], odd: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...good) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
}

const scheme = mostly(["redis", "rediss", "redis+unix", "REDIS", "valkey", "valkeys"], [
  "http",
  "redis+",
  "",
  "re dis",
]);
const separator = mostly(["://"], [":///", ":/", ":", "//", ":\\\\", "://\t"]);
const secret = mostly(
  [SECRET, `%70${SECRET}`, `${SECRET}%40x`, `:${SECRET}`],
  [`${SECRET}%FF`, `${SECRET}%`, `${SECRET}/`, `${SECRET}@`],
);
const user = mostly(["", "default", "us%40er", "us er", "ü"], ["%FF", "a/b", "a?b", "a#b"]);
const host = mostly(
  "localhost 10.0.0.1 [::1] [2001:DB8::1] Example.COM xn--bcher-kva.example bücher.example".split(
    " ",
  ),
  "[::1 ::1 [] [v1.x] 1 0x7f.1 999.1.1.1 a..b -a a_b %6c h%00 . h%2F h%40 h%3A1 h%5B h%25".split(
    " ",
  )
    .concat("", "h st"),
);
const port = mostly(["", ":", ":6379", ":65535", ":06379"], [":0", ":65536", ":-1", ":x", ": 1"]);
const tail = mostly(
  ["", ..."/ /0 /15 /2147483647 /a.sock /a.sock?db=2 /a%20b.sock /a%3Fb /a%23b /..%2Fb".split(" ")],
  "/2147483648 /-1 /x /1/2 //1 /%31 /1e1 /00 ?db=3 /?db=x /../b /a%00 /a?db=1&db=2 /a?x=1 #1 /a#"
    .split(" "),
);
const address = fc.oneof(
  fc.tuple(scheme, separator, user, secret, host, port, tail).map((
    [scheme, separator, user, secret, host, port, tail],
  ) => `${scheme}${separator}${user}:${secret}@${host}${port}${tail}`),
  fc.tuple(scheme, separator, user, host, port, tail).map((
    [scheme, separator, user, host, port, tail],
  ) => `${scheme}${separator}${user}${user && "@"}${host}${port}${tail}`),
);

/** One way to spoil an address. */
type Mutation = (address: string, at: number) => string;

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.constantFrom(..."@:/?#[]%\\ \t\n\0é😀\u202e+&=.-0").map((text): Mutation => (address, at) => {
    return address.slice(0, at) + text + address.slice(at);
  }),
  fc.nat(6).map((bit): Mutation => (address, at) => {
    const code = (address.charCodeAt(at) || 0) ^ (1 << bit);
    return address.slice(0, at) + String.fromCharCode(code) + address.slice(at + 1);
  }),
  fc.nat(10).map((length): Mutation => (address, at) => {
    return address.slice(0, at) + address.slice(at + length);
  }),
  fc.nat(10).map((length): Mutation => (address, at) => {
    return address.slice(0, at + length) + address.slice(at);
  }),
);
const hostile = fc.tuple(address, fc.array(fc.tuple(mutation, fc.nat()), { maxLength: 3 }))
  .map(([address, mutations]) =>
    mutations.reduce((text, [mutate, at]) => mutate(text, at % (text.length + 1)), address)
  );

/** All that must hold for any text; says whether it is an address. */
function assertSound(text: string): boolean {
  const parsed = parse(text);
  if (typeof parsed === "string") {
    // Scheme and host are shown, because they say what is wrong. A secret without an "@" behind it stands in their place.
    const secretEnd = text.lastIndexOf(SECRET) + SECRET.length;
    if (text.indexOf("@", secretEnd) > 0) assertEquals(parsed.includes(SECRET), false, parsed);
    return false;
  }
  const { kind, port, database, name, password, username } = parsed;
  assert(kind === "unix" ? port === 0 : port >= 1 && port <= 65_535);
  assert(Number.isSafeInteger(database) && database >= 0);
  if (password?.includes(SECRET) || username?.includes(SECRET)) {
    assertEquals([name.includes(SECRET), parsed.server.includes(SECRET)], [false, false]);
  }
  return true;
}

Deno.test("parseAddress() takes a mutated address apart or throws a TypeError, and shows no password", () => {
  let good = 0;
  fc.assert(
    fc.property(hostile, (text) => {
      if (assertSound(text)) good++;
    }),
    { seed: SEED, numRuns: RUNS },
  );
  assert(good > RUNS / 20 && good < RUNS / 2, `${good} of ${RUNS} were addresses`);
});

Deno.test("parseAddress() reads an address that was printed in full as the same address", () => {
  let good = 0;
  fc.assert(
    fc.property(hostile, (text) => {
      const parsed = parse(text);
      if (typeof parsed === "string" || !isWritable(parsed)) return;
      good++;
      assertEquals(parse(print(parsed)), { ...parsed, ...printedCredentials(parsed) }, text);
    }),
    { seed: SEED, numRuns: RUNS },
  );
  assert(good > RUNS / 20, `${good} of ${RUNS} were addresses`);
});

/** An encoded path may hold what a URL would resolve. */
function isWritable({ kind, path }: RedisAddress): boolean {
  return kind !== "unix" || !/\/\.\.?(\/|$)/u.test(path);
}

/** A socket's credentials can't be written. */
function printedCredentials({ kind, username, password }: RedisAddress) {
  return kind === "unix" ? { username: undefined, password: undefined } : { username, password };
}

for (
  const [name, text] of [
    ["a long host", `redis://${"a".repeat(300_000)}`],
    ["a long password", `redis://:${SECRET.repeat(20_000)}@host:99999`],
    ["many percent signs", `redis://:${"%".repeat(300_000)}@host`],
    ["many encoded bytes", `redis://:${"%41".repeat(100_000)}@host`],
    ["a long path", `redis+unix:///${"a/".repeat(150_000)}?db=x`],
    ["many parameters", `redis+unix:///a?${"db=1&".repeat(60_000)}`],
    ["many slashes", `redis:${"/".repeat(300_000)}`],
    ["many digits", `redis://host/${"1".repeat(300_000)}`],
    ["many brackets", `redis://${"[".repeat(300_000)}`],
  ] as const
) {
  Deno.test(`parseAddress() is done with ${name} in no time`, () => {
    const startMs = performance.now();
    assertSound(text);
    assertLess(performance.now() - startMs, PARSED_WITHIN_MS);
  });
}

/** Addresses that mutations found: how each is shown, or why it is refused. */
const SEEN: readonly (readonly [address: string, shown: string])[] = [
  ["redis:\\\\localhost", "as its scheme is missing: it must begin with 'redis://'"],
  ["redis://\tlocalhost", "redis://localhost:6379"],
  ["redis://localhost:", "redis://localhost:6379"],
  ["redis://localhost:06379", "redis://localhost:6379"],
  ["redis://@localhost", "redis://localhost:6379"],
  ["redis://a@b@localhost", "redis://localhost:6379"],
  [`redis://:${SECRET}@x@localhost`, "redis://localhost:6379"],
  [
    `redis://:${SECRET}/x@localhost`,
    "redis://localhost as its credentials must be percent-encoded: they contain '/'",
  ],
  [
    `redis://${SECRET}?@localhost`,
    "redis://localhost as its credentials must be percent-encoded: they contain '?'",
  ],
  [
    "redis://localhost/%31",
    "redis://localhost as its database must be an integer from 0 to 2147483647",
  ],
  [
    "redis://localhost//1",
    "redis://localhost as its database must be an integer from 0 to 2147483647",
  ],
  ["redis://localhost/../1", "redis://localhost:6379/1"],
  ["redis://localhost/00", "redis://localhost:6379"],
  ["redis+unix:////a.sock", "redis+unix:////a.sock"],
  ["redis+unix:///a/%2e%2e/b", "redis+unix:///b"],
  ["redis+unix:///..%2Fb", "redis+unix:///../b"],
  ["redis+unix:///a?db=1&db=2", "redis+unix:///a?db=1"],
  [
    `redis+unix://:${SECRET}@/a.sock`,
    "as the address of a socket must have the form 'redis+unix:///path/to.sock', without credentials",
  ],
];

for (const [address, shown] of SEEN) {
  Deno.test(`parseAddress() makes of ${JSON.stringify(address)} what it did before`, () => {
    assertSound(address);
    const parsed = parse(address);
    const refused = `Cannot use Redis address ${shown}`;
    if (typeof parsed === "string") assertEquals(parsed, refused);
    else assertEquals(parsed.name, shown);
  });
}
