import { assertEquals } from "@std/assert";
import type { Grant, LockNode, LockRequest } from "../../../src/nodes/mod.ts";
import { adaptedNode } from "../../../src/quorum/adapted_node.ts";
import { FakeRequest, ticketOf } from "../../support/fake_request.ts";

/** A node of somebody else's that answers so, and what it was asked. */
function setUp(answer: (request: LockRequest) => unknown) {
  const asked: [method: string, request: LockRequest][] = [];
  const methods = ["acquire", "extend", "adopt", "release", "raiseCounters"] as const;
  const node = Object.fromEntries(methods.map((method) => [method, (request: LockRequest) => {
    asked.push([method, request]);
    return answer(request);
  }]));
  return { node: adaptedNode({ name: "n", ...node } as unknown as LockNode), asked };
}

/** What a node answers, and what becomes of it. */
const ANSWERS: readonly (readonly [answer: unknown, outcome: string, detail: unknown])[] = [
  ["granted", "granted", undefined],
  ["denied", "denied", undefined],
  [7, "granted", 7],
  ["missing", "missing", undefined],
  ["Granted", "failed", "n answered acquire() with no Grant"],
  [undefined, "failed", "n answered acquire() with no Grant"],
  ...[0, -1, 0.5].map((number) => {
    return [number, "failed", "n answered acquire() with no Grant"] as const;
  }),
];

for (const [answer, outcome, detail] of ANSWERS) {
  Deno.test(`adaptedNode() takes ${answer} for ${outcome}`, async () => {
    const { node } = setUp(() => Promise.resolve(answer));
    const request = new FakeRequest();
    Object.assign(request, {
      missing: (nodeIndex: number) => request.note(["missing", nodeIndex, undefined]),
    });
    node.ask("acquire", request, 2);
    await request.answered;
    const [[got, nodeIndex, why, count]] = request.answers;
    assertEquals([got, nodeIndex, count ?? why], [outcome, 2, detail]);
  });
}

Deno.test("adaptedNode() asks at once, in the order of the calls, and hands out nothing but plain data", () => {
  const { node, asked } = setUp(() => new Promise<Grant>(() => {}));
  const request = new FakeRequest(["k", "l"], {
    counterHint: 5,
    counterFloor: 6,
    replaces: "u",
    mode: "shared",
    ticket: ticketOf(),
  });
  for (const method of ["acquire", "extend", "adopt", "release", "raiseCounters"] as const) {
    node.ask(method, request, 0);
  }
  const sent = { counterHint: 5, counterFloor: 6, replaces: "u", mode: "shared" } as const;
  const plain = { keys: ["k", "l"], value: "v", ttlMs: 1_000, shortens: undefined, ...sent };
  assertEquals(asked, [
    ["acquire", plain],
    ["extend", plain],
    ["adopt", plain],
    ["release", plain],
    ["raiseCounters", plain],
  ]);
  (asked[0][1].keys as string[]).pop();
  assertEquals(request.keys, ["k", "l"]); // which other nodes are asked for, too
});

Deno.test("adaptedNode() has a release extend the keys by what is left of their time, and delete them later", async () => {
  const { node, asked } = setUp(() => Promise.resolve("missing"));
  let leftMs = 7.5;
  const request = new FakeRequest("k", { keptMs: () => leftMs });
  node.ask("release", request, 0);
  await request.answered;
  leftMs = 0;
  node.ask("release", request, 0);
  assertEquals(request.answers.map(([outcome]) => outcome), ["missing"]);
  assertEquals(asked.map(([method, { ttlMs, shortens }]) => [method, ttlMs, shortens]), [
    ["extend", 8, true],
    ["release", 1_000, undefined],
  ]);
});

Deno.test("adaptedNode() lacks what the node has no method for, and the guard", () => {
  const { node } = setUp(() => {});
  const lacks = { fencing: false, adopt: false, list: true, restartGuardMs: true };
  assertEquals([node.diagnose, node.lacks], [undefined, lacks]);
  const bare = adaptedNode({ name: "n", async *keys() {} } as unknown as LockNode);
  assertEquals(bare.lacks, { fencing: true, adopt: true, list: false, restartGuardMs: true });
});
