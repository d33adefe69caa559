/**
 * A simulated node: the commands of the server in memory, on a machine that can crash, hang, forget
 * and misread the time.
 */
import type { EventLoop } from "./event_loop.ts";
import type { Ledger } from "./ledger.ts";
import {
  CommandClock,
  Connection,
  CREATED_KEY,
  encodeReply,
  failure,
  publish,
  queueOf,
  runCommand,
  type ServerState,
  SHARED,
  WAKE_CHANNEL,
} from "./library.ts";
import { type LockCommand, lockCommands } from "./lock_command.ts";
import type { MachineClock } from "./machine_clock.ts";
import type { MessageManners } from "./plan.ts";
import { brokenReaders, heldBy, type HeldKey, readersOf, textOf } from "./readers.ts";
import { RequestReader } from "./request_reader.ts";
import { RememberingKeyspace } from "./remembering_keyspace.ts";
import type { SeededRandom } from "./seeded_random.ts";
import type { Trace } from "./trace.ts";

/** How long a node has been running when it is first asked, in milliseconds. */
const BORN_MS_AGO = 1_000_000_000;
/** How many databases a node has, and which of them the locks belong in. */
const DATABASES = 4;
/** Errors after which a release is not sent again. */
const FINAL = /^(?:ERR|NOPERM|WRONGTYPE) /u;
/** What a replica refuses; with scripts, those too that would write nothing. */
const DEMOTED = {
  text: "READONLY You can't write against a read only replica.",
  commands: ["SET", "EVAL", "EVALSHA"],
};
/** The server's end of one connection. */
export interface NodeSession {
  readonly id: number;
  readonly client: string;
  readonly state: Connection;
  readonly reader: RequestReader;
  /** Sends bytes back. */
  reply(bytes: string): void;
  /** Whether the node has not closed it. */
  open: boolean;
  /** Whether its replies arrive. */
  answers: boolean;
  /** Whether it leads to a server that has become a read-only replica. */
  readOnly: boolean;
  /** When it was last asked something over it. */
  heardAtMs: number;
  /** Whether it repeats, unasked, what came over another one. */
  readonly replayed: boolean;
}

/** What becomes of the messages that a node publishes. */
export interface Messages {
  readonly manners: MessageManners | undefined;
  readonly random: SeededRandom;
  /** Until when, in true time. */
  readonly untilMs: number;
}

/** How long a key had a value, in true time. */
export interface KeyLife {
  readonly key: string;
  readonly value: string;
  readonly fromMs: number;
  toMs: number;
}

/** One node. */
export class SimNode {
  readonly index: number;
  readonly name: string;
  readonly clock: MachineClock;
  /** Whether it runs, and takes connections. */
  up = true;
  /** What it answers to whatever a predicate names, instead of doing it. */
  refusal: { readonly text: string; readonly commands: readonly string[] } | undefined;
  readonly #loop: EventLoop;
  readonly #ledger: Ledger;
  readonly #trace: Trace;
  readonly #database: number;
  readonly #rateMax: number;
  readonly #messages: Messages;
  readonly #state: ServerState;
  readonly #keyspace: RememberingKeyspace;
  readonly #sessions = new Set<NodeSession>();
  #hung = 0;
  #full = 0;
  #demoted = 0;
  /** Which keys there were when, as far as anybody looked; only if there is a trace. */
  readonly lives: KeyLife[] = [];
  #inbox: { session: NodeSession; bytes: string }[] = [];
  #connections = 0;
  damaged = false; // whether a fault has taken single keys from it, or brought some back

