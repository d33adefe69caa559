/** What scripts reply, and do, where a key or a queue is not as their callers left it. */
import { assertEquals, assertRejects } from "@std/assert";
import { ADOPT, GIVE_BACK } from "../../src/redis_node/scripts/adopt.ts";
import { ACQUIRE_COUNTED, RAISE } from "../../src/redis_node/scripts/fencing.ts";
import { ACQUIRE_SHARED, EXTEND_SHARED, KEEP } from "../../src/redis_node/scripts/readers.ts";
import { RELEASE, RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import type { Script } from "../../src/redis_node/scripts/script.ts";
import type { QueryValue } from "../support/query.ts";
import { shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(1);
const MAX = Number.MAX_SAFE_INTEGER;
/** A ticket to whose channel nobody subscribes: who is to notify it drops it. */
const GONE = "gone:1:50";
/** The script behind the beginning of the longest turn, which runs while it does. */
const RELEASE_IN_TURN = {
  ...RELEASE_QUEUED,
  source: `redis.call('SET', 'hasp:turn:a', '${GONE}', 'PX', 4000)\n${RELEASE_QUEUED.source}`,
};
/** Before a script: Dragonfly gives it scores as numbers, and other servers as texts. */
const SCORES_ARE_NUMBERS = `local redis = setmetatable({ pcall = function(name, ...)
  local reply = redis.pcall(name, ...)
  return name == 'ZSCORE' and tonumber(reply) or reply
end }, { __index = redis })\n`;

interface Case {
  /** Commands. */
  before: string[];
  /** The script, its keys and arguments, and its reply. */
  run: [script: Script, args: string, reply: QueryValue];
  /** A command, and its answer. */
  after: [command: string, answer: QueryValue];
}

const CASES: Record<string, Case> = {
  "GIVE_BACK gives all keys the former value": {
    before: ["SET a v PX 9000", "SET b v PX 9000"],
    run: [GIVE_BACK, "2 a b v old", 1],
    after: ["MGET a b", ["old", "old"]],
  },
  "GIVE_BACK leaves keys alone that others hold, whatever is there": {
    before: ["SET a w PX 9000", "RPUSH list v", "SET b v PX 9000"],
    run: [GIVE_BACK, "3 a list b v old", 0],
    after: ["MGET a list b", ["w", null, "old"]],
  },
  "ADOPT does nothing if the first key is missing": {
    before: ["SET b v PX 9000"],
    run: [ADOPT, "2 a b v w 9000 ", -1],
    after: ["MGET a b", [null, "v"]],
  },
  "RAISE raises counters to the last number": {
    before: ["SET a v", "SET hasp:fence:a 5"],
    run: [RAISE, `1 a v ${MAX}`, MAX],
    after: ["GET hasp:fence:a", `${MAX}`],
  },
  "RELEASE notifies of a key that was missing": {
    before: [`ZADD hasp:queue:a 1 ${GONE}`],
    run: [RELEASE, "1 a v", 0],
    after: ["ZCARD hasp:queue:a", 0],
  },
  "RELEASE_QUEUED does, too": {
    before: [`ZADD hasp:queue:a 1 ${GONE}`],
    run: [RELEASE_QUEUED, "1 a v", 0],
    after: ["ZCARD hasp:queue:a", 0],
  },
  "RELEASE_QUEUED notifies of no key of a pool that the ticket was not waiting for": {
    before: ["SET a v", `ZADD hasp:queue:b 1 ${GONE}`],
    run: [RELEASE_QUEUED, "2 a b v own:1:50:.", 1],
    after: ["ZCARD hasp:queue:b", 1],
  },
  "RELEASE_QUEUED replies that others wait for another key of the pool": {
    before: ["SET b v", `ZADD hasp:queue:a 1 ${GONE} 2 own:1:50:.1`],
    run: [RELEASE_IN_TURN, "2 a b v own:1:50:.", 2],
    after: ["ZCARD hasp:queue:a", 1],
  },
  "RELEASE_QUEUED replies so too if readers hold the one that it releases": {
    before: [
      ...["SET b hasp:shared PX 9000", "ZADD hasp:readers:b 9999999999990 v 9999999999999 w"],
      `ZADD hasp:queue:a 1 ${GONE} 2 own:1:50:.1`,
    ],
    run: [RELEASE_IN_TURN, "2 a b v own:1:50:.", 2],
    after: ["ZCARD hasp:queue:a", 1],
  },
  "RELEASE_QUEUED notifies nobody where neither the value nor the ticket was": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 w"],
      "ZADD hasp:queue:a 1 gone:R1:50",
    ],
    run: [RELEASE_QUEUED, "1 a v", 0],
    after: ["ZCARD hasp:queue:a", 1],
  },
  "RELEASE_QUEUED notifies no reader of a key that another holds": {
    before: ["SET a w", "ZADD hasp:queue:a 1 gone:R1:50 2 own:1:50"],
    run: [RELEASE_QUEUED, "1 a v own:1:50", 0],
    after: ["ZCARD hasp:queue:a", 1],
  },
  "EXTEND_SHARED drops all writers that are gone": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 v"],
      `ZADD hasp:queue:a ${[1, 2, 3, 4, 5, 6].map((n) => `${n} gone:${n}:50`).join(" ")}`,
    ],
    run: [EXTEND_SHARED, "1 a v 9000", 1],
    after: ["ZCARD hasp:queue:a", 0],
  },
  "ACQUIRE_SHARED notifies readers behind a writer that is gone": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 w"],
      `ZADD hasp:queue:a 1 ${GONE} 2 gone:R1:50`,
    ],
    run: [ACQUIRE_SHARED, "1 a v 9000 ", 1],
    after: ["ZCARD hasp:queue:a", 0],
  },
  "RELEASE_QUEUED leaves a key alone that another got after readers' key was deleted": {
    before: ["SET a w", "ZADD hasp:readers:a 9999999999999 v"],
    run: [RELEASE_QUEUED, "1 a v", 0],
    after: ["GET a", "w"],
  },
  "RELEASE_QUEUED takes a reader off its key": {
    before: ["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 v"],
    run: [RELEASE_QUEUED, "1 a v", 1],
    after: ["EXISTS a", 0],
  },
  "RELEASE_QUEUED has the queue end into which it puts a ticket back": {
    before: ["SET a v"],
    run: [RELEASE_QUEUED, "1 a v own:1:50 5", 1],
    after: ["PERSIST hasp:queue:a", 1],
  },
};

