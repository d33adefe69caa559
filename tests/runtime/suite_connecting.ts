/** How servers are reached: the part of the suite about TLS, sockets and the client by itself. */

import type { Redlock } from "../../mod.ts";
import type { Context, Library, Register } from "./context.ts";
import { expect, expectSame, rejectionOf } from "./expect.ts";

/** Registers these cases. */
export function registerConnecting(
  test: Register,
  { main, redis }: Library,
  { urls, tlsUrl, namedTlsUrl, sniUrl, authority, unixUrl, lacks }: Context,
  resource: (name: string) => string,
): void {
  // Where a runtime takes no authorities the platform itself was told of ours.
  const ownAuthorities = !lacks.includes("authorities");
  const trust = ownAuthorities ? { caCerts: [authority] } : {};

  test("TLS carries a lock", async () => {
    await using redlock = main.createRedlock([tlsUrl], { tls: trust });
    await expectLock(redlock, resource("tls"));
  });

  test("a certificate for another name is refused", async () => {
    await using redlock = main.createRedlock([namedTlsUrl], { tls: trust });
    const error = await rejectionOf(redlock.tryAcquire(resource("other-name")));
    expect(error instanceof main.QuorumError, `not a QuorumError: ${error}`);
  });

  test("serverName says which name a certificate must bear", async () => {
    const tls = { ...trust, serverName: "redis.test" };
    await using redlock = main.createRedlock([namedTlsUrl], { tls });
    await expectLock(redlock, resource("server-name"));
    const strange = { ...trust, serverName: "other.test" };
    await using refused = main.createRedlock([namedTlsUrl], { tls: strange });
    const error = await rejectionOf(refused.tryAcquire(resource("server-name")));
    expect(error instanceof main.QuorumError, `not a QuorumError: ${error}`);
  });

  test("a server that serves several names is asked for its own", async () => {
    await using client = await redis.connect(sniUrl, { tls: trust });
    expectSame(await client.send(["PING"]), "localhost", "the name");
  });

  test("an authority has to be named before it is trusted", async () => {
    const tls = ownAuthorities ? {} : { caCerts: [authority] };
    await using redlock = main.createRedlock([tlsUrl], { tls });
    const error = await rejectionOf(redlock.tryAcquire(resource("authority")));
    expect(error instanceof main.QuorumError, `not a QuorumError: ${error}`);
    const reason = rootOf(error.votes[0]!.error!);
    const expected = ownAuthorities ? /certificate|issuer/i : /take no 'tls.caCerts'/;
    expect(expected.test(reason.message), `the reason is "${reason.message}"`);
  });

  test("a Unix domain socket carries a lock", async () => {
    await using redlock = main.createRedlock([unixUrl]);
    if (!lacks.includes("unix sockets")) return await expectLock(redlock, resource("unix"));
    const error = await rejectionOf(redlock.tryAcquire(resource("unix")));
    expect(error instanceof main.QuorumError, `not a QuorumError: ${error}`);
    const { message } = rootOf(error.votes[0]!.error!);
    expect(/workers have none|Requires \w+ access/.test(message), `the reason is "${message}"`);
  });

  test("a connection that the server ends is lost at once", async () => {
    for (const [url, options] of [[urls[0]!, {}], [tlsUrl, { tls: trust }]] as const) {
      await using client = await redis.connect(url, options);
      const end = ["CLIENT", "KILL", "ID", await client.send(["CLIENT", "ID"]), "SKIPME", "no"];
      const [, error] = await Promise.all([
        client.send(end as string[]),
        rejectionOf(client.send(["PING"])),
      ]);
      expect(/ was lost/.test(String(error)), `the error is ${error}`);
    }
  });

  test("the client by itself sends commands and reads long replies", async () => {
    await using client = await redis.connect(tlsUrl, { tls: trust });
    const text = "größer".repeat(20_000);
    await client.send(["SET", resource("long"), text, "PX", 5_000]);
    const replies = await Promise.all([1, 2, 3].map(() => client.send(["GET", resource("long")])));
    expect(replies.every((reply) => reply === text), "a reply is not what was set");
  });
}

async function expectLock(redlock: Redlock, resource: string): Promise<void> {
  const lock = await redlock.acquire(resource, { waitMs: 0 });
  expect(lock.held, "not held");
  expectSame(await lock.release(), true, "release()");
}

/** What an error was caused by in the first place. */
function rootOf(error: Error): Error {
  return error.cause instanceof Error ? rootOf(error.cause) : error;
}
