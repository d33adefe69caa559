import { assert, assertEquals, assertRejects } from "@std/assert";
import { createRedlock, LockHeldError } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { openPeer, type Peer, type PeerName } from "../support/peers.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";
import { KEPT_TTL_MS } from "../support/times.ts";
import { openClients } from "../support/waiting_clients.ts";

const shared = shareServers(5);

/** A TTL that no test outlives. */
const LONG_MS = 60_000;
/** A TTL that tests wait for. */
const SHORT_MS = 400;
/** A TTL that is extended in time, on a busy machine too. */
const EXTENDED_MS = KEPT_TTL_MS;

for (const name of ["redlock4", "redlock5"] as const) {
  test(name, "its lock excludes ours until it is released", async (peer, redlock) => {
    const theirs = (await peer.tryAcquire(["job"], LONG_MS))!;
    assertEquals(await redlock.tryAcquire("job"), undefined);
    const error = await assertRejects(() => redlock.acquire("job", { waitMs: 0 }), LockHeldError);
    assert(error.votes.filter(({ outcome }) => outcome === "denied").length >= 3);
    assertEquals((await redlock.inspect("job")).held, true);
    await theirs.release();
    const ours = await redlock.acquire("job", { waitMs: 0 });
    assert(await ours.release());
  });

  test(name, "our lock excludes its until it is released", async (peer, redlock) => {
    const ours = await redlock.acquire("job", { ttlMs: LONG_MS });
    assertEquals(await peer.tryAcquire(["job"], LONG_MS), undefined);
    assert(ours.held);
    assert(await ours.release());
    // A release settles at a quorum: the last nodes may still be at it.
    await eventually(async () => assertEquals(await onAll(shared.lend(), "DBSIZE"), ZEROS));
    const theirs = (await peer.tryAcquire(["job"], LONG_MS))!;
    await theirs.release();
  });

  test(name, "our waiting acquire() gets the lock once it releases", async (peer, redlock) => {
    const theirs = (await peer.tryAcquire(["job"], LONG_MS))!;
    const waiting = redlock.acquire("job", { waitMs: 20_000 });
    await eventually(async () => {
      const counts = await shared.lend()[0]!.commandCounts();
      return counts.set! > 1 || counts.evalsha! > 1; // ours has been denied at least once
    });
    await theirs.release();
    const ours = await waiting;
    assert(await ours.release());
  });

  test(name, "our late release does not delete its lock", async (peer, redlock) => {
    const ours = await redlock.acquire("job", { ttlMs: SHORT_MS });
    await eventually(async () => assertEquals(await onAll(shared.lend(), "DBSIZE"), ZEROS));
    const theirs = (await peer.tryAcquire(["job"], LONG_MS))!;
    const values = await onAll(shared.lend(), "GET", "job");
    assertEquals(await ours.release(), false);
    // The next command on the same connections is answered after whatever the release did.
    assertEquals((await redlock.inspect("job")).votes.length, 5);
    assertEquals(await onAll(shared.lend(), "GET", "job"), values);
    assertEquals(values.includes(ours.value), false);
    await theirs.release();
  });

  test(name, "its late release does not delete our lock", async (peer, redlock) => {
    const theirs = (await peer.tryAcquire(["job"], SHORT_MS))!;
    await eventually(async () => assertEquals(await onAll(shared.lend(), "DBSIZE"), ZEROS));
    const ours = await redlock.acquire("job", { ttlMs: LONG_MS });
    // what it makes of a lock that ran out is its own affair
    await theirs.release().catch(() => {});
    await eventually(async () => {
      assertEquals(await onAll(shared.lend(), "GET", "job"), FIVE.map(() => ours.value));
    });
    assert(ours.held);
    assert(await ours.release());
  });

  test(name, "several resources exclude each other both ways", async (peer, redlock) => {
    const theirs = (await peer.tryAcquire(["first", "second"], LONG_MS))!;
    assertEquals(await redlock.tryAcquire("second"), undefined);
    assertEquals(await redlock.tryAcquire(["second", "third"]), undefined);
    await theirs.release();
    const ours = await redlock.acquire(["third", "second"], { waitMs: 0 });
    assertEquals(await peer.tryAcquire(["second"], LONG_MS), undefined);
    assertEquals(await peer.tryAcquire(["first", "third"], LONG_MS), undefined);
    assert(await ours.release());
  });

  test(name, "a lock that it extends goes on excluding ours", async (peer, redlock) => {
    const theirs = (await peer.tryAcquire(["job"], 20_000))!;
    const extended = await theirs.extend(LONG_MS);
    const { held, remainingMs } = await redlock.inspect("job");
    assert(held && remainingMs > 30_000);
    await extended.release();
  });

  test(name, "a lock that we extend goes on excluding its", async (peer, redlock) => {
    const ours = await redlock.acquire("job", { ttlMs: EXTENDED_MS, autoExtend: true });
    const enough = performance.now() + EXTENDED_MS + 100;
    while (performance.now() < enough) {
      assertEquals(await peer.tryAcquire(["job"], LONG_MS), undefined);
    }
    assert(ours.held);
    assert(await ours.release());
  });

  test(name, "of a mixed crowd one at a time is inside", async (peer, redlock) => {
    let inside = 0;
    let entries = 0;
    const work = async () => {
      assertEquals(++inside, 1);
      await new Promise((resolve) => setTimeout(resolve, 1));
      inside--;
      entries++;
    };
    const ours = async () => {
      await redlock.using("job", { ttlMs: 5_000, waitMs: 30_000, retryDelayMs: 5 }, work);
    };
    const theirs = async () => {
      let lock;
      while (!lock) {
        lock = await peer.tryAcquire(["job"], 5_000);
        if (!lock) await new Promise((resolve) => setTimeout(resolve, 10 * Math.random()));
      }
      await work();
      await lock.release();
    };
    await Promise.all(FIVE.flatMap(() => [ours(), theirs(), ours(), theirs()]));
    assertEquals(entries, 20);
  });
}

