/**
 * The files for three hosts: the server starts with them, and its user needs each of its rights.
 */

import { assert, assertEquals } from "@std/assert";
import { createRedlock, type Redlock, type RedlockEvent, type RedlockOptions } from "../../mod.ts";
import { check, list } from "../../src/operate/mod.ts";
import { makeFolder } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { type ServerGroup, startServer, startServers } from "../support/servers.ts";
import { plainCommand } from "../support/plain_command.ts";
import { codeMarked } from "./pages.ts";

const lines = codeMarked("hosts").trim().split("\n").filter((line) => !line.startsWith("port "));
const userLine = lines.find((line) => line.startsWith("user locker "))!;
const rules = userLine.split(" ").slice(2);
/** What each of the user's rights begins with: a command, a key or a channel. */
const rights = rules.filter((rule) => /^[+~&]/u.test(rule));

Deno.test("docs: a server starts with the file for three hosts, and lets its users in alone", async () => {
  await using server = await startServer({ config: lines, users: [] });
  for (const line of lines.filter((line) => !line.startsWith("user "))) {
    const [name, ...values] = line.split(" ");
    assertEquals(await server.command("CONFIG", "GET", name), [name, values.join(" ")]);
  }
  const users = await server.command("ACL", "USERS") as string[];
  assertEquals(users.filter((name) => name !== "support-admin").sort(), [
    ...["admin", "default", "locker"],
  ]);
  const flags = `${await server.command("ACL", "GETUSER", "default")}`;
  assert(flags.startsWith("flags,off") && !flags.includes("nopass"), flags);
});

Deno.test("docs: the service and the container start the server with the file for three hosts", async () => {
  const file = /`(\/etc\/redis\/\S+\.conf)`/u.exec(
    await Deno.readTextFile(new URL("../../docs/operations.md", import.meta.url)),
  )![1];
  assert(codeMarked("unit").includes(`\nExecStart=/usr/bin/redis-server ${file} `));
  assert(codeMarked("compose").includes(`command: valkey-server ${file}\n`));
  assert(codeMarked("compose").includes(`- ${file}:${file}:ro\n`));
  await using folder = await makeFolder();
  try {
    const unit = `${folder.path}/hasp-node.service`;
    // systemd looks for the program, which need not be where the distributions put it.
    const text = codeMarked("unit").replace("/usr/bin/redis-server", Deno.execPath());
    await Deno.writeTextFile(unit, text);
    const { stderr } = await plainCommand("systemd-analyze", { args: ["verify", unit] }).output();
    const complaints = new TextDecoder().decode(stderr).split("\n")
      .filter((line) => line.includes("hasp-node.service:"));
    assertEquals(complaints, []);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // a system without systemd
  }
});

/** One operation of a client: rejects, or resolves to `false`, if a right is missing. */
type Operation = (place: Place) => Promise<unknown>;

interface Place {
  readonly servers: ServerGroup;
  readonly resource: string;
  /** Creates a client of the user; it is closed after the operation. */
  client(options?: RedlockOptions): Redlock;
  /** What the clients have reported. */
  readonly events: readonly RedlockEvent[];
}

const WAIT_MS = 10_000;
/** Far longer than it takes. Without some rights a waiting client never shows in the queue. */
const QUEUED_WITHIN_MS = 5_000;

