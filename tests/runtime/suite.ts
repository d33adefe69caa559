/**
 * How the library behaves, the same on every runtime. Where a runtime lacks something the same case
 * expects it to say so.
 */

import type { Lock, RedlockEvent, Vote } from "../../mod.ts";
import type { Context, Library, Register } from "./context.ts";
import { expect, expectSame, rejectionOf, sleep } from "./expect.ts";
import { registerBusy } from "./suite_busy.ts";
import { registerContext } from "./suite_context.ts";
import { registerConnecting } from "./suite_connecting.ts";

/** Registers every case. */
export function suite(test: Register, library: Library, context: Context): void {
  const resource = (name: string) => `${context.prefix}:${name}`;
  registerLocking(test, library, context, resource);
  registerHolding(test, library, context, resource);
  registerClosing(test, library, context, resource);
  registerBusy(test, library, context, resource);
  registerFaults(test, library, context, resource);
  registerContext(test, library);
  registerConnecting(test, library, context, resource);
}

/**
 * What `console.log` makes of a value here; where that cannot be asked for, what the value says to
 * Node's.
 */
function showOf(value: object): string {
  type View = (depth: number, options: object, inspect: (value: unknown) => string) => string;
  const { Deno, Bun, process } = globalThis as unknown as {
    [name: string]:
      | { inspect?: (value: unknown) => string; getBuiltinModule?: unknown }
      | undefined;
  };
  const util = (process?.getBuiltinModule as ((name: string) => typeof Bun) | undefined)?.("util");
  const inspect = Deno?.inspect ?? Bun?.inspect ?? util?.inspect;
  if (inspect) return inspect(value);
  const view = Reflect.get(value, Symbol.for("nodejs.util.inspect.custom")) as View;
  return view.call(value, 2, {}, JSON.stringify);
}

type Name = (name: string) => string;

function registerLocking(
  test: Register,
  { main, testing }: Library,
  { urls }: Context,
  resource: Name,
): void {
  test("a lock is acquired, seen by others and released", async () => {
    await using redlock = main.createRedlock(urls);
    const lock = await redlock.acquire(resource("plain"), { ttlMs: 5_000 });
    expect(
      lock.held && /^[0-9a-f]{40}:[0-9a-z]{6}:/.test(lock.value),
      "the lock is not as it should be",
    );
    expect(lock.remainingMs() > 0 && lock.remainingMs() < 5_000, "wrong validity");
    expect((await redlock.inspect(resource("plain"))).held, "inspect() does not see the lock");
    expectSame(await lock.release(), true, "release()");
    expectSame((await redlock.inspect(resource("plain"))).held, false, "held after release()");
    expectSame(lock.held, false, "lock.held after release()");
  });

  test("console.log of a client and a lock shows their state and no secret", async () => {
    await using redlock = main.createRedlock(urls);
    await using lock = await redlock.acquire(resource("shown"));
    const shown = [showOf(redlock), showOf(lock)];
    expect(/^Redlock .*open/s.test(shown[0]), `the client is shown as ${shown[0]}`);
    expect(/^Lock .*held.*granted/s.test(shown[1]), `the lock is shown as ${shown[1]}`);
    expect(!shown.join().includes(lock.value), "the lock's value is shown");
  });

  test("a held resource is denied, as a value and as an error", async () => {
    await using redlock = main.createRedlock(urls);
    await using other = main.createRedlock(urls);
    await using _lock = await redlock.acquire(resource("held"));
    expectSame(await other.tryAcquire(resource("held")), undefined, "tryAcquire()");
    const error = await rejectionOf(other.acquire(resource("held"), { waitMs: 0 }));
    expect(error instanceof main.LockHeldError, `not a LockHeldError: ${error}`);
    expectSame(error.code, "LOCK_HELD", "code");
  });

  test("ten contenders are inside one after the other", async () => {
    const clients = Array.from(
      { length: 10 },
      () => main.createRedlock(urls, { ttlMs: 20_000, waitMs: 40_000, retryDelayMaxMs: 40 }),
    );
    let inside = 0;
    let entered = 0;
    await Promise.all(clients.map(async (client) => {
      await client.using(resource("contended"), async () => {
        expectSame(++inside, 1, "holders at once");
        entered++;
        await sleep(5);
        inside--;
      });
      await client.close();
    }));
    expectSame(entered, 10, "holders in all");
  });

  test("several resources are locked all or none", async () => {
    await using redlock = main.createRedlock(urls);
    const names = ["one", "two", "three"].map(resource);
    const lock = await redlock.acquire(names);
    expectSame(await redlock.tryAcquire(names.slice(1, 2)), undefined, "one of them");
    expectSame(await redlock.tryAcquire([resource("four"), ...names]), undefined, "all and one");
    expectSame((await redlock.inspect(resource("four"))).held, false, "the one beside them held");
    expectSame(await lock.release(), true, "release()");
    for (const name of names) {
      expectSame((await redlock.inspect(name)).held, false, `${name} held`);
    }
  });

  test("an abort ends the wait with its own reason and leaves nothing", async () => {
    await using redlock = main.createRedlock(urls);
    const holder = await redlock.acquire(resource("aborted"));
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    setTimeout(() => controller.abort(reason), 30);
    const { signal } = controller;
    const error = await rejectionOf(redlock.acquire(resource("aborted"), { signal }));
    expectSame(error, reason, "the rejection");
    await holder.release();
    await using lock = await redlock.tryAcquire(resource("aborted"));
    expect(lock?.held, "the resource is not free after the abort");
  });

  test("nodes in memory are locked without a network", async () => {
    const servers = new Map(["a", "b", "c"].map((name) => [name, new testing.MemoryRedis()]));
    await using redlock = main.createRedlock([...servers.keys()].map((name) => `redis://${name}`), {
      connect: (target, options) =>
        servers.get(target.kind === "unix" ? "" : target.hostname)!.connect(target, options),
    });
    await using _lock = await redlock.acquire("resource");
    expectSame(await redlock.tryAcquire("resource"), undefined, "a second lock");
  });
}

