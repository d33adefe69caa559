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
import { type RawReply, type Reply, textReply } from "../redis/reply.ts";
import type { CommandSender, LockCommand } from "./command_sender.ts";
import { repliesTo } from "./replies_to.ts";
import { queueOf } from "./scripts/queue.ts";

/** The arguments behind the name of each command and the key. */
const CONDITIONS: Readonly<Record<string, readonly string[]>> = { delex: ["IFEQ"], delifeq: [] };
const NAMES = /* @__PURE__ */ Object.keys(CONDITIONS);

/** Which of the two commands a reply answers, in a command's tag; the node's index is behind it. */
const DELETED = 0, QUEUED = 1, TAG_BITS = 1;

/** What becomes of a release that the command alone does not end. */
export interface NativeReleaseOwner {
  /** The script must follow; `deleted` if only because others may wait. */
  onScriptNeeded(request: QuorumRequest, nodeIndex: number, deleted: boolean): void;
  /** The connection broke before both replies. */
  onReleaseFailed(request: QuorumRequest, nodeIndex: number, error: ConnectionError): void;
}

/** The two commands of a release, for all nodes that have the same one. */
class NativeCommands {
  readonly name: string;
  readonly deletes: LockCommand;
  readonly asks: LockCommand;

  constructor(name: string, { keys, value }: QuorumRequest) {
    const [key] = keys;
    this.name = name;
    this.deletes = { args: [name, key, ...CONDITIONS[name], value], keys };
    this.asks = { args: ["EXISTS", queueOf(key)], keys: [] };
  }
}

/** Releases by native commands on one connection. */
export class NativeRelease implements ReplyReceiver<QuorumRequest> {
  readonly #connection: CommandSender;
  readonly #owner: NativeReleaseOwner;
  #asked = false;
  /** The command, if the server has it. */
  #name: string | undefined = undefined;
  /** The reply to the command whose `EXISTS` is answered next: replies come in the order of the commands. */
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
  async find(): Promise<void> {
    if (this.#asked) return;
    this.#asked = true;
    const asked = repliesTo(this.#connection, [["COMMAND", "INFO", ...NAMES]]);
    const [reply] = await asked.catch(() => [null]);
    this.#name = nameIn(textReply(reply));
  }

  /** The command in use, if the server is known to have one. */
  get command(): string | undefined {
    return this.#name?.toUpperCase();
  }

  /** Does what `RELEASE_KEY` does; returns `false`, and sends nothing, if the server is not known to have a command. */
  release(request: QuorumRequest, nodeIndex: number): boolean {
    const name = this.#name;
    if (name === undefined) return false;
    const { shared } = request;
    const isShared = shared instanceof NativeCommands && shared.name === name;
    const commands = isShared ? shared : new NativeCommands(name, request);
    request.shared = commands;
    const { deletes, asks } = commands;
    this.#connection.submit(deletes, this, request, nodeIndex << TAG_BITS | DELETED);
    this.#connection.submit(asks, this, request, nodeIndex << TAG_BITS | QUEUED);
    return true;
  }

  onReply(reply: RawReply, request: QuorumRequest, tag: number): void {
    if (!(tag & QUEUED)) {
      this.#deleted = reply;
      return;
    }
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

  onFailure(error: ConnectionError, request: QuorumRequest, tag: number): void {
    if (tag & QUEUED) this.#owner.onReleaseFailed(request, tag >> TAG_BITS, error); // both fail
  }
}

/** The first command that a reply to `COMMAND INFO` describes, if it describes one. */
function nameIn(reply: Reply): string | undefined {
  if (!Array.isArray(reply)) return undefined;
  return NAMES.find((name) => reply.some((entry) => Array.isArray(entry) && entry[0] === name));
}
