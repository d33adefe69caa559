/**
 * What a node with notifications must do: keep a queue for each key, and notify the first in it.
 */
import { type QuorumNode, quorumNodes } from "../../src/quorum/quorum_node.ts";
import type {
  QueueMessage,
  QueueNotice,
  QueuePosition,
  QueueTicket,
  ReleaseListener,
} from "../../src/quorum/queue_ticket.ts";
import { check, LONG_MS, soon } from "../../src/testing/lock_node/bench.ts";
import type { NodeToTest } from "../../src/testing/mod.ts";
import { systemClock } from "../../src/time/clock.ts";
import { systemRandom } from "../../src/time/random.ts";
import { FakeRequest } from "../support/fake_request.ts";

/** The index that nodes are asked with: any but the first. */
const NODE_INDEX = 3;

/** Registers the cases for a node. */
export function testQueue(
  factory: () => Promise<NodeToTest>,
  test: (name: string, run: () => Promise<void>) => unknown,
): void {
  for (const [name, run] of QUEUE_CASES) {
    test(name, async () => {
      const tested = await factory();
      try {
        await run(new QueueBench(quorumNodes.get(tested.node)!));
      } finally {
        await tested.node.close?.();
        await tested.close?.();
      }
    });
  }
}

/** One node on the bench. */
class QueueBench {
  readonly node: Required<QuorumNode>;

  constructor(node: QuorumNode) {
    this.node = node as Required<QuorumNode>;
  }

  /** Asks the node, and checks how it answers. */
  async expect(
    outcome: FakeRequest["outcomes"][number],
    method: "acquire" | "release",
    parts: Partial<FakeRequest> = {},
  ): Promise<QueuePosition | undefined> {
    const value = systemRandom.value();
    const request = new FakeRequest([this.key()], { ttlMs: LONG_MS, value, ...parts });
    this.node.ask(method, request, NODE_INDEX);
    await soon(request.answered, "it did not answer a request");
    const [[answered, nodeIndex, , position]] = request.answers;
    check(answered === outcome, `its answer to ${method}() was '${answered}', not '${outcome}'`);
    check(nodeIndex === NODE_INDEX, `it answered with the index ${nodeIndex}`);
    return position as QueuePosition | undefined;
  }

  key(): string {
    return `test:${systemRandom.value()}`;
  }
}

type Case = readonly [name: string, run: (bench: QueueBench) => Promise<void>];

const QUEUE_CASES: readonly Case[] = [
  ["a ticket that is denied is put in the queue, whose first a release notifies", async (bench) => {
    const { keys, value, first, second, listener } = await heldWithTickets(bench);
    const position = await bench.expect("queued", "acquire", { keys, ticket: first });
    check(position!.ahead === 0 && position!.length === 1, "the first ticket is not the first");
    check(position!.remainingMs > 0, "it reports no time for which the key is held");
    const behind = await bench.expect("queued", "acquire", { keys, ticket: second });
    check(behind!.ahead === 1, "the second ticket is not behind the first");
    const again = await bench.expect("queued", "acquire", { keys, ticket: first });
    check(again!.ahead === 0, "a ticket lost its place because it asked again");
    check(again!.length === 2, "a ticket that asked again is in the queue twice");
    await bench.expect("granted", "release", { keys, value });
    await listener.heard(first, "turn");
  }],
  ["leaveQueue() of a notified ticket notifies the next one", async (bench) => {
    const { keys, value, first, second, listener } = await heldWithTickets(bench);
    await bench.expect("queued", "acquire", { keys, ticket: first });
    await bench.expect("queued", "acquire", { keys, ticket: second });
    await bench.expect("granted", "release", { keys, value });
    await listener.heard(first, "turn");
    bench.node.leaveQueue(keys, first.ticketId);
    await listener.heard(second, "turn");
  }],
  ["unsubscribe() ends the notifications", async (bench) => {
    const { keys, value, first, listener } = await heldWithTickets(bench);
    await bench.expect("queued", "acquire", { keys, ticket: first });
    bench.node.unsubscribe();
    await bench.expect("granted", "release", { keys, value });
    await bench.expect("granted", "acquire");
    check(listener.notices.length === 0, "it notified a client that had unsubscribed");
  }],
];

/** A key that is held, a client that is subscribed, and tickets of it in their order. */
async function heldWithTickets(bench: QueueBench) {
  const listener = new TestListener();
  bench.node.subscribe(listener, NODE_INDEX);
  await soon(listener.subscribed, "it did not call onSubscribed()");
  const [keys, value] = [[bench.key()], systemRandom.value()];
  await bench.expect("granted", "acquire", { keys, value });
  const score = Math.floor(systemClock.wallMs() * 1_000);
  const ticket = (number: number): QueueTicket => ({
    ticketId: `${listener.id}:${number}`,
    agreed: false,
    score: score + number * 1_000,
    onEnqueued() {},
    onPutBack() {},
  });
  return { keys, value, listener, first: ticket(1), second: ticket(2) };
}

/** A client's listener, which records what it is notified of. */
class TestListener implements ReleaseListener {
  readonly id = systemRandom.value();
  readonly notices: string[] = [];
  readonly subscribed: Promise<void>;
  #onSubscribed!: () => void;
  #onRefused!: (error: Error) => void;
  #onNotice = () => {};

  constructor() {
    this.subscribed = new Promise((resolve, reject) => {
      this.#onSubscribed = resolve;
      this.#onRefused = reject;
    });
  }

  onSubscribed(): void {
    this.#onSubscribed();
  }

  onUnsubscribed(): void {}

  onRefused(_nodeIndex: number, error: Error): void {
    this.#onRefused(error);
  }

  onQueueMessage(_nodeIndex: number, { ticketId, notice }: QueueMessage): void {
    this.notices.push(`${notice} ${ticketId}`);
    this.#onNotice();
  }

  /** Waits for a notice. */
  heard({ ticketId }: QueueTicket, notice: QueueNotice): Promise<void> {
    const heard = new Promise<void>((resolve) => {
      this.#onNotice = () => {
        if (this.notices.includes(`${notice} ${ticketId}`)) resolve();
      };
      this.#onNotice();
    });
    return soon(heard, "it did not notify a ticket");
  }
}
