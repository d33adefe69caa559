/**
 * Taking a lock away from its holder.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import { quorumError } from "../messages.ts";
import { type RedlockOptions, TTL_MS_MAX } from "../options.ts";
import { askToRelease, Round } from "../quorum/round.ts";
import { askAll } from "./inspection.ts";
import { holderOf } from "./holder.ts";

/** A holder: the digits, and perhaps the label. */
const HOLDER = /^[\da-f]{8}(?: [ -~]{1,64})?$/u;

/** Options of {@linkcode Redlock.forceRelease}. */
export interface ForceReleaseOptions extends Pick<RedlockOptions, "keyPrefix" | "nodeTimeoutMs"> {
  /**
   * Whose lock it is, as {@linkcode Inspection.holder} shows it: 8 hexadecimal digits, such as `7c1f09be`, alone or with
   * the label behind them.
   */
  holder: string;
}

/**
 * Checks whose lock is to be released.
 *
 * @throws {TypeError} If it is not in the form of {@linkcode Inspection.holder}.
 */
export function checkHolder(holder: unknown): void {
  if (typeof holder === "string" && HOLDER.test(holder)) return;
  throw new TypeError(
    "Cannot release lock as 'holder' must be 8 hexadecimal digits, and may have a label behind them, as 'inspect' shows it",
  );
}

/** A release that waits for every node: the last to answer may be the only one that has the key. */
class ForcedRound extends Round<ClientState> {
  override get settled(): boolean {
    return this.tally.pending === 0;
  }
}

/**
 * Reads the value on each node, and has every node delete the key where it has the value of that holder: so the next
 * holder's key is never deleted, whatever happens in between.
 *
 * @param client The client.
 * @param resource The resource, for messages.
 * @param key Its key.
 * @param holder The holder, by {@linkcode checkHolder}.
 * @param timeoutMs How long each node may take to answer each of the two questions, in milliseconds.
 * @returns Whether a node has deleted the key.
 * @throws {QuorumError} If too few nodes answered one of the questions.
 */
export async function forceRelease(
  client: ClientState,
  resource: string,
  key: string,
  holder: string,
  timeoutMs: number,
): Promise<boolean> {
  const { nodes, quorum } = client;
  const answers = await askAll(client, key, timeoutMs);
  const states = answers.flatMap(({ state }) => state ?? []);
  const values = states.flatMap(({ value, type, sharers }) => {
    return sharers ?? (type === undefined ? [value] : []);
  });
  const found = values.find((value) => isHolder(holder, value));
  if (found === undefined) {
    const votes = answers.map(({ vote }) => vote);
    const answered = votes.filter(({ outcome }) => outcome === "held" || outcome === "free");
    if (answered.length < quorum) throw quorumError("inspect", [resource], votes, nodes.length);
    return false;
  }
  const round = new ForcedRound(client, [key], found, TTL_MS_MAX);
  if (states.some(({ sharers }) => sharers?.includes(found))) round.mode = "shared";
  await round.ask(askToRelease, timeoutMs);
  const { granted, denied, votes } = round.tally;
  if (granted + denied < quorum) throw quorumError("release", [resource], votes, nodes.length);
  return granted > 0;
}

function isHolder(holder: string, value: string): boolean {
  const found = holderOf(value);
  return found === holder || found.split(" ", 1)[0] === holder;
}
