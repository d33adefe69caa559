import { assert, assertEquals, assertLess } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { startFakeServer } from "../support/fake_server.ts";
import { shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(2);

/** Writes all of `bytes`. */
async function writeAll(conn: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}

const encoder = new TextEncoder();

/** What a node may send that takes the process down, if all of it is taken in; megabytes each. */
const FLOODS: Record<string, string> = {
  "18 MB of nested empty strings": `*10\r\n${
    `*300000\r\n${"$0\r\n\r\n".repeat(300_000)}`.repeat(10)
  }`,
  "18 MB of nested errors": `*10\r\n${`*600000\r\n${"-\r\n".repeat(600_000)}`.repeat(10)}`,
  "18 MB of errors that nobody asked for": "-\r\n".repeat(6_000_000),
  "18 MB of empty arrays": `*10\r\n${`*450000\r\n${"*0\r\n".repeat(450_000)}`.repeat(10)}`,
  "18 MB of one string": `$18000000\r\n${"x".repeat(18_000_000)}\r\n`,
};

for (const [what, flood] of Object.entries(FLOODS)) {
  test(`a node of three that sends ${what} is hung up on soon, and costs no lock`, async (servers) => {
    const bytes = encoder.encode(flood);
    let written = 0;
    await using hostile = startFakeServer(async (conn) => {
      await conn.read(new Uint8Array(1_024));
      for (let at = 0; at < bytes.length; at += 65_536) {
        await writeAll(conn, bytes.subarray(at, at + 65_536));
        written += 65_536;
      }
    });
    await using redlock = createRedlock([hostile.url, ...servers.urls]);
    const lock = await redlock.acquire("invoice:42", { waitMs: 0 });
    await eventually(() => assertEquals(lock.votes[0].outcome, "failed"));
    assert(await lock.release());
    // What the sockets' buffers hold was written too, for each connection.
    assertLess(written / hostile.accepted, 17_000_000);
  });
}
