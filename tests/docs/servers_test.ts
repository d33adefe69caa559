/** What the pages say to Redis servers, said to real ones. */

import { assert, assertEquals } from "@std/assert";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRedlock, type RedlockEvent } from "../../mod.ts";
import { check } from "../../src/operate/mod.ts";
import { parseAddress } from "../../src/redis/address.ts";
import { findRedisServer } from "../../scripts/find_redis.ts";
import { makeFolder } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { plainCommand } from "../support/plain_command.ts";
import * as scripts from "../support/scripts.ts";
import { listFiles, readSource } from "../support/source_code.ts";
import { startServer, startServers } from "../support/servers.ts";
import { codeMarked, type Fence, FENCES, PAGES } from "./pages.ts";

/** Long enough for a busy machine; no test waits for it if all is well. */
const WAIT_MS = 20_000;

const { text: operations } = PAGES.find(({ path }) => path === "docs/operations.md")!;

/** The commands that give the lock's user what each feature needs. */
const aclCommands = codeMarked("acl").trim().split("\n").map((line) => line.split(" "));
const aclRules = aclCommands.flat();
const keyPrefix = aclRules.find((rule) => /^~.+:\*$/u.test(rule))!.slice(1, -1);

/** The patterns for the keys of `~hasp:*` that the page has for servers that applications share. */
const sharedPatterns = /`(~hasp:\S+(?: ~hasp:\S+)+)`/u.exec(operations)![1].split(" ");

/**
 * The words of the commands, as shown and as the page says to change them, by the prefix that
 * clients use then.
 */
const ACL_VARIANTS: readonly [what: string, prefix: string, change: (word: string) => string[]][] =
  [
    ["as shown", keyPrefix, (word) => [word]],
    ["without a prefix", "", (word) => word === "~hasp:*" ? [] : [word.replace("~lock:*", "~*")]],
    ["on shared servers", keyPrefix, (word) => word === "~hasp:*" ? sharedPatterns : [word]],
  ];

