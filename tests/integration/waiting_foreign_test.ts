import { assert, assertEquals } from "@std/assert";
import { openPeer, type PeerName } from "../support/peers.ts";
import { shareServers } from "../support/shared_servers.ts";
import { openClients } from "../support/waiting_clients.ts";

const shared = shareServers(5);

/** How long each crowd works, how long one is inside, and how many clients each side has. */
const CROWD_MS = 5_000;
const INSIDE_MS = 5;
const CLIENTS = 3;
/** What each side gets at least of all turns. */
const SHARE_MIN = 0.15;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

for (const name of ["redlock4", "redlock5"] as const satisfies PeerName[]) {
  Deno.test(`${name} and ours each get their share of a lock that both want all the time`, async () => {
    await using servers = shared.lend();
    await using peer = await openPeer(name, servers.urls);
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
}
