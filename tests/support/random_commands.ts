/**
 * Random commands for a server in memory and a real one: all that both know, and those about who waits for a key.
 *
 * @module
 */
import fc from "fast-check";
import Redlock4 from "redlock4";
import Redlock5 from "redlock5";
import { ACQUIRE_ALL, ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import {
  ACQUIRE_COUNTED,
  ACQUIRE_FENCED,
  counterKey,
  EXTEND_FENCED,
  RAISE,
} from "../../src/redis_node/scripts/fencing.ts";
import { EXTEND } from "../../src/redis_node/scripts/extend.ts";
import { LEAVE } from "../../src/redis_node/scripts/queue.ts";
import { RELEASE } from "../../src/redis_node/scripts/release.ts";

/** Lives are so long that nothing expires while a sequence runs, or so short that they are refused. */
const LIVES_MS = "60000 90000 120000 0 -1 x 007 1.5 9223372036854775807".split(" ").concat("");

/** The words of one command. */
export type Command = readonly string[];

/** What is done at once: commands over one connection, and where `expires` a wait for the last one's key to go. */
export interface Step {
  readonly over: number;
  readonly commands: readonly Command[];
  readonly expires: boolean;
}

interface PeerScripts {
  readonly scripts: Readonly<Record<string, { readonly value: string; readonly hash: string }>>;
}

/** The scripts of node-redlock, from the packages themselves. */
export const PEER_SCRIPTS = [Redlock4, Redlock5].flatMap((Peer) => {
  const { scripts } = new (Peer as unknown as new (clients: object[]) => PeerScripts)([{}]);
  return Object.values(scripts).map(({ value, hash }) => ({ source: value, sha1: hash }));
});
const SCRIPTS = [ACQUIRE_ALL, EXTEND, RELEASE, ACQUIRE_OR_WAIT, LEAVE, ...PEER_SCRIPTS];
/** These are called with hints alone that are ahead of every clock: a counter starts from a server's own time else. */
const FENCING_SCRIPTS = [ACQUIRE_COUNTED, ACQUIRE_FENCED, EXTEND_FENCED, RAISE];

const word = (...choices: string[]) => fc.constantFrom(...choices);
const words = (choices: fc.Arbitrary<string>, maxLength: number) =>
  fc.array(choices, { maxLength });
/** Keys that are mostly strings, so that these and the lists both come to hold something. */
export const KEYS = ["a", "b", "\0\r\n", "é"];
/** Keys that are mostly lists. */
export const LISTS = ["l", "m"];
const key = fc.oneof({ weight: 8, arbitrary: word(...KEYS) }, {
  weight: 1,
  arbitrary: word(...LISTS),
});
const listKey = fc.oneof(
  { weight: 16, arbitrary: word(...LISTS) },
  { weight: 1, arbitrary: word("a", "nope") },
);
const anyKey = word(...KEYS, ...LISTS);
const value = word(
  ..."v w v w 1 -7 007 9223372036854775807 9223372036854775808".split(" "),
  "",
  "\r\n$-1",
);
const life = word(...LIVES_MS);
const index = word(..."0 1 2 3 -1 -2 -3 100 -100 9223372036854775807 x".split(" "));
const extra = words(word("x", "NX", "0", ""), 2);

const setOption: fc.Arbitrary<Command> = fc.oneof(
  word("NX", "xx", "XX", "PX", "FOO").map((option) => [option]),
  fc.tuple(word("PX", "px", "EX"), life),
);
const set = fc.tuple(key, value, fc.array(setOption, { maxLength: 3 }))
  .map(([key, value, options]) => ["SET", key, value, ...options.flat()]);
const keyCommand = fc.oneof(
  fc.tuple(word("GET", "get", "PTTL", "INCR", "DEL", "EXISTS"), key),
  fc.tuple(word("PTTL", "DEL", "EXISTS"), anyKey),
  fc.tuple(word("DEL", "EXISTS"), words(anyKey, 3)).map(([name, keys]) => [name, ...keys]),
  fc.tuple(fc.constant("PEXPIRE"), anyKey, life),
);
const searchOption = fc.oneof(
  fc.tuple(word("RANK", "rank"), word("1", "2", "3", "-1", "-2")),
  fc.tuple(word("COUNT", "MAXLEN", "count", "RANK", "FOO"), word("0", "1", "2", "-1", "x")),
);
const item = word("v", "w", "x");
const pushed = fc.tuple(word("LPUSH", "RPUSH"), listKey, words(item, 4))
  .map(([name, key, items]) => [name, key, ...items]);
const listCommand = fc.oneof(
  pushed,
  pushed,
  fc.tuple(word("LPOP", "RPOP"), listKey),
  fc.tuple(word("LPOP", "RPOP"), listKey, index),
  fc.tuple(fc.constant("LLEN"), listKey),
  fc.tuple(fc.constant("LRANGE"), listKey, index, index),
  fc.tuple(fc.constant("LREM"), listKey, index, item),
  fc.tuple(listKey, item, fc.array(searchOption, { maxLength: 2 }))
    .map(([key, item, options]) => ["LPOS", key, item, ...options.flat()]),
);
const script = fc.constantFrom(...SCRIPTS);
const anyScript = fc.constantFrom(...SCRIPTS, ...FENCING_SCRIPTS);
const scriptArgs = fc.oneof(
  fc.tuple(words(fc.oneof(key, anyKey), 3), word("v", "w", "1"), word("60000", ...LIVES_MS))
    .map(([keys, value, life]) => [String(keys.length), ...keys, value, life]),
  fc.tuple(word("0", "1", "2", "-1", "x"), words(value, 2)).map((
    [count, args],
  ) => [count, ...args]),
);
const scriptCommand = fc.oneof(
  fc.tuple(script, scriptArgs).map(([{ source }, args]) => ["EVAL", source, ...args]),
  fc.tuple(script, scriptArgs).map(([{ sha1 }, args]) => ["EVALSHA", sha1, ...args]),
  fc.tuple(script, scriptArgs).map(([{ sha1 }, args]) => ["evalsha", sha1.toUpperCase(), ...args]),
  anyScript.map(({ source }) => ["SCRIPT", "LOAD", source]),
  fc.array(anyScript, { minLength: 1, maxLength: 2 })
    .map((them) => ["SCRIPT", "EXISTS", "f".repeat(40), ...them.map(({ sha1 }) => sha1)]),
  words(word("SYNC", "async", "x"), 1).map((mode) => ["SCRIPT", "FLUSH", ...mode]),
  fc.tuple(word("f".repeat(40), "abc"), scriptArgs).map((
    [sha1, args],
  ) => ["EVALSHA", sha1, ...args]),
);
const channel = word("news", "talk");
const channelCommand = fc.oneof(
  fc.tuple(word("SUBSCRIBE", "UNSUBSCRIBE", "unsubscribe"), words(channel, 2))
    .map(([name, channels]) => [name, ...channels]),
  fc.tuple(fc.constant("PUBLISH"), channel, value),
);
const connectionCommand = fc.oneof(
  words(value, 2).map((args) => ["PING", ...args]),
  word("0", "1", "15", "16", "-1", "x", "2147483648", "").map((number) => ["SELECT", number]),
  word("name", "", "two words", "é", "~!").map((name) => ["CLIENT", "SETNAME", name]),
  fc.constant(["client", "getname"]),
  words(word("default", "bob", "secret"), 3).map((args) => ["AUTH", ...args]),
  fc.constant(["RESET"]),
);
const serverCommand = fc.oneof(
  extra.map((args) => ["FLUSHALL", ...args]),
  word("maxmemory-policy", "appendonly", "AppendFsync", "nope")
    .map((name) => ["CONFIG", "GET", name]),
);
const malformed = fc.oneof(
  word(
    ..."GET SET DEL PTTL INCR SELECT EVAL EVALSHA EXISTS PEXPIRE LPUSH LPOP LPOS PUBLISH SUBSCRIBE"
      .split(" "),
  ).map((name) => [name]),
  fc.tuple(word("GET", "PTTL", "INCR", "TIME", "SELECT", "LLEN", "LPOP", "RPOP"), key, extra)
    .map(([name, key, extra]) => [name, key, "x", "y", ...extra]),
  fc.tuple(
    word("CLIENT", "SCRIPT", "CONFIG"),
    word("FOO", "foo\r\n", "SETNAME", "EXISTS", "GETNAME", "GET", "a\0b"),
    extra,
  ).map(([name, subname, extra]) => [name, subname, ...extra.map(() => "nope")]),
  word("CLIENT", "SCRIPT", "CONFIG").map((name) => [name]),
  fc.tuple(
    word("FOO", "\r\n", "f\0o", "", "y".repeat(200), "toString", "__proto__"),
    words(word("x", "é", "\0", "\r\n", "it's", "z".repeat(100)), 4),
  ).map(([name, args]) => [name, ...args]),
);
const quit = words(value, 1).map((args) => ["QUIT", ...args]);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 24, arbitrary: set },
  { weight: 30, arbitrary: keyCommand },
  { weight: 30, arbitrary: listCommand },
  { weight: 30, arbitrary: scriptCommand },
  { weight: 16, arbitrary: channelCommand },
  { weight: 10, arbitrary: connectionCommand },
  { weight: 6, arbitrary: serverCommand },
  { weight: 10, arbitrary: malformed },
  { weight: 1, arbitrary: quit },
);
const shortLived: fc.Arbitrary<Command> = fc.oneof(
  fc.tuple(fc.constant("PEXPIRE"), anyKey, fc.constant("1")),
  fc.tuple(key, value, word("NX", "XX", "nx"))
    .map(([key, value, when]) => ["SET", key, value, when, "PX", "1"]),
  fc.tuple(script, words(key, 2), value).map((
    [{ source }, keys, value],
  ) => ["EVAL", source, String(keys.length), ...keys, value, "1"]),
);
/** A step with any command. */
export const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      over: fc.nat(1),
      commands: fc.array(command, { minLength: 1, maxLength: 8 }),
      expires: fc.constant(false),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      over: fc.nat(1),
      commands: shortLived.map((command) => [command]),
      expires: fc.constant(true),
    }),
  },
);

