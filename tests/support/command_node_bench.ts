/** A node on a client whose commands a test can disturb, on faked time. */
import { commandNode, type CommandNodeOptions } from "../../src/nodes/mod.ts";
import { type QuorumNode, quorumNodes } from "../../src/quorum/quorum_node.ts";
import { systemClock } from "../../src/time/clock.ts";
import { startFakeClock } from "../../src/testing/mod.ts";
import { FakeClient } from "./fake_client.ts";
import type { FakeRequest } from "./fake_request.ts";

/** How long a command may take there, in milliseconds. */
const TIMEOUT_MS = 20;
/** Pause between two looks at a condition, in milliseconds. */
const POLL_EVERY_MS = 5;
/** How long a condition may take, in milliseconds. */
const GIVE_UP_AFTER_MS = 60_000;

/**
 * Runs with such a node. Time passes as fast as it can while the test waits by {@linkcode pause} or
 * {@linkcode eventually}.
 */
export async function withCommandNode(
  options: Partial<CommandNodeOptions>,
  run: (client: FakeClient, node: QuorumNode) => Promise<void>,
): Promise<void> {
  using clock = startFakeClock();
  const running = async () => {
    await using client = await FakeClient.open();
    const { send } = client;
    const node = quorumNodes.get(
      commandNode({ name: "a", send, timeoutMs: TIMEOUT_MS, ...options }),
    )!;
    try {
      await run(client, node);
    } finally {
      await node.close!();
    }
  };
  await clock.tickUntil(running());
}

/** Waits on faked time. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimer(resolve, ms));
}

/**
 * Waits on faked time until `check` resolves to true.
 *
 * @throws {Error} If it does not within a minute.
 */
export async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAtMs = systemClock.monotonicMs() + GIVE_UP_AFTER_MS;
  while (!await check()) {
    if (systemClock.monotonicMs() > giveUpAtMs) throw new Error(`Condition not met: ${check}`);
    await pause(POLL_EVERY_MS);
  }
}

/** Waits until a request is answered, and returns how. */
export async function outcomeOf({ answers }: FakeRequest): Promise<string> {
  await eventually(() => answers.length > 0);
  return answers[0][0];
}
