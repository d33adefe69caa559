/**
 * The address parser against hostile text: addresses that are mutated part by part. Addresses that
 * took a path of their own are kept in `address_test.ts`.
 */
import { assert, assertEquals, assertInstanceOf, assertLess } from "@std/assert";
import fc from "fast-check";
import { parseAddress, type RedisAddress, splitAddresses } from "../../../src/redis/address.ts";

const SEED = 27_182;
const RUNS = 20_000;
/**
 * How long one address may take, in milliseconds; they are at most some hundred thousand
 * characters.
 */
const PARSED_WITHIN_MS = 5_000;
/** A password that cannot be in a message by chance. */
const SECRET = "hunter2hunter2";

/** Reads an address, or says why it is refused; fails if anything else happens. */
function parse(address: string): RedisAddress | string {
  try {
    return parseAddress(address);
  } catch (error) {
    assertInstanceOf(error, TypeError);
    assert(/^Cannot use Redis address (\S+ )?as /u.test(error.message), error.message);
    assertEquals(Object.getOwnPropertyNames(error).sort(), ["message", "stack"]);
    return error.message;
  }
}

/** Writes an address in full. */
function print(address: RedisAddress): string {
  const { target, username, password, database, name } = address;
  if (target.kind === "unix") {
    const path = target.path.split("/").map(encodeURIComponent).join("/");
    return `redis+unix://${path}?db=${database}`;
  }
  const { hostname, port } = target;
  const user = username === undefined && password === undefined
    ? ""
    : `${encodeURIComponent(username ?? "")}:${encodeURIComponent(password ?? "")}@`;
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

const words = (text: string) => text.split(" ");
const scheme = mostly(words("redis rediss redis+unix REDIS valkey valkeys"), [
  "http",
  "redis+",
  "",
  "re dis",
]);
const separator = mostly(["://"], [":///", ":/", ":", "//", ":\\\\", "://\t"]);
const secret = mostly(
  [SECRET, `%70${SECRET}`, `${SECRET}%40x`, `:${SECRET}`],
  [`${SECRET}%FF`, `${SECRET}%`, `${SECRET}/`, `${SECRET}@`, `a@b/${SECRET}`, `a#${SECRET}`],
);
const user = mostly(["", "default", "us%40er", "us er", "ü"], ["%FF", "a/b", "a?b", "a#b"]);
const host = mostly(
  words("localhost 10.0.0.1 [::1] [2001:DB8::1] Example.COM xn--bcher-kva.example bücher.example"),
  words("[::1 ::1 [] [v1.x] 1 0x7f.1 999.1.1.1 a..b -a a_b %6c h%00 . h%2F h%40 h%3A1 h%5B h%25")
    .concat("", "h st"),
);
const port = mostly(["", ":", ":6379", ":65535", ":06379"], [":0", ":65536", ":-1", ":x", ": 1"]);
const tail = mostly(
  ["", ...words("/ /0 /15 /2147483647 /a.sock /a.sock?db=2 /a%20b.sock /a%3Fb /a%23b /..%2Fb")],
  words(
    "/2147483648 /-1 /x /1/2 //1 /%31 /1e1 /00 ?db=3 /?db=x /../b /a%00 /a?db=1&db=2 /a?x=1 #1 /a#",
  ),
);
const address = fc.tuple(scheme, separator, user, fc.option(secret), host, port, tail)
  .map(([scheme, separator, user, secret, host, port, tail]) => {
    const login = secret === null ? `${user}${user && "@"}` : `${user}:${secret}@`;
    return `${scheme}${separator}${login}${host}${port}${tail}`;
  });
/** A printable address of any user and password. */
const encoded = fc.tuple(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }))
  .map((parts) => `redis://${parts.map(encodeURIComponent).join(":")}@h`);

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
const hostile = fc.tuple(
  fc.oneof({ weight: 9, arbitrary: address }, { weight: 1, arbitrary: encoded }),
  fc.array(fc.tuple(mutation, fc.nat()), { maxLength: 3 }),
).map(([address, mutations]) =>
  mutations.reduce((text, [mutate, at]) => mutate(text, at % (text.length + 1)), address)
);

/** Asserts what must hold for any text, and returns what it was read as. */
function assertSound(text: string): RedisAddress | undefined {
  const parsed = parse(text);
  if (typeof parsed === "string") {
    // Scheme and host are shown, because they say what is wrong. A secret without an "@" behind it
    // is in their place.
    const secretEnd = text.lastIndexOf(SECRET) + SECRET.length;
    if (text.indexOf("@", secretEnd) > 0) assertEquals(parsed.includes(SECRET), false, parsed);
    return undefined;
  }
  const { target, database, name, password, username } = parsed;
  assert(target.kind === "unix" || target.port >= 1 && target.port <= 65_535);
  assert(Number.isSafeInteger(database) && database >= 0);
  if (password?.includes(SECRET) || username?.includes(SECRET)) {
    assertEquals([name.includes(SECRET), parsed.server.includes(SECRET)], [false, false]);
  }
  return parsed;
}

Deno.test("parseAddress() reads any text as an address that it reads again in full, or throws a TypeError without the password", () => {
  let good = 0;
  fc.assert(
    fc.property(hostile, (text) => {
      const parsed = assertSound(text);
      if (parsed === undefined) return;
      good++;
      // A path may hold what a URL would resolve, and a socket has no credentials in the URL.
      const { target } = parsed;
      if (target.kind === "unix" && /\/\.\.?(\/|$)/u.test(target.path)) return;
      const credentials = target.kind === "unix"
        ? { username: undefined, password: undefined }
        : {};
      assertEquals(parse(print(parsed)), { ...parsed, ...credentials }, text);
    }),
    { seed: SEED, numRuns: RUNS },
  );
  assert(good > RUNS / 20 && good < RUNS / 2, `${good} of ${RUNS} were addresses`);
});

for (
  const [what, text] of [
    ["a long host", `redis://${"a".repeat(300_000)}`],
    ["a long password", `redis://:${SECRET.repeat(20_000)}@host:99999`],
    ["many percent signs", `redis://:${"%".repeat(300_000)}@host`],
    ["many encoded bytes", `redis://:${"%41".repeat(100_000)}@host`],
    ["a long path", `redis+unix:///${"a/".repeat(150_000)}?db=x`],
    ["many parameters", `redis+unix:///a?${"db=1&".repeat(60_000)}`],
    ["many slashes", `redis:${"/".repeat(300_000)}`],
    ["many digits", `redis://host/${"1".repeat(300_000)}`],
    ["many commas", `redis://h${",".repeat(300_000)}x`],
    ["many spaces", `${" ".repeat(300_000)}redis://h${" ".repeat(300_000)}/`],
    ["many brackets", `redis://${"[".repeat(300_000)}`],
  ]
) {
  Deno.test(`parseAddress() takes ${what} in bounded time`, () => {
    const startMs = performance.now();
    for (const part of splitAddresses(text)) assertSound(part);
    assertLess(performance.now() - startMs, PARSED_WITHIN_MS);
  });
}
