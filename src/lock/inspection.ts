/**
 * Asking whether a resource is locked, without touching it.
 *
 * @module
 */
import { askNode } from "../quorum/ask_node.ts";
import { lockName, nodeErrors, QuorumError, voteCount } from "../errors.ts";
import type { KeyState, LockNode } from "../quorum/lock_node.ts";
import type { Vote } from "../vote.ts";
import type { ClientState } from "../client_state.ts";

/** What a quorum of nodes says of a resource. */
export interface Inspection {
  /** Whether somebody holds it: one value stands on a quorum of nodes. */
  readonly held: boolean;
  /**
   * For how long it is held at the most if nobody extends or releases it, in milliseconds: until there is no
   * quorum of keys left. 0 where it is not held.
   */
  readonly remainingMs: number;
  /** How many clients stand in line for it, as far as nodes can tell; `undefined` where none can, or nothing is held. */
  readonly waiters: number | undefined;
  /** What each node would answer to an attempt now: `granted` where nothing stands in the way. */
  readonly votes: readonly Vote[];
}

interface Answer {
  readonly vote: Vote;
  readonly state: KeyState | undefined;
}

/**
 * Asks every node what stands under `key`.
 *
 * @param client Who is asked.
 * @param resource What is asked about.
 * @param key Its key.
 * @param timeoutMs How long each node may take, in milliseconds.
 * @throws {QuorumError} If those that answered cannot tell: then it is never reported as free.
 */
export async function inspect(
  client: ClientState,
  resource: string,
  key: string,
  timeoutMs: number,
): Promise<Inspection> {
  const { nodes, quorum } = client;
  const answers = await Promise.all(nodes.map((node) => ask(client, node, key, timeoutMs)));
  const votes = answers.map(({ vote }) => vote);
  const answered = votes.filter(({ outcome }) => outcome === "granted" || outcome === "denied");
  const most = mostAgreed(answers);
  if (most.length >= quorum) {
    // While the quorum-th longest of the keys lives, there is a quorum of them. A node that did not answer may hold
    // one for as long as any other.
    const silent = new Array(nodes.length - answered.length).fill(Math.max(...most));
    const remainingMs = [...most, ...silent].sort((a, b) => b - a)[quorum - 1];
    return { held: true, remainingMs, waiters: longestLine(answers), votes };
  }
  if (most.length + nodes.length - answered.length >= quorum) {
    throw new QuorumError(
      `Cannot inspect ${lockName([resource])}: ${voteCount(votes, nodes.length, quorum)}`,
      { resources: [resource], votes, cause: nodeErrors(votes) },
    );
  }
  return { held: false, remainingMs: 0, waiters: longestLine(answers), votes };
}

function longestLine(answers: readonly Answer[]): number | undefined {
  const lengths = answers.flatMap(({ state }) => state?.waiters ?? []);
  return lengths.length > 0 ? Math.max(...lengths) : undefined;
}

/** For how long each key of that value will live which stands on most nodes. */
function mostAgreed(answers: readonly Answer[]): number[] {
  const remainders = new Map<string, number[]>();
  let most: number[] = [];
  for (const { state } of answers) {
    if (!state) continue;
    const group = remainders.get(state.value) ?? [];
    group.push(state.remainingMs);
    remainders.set(state.value, group);
    if (group.length > most.length) most = group;
  }
  return most;
}

/** Asks one node; never rejects. */
async function ask(
  { wheel }: ClientState,
  node: LockNode,
  key: string,
  timeoutMs: number,
): Promise<Answer> {
  const answer = await askNode(wheel, node, () => node.inspect(key), timeoutMs);
  const { elapsedMs, error, value: state } = answer;
  const answered = state ? "denied" : "granted";
  const outcome: Vote["outcome"] = answer.outcome === "answered" ? answered : answer.outcome;
  const vote = { node: node.name, outcome, elapsedMs };
  return { vote: error ? { ...vote, error } : vote, state };
}
