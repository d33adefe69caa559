/**
 * The types of locks, as a user's compiler sees them: a test fails to compile if one of them is
 * wrong.
 */
import { assertEquals } from "@std/assert";
import {
  createRedlock,
  type CreateRedlockOptions,
  type FencedLock,
  type Lock,
  Redlock,
  type RedlockOptions,
} from "../../mod.ts";
import { publishedNode } from "../../src/nodes/published_node.ts";
import { Cluster } from "../support/cluster.ts";

/** Whether two types are the same, not only assignable to each other. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;

/** Takes `true` alone, so that it does not compile if the types that it is given differ. */
function expectType<_ extends true>(): void {}

const { nodes } = new Cluster();
const peers = () => nodes.map((node) => publishedNode(node.peer()));
const options: RedlockOptions = { ttlMs: 1_000 };

Deno.test("the type of a lock has a number as fencingToken if its client or its call has fencing: true", () => {
  const plain = new Redlock(peers());
  const fenced = new Redlock(peers(), { fencing: true, ttlMs: 1_000 });
  const unknown = new Redlock(peers(), options);
  const created = createRedlock(["redis://h"], { fencing: true, clientName: "c" });
  const plainCreated = createRedlock(["redis://h"], { clientName: "c" });
  const withOptions = createRedlock(["redis://h"], options as CreateRedlockOptions);
  expectType<Same<typeof plain, Redlock>>();
  expectType<Same<typeof fenced, Redlock<true>>>();
  expectType<Same<typeof unknown, Redlock>>();
  expectType<Same<typeof created, Redlock<true>>>();
  expectType<Same<typeof plainCreated, Redlock>>();
  expectType<Same<typeof withOptions, Redlock>>();
  expectType<Same<FencedLock["fencingToken"], number>>();
  expectType<Same<Lock["fencingToken"], number | undefined>>();

  const calls = () => [
    plain.acquire("a").then((lock) => expectType<Same<typeof lock, Lock>>()),
    fenced.acquire("a").then((lock) => expectType<Same<typeof lock, FencedLock>>()),
    unknown.acquire("a").then((lock) => expectType<Same<typeof lock, Lock>>()),
    fenced.acquire("a", { ttlMs: 5 }).then((lock) => expectType<Same<typeof lock, FencedLock>>()),
    fenced.acquire("a", { fencing: false }).then((lock) => expectType<Same<typeof lock, Lock>>()),
    plain.acquire("a", { fencing: true }).then((lock) =>
      expectType<Same<typeof lock, FencedLock>>()
    ),
    plain.acquire("a", options).then((lock) => expectType<Same<typeof lock, Lock>>()),
    fenced.tryAcquire("a").then((lock) => expectType<Same<typeof lock, FencedLock | undefined>>()),
    plain.tryAcquire("a").then((lock) => expectType<Same<typeof lock, Lock | undefined>>()),
    fenced.using("a", (lock) => expectType<Same<typeof lock, FencedLock>>()),
    fenced.using("a", undefined, (lock) => expectType<Same<typeof lock, FencedLock>>()),
    fenced.using("a", { ttlMs: 5 }, (lock) => expectType<Same<typeof lock, FencedLock>>()),
    plain.using("a", { fencing: true }, (lock) => expectType<Same<typeof lock, FencedLock>>()),
    plain.using("a", { ttlMs: 5 }, (lock) => expectType<Same<typeof lock, Lock>>()),
    plain.using<number>("a", options, ({ fencingToken = 0 }) => fencingToken),
    plain.using("a", ({ value }) => value).then((it) => expectType<Same<typeof it, string>>()),
  ];
  const anyClient: (redlock: Redlock) => unknown = (redlock) => redlock;
  const clients = () => [anyClient(plain), anyClient(fenced), anyClient(created)];
  assertEquals([typeof calls, typeof clients], ["function", "function"]);
});
