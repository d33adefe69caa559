/**
 * A {@linkcode CommandSender} over any client that sends a command.
 *
 * Nothing is assumed of the client's own order, nor that it sends a command once. The commands
 * about one key go one after another, each when the one before has been answered, or in one piece
 * with it if the client has a pipeline. What is given to the client at once is an *exchange*
 * ({@linkcode exchange}). An acquisition that got no answer is undone again and again ({@linkcode
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
import {
  type CommandSender,
  type LockCommand,
  repliesTo,
  type SenderEvents,
} from "../redis_node/command_sender.ts";
import { releaseOperation, RequestCommand } from "../redis_node/redis_node.ts";
import { backoffMs, SERVER_BACKOFF } from "../time/backoff.ts";
import { settledWithin } from "../time/pause.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import { type CommandAnswer, connectionError, type Exchange, exchange } from "./exchanges.ts";
import type { Commands } from "./read_reply.ts";
import type { CommandClient } from "./command_node_options.ts";
import { LateAcquires } from "./late_acquires.ts";

/** Most commands in one call of `pipeline`, besides those that wait for one of them. */
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

/** Asks whether the server is back. */
const PING: Commands = [["PING"]];
/** A command that is answered by the length of the key that the server gets, and the key. */
const KEY = "hasp:";
const KEY_LENGTH: readonly string[] = ["EVAL", "return #KEYS[1]", "1", KEY];

