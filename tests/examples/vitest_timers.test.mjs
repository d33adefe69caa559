/**
 * A test for Vitest: code that works for minutes under a lock, on fake timers.
 *
 * @module
 */

import { createRedlock, LockLostError } from "@hasp/redlock";
import { startNodes } from "@hasp/redlock/testing";
import { afterAll, afterEach, beforeEach, expect, test, vi } from "vitest";

/** The code under test: it imports a page a minute, and stops if the lock is lost. */
async function importPages(redlock, pages, imported) {
  await redlock.using("import", async ({ signal }) => {
    for (const page of pages) {
      signal.throwIfAborted();
      imported.push(page);
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    }
  });
}

const nodes = await startNodes(3);
const redlock = createRedlock(nodes.addresses, { ttlMs: 30_000 });
afterAll(() => redlock.close().then(() => nodes.close()));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("the import keeps its lock for minutes", async () => {
  const imported = [];
  const done = importPages(redlock, ["a", "b"], imported);
  await vi.advanceTimersByTimeAsync(125_000);
  await done;
  expect(imported).toEqual(["a", "b"]);
});

test("the import stops if the lock is lost", async () => {
  const imported = [];
  const lost = expect(importPages(redlock, ["a", "b"], imported)).rejects.toThrow(LockLostError);
  await vi.advanceTimersByTimeAsync(1_000);
  for (const node of nodes) node.flush();
  await vi.advanceTimersByTimeAsync(60_000);
  await lost;
  expect(imported).toEqual(["a"]);
});
