/**
 * Listing the locks of all nodes.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import { closedError } from "../errors.ts";
import { emit } from "../events.ts";
import { quorumError } from "../messages.ts";
import type { RedlockOptions, Settings } from "../options.ts";
import { askNode } from "../quorum/ask_node.ts";
import type { QuorumNode } from "../quorum/quorum_node.ts";
import { isReserved } from "../resources.ts";
import { onRejection } from "../to_error.ts";
import type { Vote } from "../vote.ts";
import { type ListedLock, reportKey } from "./inspection.ts";

/** How many keys the nodes are asked about at a time. */
const BATCH_SIZE = 100;

/** Options of {@linkcode Redlock.list}. The others are those of the client. */
export interface ListOptions
  extends Pick<RedlockOptions, "keyPrefix" | "nodeTimeoutMs" | "onEvent" | "signal"> {
  /**
   * What the listed resources begin with.
   *
   * @default {""}
   */
  prefix?: string | undefined;
}

/**
 * Lists what the nodes have under keys with a prefix. It holds the names that it has listed, because most names are on
 * every node; it asks for the rest in batches, as the caller goes on.
 *
 * @param client The client, whose nodes all have `keys`.
 * @param settings The settings of the call.
 * @param prefix What the resources begin with.
 * @throws {QuorumError} If fewer than a quorum of nodes could list their keys.
 * @throws The reason of `signal`, or a {@linkcode RedlockError} if the client is closed.
 */
export async function* list(
  client: ClientState,
  settings: Settings,
  prefix: string,
): AsyncGenerator<ListedLock, void> {
  const { keyPrefix, nodeTimeoutMs } = settings;
  const listed = new Set<string>();
  for await (const keys of stepsOf(client, settings, keyPrefix + prefix)) {
    const resources: string[] = [];
    for (const key of keys) {
      const resource = key.slice(keyPrefix.length);
      if (resource === "" || isReserved(keyPrefix, resource) || listed.has(resource)) continue;
      listed.add(resource);
      resources.push(resource);
    }
    while (resources.length > 0) {
      throwIfEnded(client, settings);
      const reports = resources.splice(0, BATCH_SIZE).map(async (resource) => {
        return { resource, ...await reportKey(client, keyPrefix + resource, nodeTimeoutMs) };
      });
      for (const report of await Promise.all(reports)) {
        if (report.votes.some(({ outcome }) => outcome === "held")) yield report; // else it is gone by now
      }
    }
  }
}

/** The keys that begin with `start`, on any node: those of the next step on each node at a time. */
async function* stepsOf(
  client: ClientState,
  settings: Settings,
  start: string,
): AsyncGenerator<string[], void> {
  const { nodes, quorum, wheel } = client;
  const { nodeTimeoutMs, onEvent } = settings;
  const votes: Vote[] = nodes.map(({ name }) => ({ node: name, outcome: "granted", elapsedMs: 0 }));
  const scans = nodes.map((node) => keysOf(node, start));
  const unfinished = new Set(nodes.keys());
  const step = async (nodeIndex: number): Promise<readonly string[]> => {
    const next = async () => {
      const { done, value } = await scans[nodeIndex].next();
      if (done) unfinished.delete(nodeIndex);
      return value ? value.map(String) : [];
    };
    const { name: node } = nodes[nodeIndex];
    const answer = await askNode(wheel, nodes[nodeIndex], next, nodeTimeoutMs);
    const { outcome, elapsedMs, value, error } = answer;
    if (outcome === "answered") return value!;
    unfinished.delete(nodeIndex);
    votes[nodeIndex] = { node, outcome, elapsedMs, ...(error && { error }) };
    const cause = error ?? new Error(`it did not answer within ${nodeTimeoutMs} ms`);
    if (onEvent) emit(onEvent, { type: "list-failed", node, error: cause });
    return [];
  };
  try {
    while (unfinished.size > 0) {
      throwIfEnded(client, settings);
      const steps = await Promise.all([...unfinished].map(step));
      throwIfEnded(client, settings);
      if (votes.filter(({ outcome }) => outcome === "granted").length < quorum) {
        throw quorumError("list", [], votes, nodes.length);
      }
      yield steps.flat().filter((key) => key.startsWith(start));
    }
  } finally {
    for (const scan of scans) onRejection(scan.return()); // without waiting for the node
  }
}

/** Calls the node with the first step only: it may be anybody's, and throw. */
async function* keysOf(node: QuorumNode, start: string): AsyncGenerator<readonly string[], void> {
  yield* node.keys!(start);
}

function throwIfEnded({ closed }: ClientState, { signal }: Settings): void {
  signal?.throwIfAborted();
  if (closed) throw closedError("list locks", []);
}