/** A command, and who receives its reply. */
interface SubmittedCommand {
  readonly command: LockCommand;
  readonly receiver: ReplyReceiver<LockCommand>;
  readonly tag: number;
  /** How many commands about its keys must be answered before it is sent. */
  waits: number;
  /** The commands that wait for this one. */
  readonly followers: SubmittedCommand[];
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
  /** Of the exchanges that are under way. */
  readonly #controllers: Set<AbortController> = new Set();
  readonly #late: LateAcquires;
  /** The last command about each key that is not answered yet. */
  readonly #last: Map<string, SubmittedCommand> = new Map();
  /** The commands that have not been sent. */
  readonly #unsent: Set<SubmittedCommand> = new Set();
  /** Those of them that wait for no other one. */
  #ready: SubmittedCommand[] = [];
  #flushing = false;
  #waiting = 0;
  /** The one error for all that are refused then. */
  #crowded: ConnectionError | undefined;
  /** How many in a row it has not answered since; {@linkcode SILENT} if the last was a time-out. */
  #failures = 0;
  #lastError: ConnectionError | undefined;
  #probes = 0;
  #probe: TimerEntry | undefined;
  /** Whether keys get to the server as they are. */
  #plainKeys = false;
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
    this.#late = new LateAcquires(wheel, (release) => {
      const request = { ...UNREAD, ...release, ttlMs: 0 };
      // its script goes out whole, so that one command is enough
      this.submit(new RequestCommand(releaseOperation(release), [request]), NOBODY);
    });
  }

  get open(): boolean {
    return !this.#closed && this.#failures < FAILURES_MAX;
  }

  get crowded(): ConnectionError | undefined {
    if (this.#waiting < QUEUE_LENGTH_MAX) return undefined;
    return this.#crowded ??= this.#error(`${QUEUE_LENGTH_MAX} commands wait for replies`);
  }

  submit<Sent extends LockCommand>(command: Sent, receiver: ReplyReceiver<Sent>, tag = 0): void {
    this.#waiting++;
    const { keys } = command;
    const submitted = { command, receiver, tag, waits: 0, followers: [] };
    if (this.#closed || this.#failures === SILENT) {
      return this.#settle(submitted, this.#downError());
    }
    for (const key of keys) {
      const before = this.#last.get(key);
      if (before && before.followers.at(-1) !== submitted) { // which may have several of the keys
        before.followers.push(submitted);
        submitted.waits++;
      }
    }
    for (const key of keys) this.#last.set(key, submitted);
    this.#unsent.add(submitted);
    if (submitted.waits === 0) this.#ready.push(submitted);
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
    await this.#drain();
    if (this.#unsent.size > 0) {
      // out of turn: most clients keep the order, and else it would never be sent
      this.#ready = [...this.#unsent];
      this.#flush();
      await this.#drain();
    }
    this.#closed = true;
    this.#wheel.cancel(this.#probe);
    const error = this.#error("the node was closed", "unknown");
    for (const controller of [...this.#controllers]) controller.abort(error);
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
    const asked = this.#failures === FAILURES_MAX ? this.#ask(PING) : Promise.resolve();
    asked.then(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    const { pipeline } = this.#client;
    while (this.#ready.length > 0) {
      const piece = this.#ready.splice(0, pipeline ? PIPELINE_LENGTH_MAX : 1)
        .filter((command) => this.#unsent.delete(command));
      if (pipeline) this.#addFollowers(piece);
      this.#exchange(piece);
    }
  }

  /** Adds to a piece the commands that wait for nothing but one command of it. */
  #addFollowers(piece: SubmittedCommand[]): void {
    for (const { followers } of piece) { // which adds to it
      for (const follower of followers) {
        if (follower.waits === 1 && this.#unsent.delete(follower)) piece.push(follower);
      }
    }
  }

  /** Sends a piece, and goes on with what waits for it. */
  async #exchange(piece: readonly SubmittedCommand[]): Promise<void> {
    const commands: SubmittedCommand[] = [];
    for (const command of piece) {
      const refusal = this.#refusal(command.command);
      if (refusal) this.#settle(command, refusal);
      else commands.push(command);
    }
    if (commands.length > 0) {
      this.#conclude(commands, await this.#ask(commands.map(({ command }) => command.args)));
    }
    for (const command of piece) {
      const { command: { keys }, followers } = command;
      for (const key of keys) if (this.#last.get(key) === command) this.#last.delete(key);
      for (const follower of followers) {
        if (--follower.waits === 0) this.#ready.push(follower); // if it is not in this piece
      }
    }
    if (this.#ready.length > 0) this.#flushLater();
  }

  /**
   * Why a command is not sent: it sets keys for an attempt that is over; or the node was closed, or
   * is down, where each command would wait for a time-out of its own.
   */
  #refusal({ operation, request }: LockCommand): ConnectionError | undefined {
    const isOver = operation?.kind === "acquire" && !request!.wanted;
    if (isOver) return this.#error("its attempt is over");
    return this.open ? undefined : this.#downError();
  }

  #conclude(commands: readonly SubmittedCommand[], { answers, late }: Exchange): void {
    commands.forEach((command, index) => {
      const answer = answers[index];
      const { operation, request } = command.command;
      if (operation?.kind === "acquire" && answer instanceof ConnectionError) {
        this.#late.add(request!, late); // it may have set the keys, or may still do so
      }
      this.#settle(command, answer);
    });
  }

  #settle({ command, receiver, tag }: SubmittedCommand, answer: CommandAnswer): void {
    if (command.operation?.kind === "release") this.#late.onRelease(command.request!);
    if (answer instanceof ConnectionError) receiver.onFailure(answer, command, tag);
    else receiver.onReply(answer, command, tag);
    // last, because it may need one more command, for a script that the server does not know
    if (--this.#waiting === 0) this.#onDrained?.();
  }

  /** Has one exchange, and notes whether the server has answered. */
  async #ask(commands: Commands): Promise<Exchange> {
    const sentMs = this.#wheel.clock.monotonicMs();
    const controller = new AbortController();
    this.#controllers.add(controller);
    const exchanged = await exchange(this.#client, commands, this.#wheel, controller);
    this.#controllers.delete(controller);
    const { answers, late } = exchanged;
    late?.then((answers) => isAnswered(answers) && this.#onAnswered());
    if (isAnswered(answers)) this.#onAnswered();
    // a server that has answered since is not silent
    else if (!late || this.receivedAtMs <= sentMs) this.#onUnanswered(exchanged);
    return exchanged;
  }

  #onUnanswered({ answers, late }: Exchange): void {
    this.#failures = late ? SILENT : Math.min(this.#failures + 1, FAILURES_MAX);
    this.#lastError = answers[0] as ConnectionError;
    this.#probeLater();
  }

  #onAnswered(): void {
    const wasOpen = this.open;
    this.receivedAtMs = this.#wheel.clock.monotonicMs();
    this.#failures = this.#probes = 0;
    if (!wasOpen && !this.#closed) this.#events.onOpen?.();
  }

  /** While the node is down, one `PING` after another asks whether the server is back. */
  #probeLater(): void {
    if (this.open || this.#closed || this.#probe) return;
    const times = this.#failures === SILENT ? 0 : this.#probes++; // a time-out was a delay
    const delayMs = backoffMs(this.#wheel.random, SERVER_BACKOFF, times);
    this.#probe = this.#wheel.after(delayMs, async () => {
      if (!this.open) await this.#ask(PING); // no command has found it back
      this.#probe = undefined;
      this.#probeLater();
    });
  }

  /** The error of a command that is not sent: the node was closed, or says why it is down. */
  #downError(): ConnectionError {
    if (this.#closed) return this.#error("the node was closed");
    const last = this.#lastError!;
    const { address, message, cause = last } = last;
    const details = { address, outcome: "not-sent", cause } as const;
    return new ConnectionError(`${message} (it counts as down until it answers)`, details);
  }

  #error(why: string, outcome: CommandOutcome = "not-sent"): ConnectionError {
    return connectionError(this.#client.name, why, outcome);
  }
}

/** Whether the server answered at all. */
function isAnswered(answers: readonly CommandAnswer[]): boolean {
  return answers.some((answer) => !(answer instanceof ConnectionError));
}
