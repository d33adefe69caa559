/** What scripts reply, and do, where a key or a queue is not as their callers left it. */
import { assertEquals, assertRejects } from "@std/assert";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { ADOPT, GIVE_BACK } from "../../src/redis_node/scripts/adopt.ts";
import { EXTEND } from "../../src/redis_node/scripts/extend.ts";
import { ACQUIRE_COUNTED, RAISE } from "../../src/redis_node/scripts/fencing.ts";
import { ACQUIRE_SHARED, EXTEND_SHARED, KEEP } from "../../src/redis_node/scripts/readers.ts";
import { ACQUIRE_ANY } from "../../src/redis_node/scripts/pool.ts";
import { RELEASE, RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import type { Script } from "../../src/redis_node/scripts/script.ts";
import type { QueryValue } from "../support/query.ts";
import { shareServers } from "../support/shared_servers.ts";

const { test } = shareServers(1);
const MAX = Number.MAX_SAFE_INTEGER;
/** A ticket to whose channel nobody subscribes: who is to notify it drops it. */
const GONE = "gone:1:50";
/** What may be the value of a lock. */
const LOCKED = "0".repeat(40);
/** Has a turn begin, which runs while the script does. */
const inTurn = (key: string, ticket: string) =>
  `redis.call('SET', 'hasp:turn:${key}', '${ticket}', 'PX', 4000)\n`;
/** Stands before a script: code that each call of a command runs, and that may reply to it. */
const onCall = (code: string) =>
  `local function replying(call)
  return function(name, ...)
    ${code}
    return call(name, ...)
  end
end
local redis = setmetatable(
  { call = replying(redis.call), pcall = replying(redis.pcall) }, { __index = redis })\n`;
/** Dragonfly gives scripts scores as numbers, and other servers as texts. */
const SCORES_ARE_NUMBERS = onCall("if name == 'ZSCORE' then return tonumber(call(name, ...)) end");
/** All clients but "gone" are there, and what they are sent is left in the list `sent`. */
const OTHERS_LISTEN = onCall(
  `local isGone = tostring(({ ... })[name == 'PUBLISH' and 1 or 2]):find(':gone')
    if name == 'PUBSUB' then return { '', isGone and 0 or 1 } end
    if name == 'PUBLISH' then return isGone and 0 or call('RPUSH', 'sent', select(2, ...)) end`,
);
/** The user has no right to PUBSUB NUMSUB, and nobody subscribes. */
const NOBODY_LISTENS = onCall("if name == 'PUBSUB' then return { err = 'NOPERM' } end");
const NO_CLOCK = onCall("if name == 'TIME' then return { err = 'NOPERM' } end");
/** It is 1,000 s after 1970, and the milliseconds since a turn began do not count. */
const EARLY = onCall(
  `if name == 'TIME' then return { '1000', '0' } end
    local asksTurn = name == 'PTTL' and (...):find('turn')
    if asksTurn then return math.ceil(call(name, ...) / 100) * 100 end`,
);
const X_IN_TURN = EARLY + inTurn("a", "x:1:50:.1");
const IN_TURNS = EARLY + OTHERS_LISTEN + inTurn("c", "own:1:50") + inTurn("d", "x:1:50");

/** Replies 1 if a key has a longer TTL than so many milliseconds. */
const lives = (key: string, ms: number) => `EVAL return(redis.call('PTTL',KEYS[1])>${ms}) 1 ${key}`;

interface Case {
  /** Commands. */
  before: string[];
  /** The script, its keys and arguments, and its reply; and what stands before the script. */
  run: [script: Script, args: string, reply: QueryValue, before?: string];
  /** Commands, and their answers. */
  after: Record<string, QueryValue>;
}

const CASES: Record<string, Case> = {
  "GIVE_BACK gives all keys the former value": {
    before: ["SET a v PX 9000", "SET b v PX 9000"],
    run: [GIVE_BACK, "2 a b v old", 1],
    after: { "MGET a b": ["old", "old"] },
  },
  "GIVE_BACK leaves keys alone that others hold, whatever is there": {
    before: ["SET a w PX 9000", "RPUSH list v", "SET b v PX 9000"],
    run: [GIVE_BACK, "3 a list b v old", 0],
    after: { "MGET a list b": ["w", null, "old"] },
  },
  "ADOPT does nothing if the first key is missing": {
    before: ["SET b v PX 9000"],
    run: [ADOPT, "2 a b v w 9000 ", -1],
    after: { "MGET a b": [null, "v"] },
  },
  "RAISE raises counters to the last number": {
    before: ["SET a v", "SET hasp:fence:a 5"],
    run: [RAISE, `1 a v ${MAX}`, MAX],
    after: { "GET hasp:fence:a": `${MAX}` },
  },
  "ACQUIRE_COUNTED sets no key that exists": {
    before: ["SET a w"],
    run: [ACQUIRE_COUNTED, "1 a v 9000 5", 0],
    after: { "GET a": "w", "EXISTS hasp:fence:a": 0 },
  },
  "EXTEND gives the keys of several locks each its own TTL": {
    before: ["SET a v PX 9000", "SET b w PX 9000"],
    run: [EXTEND, "3 a b c v 20000 w 30000 v 9000", [1, 1, -1]],
    after: { [lives("a", 25_000)]: null, [lives("b", 25_000)]: 1 },
  },
  "RELEASE deletes those of several locks that hold their own value": {
    before: ["MSET a v b w c w"],
    run: [RELEASE, "3 a b c v w v", [1, 1, 0]],
    after: { "MGET a b c": [null, null, "w"] },
  },
  "RELEASE notifies of a key that was missing": {
    before: [`ZADD hasp:queue:a 1 ${GONE}`],
    run: [RELEASE, "1 a v", 0],
    after: { "ZCARD hasp:queue:a": 0 },
  },
  "RELEASE_QUEUED notifies of a key that was missing": {
    before: [`ZADD hasp:queue:a 1 ${GONE}`],
    run: [RELEASE_QUEUED, "1 a v", 0],
    after: { "ZCARD hasp:queue:a": 0 },
  },
  "RELEASE_QUEUED notifies of no key of a pool that the ticket was not waiting for": {
    before: ["SET a v", `ZADD hasp:queue:b 1 ${GONE}`],
    run: [RELEASE_QUEUED, "2 a b v own:1:50:.", 1],
    after: { "ZCARD hasp:queue:b": 1 },
  },
  "RELEASE_QUEUED replies that others wait for another key of the pool": {
    before: ["SET b v", `ZADD hasp:queue:a 1 ${GONE} 2 own:1:50:.1`],
    run: [RELEASE_QUEUED, "2 a b v own:1:50:.", 2, inTurn("a", GONE)],
    after: { "ZCARD hasp:queue:a": 1 },
  },
  "RELEASE_QUEUED of a key that readers hold replies that others wait for another of the pool": {
    before: [
      ...["SET b hasp:shared PX 9000", "ZADD hasp:readers:b 9999999999990 v 9999999999999 w"],
      `ZADD hasp:queue:a 1 ${GONE} 2 own:1:50:.1`,
    ],
    run: [RELEASE_QUEUED, "2 a b v own:1:50:.", 2, inTurn("a", GONE)],
    after: { "ZCARD hasp:queue:a": 1 },
  },
  "RELEASE_QUEUED notifies nobody where neither the value nor the ticket was": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 w"],
      "ZADD hasp:queue:a 1 gone:R1:50",
    ],
    run: [RELEASE_QUEUED, "1 a v", 0],
    after: { "ZCARD hasp:queue:a": 1 },
  },
  "RELEASE_QUEUED notifies no reader of a key that another holds": {
    before: ["SET a w", "ZADD hasp:queue:a 1 gone:R1:50 2 own:1:50"],
    run: [RELEASE_QUEUED, "1 a v own:1:50", 0],
    after: { "ZCARD hasp:queue:a": 1 },
  },
  "EXTEND_SHARED drops all writers that are gone, and makes no deadline earlier": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 v"],
      `ZADD hasp:queue:a ${[1, 2, 3, 4, 5, 6].map((n) => `${n} gone:${n}:50`).join(" ")}`,
    ],
    run: [EXTEND_SHARED, "1 a v 9000", 1],
    after: {
      ...{ "ZCARD hasp:queue:a": 0, "ZSCORE hasp:readers:a v": "9999999999999" },
      [lives("a", 99_000)]: 1,
    },
  },
  "ACQUIRE_SHARED notifies readers behind a writer that is gone, and makes no deadline earlier": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 v"],
      `ZADD hasp:queue:a 1 ${GONE} 2 gone:R1:50`,
    ],
    run: [ACQUIRE_SHARED, "1 a v 9000 ", 1],
    after: { "ZCARD hasp:queue:a": 0, "ZSCORE hasp:readers:a v": "9999999999999" },
  },
  "RELEASE_QUEUED leaves a key alone that another got after readers' key was deleted": {
    before: ["SET a w", "ZADD hasp:readers:a 9999999999999 v"],
    run: [RELEASE_QUEUED, "1 a v", 0],
    after: { "GET a": "w" },
  },
  "RELEASE_QUEUED takes a reader off its key, and gives the first the turn if it was the last": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 v"],
      "ZADD hasp:queue:a 1 x:1:50",
    ],
    run: [RELEASE_QUEUED, "1 a v", 2, OTHERS_LISTEN],
    after: { "EXISTS a": 0, "LRANGE sent 0 -1": ["x:1:50"] },
  },
  "RELEASE_QUEUED has the queue end into which it puts a ticket back": {
    before: ["SET a v"],
    run: [RELEASE_QUEUED, "1 a v own:1:50 5", 1],
    after: { "PERSIST hasp:queue:a": 1 },
  },
  "RELEASE_QUEUED replies that others wait for what readers hold": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999998 v 9999999999999 w"],
      "ZADD hasp:queue:a 1 x:1:50",
    ],
    run: [RELEASE_QUEUED, "1 a v", 2, OTHERS_LISTEN],
    after: { "EXISTS a sent": 1 },
  },
  "ACQUIRE_SHARED enters nowhere while a writer is ahead for one of the keys": {
    before: [
      ...["MSET a hasp:shared c hasp:shared hasp:turn:b y:1:50", "ZADD hasp:queue:a 1 x:1:50"],
      ...["ZADD hasp:readers:a 9999999999999 w", "ZADD hasp:readers:c 9999999999999 w"],
      "ZADD hasp:queue:b 1 y:1:50",
    ],
    run: [ACQUIRE_SHARED, "3 a b c v 9000 ", 0, OTHERS_LISTEN],
    after: { "EXISTS b": 0 },
  },
  "ACQUIRE_SHARED forgets the readers of a key that is gone": {
    before: ["ZADD hasp:readers:a 9999999999999 w"],
    run: [ACQUIRE_SHARED, "1 a v 9000 ", 1],
    after: { "ZCARD hasp:readers:a": 1 },
  },
  "EXTEND_SHARED extends no reader whose deadline is over, though others hold the key": {
    before: ["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 5 v 9999999999999 w"],
    run: [EXTEND_SHARED, "1 a v 9000", -1],
    after: { "ZSCORE hasp:readers:a v": "5" },
  },
  "KEEP needs no clock in exclusive mode, and makes no reader": {
    before: ["SET a v PX 9000"],
    run: [KEEP, "1 a v 500 1", 1, NO_CLOCK],
    after: { "EXISTS a hasp:readers:a": 1 },
  },
  "RELEASE passes over a ticket that has a turn elsewhere, and one whose wait is over": {
    before: [
      ...["SET {t}a v", "SET hasp:turn:{t}b x:1:50:.2", "SET hasp:turn:{t}x:1:50:. {t}b"],
      "ZADD hasp:queue:{t}a 1 x:1:50:.1 2 w:1:50:1 3 y:1:50:.1",
    ],
    run: [RELEASE, "1 {t}a v", 2, OTHERS_LISTEN],
    after: { "GET hasp:turn:{t}a": "y:1:50:.1", "GET hasp:turn:{t}y:1:50:.": "{t}a" },
  },
  "RELEASE notifies the first, and the watchers later than those before them": {
    before: ["SET a v", "ZADD hasp:queue:a 1 x:1:50 2 x:2:400 3 x:3:50 4 x:4:50 5 x:5:50 6 x:6:50"],
    run: [RELEASE, "1 a v", 2, OTHERS_LISTEN],
    after: {
      "LRANGE sent 0 -1": ["x:1:50", "x:2:400+50", "x:5:50+450", "x:6:50+500"],
      "GET hasp:turn:a": "x:1:50 x:6:50",
    },
  },
  "RELEASE drops each first that has no receiver, also without the right to ask who subscribes": {
    before: ["SET a v", "ZADD hasp:queue:a 1 x:1:50 2 y:1:50"],
    run: [RELEASE, "1 a v", 1, NOBODY_LISTENS],
    after: { "EXISTS hasp:queue:a hasp:turn:a": 0 },
  },
  "ACQUIRE_OR_WAIT overtakes one whose turn is over, and notifies it and those who wait on": {
    before: [
      ...["ZADD hasp:queue:a 1 x:1:50:.1 2 own:1:50 3 y:1:50", "SET hasp:turn:a x:1:50:.1 PX 2900"],
      "SET hasp:turn:x:1:50:. a",
    ],
    run: [ACQUIRE_OR_WAIT, "1 a v 9000  own:1:50 5 ", 1, OTHERS_LISTEN],
    after: { "LRANGE sent 0 -1": ["x:1:50:.1", "y:1:50-9000"], "EXISTS hasp:turn:a": 0 },
  },
  "ACQUIRE_OR_WAIT takes a free key for one ahead of the first by an agreed score": {
    before: ["ZADD hasp:queue:a 9 x:1:50 10 y:1:50"],
    run: [ACQUIRE_OR_WAIT, "1 a v 9000  own:1:50 8 1", 1, OTHERS_LISTEN],
    after: { "LRANGE sent 0 -1": ["x:1:50-9000", "y:1:50-9050"] },
  },
  "ACQUIRE_OR_WAIT takes a free key for the first, though another's turn runs": {
    before: [
      "ZADD hasp:queue:a 1 own:1:50 2 x:2:50 3 x:3:50 4 x:4:50 5 x:5:50 6 x:6:50 7 x:7:50 8 x:8:50",
    ],
    run: [
      ACQUIRE_OR_WAIT,
      "1 a v 9000  own:1:50 1 ",
      1,
      OTHERS_LISTEN + inTurn("a", "x:2:50 x:6:50"),
    ],
    after: { "LRANGE sent 0 -1": "x:2:50-9000 x:5:50-9050 x:8:50-9100 x:6:50-9150".split(" ") },
  },
  "ACQUIRE_OR_WAIT takes a free key for one in its turn, and drops none ahead of it": {
    before: ["ZADD hasp:queue:a 1 x:1:50 2 own:1:50"],
    run: [ACQUIRE_OR_WAIT, "1 a v 9  own:1:50 2 ", 1, OTHERS_LISTEN + inTurn("a", "own:1:50")],
    after: { "ZCARD hasp:queue:a": 1 },
  },
  "ACQUIRE_OR_WAIT takes no key while one of them is for another": {
    before: ["ZADD hasp:queue:a 1 x:1:50:.1"],
    run: [ACQUIRE_OR_WAIT, "2 a b v 9  own:1:50 5 ", [-2, 1, 2, 5, 1e9, 0, "", 50], X_IN_TURN],
    after: { "EXISTS a b": 0 },
  },
  "ACQUIRE_SHARED takes a free key for one ahead of the first by an agreed score": {
    before: ["ZADD hasp:queue:a 9 x:1:50"],
    run: [ACQUIRE_SHARED, "1 a v 9000  own:R1:50 8 1", 1, OTHERS_LISTEN],
    after: { "ZCARD hasp:readers:a": 1 },
  },
  "ACQUIRE_SHARED of the first notifies the next reader, past those that are gone": {
    before: [
      "ZADD hasp:queue:a 1 own:R1:50 2 gone:R2:50 3 gone:R3:50 4 gone:R4:50 5 gone:R5:50",
      "ZADD hasp:queue:a 6 gone:R6:50 7 gone:R7:50 8 x:R8:50 9 x:9:50",
    ],
    run: [ACQUIRE_SHARED, "1 a v 9000  own:R1:50 1 ", 1, OTHERS_LISTEN],
    after: { "LRANGE sent 0 -1": ["x:9:50-9000", "x:R8:50*"] },
  },
  "ACQUIRE_SHARED beside others does not say that the key is taken": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 w"],
      "ZADD hasp:queue:a 1 own:R1:50 2 x:2:50",
    ],
    run: [ACQUIRE_SHARED, "1 a v 9000  own:R1:50 1 ", 1, OTHERS_LISTEN],
    after: { "EXISTS sent": 0 },
  },
  "EXTEND_SHARED notifies the readers up to the first writer, and the fifth as a watcher": {
    before: [
      ...["SET a hasp:shared", "SET b hasp:shared", "ZADD hasp:readers:a 9999999999999 v"],
      ...["ZADD hasp:readers:b 9999999999999 v", "ZADD hasp:queue:b 1 x:R7:50 2 x:8:50 3 x:R9:50"],
      "ZADD hasp:queue:a 1 x:R1:70 2 x:R2:50 3 x:R3:50 4 x:R4:50 5 x:R5:50 6 x:R6:50",
    ],
    run: [EXTEND_SHARED, "2 a b v 9000", 1, OTHERS_LISTEN],
    after: {
      "LRANGE sent 0 -1": "x:R1:70* x:R2:50* x:R3:50* x:R4:50* x:R5:50+70 x:R7:50*".split(" "),
    },
  },
  "KEEP drops writers that are gone, so that readers behind them enter": {
    before: [
      ...["SET a hasp:shared PX 9000", "ZADD hasp:readers:a 9999999999999 v"],
      `ZADD hasp:queue:a 1 ${GONE} 2 x:R1:50`,
    ],
    run: [KEEP, "1 a v 500 1", 1, OTHERS_LISTEN],
    after: { "LRANGE sent 0 -1": ["x:R1:50*", "x:R1:50+500"] },
  },
  "KEEP tells the watchers and the last but one when the key expires": {
    before: ["SET a v", "ZADD hasp:queue:a 1 x:1:50 2 x:2:50 3 x:3:50 4 x:4:50 5 x:5:50 6 x:6:50"],
    run: [KEEP, "1 a v 500 1", 1, OTHERS_LISTEN],
    after: { "LRANGE sent 0 -1": ["x:1:50+500", "x:4:50+550", "x:6:50+600", "x:5:50+650"] },
  },
  "ACQUIRE_OR_WAIT leaves the queue of a free key while one is held, but not in its turn": {
    before: [
      ...["SET a w", "ZADD hasp:queue:a 1 x:1:50", "SET hasp:turn:a own:1:50"],
      ...["ZADD hasp:queue:b 1 x:1:50 2 own:1:50 3 y:1:50", "ZADD hasp:queue:c 1 own:1:50"],
      ...["ZADD hasp:queue:d 1 x:1:50 2 own:1:50", "SET hasp:turn:e own:1:50 PX 2900"],
      "ZADD hasp:queue:e 1 x:1:50 2 own:1:50 3 y:2:50",
    ],
    run: [ACQUIRE_OR_WAIT, "5 a b c d e v 9  own:1:50 5 ", [-1, 1, 2, 5, 1e9, 1, "w", 0], IN_TURNS],
    after: {
      "LRANGE sent 0 -1": ["x:1:50", "y:1:50+50", "y:2:50"],
      "MGET hasp:turn:a hasp:turn:b hasp:turn:e": [null, "x:1:50", "y:2:50"],
      "EXISTS hasp:queue:c": 1,
      "ZRANGE hasp:queue:d 0 -1": ["x:1:50"],
    },
  },
  "ACQUIRE_ANY replies which keys are free, and which for another": {
    before: ["SET a w", "ZADD hasp:queue:a 1 x:1:50 2 x:2:50", "ZADD hasp:queue:d 1 x:3:70"],
    run: [
      ACQUIRE_ANY,
      "4 a b c d 1 v 9  own:1:50:. 5 ",
      [-2, 1, 3, 5, 1e9, 1, "", 70, 6, 4],
      EARLY,
    ],
    after: { "ZCARD hasp:queue:b": 1 },
  },
  "ACQUIRE_ANY leaves the queues of the other keys, and so does one that it overtakes": {
    before: [
      ...["ZADD hasp:queue:a 1 x:1:50:.1 2 own:1:50:.1", "SET hasp:turn:a x:1:50:.1 PX 2900"],
      ...["ZADD hasp:queue:b 1 x:1:50:.2 2 own:1:50:.2 3 y:1:50", "SET c w"],
      "ZADD hasp:queue:c 1 own:1:50:.3 2 y:2:50",
    ],
    run: [ACQUIRE_ANY, "3 a b c 1 v 9000  own:1:50:. 2 ", 1, OTHERS_LISTEN],
    after: { "LRANGE sent 0 -1": ["x:1:50:.1", "y:1:50"], "ZCARD hasp:queue:b": 1 },
  },
  "ACQUIRE_ANY waits for another of a pool in its turn if only that key is free": {
    before: ["SET b w", "ZADD hasp:queue:a 1 x:1:50:.1 2 own:1:50:.1"],
    run: [
      ACQUIRE_ANY,
      "2 a b 1 v 9  own:1:50:. 2 ",
      [-1, 1, 2, 2, 1e9, 1, "", 50, 0, 1],
      X_IN_TURN,
    ],
    after: { "EXISTS a": 0 },
  },
  "ACQUIRE_ANY passes another of a pool in its turn if a key is free for each": {
    before: ["ZADD hasp:queue:a 1 x:1:50:.1 2 own:1:50:.1"],
    run: [ACQUIRE_ANY, "2 a b 1 v 9000  own:1:50:. 2 ", 1, X_IN_TURN],
    after: { "ZCARD hasp:queue:a": 1 },
  },
};

