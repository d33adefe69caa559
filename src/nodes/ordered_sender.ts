/**
 * A {@linkcode CommandSender} over any client that sends a command.
 *
 * Nothing is assumed of the client's own order, nor that it sends a command once. The commands
 * about one key go one after another, each when the one before has been answered: those of one tick
 * about the same keys are a *chain*, and what is given to the client at once is an *exchange*
 * ({@linkcode Exchanges}). An acquisition that got no answer is undone again and again ({@linkcode
 * LateAcquires}).
 *
 * There is no connection here, so the node counts as down after two failures in a row or one
 * time-out, and `PING` finds out when the server is back. If the client refuses at once, each piece
 * of commands has such a `PING` ahead of it, so the node is back with the client. If the client is
 * silent, commands fail at once, because a `PING` would hold them up.
 *
 * @module
 */
import { UNREAD } from "../quorum/quorum_node.ts";
import { QUEUE_LENGTH_MAX } from "../redis/connection.ts";
import { type CommandOutcome, ConnectionError } from "../redis/errors.ts";
import { NOBODY, type ReplyReceiver } from "../redis/wire.ts";
import type { RawReply } from "../redis/reply.ts";
import {
  type CommandSender,
  type LockCommand,
  repliesTo,
  type SenderEvents,
} from "../redis_node/command_sender.ts";
import { releaseOperation, RequestCommand } from "../redis_node/redis_node.ts";
import { backoffMs, SERVER_BACKOFF } from "../time/backoff.ts";
import { settledWithin } from "../time/settled_within.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import { type CommandAnswer, connectionError, type Exchange, Exchanges } from "./exchanges.ts";
import type { Commands } from "./read_reply.ts";
import type { CommandClient } from "./command_node_options.ts";
import { LateAcquires } from "./late_acquires.ts";

/** Most commands in one call of `pipeline`. */
const PIPELINE_LENGTH_MAX = 256;
/** After this many failures in a row the node counts as down. */
const FAILURES_MAX = 2;
/** What a time-out counts as: the node is silent, until a command is answered or refused. */
const SILENT = FAILURES_MAX + 1;
/**
 * Longest wait of `close` for replies that are due, in milliseconds; and once more for what they
 * have held back.
 */
const CLOSE_GRACE_MS = 250;

/** A command that is answered by the length of the key that the server gets, and the key. */
const KEY = "hasp:";
const KEY_LENGTH: readonly string[] = ["EVAL", "return #KEYS[1]", "1", KEY];

/** A command, and who receives its reply. */
interface SubmittedCommand {
  readonly command: LockCommand;
  readonly receiver: ReplyReceiver;
  readonly context: unknown;
  readonly tag: number;
}

/** Commands about the same keys, submitted in one tick: they are sent in their order. */
class CommandChain {
  /** The keys of locks that they are about. */
  readonly keys: readonly string[];
  /** The commands that have not been sent yet. */
  readonly commands: SubmittedCommand[] = [];
  /** How many earlier chains about one of the keys are not finished. */
  waits = 0;
  /** The chains that wait for this one. */
  readonly followers: CommandChain[] = [];

  constructor(keys: readonly string[]) {
    this.keys = keys;
  }

  /** Whether a command belongs to this chain: it is about the same keys, or about no key. */
  takes({ keys }: LockCommand): boolean {
    return keys.length === 0 ||
      keys.length === this.keys.length && keys.every((key, index) => key === this.keys[index]);
  }
}

/** The chains that are not finished, and the last one about each key. */
class KeyOrder {
  /** In the order in which they came. */
  readonly chains: Set<CommandChain> = new Set();
  readonly #last: Map<string, CommandChain> = new Map();

  /** Puts a new chain behind the earlier ones about its keys. */
  append(chain: CommandChain): void {
    this.chains.add(chain);
    for (const key of new Set(chain.keys)) {
      const before = this.#last.get(key);
      if (before) {
        before.followers.push(chain);
        chain.waits++;
      }
      this.#last.set(key, chain);
    }
  }

