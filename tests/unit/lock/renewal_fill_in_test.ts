import { assertEquals, assertRejects } from "@std/assert";
import { LockLostError } from "../../../src/errors.ts";
import type { QuorumRequest } from "../../../src/quorum/quorum_node.ts";
import { locked, test } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

test.locked("Lock.extend() without answers does not bring a lost lock back", async ({ cluster, lock }) => {
  const { signal } = lock;
  cluster.forget(0, 1);
  const theirs = await cluster.settle(cluster.peer().acquire("a", { waitMs: 0 }));
  await cluster.settle(theirs.release());
  cluster.set("lose-reply");
  const lost = assertRejects(() => lock.extend(), LockLostError);
  await cluster.advance(100);
  cluster.set("answer");
  await cluster.settle(lost);
  assertEquals([lock.extensions, lock.held, signal.aborted], [0, false, true]);
});

Deno.test("Lock.extend() fills in a node that lost the key, and whose answer comes after the decision", async () => {
  const { cluster, lock } = await locked(5);
  cluster.forget(4);
  cluster.nodes[4].replyMs = 40;
  await cluster.settle(lock.extend());
  assertEquals(cluster.nodes[4].holder(), undefined);
  await cluster.advance(40);
  assertEquals(cluster.nodes[4].holder(), lock.value);
});

for (const fencing of [false, true]) {
  Deno.test(`a node is no longer to fill in a lock that is over${fencing ? ", or to raise its counter" : ""}`, async () => {
    const { cluster, lock } = await locked(3, { fencing });
    const [node] = cluster.nodes;
    const requests: QuorumRequest[] = [];
    for (const method of ["acquire", "raiseCounters"] as const) {
      node.instead[method] = (request, nodeIndex) => {
        requests.push(request);
        node.take(method, request, nodeIndex);
      };
    }
    node.forget();
    await cluster.settle(lock.extend());
    await runMicrotasks();
    const wanted = () => requests.map((request) => request.wanted);
    assertEquals(wanted(), fencing ? [true, true] : [true]);
    await cluster.settle(lock.release());
    assertEquals(wanted(), fencing ? [false, false] : [false]);
  });
}
