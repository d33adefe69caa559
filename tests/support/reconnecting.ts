/** Breaks the connections of a node, and waits until it works again. Runs in any runtime. */
import { quorumNodes } from "../../src/quorum/quorum_node.ts";
import type { Recipe } from "./crowd.ts";
import { eventually } from "./eventually.ts";

/** A server whose connections can be broken. */
export interface BreakableServer {
  /** An address that leads through a proxy. */
  readonly proxyUrl: string;
  restart(): Promise<unknown>;
  /** Makes the present connections silent for good; new ones work. */
  halfOpen(): unknown;
}

/** How often the node has been subscribed. */
export interface ReconnectReport {
  readonly atFirst: number;
  /** After the server has restarted. */
  readonly afterRestart: number;
}

/**
 * Restarts the server, then makes the connections silent, and waits each time until the node
 * answers.
 *
 * @throws {Error} If it does not.
 */
export async function breakConnections(
  recipe: Recipe,
  server: BreakableServer,
): Promise<ReconnectReport> {
  const { node, close } = await recipe(server.proxyUrl);
  let subscribed = 0;
  const answers = () => eventually(() => node.inspect("any"));
  try {
    quorumNodes.get(node)!.subscribe!({
      id: crypto.randomUUID(),
      onSubscribed: () => subscribed++,
      onUnsubscribed() {},
      onRefused() {},
      onQueueMessage() {},
    }, 0);
    await eventually(() => subscribed > 0);
    const atFirst = subscribed;
    await server.restart();
    await answers();
    await eventually(() => subscribed > atFirst);
    const afterRestart = subscribed;
    await server.halfOpen();
    await answers();
    return { atFirst, afterRestart };
  } finally {
    await node.close?.();
    await close();
  }
}
