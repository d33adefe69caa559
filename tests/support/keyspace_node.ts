/**
 * Nodes in memory, in a test's hands. What a node does with keys, queues and counters is what the
 * server in memory does, which is compared with real servers; a test says when it does it, and
 * whether it answers.
 */
import { commandBytes } from "./command_bytes.ts";
import { FAILED, GRANTED, OUTDATED, QUARANTINED } from "../../src/quorum/outcome.ts";
import type { KeyState } from "../../src/quorum/lock_node.ts";
import type { Question, QuorumNode, QuorumRequest } from "../../src/quorum/quorum_node.ts";
import type * as queue from "../../src/quorum/queue_ticket.ts";
import { ReplyError } from "../../src/redis/errors.ts";
import type { RawReply } from "../../src/redis/reply.ts";
import {
  detailOf,
  operationOf,
  releaseOperation,
  RequestCommand,
} from "../../src/redis_node/redis_node.ts";
import { COUNTER_PREFIX } from "../../src/redis_node/scripts/fencing.ts";
import type { Operation as LockOperation } from "../../src/redis_node/scripts/script.ts";
import { queueOf, readMessage } from "../../src/redis_node/scripts/queue.ts";
import { READERS_PREFIX, SHARED } from "../../src/redis_node/scripts/readers.ts";
import { RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import { ticketOf } from "./fake_request.ts";
import type { MemorySession } from "../../src/testing/mod.ts";
import type { Clock } from "../../src/time/clock.ts";
import { KeyspaceServer } from "./keyspace_server.ts";

/** What a node is asked. */
export type Operation = Question | "inspect";

/**
 * What a node does with a request: answers it; keeps it until {@linkcode KeyspaceNode.resume}; does
 * what it asks without answering; or answers with an error.
 */
export type Mode = "answer" | "hang" | "lose-reply" | "fail";

/** One request, as a node got it. */
export interface Call {
  readonly operation: Operation;
  readonly keys: readonly string[];
  readonly value: string;
  readonly ttlMs: number;
  readonly counterHint: number | undefined;
  readonly counterFloor: number | undefined;
  /** The priority of an acquisition; `undefined` without a ticket. */
  readonly priority: "in-order" | undefined;
  readonly atMs: number;
}

/** One node. */
export class KeyspaceNode implements QuorumNode {
  readonly name: string;
  readyAtMs: number | undefined = undefined;
  resends = false;
  /** What it does with requests, unless {@linkcode modes} says otherwise for a kind of them. */
  mode: Mode = "answer";
  readonly modes: Partial<Record<Operation, Mode>> = {};
  /** What takes the requests of one kind in its place. */
  readonly instead: Partial<Record<Question, (request: QuorumRequest, nodeIndex: number) => void>> =
    {};
  /** Called before a request of one kind takes effect. */
  readonly before: Partial<Record<Operation, () => void>> = {};
  /**
   * How long a request travels, an answer, and a subscription (`Infinity`: for ever), in
   * milliseconds.
   */
  requestMs = 0;
  replyMs = 0;
  subscribeMs = 0;
  /** The error with which it refuses subscriptions. */
  refusal: Error | undefined = undefined;
  /** Whether its counters may be outdated, as after a restart. */
  outdated = false;
  /** Whether it knows what a pool of keys is; else it sees each attempt as one for a single key. */
  knowsPools = true;
  /** Whether the restart guard keeps it from granting. */
  quarantined = false;
  /** What it was asked, in order. */
  readonly calls: Call[] = [];
  /** The tickets that left its queues, in order. */
  readonly leaves: string[] = [];
  /** How often it was asked to subscribe, to unsubscribe and to close. */
  subscribes = 0;
  unsubscribes = 0;
  closed = 0;
  readonly #clock: Clock;
  readonly #server: KeyspaceServer;
  readonly #kept: (() => void)[] = [];
  #listener: queue.ReleaseListener | undefined = undefined;
  #nodeIndex = 0;
  #subscription: MemorySession | undefined = undefined;

  constructor(name: string, clock: Clock, server = new KeyspaceServer(clock)) {
    this.name = name;
    this.#clock = clock;
    this.#server = server;
  }

  /** The same server, as another client comes to it. */
  peer(): KeyspaceNode {
    return new KeyspaceNode(this.name, this.#clock, this.#server);
  }

  // What a test does to it

  /** Has its clock be ahead, in milliseconds. */
  set aheadMs(aheadMs: number) {
    this.#server.aheadMs = aheadMs;
  }

  /** Does and answers now what it kept, and goes on. */
  resume(): void {
    this.mode = "answer";
    for (const operation of Object.keys(this.modes)) delete this.modes[operation as Operation];
    for (const act of this.#kept.splice(0)) act();
  }

  /** Has somebody else hold `key`. */
  set(key: string, value: string, ttlMs = Infinity): void {
    this.#server.ask("SET", key, value, ...ttlMs === Infinity ? [] : ["PX", ttlMs]);
  }

  /** Has a client that {@linkcode enqueue} subscribed be gone. */
  leaveChannel(id: string): void {
    this.#server.unsubscribe(id);
  }

  /** Deletes `key`, and notifies nobody. */
  delete(key: string): void {
    this.#server.ask("DEL", key);
  }

  /** Has the holder of `key` release it. */
  free(key = "a"): void {
    const content = { keys: [key], value: this.holder(key) ?? "" };
    this.#server.send(commandBytes(wordsOf(releaseOperation(content), content)));
  }

  /** Forgets everything, as a server that restarts without its data. */
  forget(): void {
    this.#server.ask("FLUSHALL");
  }

  /** Sets the counter of `key`. */
  count(key: string, count: number): void {
    this.#server.ask("SET", COUNTER_PREFIX + key, count);
  }

  /** Puts tickets of other clients, which are subscribed, at the end of a queue. */
  enqueue(key: string, ...tickets: string[]): void {
    for (const ticket of tickets) {
      const [, last = 0] = this.#server.ask("ZRANGE", queueOf(key), -1, -1, "WITHSCORES") as [];
      this.raise(key, ticket, Number(last) + 1);
      this.#server.subscribe(ticket.split(":")[0]);
    }
  }

  /** Gives a ticket in a queue this score. */
  raise(key: string, ticket: string, score: number): void {
    this.#server.ask("ZADD", queueOf(key), score, ticket);
  }

  /** Takes tickets out of a queue, and notifies nobody. */
  drop(key: string, ...tickets: string[]): void {
    this.#server.ask("ZREM", queueOf(key), ...tickets);
  }

  /** Notifies a ticket of this client, whether or not anything is free. */
  notify(
    member: string,
    notice: queue.QueueNotice = "turn",
    waitMs = notice === "taken" ? 30_000 : 50,
  ): void {
    this.#listener!.onQueueMessage(this.#nodeIndex, { ...readMessage(member)!, notice, waitMs });
  }

  /** Ends the subscription, for the time being. */
  cut(): void {
    this.#endSubscription();
    this.#listener!.onUnsubscribed(this.#nodeIndex);
  }

  /** Confirms the subscription, for the first time or again. */
  confirm(): void {
    const listener = this.#listener!;
    this.#endSubscription();
    this.#subscription = this.#server.subscribe(listener.id, (text) => {
      const message = readMessage(text)!;
      queueMicrotask(() => listener.onQueueMessage(this.#nodeIndex, message));
    });
    const [seconds, microseconds] = (this.#server.ask("TIME") as string[]).map(Number);
    const nowMs = this.#clock.monotonicMs();
    const timeMs = seconds * 1_000 + microseconds / 1_000;
    listener.onSubscribed(this.#nodeIndex, { timeMs, sentMs: nowMs, receivedMs: nowMs });
  }

  /** Refuses the subscription for good. */
  refuse(error: Error): void {
    this.#endSubscription();
    this.#listener!.onRefused(this.#nodeIndex, error);
  }

  // What a test sees of it

  /** Who holds `key`, if anybody does. */
  holder(key = "a"): string | undefined {
    const value = this.#server.ask("GET", key);
    return typeof value === "string" ? value : undefined;
  }

  /** How long `key` lives, in milliseconds. */
  lifeMs(key = "a"): number {
    const pttl = Number(this.#server.ask("PTTL", key));
    return pttl === -1 ? Infinity : Math.max(pttl, 0);
  }

  /** The values of the readers of `key`, the one that ends first at first. */
  readers(key = "a"): string[] {
    return this.#server.ask("ZRANGE", READERS_PREFIX + key, 0, -1) as string[];
  }

  /** The counter of `key`. */
  counter(key = "a"): number | undefined {
    const count = this.#server.ask("GET", COUNTER_PREFIX + key);
    return count === null ? undefined : Number(count);
  }

  /** The tickets in the queue for `key`, in their order. */
  queue(key = "a"): string[] {
    return this.#server.ask("ZRANGE", queueOf(key), 0, -1) as string[];
  }

  /** The score of a ticket in the queue for `key`; NaN if it is not there. */
  score(ticketId: string, key = "a"): number {
    return Number(this.#server.ask("ZSCORE", queueOf(key), ticketId) ?? NaN);
  }

  /**
   * What subscribed clients got: a ticket that is the first, or one that is the second and a sign.
   */
  get messages(): readonly string[] {
    return this.#server.messages;
  }

  /** The requests of one kind. */
  asked(operation: Operation): Call[] {
    return this.calls.filter((call) => call.operation === operation);
  }

  /** The kinds of all requests, in order. */
  get steps(): string {
    return this.calls.map(({ operation }) => operation).join(" ");
  }

  /** The priorities of all acquisitions, in order. */
  get priorities(): string[] {
    return this.asked("acquire").map(({ priority }) => priority ?? "none");
  }

  // What a client asks it

  ask(question: Question, request: QuorumRequest, nodeIndex: number): void {
    const instead = this.instead[question];
    if (instead) instead(request, nodeIndex);
    else this.take(question, request, nodeIndex);
  }

  /** Does what it is asked. */
  take(question: Question, request: QuorumRequest, nodeIndex: number): void {
    const queues = request.ticket !== undefined && this.#subscription !== undefined;
    const operation = operationOf(question, this.#known(request), queues);
    this.#note(question, request);
    if (this.closed > 0) return this.#fail(request, nodeIndex, "closed");
    const mode = this.modes[question] ?? this.mode;
    const command = commandBytes(wordsOf(operation, this.#known(request)));
    const act = () => {
      if (mode === "fail" || this.closed > 0) {
        return this.#fail(request, nodeIndex, "down");
      }
      this.before[question]?.();
      const reply = this.#server.send(command);
      if (mode === "lose-reply") return;
      this.#later(this.replyMs, () => this.#answer(operation, reply, request, nodeIndex));
    };
    // Requests take effect in their order, so none overtakes one that is kept.
    if (mode === "hang" || this.#kept.length > 0) this.#kept.push(act);
    else this.#later(this.requestMs, act);
  }

  inspect(key: string): Promise<KeyState | undefined> {
    this.#note("inspect", { keys: [key], value: "", ttlMs: 0 });
    const mode = this.modes.inspect ?? this.mode;
    if (mode === "fail") return Promise.reject(new Error(`${this.name} is down`));
    return new Promise((resolve) => {
      const answer = () => {
        const value = this.holder(key);
        const sharers = value === SHARED ? this.readers(key) : undefined;
        resolve(
          value === undefined ? undefined : { value, remainingMs: this.lifeMs(key), sharers },
        );
      };
      if (mode === "hang") this.#kept.push(answer);
      else if (mode === "answer") this.#later(this.requestMs + this.replyMs, answer);
    });
  }

  subscribe(listener: queue.ReleaseListener, nodeIndex: number): void {
    this.subscribes++;
    this.#listener = listener;
    this.#nodeIndex = nodeIndex;
    if (this.refusal) return this.refuse(this.refusal);
    if (this.subscribeMs !== Infinity) this.#later(this.subscribeMs, () => this.confirm());
  }

  unsubscribe(): void {
    this.unsubscribes++;
    this.#endSubscription();
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    this.leaves.push(ticketId);
    const release = { keys, value: ticketId, ticket: { ...ticketOf(), ticketId } };
    this.#server.send(commandBytes(wordsOf(RELEASE_QUEUED, release)));
  }

  close(): Promise<void> {
    this.closed++;
    return Promise.resolve();
  }

  #answer(
    operation: LockOperation,
    reply: RawReply,
    request: QuorumRequest,
    nodeIndex: number,
  ): void {
    if (reply instanceof ReplyError) return request.answer(nodeIndex, FAILED, reply);
    const { kind } = operation;
    const known = this.#known(request);
    const outcome = operation.read(reply, known)!;
    const detail = detailOf(outcome, reply, operation, known);
    const guarded = outcome === GRANTED && (kind === "acquire" || kind === "extend");
    if (guarded && this.quarantined && request.guardMs) {
      return request.answer(nodeIndex, QUARANTINED);
    }
    if (guarded && detail !== undefined && this.outdated) {
      return request.answer(nodeIndex, OUTDATED, request.counterFloor ?? request.counterHint);
    }
    request.answer(nodeIndex, outcome, detail);
  }

  #fail(request: QuorumRequest, nodeIndex: number, why: string): void {
    request.answer(nodeIndex, FAILED, new Error(`${this.name} is ${why}`));
  }

  /** What the node understands of a request. */
  #known(request: QuorumRequest): QuorumRequest {
    return this.knowsPools ? request : { ...request, pool: undefined, mode: undefined };
  }

  #endSubscription(): void {
    this.#subscription?.close();
    this.#subscription = undefined;
  }

  #note(operation: Operation, request: Pick<QuorumRequest, "keys" | "value" | "ttlMs" | "ticket">) {
    const { keys, value, ttlMs, ticket, counterHint, counterFloor } = request as QuorumRequest;
    const priority = ticket && "in-order";
    const atMs = this.#clock.monotonicMs();
    this.calls.push({ operation, keys, value, ttlMs, counterHint, counterFloor, priority, atMs });
  }

  #later(ms: number, act: () => void): void {
    if (ms > 0) this.#clock.setTimer(act, ms);
    else queueMicrotask(act);
  }
}

/** The command of an operation, with its script whole. */
export function wordsOf<Content>(operation: LockOperation<Content>, content: Content) {
  return new RequestCommand(operation as LockOperation, [content as QuorumRequest]).args;
}