async function startGuardedServers(
  change: (word: string) => string[],
): Promise<{ addresses: string[] } & AsyncDisposable> {
  const servers = await startServers(3, { password: "admin" });
  for (const server of servers) {
    for (const words of aclCommands) await server.command(...words.flatMap(change));
  }
  const [, , user] = aclCommands[0];
  const password = aclRules.find((rule) => rule.startsWith(">"))!.slice(1);
  return {
    addresses: servers.map(({ port }) => `redis://${user}:${password}@127.0.0.1:${port}`),
    [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
  };
}

for (const [what, prefix, change] of ACL_VARIANTS) {
  Deno.test(`docs: the ACL ${what} allows locking, waiting, fencing tokens and the restart guard`, () => {
    return testRights(prefix, change);
  });
}

async function testRights(keyPrefix: string, change: (word: string) => string[]): Promise<void> {
  await using servers = await startGuardedServers(change);
  const events: RedlockEvent[] = [];
  const options = {
    keyPrefix,
    waitMs: WAIT_MS,
    nodeTimeoutMs: 1_000,
    onEvent: (event: RedlockEvent) => void events.push(event),
  };
  await using one = createRedlock(servers.addresses, options);
  await using other = createRedlock(servers.addresses, options);

  const lock = await one.acquire(["a", "b"], { fencing: true });
  const waiting = other.acquire("a", { fencing: true });
  waiting.catch(() => {}); // it is awaited below, if all is well until then
  await eventually(async () => assertEquals((await one.inspect("a")).waiters, 1));
  await lock.extend();
  assert(await lock.release());
  assert((await waiting).fencingToken! > lock.fencingToken);
  assert(await (await waiting).release());

  const guarded = await one.acquire("c", { ttlMs: 1_000, restartGuardMs: 1_000 });
  assert(await guarded.release());
  const { findings } = await check(one);
  const refused = findings.filter(({ code }) => code.endsWith("_REFUSED"));
  assertEquals(refused.map(({ code }) => code), []);
  assertEquals(events.filter(({ type }) => type === "notify-refused"), []);
}

Deno.test("docs: the ACL allows no command that nothing sends", () => {
  const sources = Object.values(scripts).flatMap((it) => {
    return typeof it === "object" && "source" in it ? [it.source] : [];
  });
  const called = sources.flatMap((source) =>
    [...source.matchAll(/'([A-Z]{3,})'/gu)].map(([, name]) => name.toLowerCase())
  );
  const files = ["src/redis", "src/redis_node"].flatMap((folder) => listFiles(folder, /\.ts$/u));
  const sent = files.flatMap((path) =>
    [...readSource(path).text.matchAll(/"([A-Z]{3,})"(?:, "(GET|INFO)")?/gu)].map((
      [, name, second],
    ) => (second === undefined ? name : `${name}|${second}`).toLowerCase())
  );
  const allowed = aclRules.filter((rule) => rule.startsWith("+")).map((rule) => rule.slice(1));
  const isUsed = (name: string) =>
    sent.includes(name) || name.split("|").every((word) => called.includes(word));
  assertEquals(allowed.filter((name) => !isUsed(name)), []);
});

Deno.test("docs: the script of a guarded write refuses a smaller token", async () => {
  await using server = await startServer();
  const script = codeMarked("guarded-write");
  const write = (token: number, value: string) =>
    server.command("EVAL", script, 1, "account", token, value);
  assertEquals([await write(5, "first"), await write(3, "late"), await write(5, "again")], [
    1,
    0,
    1,
  ]);
  assertEquals(await server.command("HGET", "account", "value"), "again");
});

Deno.test("docs: what is sent by redis-cli shows a lock and those who wait for it", async () => {
  await using server = await startServer();
  await using one = createRedlock([server.url]);
  await using other = createRedlock([server.url]);
  await using lock = await one.acquire("invoice:42", { fencing: true });
  const waiting = other.acquire("invoice:42", { waitMs: WAIT_MS });
  waiting.catch(() => {}); // it is awaited below, if all is well until then
  await eventually(async () => assertEquals((await one.inspect("invoice:42")).waiters, 1));
  for (const words of redisCliCommands()) {
    const reply = await server.command(...words);
    assert(reply !== null && `${reply}` !== "", `${words.join(" ")} shows nothing`);
  }
  await lock.release();
  await (await waiting).release();
});

Deno.test("docs: the script for redis-cli alone deletes a lock by its value", async () => {
  await using server = await startServer();
  await using redlock = createRedlock([server.url], { onEvent: () => {} });
  const { value } = await redlock.acquire("invoice:42");
  const send = (value: string) =>
    server.command("EVAL", codeMarked("release"), "1", "invoice:42", value);
  assertEquals([await send(`${value}x`), await send(value)], [0, 1]);
  assertEquals((await redlock.inspect("invoice:42")).held, false);
});

/** The commands behind `redis-cli -p …` that ask for something. */
function redisCliCommands(): string[][] {
  return [...codeMarked("redis").matchAll(/^redis-cli -p \d+ (.*?)(?: +#.*)?$/gmu)]
    .map(([, words]) => words.split(" "));
}

Deno.test("docs: every form of an address is read", () => {
  const lines = codeMarked("addresses").trim().split("\n");
  const forms = lines.flatMap((line) => line.split(/ {2,}/u).filter((part) => part.includes(":/")));
  assert(forms.length >= 4);
  for (const form of forms) {
    const whole = form.replace("…", "host:6380/1").replaceAll(/[[\]]/gu, "")
      .replace(":port", ":6380").replace(/\/db$/u, "/1").replace("db=n", "db=1");
    assertEquals(parseAddress(whole).database, 1, whole);
    const least = form.replace("…", "host").replaceAll(/\[[^[\]]*\]/gu, "").replaceAll(
      /\[.*?\]/gu,
      "",
    );
    assertEquals(parseAddress(least).database, 0, least);
  }
});

Deno.test("docs: a server starts with the lines of redis.conf that are shown", async () => {
  for (const { code } of FENCES.filter(isConfiguration)) {
    const config = code.split("\n").filter((line) => !/^(#|$)/u.test(line))
      .map((line) => line.split(" "));
    await using server = await startServer({ config: config.map((words) => words.join(" ")) });
    for (const [name, value] of config) {
      assertEquals(await server.command("CONFIG", "GET", name), [name, value]);
    }
  }
});

/**
 * Whether a fence has lines of redis.conf and no more; `hosts_test.ts` and `tls_test.ts` have the
 * others.
 */
function isConfiguration({ language, marks }: Fence): boolean {
  return language === "conf" && marks.includes("redis");
}

const redisServer = await findRedisServer();
const redisCli = join(dirname(redisServer), "redis-cli");

Deno.test({
  name: "docs: the servers to try it out with start, are nodes of a lock, and stop",
  ignore: !existsSync(redisCli),
  async fn() {
    const { code } = FENCES.find(({ code }) => code.includes("redis-server --port"))!;
    const shown = [...new Set(code.match(/\b7\d{3}\b/gu))];
    const ports = shown.map(freePort);
    const script = shown.reduce((text, port, at) => text.replaceAll(port, ports[at]), code);
    const [start, stop] = script.split(/^# .*$/mu);
    await using folder = await makeFolder();
    const shell = async (text: string) => {
      const PATH = `${dirname(redisServer)}:${Deno.env.get("PATH")}`;
      const { success, stderr } = await plainCommand("sh", {
        args: ["-ec", text],
        cwd: folder.path,
        env: { PATH },
        stdout: "null",
      }).output();
      assert(success, new TextDecoder().decode(stderr));
    };
    await shell(start);
    try {
      const addresses = ports.map((port) => `redis://127.0.0.1:${port}`);
      await using redlock = createRedlock(addresses, { nodeTimeoutMs: 1_000 });
      await eventually(async () => assert((await check(redlock)).ok), WAIT_MS);
      assertEquals(await redlock.using("report", () => "done"), "done");
      await shell(stop);
    } catch (error) { // one may not have started, if its port was taken meanwhile
      await shell(`set +e\n${stop}\ntrue`);
      throw error;
    }
  },
});

/** A port that nothing listens on at this moment. */
function freePort(): string {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return String(listener.addr.port);
}
