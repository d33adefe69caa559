/** The nodes of the demo. */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { startNodes } from "../../scripts/demo/nodes.ts";
import { query } from "../support/query.ts";

const STATES_ITS_VERSION = '[ "$1" = --version ] && echo "Redis server v=7.0.0" && exit 0';

Deno.test("the demo falls back to memory where REDIS_SERVER names what is no server", async () => {
  await expectMemory("exit 1", "which does not run as a Redis server");
});

Deno.test("the demo falls back to memory where a redis-server does not start", async () => {
  await expectMemory(`${STATES_ITS_VERSION}\necho "no memory left" >&2; exit 1`, "no memory left");
});

/** Starts the demo's nodes while the only redis-server is a shell script. */
async function expectMemory(script: string, excuse: string): Promise<void> {
  const before = Deno.env.get("REDIS_SERVER");
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, `#!/bin/sh\n${script}\n`);
    await Deno.chmod(file, 0o755);
    Deno.env.set("REDIS_SERVER", file);
    await using started = await startNodes("any", 2);
    assertStringIncludes(started.description, "in-memory");
    assert(started.excuse !== undefined);
    assertStringIncludes(started.excuse, excuse);
    const answers = started.nodes.map(({ url }) =>
      query({ port: Number(new URL(url).port) }, ["PING"])
    );
    assertEquals(await Promise.all(answers), ["PONG", "PONG"]);
  } finally {
    if (before === undefined) Deno.env.delete("REDIS_SERVER");
    else Deno.env.set("REDIS_SERVER", before);
    await Deno.remove(file);
  }
}