function registerHolding(
  test: Register,
  { main, redis }: Library,
  { urls, silentUrls }: Context,
  resource: Name,
): void {
  test("extend() gives a lock a new validity", async () => {
    await using redlock = main.createRedlock(urls);
    await using lock = await redlock.acquire(resource("extended"), { ttlMs: 5_000 });
    await lock.extend({ ttlMs: 60_000 });
    expect(lock.remainingMs() > 50_000, "the validity is the old one");
    expectSame(lock.extensions, 1, "extensions");
  });

  test("using() extends for as long as its routine runs, and releases", async () => {
    await using redlock = main.createRedlock(urls);
    // two thirds of the TTL outlast a stall of two seconds
    const options = { ttlMs: 3_300, nodeTimeoutMs: 300 };
    const result = await redlock.using(resource("using"), options, async (lock) => {
      while (lock.extensions < 2 && lock.held) await sleep(20);
      expect(lock.held && !lock.signal.aborted, "the lock was lost");
      return "done";
    });
    expectSame(result, "done", "what using() gives");
    expectSame((await redlock.inspect(resource("using"))).held, false, "held after using()");
  });

  test("await using releases at the end of the block", async () => {
    await using redlock = main.createRedlock(urls);
    {
      await using lock = await redlock.acquire(resource("block"));
      expect(lock.held, "not held");
    }
    expectSame((await redlock.inspect(resource("block"))).held, false, "held after the block");
    const lock = await redlock.acquire(resource("block"));
    await lock[Symbol.asyncDispose]();
    expectSame(lock.held, false, "held after being disposed of");
  });

  test("a client without a listener warns on the console of its first lost lock", async () => {
    const texts: string[] = [];
    const { warn } = console;
    console.warn = (text: string) => void texts.push(text);
    try {
      await using redlock = main.createRedlock(urls);
      const lose = async (name: string) => {
        const lock = await redlock.acquire(resource(name), { ttlMs: 100 });
        while (!lock.signal.aborted) await sleep(10);
      };
      await lose("lost");
      while (texts.length === 0) await sleep(10);
      await lose("lost later");
    } finally {
      console.warn = warn;
    }
    expectSame(texts.length, 1, "warnings");
    expect(texts[0].startsWith(`@hasp/redlock: Lost lock "${resource("lost")}" after `), texts[0]);
  });

  test("lock.signal aborts within the validity when a quorum falls silent", async () => {
    const admins = await Promise.all(silentUrls.slice(1).map((url) => redis.connect(url)));
    await using redlock = main.createRedlock(silentUrls, { ttlMs: 1_200, nodeTimeoutMs: 200 });
    const startMs = performance.now();
    const lock = await redlock.acquire(resource("silent"), { autoExtend: true });
    await Promise.all(admins.map((admin) => admin.send(["CLIENT", "PAUSE", 2_500, "ALL"])));
    await Promise.all(admins.map((admin) => admin.close()));
    const reason = await abortOf(lock);
    const tookMs = performance.now() - startMs;
    expect(reason instanceof main.LockLostError, `the reason is ${reason}`);
    expectSame(lock.remainingMs(), 0, "remainingMs()");
    // It may have been extended before the silence began.
    expect(tookMs > 1_000 && tookMs < 10_000, `aborted after ${tookMs} ms`);
  });
}

