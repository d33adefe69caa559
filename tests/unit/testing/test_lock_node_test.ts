import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  type LockNode,
  type LockNodeCase,
  startFakeClock,
  testLockNode,
} from "../../../src/testing/mod.ts";
import { brokenNode, type Defect } from "../../support/broken_node.ts";

function casesOf(defect?: Defect): LockNodeCase[] {
  return testLockNode(() => brokenNode(defect));
}

/** Each defect, and a case that must show it. */
const SHOWN_BY: Readonly<Record<Defect, string>> = {
  "acquires what is held": "acquire() denies a key that is held, and leaves it",
  "sets some of several keys": "acquire() sets all of several keys, or none",
  "never expires": "a key expires after its TTL, and not before",
  "extends another's key": "extend() denies a key with another value, and leaves it",
  "shortens": "extend() never shortens a TTL",
  "sets what it extends": "extend() never sets a missing key",
  "deletes another's key": "release() deletes no key with another value",
  "releases first": "requests of one tick take effect in their order",
  "answers nothing": "acquire() sets a missing key, and inspect() reports it",
  "gets, then sets": "of two nodes on one store, one acquires a key",
  "gets, then deletes": "a key that another node acquires as it expires is not released",
  "gets, then extends": "a key that another node acquires as it expires is not extended",
  "counts whole seconds": "a TTL counts in milliseconds",
  "extends in whole seconds": "a TTL counts in milliseconds",
  "extends an expired row":
    "a key that has expired is missing to extend(), release() and inspect()",
  "inspects expired keys": "a key that has expired is missing to extend(), release() and inspect()",
  "denies without an answer":
    "requests during a long hang are not denied, and a release takes effect",
  "denies extensions without an answer":
    "requests during a long hang are not denied, and a release takes effect",
  "drops requests at close": "close() settles during a hang, and every request is answered",
  "loses releases in a hang": "a short hang leaves nothing of what was undone",
  "grants late what it does not set": "a request during a short hang is answered once, and truly",
  "counts alike": "each acquisition has a greater counter",
  "lets anybody raise counters":
    "raiseCounters() denies if a key has another value, and raises nothing",
  "lowers counters": "raiseCounters() lowers no counter",
  "adopts any key": "adopt() denies if a key has another value, and replaces none",
  "adopts some of several keys": "adopt() denies if a key has another value, and replaces none",
  "shortens what it adopts": "adopt() replaces the value of all keys, and never shortens a TTL",
  "sets what it adopts": "adopt() answers that keys are missing, and sets none",
  "deletes what it gives back":
    "release() gives keys back the value that was replaced, with the TTL that they have",
  "gets, then adopts": "of two that adopt one lock, one does",
  "shares what is held":
    "acquire() denies an exclusive lock beside shared ones, and these beside it",
  "lets writers in beside readers":
    "acquire() denies an exclusive lock beside shared ones, and these beside it",
  "deletes what others share":
    "release() in shared mode ends one lock, and the last frees the keys",
  "has a shared key expire with the last comer":
    "keys live as long as the lock in shared mode that lives longest",
  "sets the shared lock that it extends":
    "extend() in shared mode prolongs a lock that is there, and no other",
  "forgets who shares":
    "acquire() in shared mode grants beside others in it, and inspect() reports all",
  "lists what was not asked for":
    "keys() lists what begins with a prefix, and nothing else, if there is one",
  "never closes while hanging": "close() settles during a hang, and every request is answered",
};

Deno.test("testLockNode() passes a node in memory that keeps its contract", async () => {
  const cases = casesOf();
  assert(cases.length >= 25);
  using clock = startFakeClock();
  await clock.tickUntil(Promise.all(cases.map(({ run }) => run())));
});

Deno.test("testLockNode() fails every node that breaks one rule, by the case for that rule", async () => {
  using clock = startFakeClock();
  await clock.tickUntil(Promise.all(
    Object.entries(SHOWN_BY).map(async ([defect, name]) => {
      const found = casesOf(defect as Defect).find((one) => one.name === name);
      assert(found, name);
      await assertRejects(() => found.run(), Error, "The node breaks its contract", defect);
    }),
  ));
});

Deno.test("testLockNode() registers its cases with the test function that it is given", async () => {
  const registered: LockNodeCase[] = [];
  const test = (name: string, run: () => Promise<void>) => void registered.push({ name, run });
  const cases = testLockNode(() => brokenNode(), { test, without: ["hang", "race"] });
  assertEquals(registered.map(({ name }) => name), cases.map(({ name }) => name));
  assertEquals(registered.some(({ name }) => name.includes("hang")), false);
  await registered[0].run();
});

Deno.test("testLockNode() ends a hang in which a case fails, before it closes anything", async () => {
  const calls: string[] = [];
  const cases = testLockNode(() => {
    const { node } = brokenNode();
    let hung = false;
    const close = () => {
      calls.push("close node");
      return node.close();
    };
    return {
      node: {
        ...node,
        get acquire() {
          return hung ? undefined! : node.acquire;
        },
        close,
      },
      hang: () => void (hung = true),
      resume: () => void calls.push("resume"),
      close: () => void calls.push("close"),
    };
  });
  const found = cases.find(({ name }) => name.startsWith("a short hang"));
  await assertRejects(() => found!.run(), Error, "it has no acquire()");
  assertEquals(calls, ["resume", "close node", "close"]);
});

Deno.test("testLockNode() demands every part that is not left out", async () => {
  const { name, acquire, extend, release, inspect } = brokenNode().node;
  const node: LockNode = { name, acquire, extend, release, inspect };
  const cases = testLockNode(() => ({ node }));
  const failure = async (start: string) => {
    const found = cases.find(({ name }) => name.startsWith(start));
    return (await assertRejects(() => found!.run(), Error)).message;
  };
  const contract = "The node breaks its contract:";
  assertEquals(await failure("raiseCounters() raises"), `${contract} it has no raiseCounters()`);
  assertEquals(
    await failure("a short hang"),
    `${contract} the factory returned no hang() and resume()`,
  );
  assertEquals(await failure("of two nodes"), `${contract} the factory returned no peer()`);
});

Deno.test("testLockNode() rejects options that make no sense", () => {
  const factory = () => brokenNode();
  assertThrows(
    () => testLockNode(undefined as never),
    TypeError,
    "Cannot test node as 'factory' must be a function",
  );
  assertThrows(
    () => testLockNode(factory, { without: ["hangs" as never] }),
    TypeError,
    "Cannot test node as 'hangs' in 'without' must be one of fencing, adopting, sharing, race, hang",
  );
  assertThrows(
    () => testLockNode(factory, { tests: [] } as never),
    TypeError,
    "Cannot test node as option 'tests' is unknown: valid options are test, without",
  );
});