// Who waits for a key

/** Where those stand who wait for a key: in one cluster slot with it. The last of the keys is a list. */
const LINES: Readonly<Record<string, string>> = {
  "a": "{a}:waiters",
  "b": "{b}:waiters",
  "{t}c": "{t}c:waiters",
  "{a}:waiters": "{a}:waiters:waiters",
  "d}{\0\r\n": "{d}{\0\r\n}:waiters",
  "{}é{e}": "{{}é{e}}:waiters",
  "l": "{l}:waiters",
};
/** All that the commands about lines work on. */
export const LINE_KEYS: readonly string[] = [
  ...new Set([...Object.keys(LINES), ...Object.values(LINES)]),
];
/** Who is told of keys that are free. The first two listen now and then, the third never does. */
const CHANNELS = ["hasp:wake:x", "hasp:wake:y", "hasp:wake:gone"];

/** Some came so close after another that it counts who came first by the clock, some just too late for that. */
const entry = fc.oneof(
  { weight: 8, arbitrary: word("x:1:1000", "x:2:1000", "y:1:1100", "y:é\r\n:1050.5") },
  { weight: 4, arbitrary: word("gone:1:1000", "gone:2:1100.5", "x:3:1150", "y:3:1201") },
  { weight: 1, arbitrary: word("z:1:5000", ":950", "0") },
);
/** What somebody else may have put there. */
const strangeEntry = fc.oneof(
  { weight: 6, arbitrary: entry },
  { weight: 1, arbitrary: word("nobody", ":1:", "x:", ":", "", "x:1:soon", "x:1: 1040") },
);
const lock = fc.oneof(
  { weight: 12, arbitrary: word("a", "a", "a", "b", "{t}c") },
  { weight: 1, arbitrary: word(...Object.keys(LINES)) },
);
/** Locks as a script is told them. */
const locks = fc.array(lock, { minLength: 1, maxLength: 3 })
  .map((keys) => [String(keys.length), ...keys]);
