/**
 * Asking the nodes what they have under a key, without changing it.
 *
 * @module
 */
import { askNode } from "../quorum/ask_node.ts";
import type { RedlockError } from "../errors.ts";
import { describeHolder, type Holder } from "../holder.ts";
import type { LockMode } from "../options.ts";
import { closedError, foreignKey, lockName, quorumError } from "../messages.ts";
import type { KeyState } from "../quorum/lock_node.ts";
import type { Vote } from "../vote.ts";
import type { ClientState } from "./client_state.ts";

/** The result of {@linkcode Redlock.inspect}: what a quorum of nodes reports about a resource. */
export interface Inspection {
  /**
   * Whether somebody holds the resource: a quorum of nodes has the same value under its key, or in
   * shared mode the same holder.
   */
  readonly held: boolean;
  /**
   * Longest time for which the resource stays held unless its holder extends or releases it, in
   * milliseconds: until fewer than a quorum of nodes have the key. 0 if it is not held, `Infinity`
   * if the keys have no TTL.
   */
  readonly remainingMs: number;
  /** The mode in which it is held; `undefined` if it is not held. */
  readonly mode: LockMode | undefined;
  /**
   * Who holds it, each on a quorum of the nodes: one in exclusive mode, any number in shared mode,
   * in the order in which they acquired it. Empty if the resource is not held, or its key is not a
   * string.
   */
  readonly holders: readonly Holder[];
  /**
   * How many clients wait for the resource. `undefined` if no node reports it, or if the resource
   * is not held.
   */
  readonly waiters: number | undefined;
  /**
   * What is wrong with the key if no lock library can have set it: `has no TTL, so no lock library
   * set it` or `holds a list, so no lock library set it`. Such a key blocks the resource until
   * somebody deletes it, also if nobody holds the resource. `undefined` if the key looks like a
   * lock's, or if fewer than a quorum of nodes have it.
   */
  readonly foreign: string | undefined;
  /**
   * What each node answered: `held` if it has the key, `free` if it does not have it; `failed` and
   * `timed-out` as in every {@linkcode Vote}.
   */
  readonly votes: readonly Vote[];
}

/** What one node answered. */
export interface Answer {
  /** Its vote. */
  readonly vote: Vote;
  /** What it has under the key, if it answered and has something. */
  readonly state: KeyState | undefined;
}

/**
 * One resource in a list of `list()`: as an {@linkcode Inspection}, except for what is said here.
 */
export interface ListedLock extends Omit<Inspection, "held"> {
  /** The resource. */
  readonly resource: string;
  /**
   * `true` if a quorum of nodes has the same value under its key. `false` if only fewer have it:
   * nobody holds the resource, and the key is residue, or the lock is being acquired or released at
   * this moment. `undefined` if the nodes that did not answer decide that.
   */
  readonly held: boolean | undefined;
  /** Who has set the key, on a quorum of nodes or, if it is not held, on fewer. */
  readonly holders: readonly Holder[];
  /** How many clients wait for the resource. `undefined` if no node reports it. */
  readonly waiters: number | undefined;
  /**
   * What is wrong with the key if no lock library can have set it, on a quorum of nodes or on
   * fewer.
   */
  readonly foreign: string | undefined;
}

/** What the nodes have under a key, also if they are too few to decide who holds it. */
export type KeyReport = Omit<ListedLock, "resource">;

/**
 * Asks every node what it has under a key.
 *
 * @param client The client.
 * @param resource The resource, for messages.
 * @param key Its key.
 * @param timeoutMs How long each node may take, in milliseconds.
 * @throws {QuorumError} If the nodes that answered are too few to decide; the resource is not
 * reported as free then.
 * @throws {RedlockError} If the client is closed before that.
 */
export async function inspect(
  client: ClientState,
  resource: string,
  key: string,
  timeoutMs: number,
): Promise<Inspection> {
  const report = await reportKey(client, key, timeoutMs, client.quorum);
  const { held, votes } = report;
  if (held) return { ...report, held };
  if (held === false) return { ...report, held, holders: [], waiters: undefined };
  await client.noteNoQuorum();
  throw undecided("inspect", client, resource, votes);
}

/** The error of a call about a key: the client is closed, or too few nodes answered. */
export function undecided(
  verb: "inspect" | "release",
  { closed, nodes }: ClientState,
  resource: string,
  votes: readonly Vote[] = [],
): RedlockError {
  const resources = [resource];
  if (closed) return closedError(`${verb} ${lockName(resources)}`, resources, votes);
  return quorumError(verb, resources, votes, nodes.length);
}

