/** The node of the manual on Deno KV: two processes share its database. */

import { testLockNode } from "../../src/testing/mod.ts";
import { startProgram } from "../support/programs.ts";
import { RemoteNode } from "../support/remote_node.ts";

testLockNode(async () => {
  const folder = await Deno.makeTempDir();
  const start = async () => {
    const flags = ["--unstable-kv", "--allow-read", "--allow-write"];
    const program = startProgram("deno_kv_node.ts", [`${folder}/kv`], { flags });
    try {
      const url = await program.line(/^ws:/);
      return { node: await RemoteNode.connect(url), close: () => program[Symbol.asyncDispose]() };
    } catch (error) {
      await program[Symbol.asyncDispose]();
      throw error;
    }
  };
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
  without: ["fencing", "adopting", "hang"],
});