  /**
   * A chain is finished.
   *
   * @param chain The chain.
   * @returns The chains that waited for it alone.
   */
  finish(chain: CommandChain): CommandChain[] {
    this.chains.delete(chain);
    for (const key of chain.keys) if (this.#last.get(key) === chain) this.#last.delete(key);
    return chain.followers.filter((follower) => --follower.waits === 0);
  }
}

/** See the module. */
export class OrderedSender implements CommandSender {
  /** It has no connection of its own to wait for. */
  readonly readyAtMs = 0;
  readonly password = undefined;
  receivedAtMs = 0;
  readonly #client: CommandClient;
  readonly #wheel: TimerWheel;
  readonly #events: SenderEvents;
  readonly #exchanges: Exchanges;
  readonly #order = new KeyOrder();
  readonly #late: LateAcquires;
  /** The last chain of this tick, which takes further commands about its keys. */
  #last: CommandChain | undefined;
  /** The chains that wait for no other one. */
  #ready: CommandChain[] = [];
  #flushing = false;
  #waiting = 0;
  /** The one error for all that are refused then. */
  #crowded: ConnectionError | undefined;
  /** How many exchanges the server has answered. */
  #answered = 0;
  /** How many in a row it has not answered since; {@linkcode SILENT} if the last was a time-out. */
  #failures = 0;
  #lastError: ConnectionError | undefined;
  #probes = 0;
  #probe: TimerEntry | undefined;
  /** Whether keys get to the server as they are. */
  #plainKeys = false;
  /** Whether `close` was called: nobody asks it any more, but what undoes others is still sent. */
  #closing = false;
  #closed = false;
  #onDrained: (() => void) | undefined;