/**
 * Asks every node what it has under a key; never rejects.
 *
 * @param client The client.
 * @param key The key.
 * @param timeoutMs How long each node may take, in milliseconds.
 * @param foreignOn A key is reported as foreign if so many nodes have it: a quorum at most.
 */
export async function reportKey(
  client: ClientState,
  key: string,
  timeoutMs: number,
  foreignOn = 1,
): Promise<KeyReport> {
  const { quorum } = client;
  const answers = await askAll(client, key, timeoutMs);
  const votes = answers.map(({ vote }) => vote);
  const states = answers.flatMap(({ state }) => state ?? []);
  const silent = votes.filter(({ outcome }) => outcome !== "held" && outcome !== "free").length;
  const most = mostAgreed(states);
  // how many nodes have each of the values that hold the key, alone or in shared mode
  const counts = new Map<string, number>();
  for (const value of states.flatMap(valuesOf)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const holding = [...counts].filter(([, count]) => count >= quorum).map(([value]) => value);
  const highest = Math.max(0, ...counts.values());
  let held: boolean | undefined = highest >= quorum;
  // mutation: silent-nodes-count-as-free
  if (!held && highest + silent >= quorum) held = undefined; // silent nodes may have it, too
  // While the quorum-th longest of the keys lives, there is a quorum of them. A node that did not
  // answer may have one for as long as any other.
  const lives = most.map(({ remainingMs }) => remainingMs).sort((a, b) => b - a);
  const remainingMs = lives[quorum - 1 - silent];
  const type = most.find(({ type }) => type)?.type;
  const queues = states.flatMap(({ waiters }) => waiters ?? []);
  return {
    held,
    remainingMs: held ? remainingMs : 0,
    mode: held ? most[0].sharers ? "shared" : "exclusive" : undefined,
    holders: type === undefined ? holdersOf(held ? holding : most.flatMap(valuesOf)) : [],
    waiters: queues.length > 0 ? Math.max(...queues) : undefined,
    foreign: lives.length >= foreignOn
      ? foreignKey(held ? remainingMs : lives[foreignOn - 1], type)
      : undefined,
    votes,
  };
}

/** Asks every node for what it has under a key; never rejects. */
export function askAll(client: ClientState, key: string, timeoutMs: number): Promise<Answer[]> {
  return Promise.all(client.nodes.map(async (node) => {
    const question = async () => stateOf(await node.inspect(key));
    const answer = await askNode(client, node, question, timeoutMs);
    const { elapsedMs, error, value: state } = answer;
    const outcome = answer.outcome !== "answered" ? answer.outcome : state ? "held" : "free";
    return { vote: { node: node.name, outcome, elapsedMs, ...(error && { error }) }, state };
  }));
}

/** The values that hold a key on one node. */
function valuesOf({ sharers, value }: KeyState): readonly string[] {
  return sharers ?? [value];
}

/** The holders with these values, each once, in the order in which they acquired the lock. */
function holdersOf(values: readonly string[]): Holder[] {
  const atMs = ({ acquiredAt }: Holder) => acquiredAt?.getTime() ?? 0;
  return [...new Set(values)].map(describeHolder).sort((a, b) => atMs(a) - atMs(b));
}

/** The keys with the value that most nodes have; those in shared mode count as one. */
function mostAgreed(states: readonly KeyState[]): readonly KeyState[] {
  const shown = ({ sharers, value }: KeyState) => sharers ? undefined : value;
  const groups = states.map((one) => states.filter((other) => shown(other) === shown(one)));
  return groups.reduce((most, group) => group.length > most.length ? group : most, []);
}

/** The state that a node reported. It may be anybody's. */
function stateOf(reported: KeyState | undefined | null): KeyState | undefined {
  if (reported == null) return undefined;
  const { value, remainingMs, waiters, type, sharers } = reported;
  const isState = Array.isArray(sharers ?? []) &&
    [value, type ?? "", ...sharers ?? []].every((text) => typeof text === "string") &&
    [remainingMs, waiters ?? 0].every((count) => typeof count === "number" && count >= 0);
  if (!isState) throw new TypeError("'inspect' must resolve to a KeyState or undefined");
  return { value, remainingMs, waiters, type, sharers };
}
