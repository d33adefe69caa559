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

/** A node, and the client that it is on. */
interface Bench {
  readonly client: FakeClient;
  readonly node: QuorumNode;
}

type Options = Partial<CommandNodeOptions>;

/** Defines a test of such a node with the default options. */
export function test(title: string, act: (bench: Bench) => Promise<void>): void {
  Deno.test(title, () => withCommandNode({}, (client, node) => act({ client, node })));
}

/**
 * Runs with such a node. Time passes as fast as it can while the test waits by {@linkcode pause} or
 * {@linkcode eventually}.
 */
export async function withCommandNode(
  options: Options | ((client: FakeClient) => Options),
  run: (client: FakeClient, node: QuorumNode) => Promise<void>,
): Promise<void> {
  using clock = startFakeClock();
  const running = async () => {
    await using client = await FakeClient.open();
    const { send } = client;
    const given = typeof options === "function" ? options(client) : options;
    const made = commandNode({ name: "a", send, timeoutMs: TIMEOUT_MS, ...given });
    const node = quorumNodes.get(made)!;
    try {
      await run(client, node);
    } finally {
      await node.close!();
    }
  };
  await clock.tickUntil(running());
}

/** Options with which a node sends commands by one of its two functions, each by `send`. */
export function sentBy(way: "send" | "pipeline", send: CommandNodeOptions["send"]): Options {
  if (way === "send") return { send };
  return {
    pipeline: (commands, signal) =>
      Promise.all(
        commands.map((args) => Promise.resolve(send(args, signal)).catch((error) => error)),
      ),
  };
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
