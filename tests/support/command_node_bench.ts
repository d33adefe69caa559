/**
 * A node on a client whose commands a test can disturb.
 *
 * @module
 */
import { commandNode, type CommandNodeOptions } from "../../src/nodes/mod.ts";
import type { LockNode } from "../../src/quorum/lock_node.ts";
import { eventually } from "./eventually.ts";
import { FakeClient } from "./fake_client.ts";
import type { FakeRequest } from "./fake_request.ts";

/** How long a command may take there, in milliseconds. */
const TIMEOUT_MS = 20;

/** Runs with such a node. */
export async function withCommandNode(
  options: Partial<CommandNodeOptions>,
  run: (client: FakeClient, node: LockNode) => Promise<void>,
): Promise<void> {
  await using client = await FakeClient.open();
  const { send } = client;
  const node = commandNode({ name: "a", send, timeoutMs: TIMEOUT_MS, ...options });
  try {
    await run(client, node);
  } finally {
    await node.close!();
  }
}

/** Waits until a request is answered, and returns how. */
export async function outcomeOf({ answers }: FakeRequest): Promise<string> {
  await eventually(() => answers.length > 0);
  return answers[0][0];
}