  /**
   * @param index Its place among the nodes.
   * @param surroundings What it runs in.
   * @param options The password it asks for, the database locks belong in, and how fast its clock
   * may honestly run.
   */
  constructor(
    index: number,
    surroundings: { loop: EventLoop; clock: MachineClock; ledger: Ledger; trace: Trace },
    options: {
      password: string | undefined;
      database: number;
      rateMax: number;
      messages: Messages;
    },
  ) {
    this.#messages = options.messages;
    this.index = index;
    this.name = `node-${index + 1}`;
    this.clock = surroundings.clock;
    this.#loop = surroundings.loop;
    this.#ledger = surroundings.ledger;
    this.#trace = surroundings.trace;
    this.#database = options.database;
    this.#rateMax = options.rateMax;
    const clock = new CommandClock({ wallMs: () => this.clock.wallAt(this.#loop.nowMs) });
    const databases = Array.from(
      { length: DATABASES },
      () => new RememberingKeyspace(clock, this.#loop),
    );
    this.#keyspace = databases[this.#database];
    const bornMs = clock.wallMs() - BORN_MS_AGO;
    this.#keyspace.set(CREATED_KEY, String(Math.floor(bornMs)));
    const { password } = options;
    this.#state = {
      clock,
      password,
      databases,
      scripts: new Map(),
      connections: new Set(),
      isFull: false,
      runId: "0".repeat(40),
      startedAtMs: bornMs,
    };
  }

  /** Whether it runs but does nothing. */
  get hung(): boolean {
    return this.#hung > 0;
  }

  /** How many connections of clients that live it thinks are open. */
  sessionsOf(clients: readonly { name: string; process: { alive: boolean } }[]): number {
    const alive = new Set(clients.filter(({ process }) => process.alive).map(({ name }) => name));
    return [...this.#sessions].filter(({ client }) => alive.has(client)).length;
  }

  /**
   * Over which connection for commands, still open in both directions, a client has asked it
   * something since then, if it has.
   */
  hears(client: string, sinceMs: number): NodeSession | undefined {
    return [...this.#sessions].find((session) =>
      session.client === client && session.answers && session.heardAtMs > sinceMs &&
      !session.state.subscriptions.size
    );
  }

  /** Whether a client is subscribed to its channel, over a connection that is still open. */
  notifies(client: string): boolean {
    return [...this.#sessions].some((session) =>
      session.client === client && session.open && session.answers &&
      session.state.subscriptions.size
    );
  }

  /** Whether nothing stands under a key, or, for a reader, no writer's value. */
  admits(key: string, shared: boolean): boolean {
    return !this.#keyspace.has(key) || shared && textOf(this.#keyspace, key) === SHARED;
  }

  /** What stands under a key, or, beside other readers, whether the value does. */
  holderOf(key: string, value: string, shared: boolean): string | undefined {
    return heldBy(this.#keyspace, key, value, shared).value;
  }

  /** Takes a connection. */
  accept(client: string, reply: (bytes: string) => void, replayed = false): NodeSession {
    const id = ++this.#connections;
    const state = new Connection(
      this.#state,
      id,
      (message) => this.#deliver(session, encodeReply(message, 2)),
      () => this.drop(session),
    );
    this.#state.connections.add(state);
    const session: NodeSession = {
      id,
      client,
      state,
      reader: new RequestReader((words) => this.#onRequest(session, words)),
      reply,
      open: true,
      answers: true,
      readOnly: this.#demoted > 0,
      heardAtMs: -Infinity,
      replayed,
    };
    this.#sessions.add(session);
    return session;
  }

  /** Sends a message of a channel, which may get lost, come twice, or late. */
  #deliver(session: NodeSession, message: string): void {
    const { manners, random, untilMs } = this.#messages;
    if (!manners || this.#loop.nowMs >= untilMs) return session.reply(message);
    if (random.chance(manners.lostChance)) return;
    for (let copies = random.chance(manners.twiceChance) ? 2 : 1; copies > 0; copies--) {
      const atMs = this.#loop.nowMs + random.between(0, manners.lateMs);
      this.#loop.at(atMs, () => {
        if (this.#sessions.has(session)) session.reply(message);
      });
    }
  }

  /** Takes in bytes; a node that hangs has them wait. */
  receive(session: NodeSession, bytes: string): void {
    if (!this.up) session.open = false; // what follows on bytes that were lost is no request
    if (!session.open) return;
    if (this.hung) this.#inbox.push({ session, bytes });
    else this.#decode(session, bytes);
  }

  /**
   * Ends a connection; whatever came over it and still waits is done all the same, as a kernel
   * would have it.
   */
  drop(session: NodeSession): void {
    this.#sessions.delete(session);
    this.#state.connections.delete(session.state);
  }

  /** Stops doing anything, with its port open. Hangs add up. */
  hang(): void {
    this.#hung++;
  }

  /** Goes on with what has come in the meantime. */
  resume(): void {
    if (this.#hung === 0 || --this.#hung > 0) return;
    const inbox = this.#inbox;
    this.#inbox = [];
    for (const { session, bytes } of inbox) if (session.open) this.#decode(session, bytes);
  }

  /** Stops for good; returns the connections it had. */
  crash(): NodeSession[] {
    this.up = false;
    this.#inbox = [];
    const sessions = [...this.#sessions];
    for (const session of sessions) session.open = false;
    this.#sessions.clear();
    this.#state.connections.clear();
    return sessions;
  }

  /**
   * Starts again.
   *
   * @param data What it still has: everything, nothing, or all but the last so many milliseconds
   * before its crash.
   */
  restart(data: "all" | "none" | number, crashedAtMs: number): void {
    this.up = true;
    this.#state.scripts.clear();
    this.#state.startedAtMs = this.clock.wallAt(this.#loop.nowMs);
    if (data === "none") this.flush();
    else if (data !== "all") {
      this.damaged = true;
      for (const value of this.#keyspace.rollBack(crashedAtMs - data)) {
        this.#ledger.of(value, this.index).reordered = true;
      }
    }
  }

  /** Its memory is full, or, with -1, has room again. */
  fill(by: 1 | -1): void {
    this.#full += by;
    this.#state.isFull = this.#full > 0;
  }

  /**
   * It becomes a replica: connections lead to the new primary only when its name does, and those
   * that stand never. What it had its successor has.
   */
  demote(): void {
    this.#demoted++;
    for (const session of this.#sessions) session.readOnly = true;
  }

  /** Its name leads to the new primary. */
  promote(): void {
    this.#demoted--;
  }

  /** FLUSHALL, from elsewhere. */
  flush(): void {
    for (const keys of this.#state.databases) keys.clear();
  }

  /** Evicts whatever key comes first; says which. */
  evict(): string | undefined {
    const key = this.#keyspace.keys.keys().find((key) => key !== CREATED_KEY);
    this.damaged = true;
    if (key !== undefined) this.#keyspace.delete(key);
    return key;
  }

  /** SCRIPT FLUSH, from elsewhere. */
  flushScripts(): void {
    this.#state.scripts.clear();
  }

  /**
   * Puts a key there, if there is none, as another program would: one that locks the same resource,
   * or has a set there.
   */
  plant(key: string, value: string | undefined, ttlMs: number): void {
    if (!this.up || this.#keyspace.has(key)) return;
    const untilMs = this.#keyspace.nowMs() + BigInt(ttlMs);
    if (value !== undefined) return this.#keyspace.set(key, value, untilMs);
    this.#keyspace.sortedSet(key, true).add("a member", 1);
    this.#keyspace.expireAt(key, untilMs);
  }

  /** The tickets in the queue for a key, in their order. */
  queue(key: string): readonly string[] {
    return this.#keyspace.sortedSet(queueOf(key))?.range(0, -1) ?? [];
  }

  /**
   * Sends clients that are subscribed what somebody else might: garbage, and notifications of
   * tickets old and new.
   */
  forge(): void {
    for (const session of this.up && !this.hung ? this.#sessions : []) {
      for (const channel of session.state.subscriptions) {
        const id = channel.slice(WAKE_CHANNEL.length);
        for (const text of ["hello", "", "other:1", `${id}:1:2`, `${id}:zz`]) {
          publish(this.#state, channel, text);
        }
        for (const number of ["1", "2", "3"]) {
          for (const suffix of ["", "+70", "-70"]) {
            publish(this.#state, channel, `${id}:${number}${suffix}`);
          }
        }
      }
    }
  }

  /**
   * Which readers there are now, of which keys, and for how long by the node's clock, in
   * milliseconds.
   */
  liveReaders(): { key: string; value: string; remainingMs: number }[] {
    return this.liveKeys().filter(({ value }) => value === SHARED)
      .flatMap(({ key }) => readersOf(this.#keyspace, key).map((reader) => ({ key, ...reader })));
  }

  /** Which keys there are now, their values, and for how many milliseconds of the node's clock. */
  liveKeys(): { key: string; value: string; remainingMs: number }[] {
    const live = [];
    for (const key of [...this.#keyspace.keys.keys()]) {
      const value = textOf(this.#keyspace, key);
      if (value === undefined) continue;
      live.push({ key, value, remainingMs: Number(this.#keyspace.remainingMs(key)) });
    }
    return live;
  }

  /**
   * What is repeated may begin or end in the middle of a command; it ends the connection, as with
   * any server.
   */
  #decode(session: NodeSession, bytes: string): void {
    try {
      session.reader.push(bytes);
    } catch (error) {
      if (!session.replayed) throw error;
      session.open = false;
    }
  }

  #onRequest(session: NodeSession, words: string[]): void {
    if (!session.open) return;
    session.heardAtMs = this.#loop.nowMs;
    const replies = this.#refused(session, words) ?? this.#run(session, words);
    if (replies === undefined) return;
    if (this.#trace.on) this.#traceCommand(session, words, replies);
    if (this.#sessions.has(session)) session.reply(replies);
  }

  #refused({ readOnly }: NodeSession, words: readonly string[]): string | undefined {
    const refusal = readOnly ? DEMOTED : this.refusal;
    if (!refusal?.commands.includes(words[0].toUpperCase())) return undefined;
    for (const { ends, value } of FINAL.test(refusal.text) ? lockCommands(words) : []) {
      if (ends) this.#ledger.of(value, this.index).releaseRefused = true;
    }
    return failure(refusal.text);
  }

  #run(session: NodeSession, words: readonly string[]): string {
    const keys = this.#state.databases[session.state.database];
    const commands = lockCommands(words);
    const before = commands.map((each) =>
      each.keys.map((key) => heldBy(keys, key, each.value, each.shared ?? false))
    );
    const reply = runCommand(this.#state, session.state, words);
    commands.forEach((each, index) => {
      const others = commands.filter(({ value }) => value !== each.value);
      this.#note(session, each, before[index], reply, others);
    });
    const named = commands.flatMap((each) => each.keys);
    const broken = this.damaged ? undefined : brokenReaders(keys, named);
    if (broken) this.#ledger.misdeed(`${this.name}, asked by ${session.client}: ${broken}`);
    return reply;
  }

  #note(
    session: NodeSession,
    { operation, ends, keys, value, replaces, shared = false }: LockCommand,
    before: readonly HeldKey[],
    reply: string,
    others: readonly LockCommand[],
  ): void {
    const database = session.state.database;
    const nowMs = this.#loop.nowMs;
    if (session.replayed) this.#ledger.of(value, this.index).reordered = true;
    if (reply.startsWith("-")) {
      // NOSCRIPT is followed by the script; what is refused otherwise stays as it is.
      if (ends && FINAL.test(reply.slice(1))) {
        this.#ledger.of(value, this.index).releaseRefused = true;
      }
      // a request that is repeated holds nothing
      const standing = operation === "acquire" ? replaces : value;
      const holds = standing !== undefined && before.every((was) => was.value === standing);
      if (reply.startsWith("-OOM") && holds) {
        this.#ledger.refused(`${this.name}, which is full, did not ${operation} ${keys.join("+")}`);
      }
      return;
    }
    keys.forEach((key, at) => {
      const keyspace = this.#state.databases[database];
      const { value: now, remainingMs: livesMs } = heldBy(keyspace, key, value, shared);
      const was = before[at].value;
      const isOthers = others.some((other) => other.value === was && other.keys.includes(key));
      if (was !== undefined && was !== value && was !== replaces && now !== was && !isOthers) {
        this.#ledger.misdeed(
          `${this.name} was brought by ${session.client} to ${operation} "${key}" of another`,
        );
      }
      if (operation !== "release" && was !== undefined && was !== value) {
        this.#ledger.of(value, this.index).blockers.push(was);
        // of an adopted lock, it may be the former value, which the client replaces once more
        if (operation === "extend") this.#ledger.missed(value, this.index, key);
      }
      if (operation === "extend" && was === undefined) {
        if (now !== undefined) this.#ledger.misdeed(`${this.name} set "${key}" by an extension`);
        return this.#ledger.missed(value, this.index, key);
      }
      if (operation === "release" && was === value && now !== undefined) {
        const former = this.#ledger.of(now, this.index);
        if (former.releasedOver.size > 0) former.givenBackBy = session.client;
      }
      if (operation === "release" || now !== value || database !== this.#database) return;
      if (operation === "acquire" && was === value) return;
      if (replaces !== undefined) this.#ledger.replaced(replaces, this.index, key);
      const promised = operation === "acquire"
        ? this.#ledger.set(value, this.index, key, session.id)
        : this.#ledger.extended(value, this.index, key, nowMs);
      const untilMs = nowMs + livesMs / this.#rateMax;
      const shortened = was === value && livesMs < before[at].remainingMs;
      promised.untilMs = shortened ? untilMs : Math.max(promised.untilMs, untilMs);
      if (ends) promised.keptUntilMs = nowMs + livesMs * this.#rateMax ** 2; // it may be slow
    });
    if (operation === "release") this.#ledger.released(value, this.index, keys, session.id);
    else if (database !== this.#database) {
      this.#ledger.misdeed(`${this.name} was asked to ${operation} in database ${database}`);
    }
  }

  /** Notes which keys there are now. */
  noteLives(): void {
    const { nowMs } = this.#loop;
    const live = this.up ? this.liveKeys() : [];
    for (const { key, value } of live) {
      const last = this.lives.findLast((life) => life.key === key);
      if (last?.value === value && last.toMs === Infinity) continue;
      this.lives.push({ key, value, fromMs: nowMs, toMs: Infinity });
    }
    for (const life of this.lives) {
      if (life.toMs !== Infinity) continue;
      const lives = live.some(({ key, value }) => key === life.key && value === life.value);
      if (!lives) life.toMs = nowMs;
    }
  }

  #traceCommand(session: NodeSession, words: readonly string[], reply: string): void {
    const texts = lockCommands(words).map(({ operation, keys, value }) =>
      `${operation} ${keys.join("+")} ${value.slice(0, 12)}`
    );
    const text = texts.length > 0 ? texts.join(", ") : words[0];
    this.#trace.add(this.name, `${text} of ${session.client} → ${reply.trim().slice(0, 40)}`);
  }
}