const holder = word("v", "w");
const claim = fc.oneof(
  { weight: 12, arbitrary: word("0", "1", "2") },
  { weight: 1, arbitrary: word("3", "-1", "01", " 1", "0.0", "x", "") },
);
const lockLife = fc.oneof({ weight: 8, arbitrary: word("60000", "90000") }, {
  weight: 1,
  arbitrary: life,
});
/** What a release says of the entry: mostly that it leaves the line, or stays there. */
const parting = fc.oneof(
  { weight: 4, arbitrary: fc.constant([]) },
  { weight: 8, arbitrary: fc.tuple(entry, word("leave", "stay")) },
  { weight: 1, arbitrary: fc.tuple(entry, word("Leave", "stays", "")) },
  { weight: 1, arbitrary: entry.map((entry) => [entry]) },
);
const join = fc.tuple(locks, holder, lockLife, entry, claim);
const lineScript = fc.oneof(
  {
    weight: 5,
    arbitrary: join.map(([keys, value, life, entry, claim]) => {
      return [ACQUIRE_OR_WAIT.source, ...keys, value, life, entry, claim];
    }),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(locks, holder, parting)
      .map(([keys, value, parting]) => [RELEASE.source, ...keys, value, ...parting]),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(locks, entry).map(([keys, entry]) => [LEAVE.source, ...keys, entry]),
  },
).map((words) => ["EVAL", ...words]);
const list = word(...Object.values(LINES));
const lineCommand: fc.Arbitrary<Command> = fc.oneof(
  { weight: 20, arbitrary: lineScript },
  { weight: 3, arbitrary: fc.tuple(fc.constant("DEL"), lock) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("DEL"), list) },
  { weight: 3, arbitrary: fc.tuple(fc.constant("SET"), lock, holder) },
  { weight: 3, arbitrary: fc.tuple(word("LPUSH", "RPUSH"), list, strangeEntry) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("RPUSH"), lock, entry) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("SET"), list, holder) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("PUBLISH"), word(...CHANNELS), holder) },
);
const listening: fc.Arbitrary<Command> = fc.tuple(
  word("SUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE"),
  fc.array(word(...CHANNELS.slice(0, 2)), { minLength: 1, maxLength: 2 }),
).map(([name, channels]) => [name, ...channels]);
const shortLock: fc.Arbitrary<Command> = fc.oneof(
  join.map(([keys, value, , entry, claim]) => {
    return ["EVAL", ACQUIRE_OR_WAIT.source, ...keys, value, "1", entry, claim];
  }),
  fc.tuple(fc.constant("PEXPIRE"), word(...LINE_KEYS), fc.constant("1")),
);

