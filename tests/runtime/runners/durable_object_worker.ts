/**
 * Tests the manual's node on a Durable Object in a Worker, on the npm package: the response has
 * what became of each case.
 */

import type { LockNode } from "@hasp/redlock/nodes";
import { testLockNode } from "@hasp/redlock/testing";
import { durableObjectNode, LockStore } from "../../examples/durable_object_node.ts";
import { type Outcome, runCases } from "../context.ts";

export { LockStore };

/** The binding of the objects. */
interface Env {
  readonly LOCKS: { newUniqueId(): unknown; get(id: unknown): Omit<LockNode, "name"> };
}

export default {
  async fetch(_request: Request, { LOCKS }: Env): Promise<Response> {
    const cases = testLockNode(() => {
      const id = LOCKS.newUniqueId();
      const open = () => ({
        node: durableObjectNode(LOCKS.get(id)),
        close: () => Promise.resolve(),
      });
      return { ...open(), peer: () => Promise.resolve(open()) };
    }, { without: ["fencing", "adopting", "sharing", "hang"] });
    const outcomes: Outcome[] = [];
    // each has an object of its own, and mostly waits
    await Promise.all(cases.map(({ name, run }) => {
      return runCases((register) => register(name, run), (outcome) => outcomes.push(outcome));
    }));
    return Response.json(outcomes);
  },
};