for (
  const [score, what, queue, asked, place] of [
    [5, "it has, if it asks for one ahead of the clock", "5 own:1:50", "2e9 ", [0, 1]],
    [8, "it asks for, if that is later than its own", "7 own:1:50", "8 ", [0, 1]],
    [7, "it has, if it asks for an earlier one", "7 own:1:50 1 x:1:50", "6 ", [1, 2]],
    [1000250000, "is the latest not ahead, if it asks for one ahead", "1 x:1:50", "2e9 ", [1, 2]],
    [8, "it asks for, if that is near the last one's", "250008 x:1:50", "8 ", [0, 2]],
    [250010, "is behind the last, if it asks too early", "1 x:1:50 250009 y:1:50", "8 ", [2, 3]],
    [8, "a quorum agreed on, however early", "9 x:1:50 250009 y:1:50", "8 1", [0, 3]],
  ] as const
) {
  const reply = [-1, ...place, score, 1e9, 1, LOCKED, 0];
  CASES[`ACQUIRE_OR_WAIT gives a ticket the score that ${what}`] = {
    before: ["SET a w", `SET b ${LOCKED} PX 9000`, `ZADD hasp:queue:a ${queue}`],
    run: [ACQUIRE_OR_WAIT, `2 a b v 9000  own:1:50 ${asked}`, reply, EARLY],
    after: { "ZSCORE hasp:queue:b own:1:50": `${score}` },
  };
}

for (
  const [what, { before, run: [script, args, reply, begin = ""], after }] of Object.entries(CASES)
) {
  for (const [where, first] of [["", ""], [", where scores are numbers", SCORES_ARE_NUMBERS]]) {
    test(what + where, async ([server]) => {
      const send = (text: string) => server.command(...text.split(" "));
      for (const each of before) await send(each);
      assertEquals(
        await server.command("EVAL", first + begin + script.source, ...args.split(" ")),
        reply,
      );
      const answers: Case["after"] = {};
      for (const command of Object.keys(after)) answers[command] = await send(command);
      assertEquals(answers, after);
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
