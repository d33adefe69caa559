/**
 * Taking a lock away from its holder.
 *
 * @module
 */
import type { ClientState } from "../lock/client_state.ts";
import { type RedlockOptions, TTL_MS_MAX } from "../options.ts";
import { Round } from "../quorum/round.ts";
import { holderOf } from "../holder.ts";
import { askAll, undecided } from "../lock/inspection.ts";
import { findKey, insideOf, type Redlock } from "../redlock.ts";
import { typeError } from "../validate.ts";

/** A holder: the digits, and perhaps more of what a command has printed behind them. */
const HOLDER = /^[\da-f]{8}(?= |$)/u;

/** Options of {@linkcode forceRelease}. */
export interface ForceReleaseOptions extends Pick<RedlockOptions, "keyPrefix" | "nodeTimeoutMs"> {
  /**
   * Whose lock it is, as {@linkcode Holder.holder} shows it: 8 hexadecimal digits, such as
   * `7c1f09be`. What stands behind a space is ignored.
   */
  holder: string;
}

/** A release that waits for every node: the last to answer may be the only one that has the key. */
class ForcedRound extends Round {
  override get decided(): boolean {
    return this.pending === 0;
  }
}

/**
 * Takes a lock away from its holder, such as a process that hangs. Deletes the key only where it
 * has that holder's value, so the next holder keeps the lock, whatever happens meanwhile; waiting
 * calls are notified.
 *
 * The old holder is not stopped: until its next extension, or the end of its validity, two clients
 * may believe that they hold the lock. Only fencing tokens keep its late writes out. If it holds
 * several resources, release each of them.
 *
 * If `inspect` and `list` call the key `foreign`, it may hold the data of another program, which
 * this deletes, too.
 *
 * @param redlock A client of the same nodes.
 * @param resource The resource, a non-empty string.
 * @param options Whose lock it is, and options that replace the client's own.
 * @returns `true` if a node has deleted the key of that holder, `false` if no node that answered
 * had one.
 * @throws {QuorumError} If too few nodes answered. The key may be deleted on some nodes then; call
 * again.
 * @throws {RedlockError} If the client is closed (`CLOSED`).
 * @throws {TypeError} If `redlock` is no client, `resource` is not a non-empty string, `holder` is
 * missing or not of the form that `inspect` shows, or an option is unknown or of the wrong type.
 * @throws {RangeError} If an option is out of range, or the key would begin with `hasp:`.
 */
export async function forceRelease(
  redlock: Redlock,
  resource: string,
  options: ForceReleaseOptions,
): Promise<boolean> {
  const client = insideOf(redlock, "release lock");
  const { key, nodeTimeoutMs } = findKey(client, "release", resource, options, ["holder"]);
  const { holder } = options ?? {};
  if (typeof holder !== "string" || !HOLDER.test(holder)) {
    throw typeError(
      "release lock",
      "'holder' must be 8 hexadecimal digits, as 'inspect' shows them",
    );
  }
  return await releaseKey(client, resource, key, holder, nodeTimeoutMs);
}

/**
 * Reads the value on each node, and has every node delete the key where it has the value of that
 * holder.
 */
async function releaseKey(
  client: ClientState,
  resource: string,
  key: string,
  holder: string,
  timeoutMs: number,
): Promise<boolean> {
  const { quorum } = client;
  const answers = await askAll(client, key, timeoutMs);
  const states = answers.flatMap(({ state }) => state ?? []);
  const values = states.flatMap(({ value, type, sharers }) => {
    return sharers ?? (type === undefined ? [value] : []);
  });
  const found = values.find((value) => holder.startsWith(holderOf(value)));
  if (found === undefined) {
    const votes = answers.map(({ vote }) => vote);
    const answered = votes.filter(({ outcome }) => outcome === "held" || outcome === "free");
    if (answered.length < quorum) {
      await client.noteNoQuorum();
      throw undecided("inspect", client, resource, votes);
    }
    return false;
  }
  const mode = states.some(({ sharers }) => sharers?.includes(found)) ? "shared" : undefined;
  const round = new ForcedRound(client, [key], found, TTL_MS_MAX, { mode });
  await round.ask("release", timeoutMs);
  const { granted, denied, votes } = round;
  if (granted + denied < quorum) {
    await client.noteNoQuorum();
    throw undecided("release", client, resource, votes);
  }
  return granted > 0;
}