function steps(over: number, commands: fc.Arbitrary<readonly Command[]>, expires = false) {
  return commands.map((commands): Step => ({ over, commands, expires }));
}

/** A step with a command about those who wait: over the first connection some listen, over the second some wait. */
export const lineStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: steps(1, fc.array(lineCommand, { minLength: 1, maxLength: 8 })),
  },
  { weight: 2, arbitrary: steps(0, fc.array(listening, { minLength: 1, maxLength: 2 })) },
  { weight: 1, arbitrary: steps(1, shortLock.map((command) => [command]), true) },
);

// Fencing tokens

const COUNTERS = Object.keys(LINES).map(counterKey);
/** All that the commands about fencing tokens work on. */
export const FENCE_KEYS: readonly string[] = [...LINE_KEYS, ...COUNTERS];
/** Ahead of every clock, in microseconds. */
const token = word("4000000000000000", "4000000000000001", "4000000000000005", "8999999999999999");
const strangeToken = fc.oneof(
  { weight: 12, arbitrary: token },
  { weight: 2, arbitrary: word("1", "0", "-5", " 7 ", "1e3", "4.1e15", "9007199254740991") },
  { weight: 1, arbitrary: word("", "x", "007") },
);
const counter = word(...COUNTERS.slice(0, 3), ...COUNTERS);
const counting = fc.tuple(lock, holder, lockLife, token)
  .map(([key, ...args]) => [ACQUIRE_COUNTED.source, "2", key, counterKey(key), ...args]);
