import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createRedlock, LockHeldError, QuorumError, type RedlockEvent } from "@hasp/redlock";
import { startNodes } from "@hasp/redlock/testing";
import { logTo } from "../examples/pino.ts";
import { eventually } from "../support/eventually.ts";

interface Line {
  readonly level: number;
  readonly name: string;
  readonly msg: RedlockEvent["type"];
  readonly [field: string]: unknown;
}

const [INFO, WARN, ERROR] = [30, 40, 50];

/** A listener of the example, and the lines that it writes. */
function logging() {
  const lines: Line[] = [];
  const onEvent = logTo({ write: (line) => void lines.push(JSON.parse(line)) });
  return { lines, onEvent };
}

Deno.test("pino example writes a line of JSON for what matters, at the level that it has", async () => {
  const { lines, onEvent } = logging();
  await using nodes = await startNodes(3);
  await using redlock = createRedlock(nodes.addresses, {
    onEvent,
    waitMs: 0,
    nodeTimeoutMs: 5_000,
  });
  const lock = await redlock.acquire("invoice:42", { ttlMs: 3_000 });
  await assertRejects(() => redlock.acquire("invoice:42"), LockHeldError);
  await eventually(() => assertEquals(lock.signal.aborted, true));
  await nodes.node(0).crash();
  await nodes.node(1).crash();
  await assertRejects(() => redlock.acquire("invoice:43"), QuorumError);
  await eventually(() => {
    assertEquals(lines.filter(({ msg }) => msg === "node-disconnected").length, 2);
  });
  const written = (type: string) => lines.filter(({ msg }) => msg === type);
  const kinds = new Set(lines.map(({ name, level, msg, reason }) => {
    return [name, level, msg, reason].join(" ").trim();
  }));
  assertEquals(
    kinds,
    new Set([
      `redlock ${INFO} node-connected`,
      `redlock ${INFO} denied held`,
      `redlock ${ERROR} lost expired`,
      `redlock ${WARN} node-disconnected`,
      `redlock ${ERROR} denied no-quorum`,
    ]),
  );
  const [{ resources, cause, heldMs }] = written("lost");
  assertEquals([resources, typeof heldMs], [["invoice:42"], "number"]);
  assertEquals((cause as Error).message, "its validity has ended");
  const [{ error, node }] = written("node-disconnected");
  assertMatch((error as Error).message, /^Connection to redis:\/\/127\.0\.0\.1:\d+ was lost/u);
  assertMatch(String(node), /^redis:\/\/127\.0\.0\.1:\d+$/u);
  const [{ votes }] = written("denied");
  assertMatch(String(votes), /^(redis:\/\/127\.0\.0\.1:\d+ denied,?)+$/u);
});