  /**
   * @param client The client.
   * @param wheel Where timers wait.
   * @param events What is reported to the node.
   */
  constructor(client: CommandClient, wheel: TimerWheel, events: SenderEvents) {
    this.#client = client;
    this.#wheel = wheel;
    this.#events = events;
    this.#exchanges = new Exchanges(client, wheel);
    this.#late = new LateAcquires(wheel, (release) => {
      const request = { ...UNREAD, ...release, ttlMs: 0 };
      // whole, so that one command is enough
      const command = new RequestCommand(releaseOperation(release), request, undefined, true);
      this.submit(command, NOBODY);
    });
  }

  get open(): boolean {
    return !this.#closing && !this.#down;
  }

  get #down(): boolean {
    return this.#failures >= FAILURES_MAX;
  }

  get crowded(): ConnectionError | undefined {
    if (this.#waiting < QUEUE_LENGTH_MAX) return undefined;
    return this.#crowded ??= this.#error(`${QUEUE_LENGTH_MAX} commands wait for replies`);
  }

  submit<Context>(
    command: LockCommand,
    receiver: ReplyReceiver<Context>,
    context = undefined as Context,
    tag = 0,
  ): void {
    this.#late.onRelease(command.releases);
    // it would end all other commands of the same connection; those of locks have keys
    const refused = command.keys.length === 0 && command.args[0] === "SUBSCRIBE";
    if (refused || this.#closed || this.#failures === SILENT) {
      return receiver.onFailure(this.#downError(), context, tag);
    }
    this.#waiting++;
    if (!this.#last?.takes(command)) {
      const chain = this.#last = new CommandChain(command.keys);
      this.#order.append(chain);
      if (chain.waits === 0) this.#ready.push(chain);
    }
    this.#last.commands.push({ command, receiver, context, tag });
    this.#flushLater();
  }

  leave(): void {} // its client finds the primary

  async expectPlainKeys(): Promise<void> {
    if (this.#plainKeys) return;
    const [length] = await repliesTo(this, [KEY_LENGTH]);
    if (typeof length !== "number") return; // the server does not allow it
    this.#plainKeys = length === KEY.length;
    if (this.#plainKeys) return;
    const instead = "give the node a client that adds none, and 'keyPrefix' to Redlock";
    const { name } = this.#client;
    throw new TypeError(`Cannot read keys of ${name} as its client adds a prefix: ${instead}`);
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#wheel.cancel(this.#probe);
    await this.#drain();
    const heldBack = [...this.#order.chains].filter(({ commands }) => commands.length > 0);
    if (heldBack.length > 0) {
      // out of turn: most clients keep the order, and else it would never be sent
      this.#ready = heldBack;
      this.#flush();
      await this.#drain();
    }
    this.#closed = true;
    this.#exchanges.endAll(this.#error("the node was closed", "unknown"));
  }

  /** Waits a moment for the replies that are due. */
  async #drain(): Promise<void> {
    if (this.#waiting === 0) return;
    const drained = new Promise<void>((resolve) => this.#onDrained = resolve);
    await settledWithin(this.#wheel, drained, CLOSE_GRACE_MS);
  }

  /** Sends at the end of the tick, so that all its commands are in one piece. */
  #flushLater(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    const asked = this.#failures === FAILURES_MAX ? this.#ping() : Promise.resolve();
    asked.then(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    this.#last = undefined;
    const ready = this.#ready;
    this.#ready = [];
    while (ready.length > 0) {
      this.#exchange(this.#client.pipeline ? pieceOf(ready) : [ready.shift()!]);
    }
  }

  /** Sends the commands of chains: all in one piece, or the first command of a single chain. */
  async #exchange(chains: CommandChain[]): Promise<void> {
    const commands = chains.flatMap((chain) => this.#takeCommands(chain));
    if (commands.length === 0) return this.#finish(chains);
    const { answers, atMs, late } = await this.#ask(commands.map(({ command }) => command.args));
    commands.forEach((command, index) => {
      const answer = answers[index];
      if (!(answer instanceof ConnectionError)) return this.#deliver(command, answer, atMs);
      const { sets } = command.command;
      if (sets) { // it may have set them, or may still do so
        const answered = late?.then((answers) => !(answers[index] instanceof ConnectionError));
        this.#late.add(sets.value, sets.ttlMs, answered);
      }
      this.#fail(command, answer);
    });
    this.#finish(chains);
  }

  /**
   * Takes the commands that are sent next: all of them, or one if they cannot be sent in one piece.
   * Fails those that set keys for attempts that are over, and while the node is down all: each
   * would wait for a time-out of its own.
   */
  #takeCommands({ commands }: CommandChain): SubmittedCommand[] {
    return commands.splice(0, this.#client.pipeline ? commands.length : 1).filter((command) => {
      const isOver = command.command.sets?.wanted === false;
      if (!isOver && !this.#down) return true;
      this.#fail(command, isOver ? this.#error("its attempt is over") : this.#downError());
      return false;
    });
  }

  #deliver(command: SubmittedCommand, reply: RawReply, atMs: number): void {
    const { receiver, context, tag } = command;
    this.receivedAtMs = atMs;
    receiver.onReply(reply, context, tag);
    // last, because it may need one more command, for a script that the server does not know
    this.#settle(command);
  }

  #fail(command: SubmittedCommand, error: ConnectionError): void {
    const { receiver, context, tag } = command;
    this.#settle(command);
    receiver.onFailure(error, context, tag);
  }

  #settle({ command }: SubmittedCommand): void {
    // the acquisition before it may have failed only after the release was submitted
    this.#late.onRelease(command.releases);
    if (--this.#waiting === 0) this.#onDrained?.();
  }

  /** Goes on with what is left of the chains, and with what waited for them. */
  #finish(chains: readonly CommandChain[]): void {
    for (const chain of chains) {
      if (chain.commands.length > 0) this.#ready.push(chain);
      else this.#finish(this.#order.finish(chain));
    }
    if (this.#ready.length > 0) this.#flushLater();
  }

  /** Has one exchange, and notes whether the server has answered. */
  async #ask(commands: Commands): Promise<Exchange> {
    const answered = this.#answered;
    const exchange = await this.#exchanges.run(commands);
    const { answers, late } = exchange;
    late?.then((answers) => isAnswered(answers) && this.#onAnswered());
    if (isAnswered(answers)) this.#onAnswered();
    // a server that has answered since is not silent
    else if (!late || this.#answered === answered) this.#onUnanswered(exchange);
    return exchange;
  }

  #onUnanswered({ answers, late }: Exchange): void {
    const wasOpen = this.open;
    this.#failures = late ? SILENT : Math.min(this.#failures + 1, FAILURES_MAX);
    this.#lastError = answers[0] as ConnectionError;
    if (!wasOpen || !this.#down) return;
    this.#events.onLost?.(this.#lastError);
    this.#probeLater();
  }

  #onAnswered(): void {
    const wasDown = this.#down;
    this.#answered++;
    this.#failures = this.#probes = 0;
    if (!wasDown || this.#closing) return;
    this.#wheel.cancel(this.#probe);
    this.#probe = undefined;
    this.#events.onOpen?.();
    this.#events.onAccepted?.();
  }

  #probeLater(): void {
    const delayMs = backoffMs(this.#wheel.random, SERVER_BACKOFF, this.#probes++);
    const probe = this.#probe = this.#wheel.after(delayMs, async () => {
      await this.#ping();
      if (this.#failures === SILENT) this.#probes = 0; // the time-out was a delay
      if (this.#probe === probe && !this.#closing) this.#probeLater();
    });
  }

  /** Asks whether the server is back. */
  async #ping(): Promise<void> {
    await this.#ask([["PING"]]);
  }

  #downError(): ConnectionError {
    const last = this.#down ? this.#lastError : undefined;
    const cause = last?.cause ?? last;
    return connectionError(this.#client.name, "it is down or closed", "not-sent", cause as Error);
  }

  #error(why: string, outcome: CommandOutcome = "not-sent"): ConnectionError {
    return connectionError(this.#client.name, why, outcome);
  }
}

/** Takes as many chains as fit into one call of `pipeline`: at least one. */
function pieceOf(ready: CommandChain[]): CommandChain[] {
  let length = 0;
  const end = ready.findIndex(({ commands }, index) => {
    length += commands.length;
    return index > 0 && length > PIPELINE_LENGTH_MAX;
  });
  return ready.splice(0, end === -1 ? ready.length : end);
}

/** Whether the server answered at all. */
function isAnswered(answers: readonly CommandAnswer[]): boolean {
  return answers.some((answer) => !(answer instanceof ConnectionError));
}