for (const [what, { before, run: [script, args, reply], after }] of Object.entries(CASES)) {
  for (const [where, first] of [["", ""], [", where scores are numbers", SCORES_ARE_NUMBERS]]) {
    test(what + where, async ([server]) => {
      const send = (text: string) => server.command(...text.split(" "));
      for (const each of before) await send(each);
      assertEquals(await server.command("EVAL", first + script.source, ...args.split(" ")), reply);
      assertEquals(await send(after[0]), after[1]);
    });
  }
}

test("scripts reply the error about a key or a counter", async ([server]) => {
  await server.command("RPUSH", "list", "v");
  await server.command("MSET", "a", "v", "hasp:fence:a", "text", "hasp:fence:c", "text");
  const run = (script: Script, ...args: string[]) => server.command("EVAL", script.source, ...args);
  await assertRejects(() => run(RELEASE_QUEUED, "2", "list", "b", "v"), Error, "WRONGTYPE");
  await assertRejects(() => run(RAISE, "1", "a", "v", "5"), Error, "no fencing counter");
  const counting = () => run(ACQUIRE_COUNTED, "1", "c", "v", "9000", "5");
  await assertRejects(counting, Error, "not an integer or out of range: hasp:fence:c");
});

test("scripts do without a queue of another type, and deny a key of one", async ([server]) => {
  await server.command("MSET", "b", "v", "hasp:queue:a", "x", "hasp:queue:b", "x");
  await server.command("RPUSH", "list", "v");
  const runs: Case["run"][] = [
    [ACQUIRE_SHARED, "1 list v 9000 ", 0],
    [ACQUIRE_SHARED, "1 a v 9000 ", 1],
    [EXTEND_SHARED, "1 a v 9000", 1],
    [KEEP, "1 b v 9000 1", 1],
    [RELEASE_QUEUED, "1 a v own:1:50", 1],
    [RELEASE, "1 b v", 1],
  ];
  for (const [script, args, reply] of runs) {
    assertEquals(await server.command("EVAL", script.source, ...args.split(" ")), reply);
  }
});
