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
import { PATIENCE_MS_MAX, PATIENCE_MS_MIN } from "../../src/quorum/queue_ticket.ts";
import { setTimeout as delay } from "node:timers/promises";
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
    this.node[method](request, NODE_INDEX);
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
  ...([["ticket", undefined], ["reader", "shared"]] as const).map(([who, mode]): Case => [
    `a free key is for a ${who} that has lost its place, if a quorum has agreed on its score`,
    async (bench) => {
      const { keys, value, first, second } = await heldWithTickets(bench);
      await bench.expect("queued", "acquire", { keys, ticket: second });
      await bench.expect("granted", "release", { keys, value });
      await bench.expect("granted", "acquire", { keys, mode, ticket: { ...first, agreed: true } });
    },
  ]),
  ["a free key is for the next ticket when the first's turn is over", async (bench) => {
    const { keys, value, first, second } = await heldWithTickets(bench);
    await bench.expect("queued", "acquire", { keys, ticket: first });
    await bench.expect("queued", "acquire", { keys, ticket: second });
    await bench.expect("granted", "release", { keys, value });
    const { turnMs } = (await bench.expect("queued", "acquire", { keys, ticket: second }))!;
    check(turnMs! > 0 && turnMs! <= PATIENCE_MS_MIN, `the first has its turn for ${turnMs} ms`);
    await delay(turnMs! + 1);
    await bench.expect("granted", "acquire", { keys, ticket: second });
    const late = await bench.expect("queued", "acquire", { keys, ticket: first });
    check(late!.length === 1, "the first was not dropped");
  }],
  ["a watcher is to ask when the one before it, which is far, has had its time", async (bench) => {
    const { keys, value, ticket, first, second, listener } = await heldWithTickets(bench);
    const far = { ...second, ticketId: `${second.ticketId}:${PATIENCE_MS_MAX}` };
    for (const ticketOfOne of [first, far, ticket(3)]) {
      await bench.expect("queued", "acquire", { keys, ticket: ticketOfOne });
    }
    await bench.expect("granted", "release", { keys, value });
    await listener.heard(ticket(3), "watch");
    check(listener.waitMs! > PATIENCE_MS_MAX, `the last is to wait ${listener.waitMs} ms`);
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
  [
    "the last when a key became free hears that it was taken, though another has joined",
    async (bench) => {
      const { keys, value, ticket, listener } = await heldWithTickets(bench);
      const far = (number: number) => {
        const { ticketId, ...rest } = ticket(number);
        return { ticketId: `${ticketId}:${PATIENCE_MS_MAX}`, ...rest };
      };
      for (let number = 1; number <= 7; number++) {
        await bench.expect("queued", "acquire", { keys, ticket: far(number) });
      }
      await bench.expect("granted", "release", { keys, value });
      await bench.expect("queued", "acquire", { keys, ticket: far(8) });
      await listener.heard(far(7), "watch");
      await bench.expect("granted", "acquire", { keys, ticket: far(1) });
      for (const number of [2, 5, 7, 8]) await listener.heard(far(number), "taken");
      check(!listener.notices.includes(`taken ${far(6).ticketId}`), "all hear of it");
    },
  ],
  [
    "a reader that enters notifies the next one, however many between them are gone, and says to the last that the key is taken if it was free",
    async (bench) => {
      const { keys, value, ticket, listener } = await heldWithTickets(bench);
      const reader = (number: number, id = listener.id) => ({
        ...ticket(number),
        ticketId: `${id}:R${number}`,
      });
      const tickets = [reader(1), ...[2, 3, 4, 5, 6, 7, 8].map((number) => reader(number, "gone"))];
      for (const ticket of [...tickets, reader(9)]) {
        await bench.expect("queued", "acquire", { keys, mode: "shared", ticket });
      }
      const writer = ticket(10);
      await bench.expect("queued", "acquire", { keys, ticket: writer });
      await bench.expect("granted", "release", { keys, value });
      await listener.heard(reader(1), "turn");
      const readers = [1, 9].map((number) => ({
        keys,
        mode: "shared" as const,
        value: `${number}`,
      }));
      await bench.expect("granted", "acquire", { ...readers[0], ticket: reader(1) });
      await listener.heard(reader(9), "beside");
      await listener.heard(writer, "taken");
      listener.notices.length = 0;
      await bench.expect("denied", "release", readers[1]);
      await bench.expect("granted", "acquire", { ...readers[1], ticket: reader(9) });
      for (const one of readers) await bench.expect("granted", "release", one);
      await listener.heard(writer, "turn");
      const why =
        "one beside another says that the key is taken, or one that was not there notifies";
      check(listener.notices.length === 1, why);
    },
  ],
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
  return { keys, value, listener, ticket, first: ticket(1), second: ticket(2) };
}

/** A client's listener, which records what it is notified of. */
class TestListener implements ReleaseListener {
  readonly id = systemRandom.value();
  readonly notices: string[] = [];
  /** How long the last notice has its ticket wait, in milliseconds. */
  waitMs: number | undefined;
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

  onQueueMessage(_nodeIndex: number, { ticketId, notice, waitMs }: QueueMessage): void {
    this.notices.push(`${notice} ${ticketId}`);
    this.waitMs = waitMs;
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