const fencing = fc.tuple(locks, holder, lockLife, fc.oneof(entry, word("")), claim, token)
  .map(([keys, ...args]) => [ACQUIRE_FENCED.source, ...keys, ...args]);
/** Keys whose type is right, and a life that is one. */
const extending = fc.tuple(
  fc.array(word("a", "b", "{t}c"), { minLength: 1, maxLength: 3 }),
  holder,
  word("60000", "90000"),
  strangeToken.filter((token) => token !== ""),
).map(([keys, ...args]) => [EXTEND_FENCED.source, String(keys.length), ...keys, ...args]);
const raising = fc.tuple(locks, holder, strangeToken)
  .map(([keys, value, token]) => [RAISE.source, ...keys, value, token]);
const fenceCommand: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.oneof(counting, fencing, extending, raising).map((words) => ["EVAL", ...words]),
  },
  { weight: 4, arbitrary: fc.tuple(word("GET", "PTTL"), counter) },
  { weight: 4, arbitrary: fc.tuple(fc.constant("SET"), counter, strangeToken) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("LPUSH"), counter, holder) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("DEL"), counter) },
  { weight: 4, arbitrary: fc.tuple(fc.constant("DEL"), word("a", "b", "{t}c")) },
  { weight: 4, arbitrary: lineScript },
);

/** A step with a command about fencing tokens. */
export const fenceStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: steps(1, fc.array(fenceCommand, { minLength: 1, maxLength: 8 })) },
  { weight: 1, arbitrary: steps(0, fc.array(listening, { minLength: 1, maxLength: 2 })) },
);

function joining(entry: string, claim: string): Command {
  return ["EVAL", ACQUIRE_OR_WAIT.source, "1", "a", "v", "60000", entry, claim];
}

function releasing(...parting: string[]): Command {
  return ["EVAL", RELEASE.source, "1", "a", "v", ...parting];
}

const LISTENING: Step = {
  over: 0,
  commands: [["SUBSCRIBE", ...CHANNELS.slice(0, 2)]],
  expires: false,
};

/** What must not be left to chance. */
export const LINE_EXAMPLES: readonly (readonly Step[])[] = [
  // A line of two whose second was overdue: what is left of it must still have a life.
  [
    ["SET", "a", "w"],
    joining("x:1:1000", "0"),
    joining("y:1:1500", "0"),
    ["DEL", "a"],
    joining("y:1:1500", "2"),
  ],
  // One that won the key but not the lock stays first in a line that nobody else has made.
  [joining("x:1:1000", "0"), releasing("x:1:1000", "stay"), releasing("x:1:1000", "stay")],
  // It goes behind whoever came just before, who is told.
  [
    joining("x:1:1050", "0"),
    joining("y:1:1000", "0"),
    joining("y:2:1500", "0"),
    releasing("x:1:1050", "stay"),
    joining("y:1:1000", "1"),
    releasing("y:1:1000", "leave"),
  ],
  // Of equal entries in a line the first counts.
  [
    ["SET", "a", "w"],
    ["RPUSH", LINES.a, "x:1:1100", "y:1:1000", "x:1:1100", "x:1:1100"],
    joining("x:2:1050", "0"),
  ],
  [
    ["SET", "a", "w"],
    ["RPUSH", LINES.a, "y:1:1000", "x:1:1050", "y:1:1000", "x:1:2000"],
    joining("x:2:1010", "1"),
  ],
].map((commands) => [LISTENING, { over: 1, commands, expires: false }]);