function abortOf({ signal }: Lock): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}

function registerClosing(
  test: Register,
  { main, redis }: Library,
  { urls, hungUrls, lacks }: Context,
  resource: Name,
): void {
  test("close() ends the calls that wait and the locks that are held", async () => {
    await using other = main.createRedlock(urls);
    await using _theirs = await other.acquire(resource("theirs"));
    const redlock = main.createRedlock(urls);
    const ours = await redlock.acquire(resource("ours"));
    let waiting: Promise<unknown> | undefined;
    await new Promise<void>((resolve) => {
      const onEvent = ({ type }: RedlockEvent) => void (type === "attempt" && resolve());
      waiting = rejectionOf(redlock.acquire(resource("theirs"), { onEvent }));
    });
    const { signal } = ours;
    await redlock.close();
    const error = await waiting;
    expect(error instanceof main.RedlockError && error.code === "CLOSED", `rejected with ${error}`);
    expect(signal.aborted && !ours.held, "the lock outlives its client");
    await using lock = await other.acquire(resource("ours"), { waitMs: 10_000 });
    expect(lock.held, "the resource is not free after close()");
  });

  test("close() leaves no connection on the servers", async () => {
    const clientName = `leaver-${crypto.randomUUID()}`;
    await using admin = await redis.connect(urls[0]!);
    const isListed = async () => String(await admin.send(["CLIENT", "LIST"])).includes(clientName);
    const redlock = main.createRedlock(urls, { clientName });
    await redlock.using(resource("leaving"), () => {});
    // a quorum was enough, so this server may lag behind
    for (let tries = 0; !await isListed(); tries++) {
      expect(tries < 500, "the server does not know the client");
      await sleep(20);
    }
    await redlock.close();
    for (let tries = 0; await isListed(); tries++) {
      expect(tries < 500, "the server still has the connection");
      await sleep(20);
    }
  });

  test("close() settles although a write is stuck", async () => {
    if (lacks.includes("an end of stuck writes")) return; // it would keep the process from ending
    const bytes = new Uint8Array(30_000_000);
    // Nothing says that a write is stuck. Where it had not begun the outcome says so, and the wait
    // was too short.
    for (let waitMs = 50;; waitMs *= 4) {
      const client = new redis.RedisClient(hungUrls[0]!);
      const sent = rejectionOf(client.send(["SET", resource("stuck"), bytes]));
      await sleep(waitMs);
      const startMs = performance.now();
      await client.close();
      const error = await sent;
      expect(error instanceof redis.ConnectionError, `not a ConnectionError: ${error}`);
      expect(performance.now() - startMs < 5_000, "it took too long");
      if (error.outcome === "unknown") return;
      expect(waitMs < 10_000, "the write has not begun");
    }
  });
}