const OPERATIONS: Record<string, Operation> = {
  async lock({ client, resource }) {
    const lock = await client().acquire(resource, { waitMs: 0 });
    await lock.extend();
    return await lock.release();
  },
  async "lock several"({ client, resource }) {
    const lock = await client().acquire([resource, `${resource}:2`], { waitMs: 0 });
    return await lock.release();
  },
  async inspect({ client, resource }) {
    const one = client();
    await using _ = await one.acquire(resource, { waitMs: 0 });
    return (await one.inspect(resource)).waiters === 0;
  },
  async "inspect a key of another type"({ client, resource, servers }) {
    await Promise.all(servers.map((it) => it.command("RPUSH", `lock:${resource}`, "a")));
    return (await client().inspect(resource)).foreign?.includes("list");
  },
  async wait({ client, resource, events }) {
    const [one, other] = [client(), client()];
    const lock = await one.acquire(resource, { waitMs: 0 });
    const waiting = other.acquire(resource, { waitMs: WAIT_MS });
    let settled = false;
    waiting.finally(() => settled = true).catch(() => {}); // awaited below
    const refused = () => events.some(({ type }) => type === "notify-refused");
    await eventually(async () => {
      assert(settled || refused() || (await one.inspect(resource)).waiters === 1);
    }, QUEUED_WITHIN_MS);
    await lock.release();
    await (await waiting).release();
    return !refused();
  },
  async "use fencing tokens"({ client, resource }) {
    await using lock = await client().acquire(resource, { waitMs: 0, fencing: true });
    return lock.fencingToken! > 0;
  },
  async "leave a number alone that is no counter"({ client, resource, servers }) {
    const key = `hasp:fence:lock:${resource}`;
    await Promise.all(servers.map((it) => it.command("SET", key, -5)));
    await client().acquire(resource, { waitMs: 0, fencing: true }).catch(() => {});
    const left = await Promise.all(servers.map((it) => it.command("GET", key)));
    return left.every((number) => number === "-5"); // one of them may not have been asked yet
  },
  async "guard against restarts"({ client, resource }) {
    await using _ = await client().acquire(resource, {
      ttlMs: 500,
      restartGuardMs: 500,
      waitMs: WAIT_MS,
    });
  },
  async list({ client, resource }) {
    await using _ = await client().acquire(resource);
    for await (const listed of list(client(), { prefix: resource })) {
      if (listed.resource === resource) return true;
    }
    return false;
  },
  async check({ client }) {
    const { findings, nodes } = await check(client());
    return nodes.every(({ appendfsync }) => appendfsync === "everysec") &&
      !findings.some(({ code }) => code.endsWith("_REFUSED"));
  },
};

/** The operations that fail for a user of these rules. */
async function failures(servers: ServerGroup, user: string, rules: readonly string[]) {
  await Promise.all(servers.map((it) => it.command("ACL", "SETUSER", user, ...rules)));
  const password = rules.find((rule) => rule.startsWith(">"))!.slice(1);
  const addresses = servers.map(({ port }) => `redis://${user}:${password}@127.0.0.1:${port}`);
  const failed = await Promise.all(
    Object.entries(OPERATIONS).map(async ([name, operation]) => {
      const clients: Redlock[] = [];
      const events: RedlockEvent[] = [];
      const client = (options: RedlockOptions = {}) => {
        const onEvent = (event: RedlockEvent) => void events.push(event);
        const shared = { keyPrefix: "lock:", ttlMs: 5_000, nodeTimeoutMs: 2_000, onEvent };
        clients.push(createRedlock(addresses, { ...shared, ...options }));
        return clients.at(-1)!;
      };
      try {
        const resource = `${user}:${name}`;
        return await operation({ servers, resource, client, events }) === false ? [name] : [];
      } catch {
        return [name];
      } finally {
        await Promise.all(clients.map((it) => it.close()));
      }
    }),
  );
  return failed.flat();
}

/**
 * Without these nothing fails, but each refusal stands in `ACL LOG`: an error, too, proves that a
 * connection works, PUBLISH also counts who subscribes, and keys that may not be read together are
 * read one by one.
 */
const HARMLESS: readonly string[] = ["+ping", "+pubsub|numsub", "+mget"];

Deno.test("docs: without any one of its rights, an operation of the user of the three hosts fails", async () => {
  await using servers = await startServers(3, { users: [] });
  assertEquals(await failures(servers, "all", rules), []);
  const needless = await Promise.all(rights.map(async (right, index) => {
    const failed = await failures(servers, `user${index}`, rules.filter((it) => it !== right));
    return failed.length === 0 && !HARMLESS.includes(right) ? [right] : [];
  }));
  assertEquals(needless.flat(), []);
});
