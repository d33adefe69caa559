/**
 * The node on Bun's own client, in Bun: the cases of `testLockNode`, broken connections, or a
 * crowd. The first argument says which, the second where to ask for servers; a crowd has its
 * options as a third one. Writes a line of JSON for each case, or one with a report.
 */
import { RedisClient } from "bun";
import process from "node:process";
import { commandNode } from "../../src/nodes/mod.ts";
import { testLockNode } from "../../src/testing/mod.ts";
import { bunRedisNode } from "../examples/bun_redis.ts";
import { type RecipeNode, runCrowd } from "../support/crowd.ts";
import { testQueue } from "../integration/queue_cases.ts";
import { breakConnections } from "../support/reconnecting.ts";
import { startRemoteServer } from "../support/remote_server.ts";

const [what = "", controlUrl = "", options = "{}"] = process.argv.slice(2);

const ways: Record<string, () => Promise<void>> = { suite, reconnect, crowd };

/** A client with Bun's own options. */
function defaults(url: string): RecipeNode {
  const redis = new RedisClient(url);
  const name = new URL(url).host;
  const node = commandNode({ name, send: ([name, ...args]) => redis.send(name, args) });
  return { node, close: () => redis.close() };
}

function write(result: object): void {
  console.log(JSON.stringify(result));
}

async function suite(): Promise<void> {
  const factory = async () => {
    const server = await startRemoteServer(controlUrl);
    const { node, close } = await bunRedisNode(server.url);
    return {
      node,
      hang: () => server.pause(),
      resume: () => server.resume(),
      peer: () => bunRedisNode(server.url),
      async close() {
        close();
        await server.stop();
      },
    };
  };
  const cases = testLockNode(factory);
  testQueue(factory, (name, run) => cases.push({ name, run }));
  for (const { name, run } of cases) {
    const error = await run().then(() => undefined, (error) => String(error));
    write({ name, error });
  }
}

async function reconnect(): Promise<void> {
  write(await breakConnections(bunRedisNode, await startRemoteServer(controlUrl)));
}

async function crowd(): Promise<void> {
  const servers = [];
  for (let count = 0; count < 5; count++) servers.push(await startRemoteServer(controlUrl));
  write(await runCrowd([bunRedisNode, defaults], servers, JSON.parse(options)));
}

await ways[what]();
