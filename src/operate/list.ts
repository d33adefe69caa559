/**
 * Listing the locks of all nodes.
 *
 * @module
 */
import { checkAbilities } from "../client_nodes.ts";
import type { ClientState } from "../lock/client_state.ts";
import { emit } from "../events.ts";
import { closedError, quorumError } from "../messages.ts";
import type { RedlockOptions, Settings } from "../options.ts";
import { askNode } from "../quorum/ask_node.ts";
import type { QuorumNode } from "../quorum/quorum_node.ts";
import { operated } from "../redis_node/operated_node.ts";
import { insideOf, type Redlock } from "../redlock.ts";
import { isReserved } from "../resources.ts";
import type { Vote } from "../vote.ts";
import { check, KEY_TEXT } from "../validate.ts";
import { type ListedLock, reportKey } from "../lock/inspection.ts";

/** How many keys the nodes are asked about at a time. */
const BATCH_SIZE = 100;

/** Options of {@linkcode list}. The others are those of the client. */
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
 * Lists the resources that are locked, and what is left of locks on fewer than a quorum of nodes,
 * in no order. Each node goes through all of its keys, about 200 at a time, and serves others in
 * between. What is locked all the time is listed exactly once. The client holds the names that it
 * has listed.
 *
 * Every key that begins with `keyPrefix` and holds a string counts as a lock, unless the key is not
 * UTF-8, as no resource of this library is. The event `list-failed` reports a node that fails; the
 * list goes on with a quorum of the others.
 *
 * @param redlock A client of the nodes.
 * @param options What the resources begin with, and options that replace the client's own.
 * @returns The resources, each with what the nodes have. Throws as follows with the first one.
 * @throws {QuorumError} If fewer than a quorum of nodes could list their keys, or answer for one of
 * them.
 * @throws {RedlockError} If the client is closed (`CLOSED`).
 * @throws {TypeError} If `redlock` is no client, an option is unknown or of the wrong type, or a
 * node cannot list its keys.
 * @throws {RangeError} If an option is out of range.
 * @throws The reason of `signal`, if it aborts.
 */
export async function* list(
  redlock: Redlock,
  options: ListOptions = {},
): AsyncGenerator<ListedLock, void> {
  const client = insideOf(redlock, "list locks");
  const settings = client.options.resolve("list locks", options, ["prefix"]);
  const { prefix = "" } = options;
  check("list locks", "prefix", prefix, KEY_TEXT);
  const nodes = client.nodes.map(operated);
  checkAbilities("list locks", nodes, { list: true });
  const { keyPrefix, nodeTimeoutMs } = settings;
  const listed = new Set<string>();
  for await (const keys of stepsOf(client, settings, keyPrefix + prefix)) {
    const resources: string[] = [];
    for (const key of keys) {
      const resource = key.slice(keyPrefix.length);
      if (resource === "" || isReserved(key) || listed.has(resource)) continue;
      listed.add(resource);
      resources.push(resource);
    }
    while (resources.length > 0) {
      throwIfEnded(client, settings);
      const reports = resources.splice(0, BATCH_SIZE).map(async (resource) => {
        return { resource, ...await reportKey(client, keyPrefix + resource, nodeTimeoutMs) };
      });
      const all = await Promise.all(reports);
      throwIfEnded(client, settings);
      for (const report of all) {
        const { votes } = report;
        const free = votes.filter(({ outcome }) => outcome === "free").length;
        if (votes.some(({ outcome }) => outcome === "held")) yield report;
        else if (free < client.quorum) throw quorumError("list", [], votes, nodes.length);
        // else it is gone by now
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
  const { nodes, quorum } = client;
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
    const answer = await askNode(client, nodes[nodeIndex], next, nodeTimeoutMs);
    const { outcome, elapsedMs, value, error } = answer;
    if (outcome === "answered") return value!;
    unfinished.delete(nodeIndex);
    votes[nodeIndex] = { node, outcome, elapsedMs, ...(error && { error }) };
    const cause = error ?? new Error(`it did not answer within ${nodeTimeoutMs} ms`);
    emit(onEvent, { type: "list-failed", node, error: cause });
    return [];
  };
  try {
    while (unfinished.size > 0) {
      throwIfEnded(client, settings);
      const steps = await Promise.all([...unfinished].map(step));
      throwIfEnded(client, settings);
      if (votes.filter(({ outcome }) => outcome === "granted").length < quorum) {
        await client.noteNoQuorum();
        throw quorumError("list", [], votes, nodes.length);
      }
      yield steps.flat().filter((key) => key.startsWith(start));
    }
  } finally {
    for (const scan of scans) scan.return().catch(() => {}); // without waiting for the node
  }
}

/** Calls the node with the first step only: it may be anybody's, and throw. */
async function* keysOf(node: QuorumNode, start: string): AsyncGenerator<readonly string[], void> {
  yield* await node.keys!(start); // whose promise would reject with nobody to catch it
}

function throwIfEnded({ closed }: ClientState, { signal }: Settings): void {
  signal?.throwIfAborted();
  if (closed) throw closedError("list locks", []);
}
