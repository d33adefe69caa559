/**
 * Releases without a script, by the command of newer servers that deletes a key if it holds a value: `DELEX` (Redis 8.4,
 * Dragonfly) or `DELIFEQ` (Valkey 9.0). They cost the server half of what the script costs.
 *
 * `EXISTS` of the queue goes out behind it. If there is a queue, or either command fails, the script follows: it deletes
 * what is left, and notifies the first in the queue.
 *
 * @module
 */
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { ReplyReceiver } from "../redis/command_queue.ts";
import { type ConnectionError, ReplyError } from "../redis/errors.ts";
import { type RawReply, textReply } from "../redis/reply.ts";
import type { CommandSender, LockCommand } from "./command_sender.ts";
import { queueOf } from "./scripts/queue.ts";

/** The arguments behind the name of each command and the key. */
const CONDITIONS: Readonly<Record<string, readonly string[]>> = { delex: ["IFEQ"], delifeq: [] };
const FIND: LockCommand = { args: ["COMMAND", "INFO", ...Object.keys(CONDITIONS)], keys: [] };

/** Which of the two commands a reply answers, in a command's tag; the node's index is behind it. */
const DELETED = 0, QUEUED = 1, TAG_BITS = 1;

/** What becomes of a release that the command alone does not end. */
export interface NativeReleaseOwner {
  /** The script must follow; `deleted` if only because others may wait. */
  onScriptNeeded(request: QuorumRequest, nodeIndex: number, deleted: boolean): void;
  /** The connection broke before both replies. */
  onReleaseFailed(request: QuorumRequest, nodeIndex: number, error: ConnectionError): void;
}

/** The commands of the last release: all nodes are sent the same. */
let last:
  | { name: string; key: string; value: string; deletes: LockCommand; asks: LockCommand }
  | undefined;

/** Releases by native commands on one connection. */
export class NativeRelease implements ReplyReceiver<QuorumRequest | undefined> {
  readonly #connection: CommandSender;
  readonly #owner: NativeReleaseOwner;
  #asked = false;
  /** The command, if the server has it. */
  #name: string | undefined = undefined;
  /** The reply to the command whose `EXISTS` is answered next. */
  #deleted: RawReply = null;

  /**
   * @param connection Replies in the order of the commands.
   * @param owner Receives what becomes of releases.
   */
  constructor(connection: CommandSender, owner: NativeReleaseOwner) {
    this.#connection = connection;
    this.#owner = owner;
  }

  /** The connection is another one, perhaps to another server. */
  onConnected(): void {
    this.#asked = false;
    this.#name = undefined;
  }

  /** Asks once for each connection which command the server has. */
  find(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.#connection.submit(FIND, this, undefined, 0);
  }

  /** The command in use, if the server is known to have one. */
  get command(): string | undefined {
    return this.#name?.toUpperCase();
  }

  /** Does what `RELEASE_KEY` does; returns `false`, and sends nothing, if the server is not known to have a command. */
  release(request: QuorumRequest, nodeIndex: number): boolean {
    const name = this.#name;
    if (name === undefined) return false;
    const { value, keys: [key] } = request;
    if (last?.name !== name || last.value !== value || last.key !== key) {
      const args = [name, key, ...CONDITIONS[name], value];
      const deletes = { args, keys: request.keys };
      last = { name, key, value, deletes, asks: { args: ["EXISTS", queueOf(key)], keys: [] } };
    }
    const { deletes, asks } = last;
    this.#connection.submit(deletes, this, request, nodeIndex << TAG_BITS | DELETED);
    this.#connection.submit(asks, this, request, nodeIndex << TAG_BITS | QUEUED);
    return true;
  }

  onReply(reply: RawReply, request: QuorumRequest | undefined, tag: number): void {
    if (!request) {
      this.#name = nameIn(reply);
    } else if (!(tag & QUEUED)) {
      this.#deleted = reply;
    } else {
      const deleted = this.#deleted === 1;
      const nodeIndex = tag >> TAG_BITS;
      if (reply instanceof ReplyError || this.#deleted instanceof ReplyError) {
        this.#name = undefined;
      }
      // mutation: native-release-notifies-nobody
      if (reply === 0 && (deleted || this.#deleted === 0)) {
        const atMs = this.#connection.receivedAtMs;
        if (deleted) request.grant(nodeIndex, atMs);
        else request.deny(nodeIndex, atMs);
      } else {
        this.#owner.onScriptNeeded(request, nodeIndex, deleted);
      }
    }
  }

  onFailure(error: ConnectionError, request: QuorumRequest | undefined, tag: number): void {
    if (!request || !(tag & QUEUED)) return; // `EXISTS` fails with it
    this.#owner.onReleaseFailed(request, tag >> TAG_BITS, error);
  }
}

/** The first command that a reply to `COMMAND INFO` describes, if it describes one. */
function nameIn(reply: RawReply): string | undefined {
  const names = Array.isArray(reply) ? reply.map((entry) => Array.isArray(entry) && entry[0]) : [];
  return names.map((name) => name && textReply(name)).find((name) => String(name) in CONDITIONS) as
    | string
    | undefined;
}