// redlock4 is left out: with a hung node it never settles.
test("redlock5", "with a hung node it and ours still exclude each other", async (peer, redlock) => {
  await shared.lend()[4]!.pause();
  const theirs = (await peer.tryAcquire(["job"], LONG_MS))!;
  assertEquals(await redlock.tryAcquire("job"), undefined);
  await theirs.release();
  const ours = await redlock.acquire("job", { waitMs: 20_000 });
  assertEquals(await peer.tryAcquire(["job"], LONG_MS), undefined);
  shared.lend()[4]!.resume();
  assert(await ours.release());
});

/** How long each crowd works, how long one is inside, and how many clients each side has. */
const CROWD_MS = 5_000;
const INSIDE_MS = 5;
const CLIENTS = 3;
/** What each side gets at least of all turns. */
const SHARE_MIN = 0.15;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("redlock5 and ours each get their share of a lock that both want all the time", async () => {
  await using servers = shared.lend();
  await using peer = await openPeer("redlock5", servers.urls);
  await using clients = openClients(servers.urls, CLIENTS, { ttlMs: 5_000, waitMs: 30_000 });
  const endMs = performance.now() + CROWD_MS;
  let inside = 0;
  const work = async () => {
    assertEquals(++inside, 1);
    await sleep(INSIDE_MS);
    inside--;
  };
  const crowd = async (turn: () => Promise<boolean>) => {
    let turns = 0;
    while (performance.now() < endMs) if (await turn()) turns++;
    return turns;
  };
  const ours = clients.map((redlock) =>
    crowd(async () => {
      await redlock.using("job", work);
      return true;
    })
  );
  const theirs = clients.map(() =>
    crowd(async () => {
      const lock = await peer.tryAcquire(["job"], 5_000);
      if (!lock) {
        await sleep(100 + 200 * Math.random()); // the default of node-redlock
        return false;
      }
      await work();
      await lock.release();
      return true;
    })
  );
  const sum = async (turns: Promise<number>[]) =>
    (await Promise.all(turns)).reduce((all, count) => all + count);
  const [ourTurns, theirTurns] = await Promise.all([sum(ours), sum(theirs)]);
  const share = ourTurns / (ourTurns + theirTurns);
  assert(share >= SHARE_MIN && share <= 1 - SHARE_MIN, `ours ${ourTurns}, its ${theirTurns}`);
});

const FIVE = [0, 1, 2, 3, 4];
const ZEROS = [0, 0, 0, 0, 0];

type Redlock = ReturnType<typeof createRedlock>;

function test(
  name: PeerName,
  sentence: string,
  fn: (peer: Peer, redlock: Redlock) => Promise<void>,
): void {
  Deno.test(`${name}: ${sentence}`, async () => {
    await using servers = shared.lend();
    await using peer = await openPeer(name, servers.urls);
    await using redlock = createRedlock(servers.urls, { ttlMs: 20_000 });
    await fn(peer, redlock);
  });
}
