/**
 * The command of one request, or of several that ask for the same operation.
 *
 * @module
 */
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { LockCommand } from "./command_sender.ts";
import { KEEP } from "./scripts/readers.ts";
import type { Operation } from "./scripts/script.ts";

/** The command of one request, or of several with one key each. */
export class RequestCommand implements LockCommand {
  readonly operation: Operation;
  readonly requests: readonly QuorumRequest[];
  /** Whether its script goes out by its digest; else whole. */
  readonly byDigest: boolean;
  /** Without a script, each request is a command. */
  readonly count: number;
  bytes: LockCommand["bytes"] = undefined;

  /** @param requests At least one. */
  constructor(operation: Operation, requests: readonly QuorumRequest[], byDigest = false) {
    this.operation = operation;
    this.requests = requests;
    this.byDigest = byDigest;
    this.count = operation.sha1 ? 1 : requests.length;
  }

  /**
   * The command for all nodes that are asked the same: the first leaves it at its first request,
   * where the others find it, so it is encoded only once. But each has its own `KEEP`, which has
   * the time that is left: a node may be asked again, and later.
   *
   * @param requests At least one. They are copied.
   */
  static shared(
    operation: Operation,
    requests: readonly QuorumRequest[],
    byDigest: boolean,
  ): RequestCommand {
    const { encoded } = requests[0];
    const isSame = encoded instanceof RequestCommand && encoded.operation === operation &&
      operation !== KEEP && encoded.byDigest === byDigest && isEqual(encoded.requests, requests);
    if (isSame) return encoded;
    return requests[0].encoded = new RequestCommand(operation, requests.slice(), byDigest);
  }

  get request(): QuorumRequest {
    return this.requests[0];
  }

  /** Made when it is sent: a release that has keys live on says how long that is from then on. */
  get args(): readonly string[] {
    const { operation: { source, sha1, argv }, requests, byDigest } = this;
    // not by `flatMap`: with that, a client in Node 20 takes a tenth more CPU
    const rest = requests.length === 1
      ? argv(requests[0])
      : ([] as string[]).concat(...requests.map(argv));
    if (sha1 === undefined) return rest;
    const call = byDigest ? "EVALSHA" : "EVAL";
    const script = byDigest ? sha1 : source!;
    const { keys } = this;
    // A literal, because every lock ends with this, and spread arguments take more memory.
    if (keys.length === 1 && rest.length === 1) return [call, script, "1", keys[0], rest[0]];
    return [call, script, String(keys.length), ...keys, ...rest];
  }

  get keys(): readonly string[] {
    const { requests } = this;
    if (requests.length > 1) return requests.map(({ keys }) => keys[0]);
    const { keys, pool } = requests[0];
    return pool?.keys ?? keys;
  }
}

function isEqual(one: readonly QuorumRequest[], other: readonly QuorumRequest[]): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false;
  return true;
}