function registerFaults(
  test: Register,
  { main, operate }: Library,
  { urls, hungUrls, deadUrls }: Context,
  resource: Name,
): void {
  test("a hung minority is not waited for", async () => {
    const nodes = [...hungUrls, ...urls.slice(0, 3)];
    await using redlock = main.createRedlock(nodes, { nodeTimeoutMs: 10_000 });
    await redlock.tryAcquire(resource("warm-up")).then((lock) => lock?.release());
    const startMs = performance.now();
    const lock = await redlock.acquire(resource("hung"));
    expectSame(await lock.release(), true, "release()");
    const tookMs = performance.now() - startMs;
    expect(tookMs < 5_000, `a pair took ${tookMs} ms`);
  });

  test("a hung majority is told as a QuorumError in time", async () => {
    const nodes = [...hungUrls, urls[0]!];
    await using redlock = main.createRedlock(nodes, { nodeTimeoutMs: 500 });
    const startMs = performance.now();
    const error = await rejectionOf(redlock.tryAcquire(resource("hung-majority")));
    expect(error instanceof main.QuorumError, `not a QuorumError: ${error}`);
    expectSame(outcomes(error.votes), "granted, timed-out, timed-out", "votes");
    expect(performance.now() - startMs < 5_000, "it took too long");
  });

  test("check() tells which nodes answer, and how they are set up", async () => {
    const nodes = [...urls.slice(0, 3), hungUrls[0]!, deadUrls[0]!];
    await using redlock = main.createRedlock(nodes, { nodeTimeoutMs: 1_000 });
    const report = await operate.check(redlock);
    expectSame(
      report.nodes.map((node) => node.reachable).join(),
      "true,true,true,false,false",
      "who answers",
    );
    expectSame(
      report.nodes.map((node) => node.role ?? "?").join(),
      "master,master,master,?,?",
      "roles",
    );
    expectSame(
      report.findings.filter(({ code }) => code === "NODE_UNREACHABLE").length,
      2,
      "the nodes that are unavailable",
    );
    expectSame(report.nodes[0]?.refused, undefined, "what is refused");
    const [first] = operate.formatHealthReport(report).split("\n");
    expectSame(first, "3 of 5 nodes answered, 3 are a quorum", "the first line");
  });

  test("a handshake that does not end is given up in time", async () => {
    const silent = hungUrls.map((url) => url.replace("redis:", "rediss:"));
    const options = { connectTimeoutMs: 200, nodeTimeoutMs: 200 };
    await using redlock = main.createRedlock(silent, options);
    const startMs = performance.now();
    const error = await rejectionOf(redlock.tryAcquire(resource("handshake")));
    expect(error instanceof main.QuorumError, `not a QuorumError: ${error}`);
    await redlock.close();
    const tookMs = performance.now() - startMs;
    expect(tookMs < 8_000, `it took ${tookMs} ms`);
  });

  test("a dead minority is outvoted", async () => {
    await using redlock = main.createRedlock([...deadUrls.slice(0, 2), ...urls.slice(0, 3)]);
    await using lock = await redlock.acquire(resource("dead"), { waitMs: 0 });
    expect(lock.held, "not held");
  });

  test("a dead majority is told as a QuorumError", async () => {
    await using redlock = main.createRedlock([...deadUrls, ...urls.slice(0, 2)]);
    const error = await rejectionOf(redlock.acquire(resource("dead-majority"), { waitMs: 0 }));
    expect(error instanceof main.QuorumError, `not a QuorumError: ${error}`);
    expectSame(error.code, "NO_QUORUM", "code");
    expectSame(error.votes.filter(({ outcome }) => outcome === "failed").length, 3, "failed nodes");
    const { message, stack } = error.cause as Error; // of a cause, loggers show the stack alone
    expect(`${stack}`.includes(message), `the cause is shown as ${stack}`);
  });
}

function outcomes(votes: readonly Vote[]): string {
  return votes.map(({ outcome }) => outcome).sort().join(", ");
}
