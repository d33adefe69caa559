/** The node of the manual on Deno KV: two processes share its database. */

import { testLockNode } from "../../src/testing/mod.ts";
import { startRemoteNode } from "../support/remote_program.ts";

testLockNode(async () => {
  const folder = await Deno.makeTempDir();
  const start = () => startRemoteNode("deno_kv_node.ts", `${folder}/kv`, "--unstable-kv");
  const own = await start();
  return {
    node: own.node,
    peer: start,
    async close() {
      await own.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}, {
  test: (name, run) => Deno.test(`denoKvNode: ${name}`, run),
  without: ["fencing", "adopting", "sharing", "hang"],
});
