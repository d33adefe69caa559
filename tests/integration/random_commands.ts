/**
 * Random commands for a server in memory and a real one: all that both support, those about queues,
 * about fencing tokens, and about locks in shared mode.
 */
import fc from "fast-check";
import Redlock4 from "redlock4";
import Redlock5 from "redlock5";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { ADOPT, GIVE_BACK } from "../../src/redis_node/scripts/adopt.ts";
import { ACQUIRE_COUNTED, COUNTER_PREFIX, RAISE } from "../../src/redis_node/scripts/fencing.ts";
import { EXTEND } from "../../src/redis_node/scripts/extend.ts";
import { queueOf } from "../../src/redis_node/scripts/queue.ts";
import { ACQUIRE_ANY } from "../../src/redis_node/scripts/pool.ts";
import {
  ACQUIRE_SHARED,
  EXTEND_SHARED,
  READERS_PREFIX,
  SHARED,
} from "../../src/redis_node/scripts/readers.ts";
import { RELEASE, RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";

/**
 * Lives are so long that nothing expires while a sequence runs, or so short that they are refused.
 */
const LIVES_MS = "60000 90000 120000 0 -1 x 007 1.5 9223372036854775807".split(" ").concat("");

/** The words of one command. */
export type Command = readonly string[];

/**
 * What is done at once: commands over one connection; if `expires`, the key of the last one expires
 * before the next step.
 */
export interface Step {
  readonly over: number;
  readonly commands: readonly Command[];
  readonly expires: boolean;
  /** Whether the memory of the server is full from here on. */
  readonly fills?: boolean;
}

interface PeerScripts {
  readonly scripts: Readonly<Record<string, { readonly value: string; readonly hash: string }>>;
}

/** The scripts of node-redlock, from the packages themselves. */
export const PEER_SCRIPTS = [Redlock4, Redlock5].flatMap((Peer) => {
  const { scripts } = new (Peer as unknown as new (clients: object[]) => PeerScripts)([{}]);
  return Object.values(scripts).map(({ value, hash }) => ({ source: value, sha1: hash }));
});
const SCRIPTS = [EXTEND, RELEASE, ...PEER_SCRIPTS];
/**
 * Scripts that read a server's own time: their replies are compared only as far as that does not
 * matter.
 */
const TIMED_SCRIPTS = [
  ACQUIRE_ANY,
  ACQUIRE_SHARED,
  EXTEND_SHARED,
  ACQUIRE_OR_WAIT,
  RELEASE_QUEUED,
  ACQUIRE_COUNTED,
  ADOPT,
  GIVE_BACK,
  RAISE,
];

/** One of several arbitraries, each as often as its weight says. */
const weighted = <T>(...choices: [weight: number, arbitrary: fc.Arbitrary<T>][]) =>
  fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const word = (...choices: string[]) => fc.constantFrom(...choices);
const words = (choices: fc.Arbitrary<string>, maxLength: number) =>
  fc.array(choices, { maxLength });
/** Keys that are mostly strings, so that these and the sorted sets both come to hold something. */
export const KEYS = ["a", "b", "\0\r\n", "é"];
/** Keys that are mostly sorted sets. */
export const SETS = ["l", "m"];
const key = weighted([8, word(...KEYS)], [1, word(...SETS)]);
const setKey = weighted([16, word(...SETS)], [1, word("a", "nope")]);
const anyKey = word(...KEYS, ...SETS);
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
const item = word("v", "w", "x");
const score = word(
  ..."1 2 -1.50 0.1 007 1e300 1e400 -1e-400 0e9 .5e-7 +inf -Infinity 1700000000000001 x".split(" "),
  "",
);
const setCommand = fc.oneof(
  fc.tuple(setKey, word("NX", "nx", "1", "2"), fc.array(fc.tuple(score, item), { maxLength: 3 }))
    .map(([key, first, pairs]) => ["ZADD", key, first, ...pairs.flat()]),
  fc.tuple(setKey, fc.array(fc.tuple(score, item), { minLength: 1, maxLength: 4 }))
    .map(([key, pairs]) => ["ZADD", key, ...pairs.flat()]),
  fc.tuple(fc.constant("ZREM"), setKey, words(item, 3))
    .map(([name, key, items]) => [name, key, ...items]),
  fc.tuple(fc.constant("ZCARD"), setKey),
  fc.tuple(word("ZRANK", "ZSCORE"), setKey, item),
  fc.tuple(setKey, index, index, words(word("WITHSCORES", "withscores", "x"), 1))
    .map(([key, first, last, options]) => ["ZRANGE", key, first, last, ...options]),
);
const script = fc.constantFrom(...SCRIPTS);
const anyScript = fc.constantFrom(...SCRIPTS, ...TIMED_SCRIPTS);
const scriptArgs = fc.oneof(
  fc.tuple(words(fc.oneof(key, anyKey), 3), word("v", "w", "1"), word("60000", ...LIVES_MS))
    .map(([keys, value, life]) => [String(keys.length), ...keys, value, life]),
  fc.tuple(word("0", "1", "2", "-1", "x"), words(value, 2)).map((
    [count, args],
  ) => [count, ...args]),
);
/** Scripts with arguments for each key: at most ten words, as a login without password allows. */
const eachKeyCommand = fc.tuple(
  fc.constantFrom([RELEASE, 1] as const, [EXTEND, 2] as const),
  fc.array(fc.tuple(key, word("v", "w", "1"), word("60000", ...LIVES_MS)), { maxLength: 2 }),
).map(([[{ source }, length], parts]) => {
  const args = parts.flatMap(([, ...each]) => each.slice(0, length));
  return ["EVAL", source, String(parts.length), ...parts.map(([key]) => key), ...args];
});
const scriptCommand = fc.oneof(
  eachKeyCommand,
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
  fc.tuple(
    fc.constantFrom([], ["2"], ["3"], ["3"], ["4"], ["x"], ["03"]),
    fc.constantFrom(
      ...[[], [], ["AUTH", "default", "secret"], ["auth", "bob", "x"], ["AUTH", "default"]],
      ...[["SETNAME", "name"], ["SETNAME", "two words"], ["SETNAME"], ["FOO"]],
      ["SETNAME", "a", "AUTH", "default", "secret"],
    ),
  ).map(([version, options]) => ["HELLO", ...version, ...options]),
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
    ..."GET SET DEL PTTL INCR SELECT EVAL EVALSHA EXISTS PEXPIRE ZADD ZREM ZRANGE PUBLISH SUBSCRIBE"
      .split(" "),
  ).map((name) => [name]),
  fc.tuple(word("GET", "PTTL", "INCR", "TIME", "SELECT", "ZCARD", "ZRANK", "ZSCORE"), key, extra)
    .map(([name, key, extra]) => [name, key, "x", "y", ...extra]),
  fc.tuple(
    word("CLIENT", "SCRIPT", "CONFIG"),
    word("FOO", "foo\r\n", "SETNAME", "EXISTS", "GETNAME", "GET", "a\0b"),
    extra,
  ).map(([name, subname, extra]) => [name, subname, ...extra.map(() => "nope")]),
  word("CLIENT", "SCRIPT", "CONFIG").map((name) => [name]),
  fc.tuple(
    word("FOO", "\r\n", "f\0o", "", "y".repeat(200), "toString", "__proto__", "client|id"),
    words(word("x", "é", "\0", "\r\n", "it's", "z".repeat(100)), 4),
  ).map(([name, args]) => [name, ...args]),
);
const quit = words(value, 1).map((args) => ["QUIT", ...args]);
const command: fc.Arbitrary<Command> = weighted(
  [24, set],
  [30, keyCommand],
  [30, setCommand],
  [30, scriptCommand],
  [16, channelCommand],
  [10, connectionCommand],
  [6, serverCommand],
  [10, malformed],
  [1, quit],
);
const shortLived: fc.Arbitrary<Command> = fc.oneof(
  fc.tuple(fc.constant("PEXPIRE"), anyKey, fc.constant("1")),
  fc.tuple(key, value, word("NX", "XX", "nx"))
    .map(([key, value, when]) => ["SET", key, value, when, "PX", "1"]),
  fc.tuple(script, words(key, 2), value).map((
    [{ source }, keys, value],
  ) => ["EVAL", source, String(keys.length), ...keys, value, "1"]),
);
/** Steps of several commands over one connection, or over any. */
function steps(
  command: fc.Arbitrary<Command>,
  over?: number,
  maxLength = 8,
): fc.Arbitrary<Step> {
  const connection = over === undefined ? fc.nat(1) : fc.constant(over);
  return fc.tuple(connection, fc.array(command, { minLength: 1, maxLength }))
    .map(([over, commands]) => ({ over, commands, expires: false }));
}

/** Steps of one command, whose key expires before the next step. */
function expiring(command: fc.Arbitrary<Command>, over?: number): fc.Arbitrary<Step> {
  return steps(command, over, 1).map((step) => ({ ...step, expires: true }));
}

/** A step with any command. */
export const anyStep: fc.Arbitrary<Step> = weighted([9, steps(command)], [1, expiring(shortLived)]);

// Queues

/** Keys that are locked. The queue of the third is one, too, and the last is a sorted set. */
const LOCKS = ["a", "b", queueOf("a"), "d\0\r\n", "l"];
const QUEUES = LOCKS.map(queueOf);
/** All that the commands about queues work on. */
export const QUEUE_KEYS: readonly string[] = [...new Set([...LOCKS, ...QUEUES])];
/**
 * The channels of the tickets' clients. The first two are subscribed to now and then, the third
 * never is.
 */
export const CHANNELS = ["hasp:wake:x", "hasp:wake:y", "hasp:wake:gone"];

const ticket = weighted([
  8,
  word("x:1", "x:2", "x:1:70", "y:1", "x:1.", "y:2:70.", "x:1.1", "y:é\r\n"),
], [4, word("gone:1", "gone:2", "x:3", "y:3")]);
/** What somebody else may have put there. */
const strangeTicket = weighted([6, ticket], [1, word("nobody", ":1", "x:", ":", "", "x:1:2000")]);
/**
 * Scores long ago, in microseconds: some so close that a ticket passes another, some just too far
 * apart.
 */
const ticketScore = word(..."5000000000 5000100000 5000250000 5000250001 5000600000".split(" "));
const lock = weighted([12, word("a", "a", "a", "b")], [1, word(...LOCKS)]);
/** Locks as the arguments of a script. */
const locks = fc.array(lock, { minLength: 1, maxLength: 3 })
  .map((keys) => [String(keys.length), ...keys]);
const holder = word("v", "w", "0".repeat(39) + "a", "0".repeat(39) + "g");
const lockLife = weighted([8, word("60000", "90000")], [1, life]);
/**
 * What a release says of its ticket: none, that it leaves the queues, or the score with which it
 * goes back.
 */
const parting = fc.oneof(
  fc.constant([]),
  ticket.map((ticket) => [ticket]),
  fc.tuple(ticket, ticketScore),
);
/** A pool, and the number of one of its keys. */
const pool = fc.uniqueArray(word(...LOCKS.slice(0, 4)), { minLength: 1, maxLength: 3 })
  .chain((keys) => fc.tuple(fc.constant(keys), fc.integer({ min: 1, max: keys.length })))
  .map(([keys, number]) => [String(keys.length), ...keys, String(number)]);
/** Whether a quorum of nodes has agreed on a ticket's score. */
const agreed = word("", "", "1");
/** What a call for any of a pool says of its ticket. */
const standing = fc.oneof(fc.constant([]), fc.tuple(ticket, ticketScore, agreed));
const poolScript = fc.tuple(pool, holder, lockLife, standing)
  .map(([pool, value, life, standing]) => {
    return [ACQUIRE_ANY.source, ...pool, value, life, "", ...standing];
  });
const join = fc.tuple(locks, holder, lockLife, fc.constant(""), standing)
  .map(([keys, value, life, hint, standing]) => [keys, value, life, hint, ...standing] as const);
const queueScript = weighted(
  [5, join.map(([keys, ...args]) => [ACQUIRE_OR_WAIT.source, ...keys, ...args])],
  [
    2,
    fc.array(fc.tuple(lock, holder), { minLength: 1, maxLength: 3 }).map((parts) => {
      const words = [...parts.map(([key]) => key), ...parts.map(([, value]) => value)];
      return [RELEASE.source, String(parts.length), ...words];
    }),
  ],
  [1, fc.tuple(locks, holder).map(([keys, value]) => [RELEASE.source, ...keys, value])],
  [
    7,
    fc.tuple(locks, holder, parting)
      .map(([keys, value, parting]) => [RELEASE_QUEUED.source, ...keys, value, ...parting]),
  ],
  [
    3,
    fc.tuple(locks, ticket)
      .map(([keys, ticket]) => [RELEASE_QUEUED.source, ...keys, ticket, ticket]), // leaves
  ],
  [4, poolScript],
).map((words) => ["EVAL", ...words]);
const queue = word(...QUEUES);
/** Where it is kept whose turn it is. */
const turn = word("hasp:turn:a", "hasp:turn:a", "hasp:turn:b");
const queueCommand: fc.Arbitrary<Command> = weighted(
  [20, queueScript],
  [3, fc.tuple(fc.constant("DEL"), lock)],
  [1, fc.tuple(fc.constant("DEL"), queue)],
  [3, fc.tuple(fc.constant("SET"), lock, holder)],
  [3, fc.tuple(fc.constant("PEXPIRE"), turn, word("2000", "3000", "4000"))],
  [1, fc.tuple(fc.constant("SET"), turn, strangeTicket)],
  [3, fc.tuple(fc.constant("ZADD"), queue, ticketScore, strangeTicket)],
  [1, fc.tuple(fc.constant("ZADD"), lock, ticketScore, ticket)],
  [1, fc.tuple(fc.constant("SET"), queue, holder)],
  [1, fc.tuple(fc.constant("PUBLISH"), word(...CHANNELS), holder)],
);
const listening: fc.Arbitrary<Command> = fc.tuple(
  word("SUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE"),
  fc.array(word(...CHANNELS.slice(0, 2)), { minLength: 1, maxLength: 2 }),
).map(([name, channels]) => [name, ...channels]);
const shortLock: fc.Arbitrary<Command> = fc.oneof(
  join.map(([keys, value, , ...args]) => {
    return ["EVAL", ACQUIRE_OR_WAIT.source, ...keys, value, "1", ...args];
  }),
  fc.tuple(fc.constant("PEXPIRE"), word(...QUEUE_KEYS), fc.constant("1")),
);

/**
 * A step with a command about queues: over the first connection some are subscribed, over the
 * second some wait.
 */
export const queueStep: fc.Arbitrary<Step> = weighted(
  [8, steps(queueCommand, 1)],
  [2, steps(listening, 0, 2)],
  [1, expiring(shortLock, 1)],
);

// Fencing tokens

const COUNTERS = LOCKS.map((key) => COUNTER_PREFIX + key);
/** All that the commands about fencing tokens work on. */
export const FENCE_KEYS: readonly string[] = [...QUEUE_KEYS, ...COUNTERS];
/** Close to the clocks of both servers, in microseconds: a missing counter starts from it. */
const hint = fc.nat(3).map((seconds) => String((Date.now() + seconds * 1_000) * 1_000));
/** Ahead of every clock, in microseconds. */
const token = word("4000000000000000", "4000000000000001", "4000000000000005", "8999999999999999");
const strangeToken = weighted([12, token], [
  2,
  word("1", "0", "-5", " 7 ", "1e3", "4.1e15", "9007199254740991", "-1"),
], [1, word("", "x", "007")]);
const counter = word(...COUNTERS.slice(0, 3), ...COUNTERS);
const anyHint = fc.oneof(hint, token, word("1", "-7"));
const counting = fc.tuple(lock, holder, lockLife, anyHint)
  .map(([key, ...args]) => [ACQUIRE_COUNTED.source, "1", key, ...args]);
const fencing = fc.tuple(locks, holder, lockLife, anyHint, standing)
  .map(([keys, value, life, hint, standing]) => {
    return [ACQUIRE_OR_WAIT.source, ...keys, value, life, hint, ...standing];
  });
const adopting = fc.tuple(locks, holder, holder, lockLife, fc.oneof(anyHint, word("")))
  .map(([keys, ...args]) => [ADOPT.source, ...keys, ...args]);
const givingBack = fc.tuple(locks, holder, holder)
  .map(([keys, value, former]) => [GIVE_BACK.source, ...keys, value, former]);
const raising = fc.tuple(locks, holder, strangeToken)
  .map(([keys, value, token]) => [RAISE.source, ...keys, value, token]);
const fencingPool = fc.tuple(pool, holder, lockLife, anyHint, standing)
  .map(([pool, value, life, hint, standing]) => {
    return [ACQUIRE_ANY.source, ...pool, value, life, hint, ...standing];
  });
const fenceCommand: fc.Arbitrary<Command> = weighted(
  [
    20,
    fc.oneof(counting, fencing, fencingPool, adopting, givingBack, raising).map((
      words,
    ) => ["EVAL", ...words]),
  ],
  [4, fc.tuple(word("GET", "PTTL"), counter)],
  [4, fc.tuple(fc.constant("SET"), counter, strangeToken)],
  [2, fc.tuple(fc.constant("PEXPIRE"), counter, lockLife)],
  [1, fc.tuple(fc.constant("ZADD"), counter, ticketScore, holder)],
  [2, fc.tuple(fc.constant("DEL"), counter)],
  [4, fc.tuple(fc.constant("DEL"), word("a", "b"))],
  [4, queueScript],
);

/** A step with a command about fencing tokens. */
export const fenceStep: fc.Arbitrary<Step> = weighted(
  [8, steps(fenceCommand, 1)],
  [1, steps(listening, 0, 2)],
);

// Readers

/** What readers are, and what is put in their place. */
export const READERS: readonly string[] = ["v", "w", "0".repeat(39) + "a", "x"];
export const READER_KEYS: readonly string[] = LOCKS.slice(0, 2).map((key) => READERS_PREFIX + key);
const reader = word(...READERS.slice(0, 3));
/** Readers' tickets, more than are notified at once. */
const ROW = ["x:R1", "y:R1", "x:R2:70", "y:R3:70", "x:R4", "y:R5:60"];
const row = ROW.flatMap((ticket, index) => [String(index), ticket]);
const readersTicket = weighted(
  [8, word(...ROW, "x:1", "y:1")],
  [3, word("gone:R1", "gone:1", "x:Rz")],
);
const readersLife = word("60000", "90000", "120000");
const readersQueue = fc.tuple(fc.constant(""), readersTicket, ticketScore, agreed);
const readerCommand: fc.Arbitrary<Command> = weighted(
  [
    10,
    fc.tuple(
      locks,
      reader,
      readersLife,
      fc.oneof(fc.constant(["1"]), fc.constant([""]), readersQueue),
    )
      .map(([keys, value, life, queue]) => [
        ...["EVAL", ACQUIRE_SHARED.source, ...keys, value, life, ...queue],
      ]),
  ],
  [
    4,
    fc.tuple(locks, reader, readersLife, fc.constantFrom([], ["1"]))
      .map(([keys, ...args]) => ["EVAL", EXTEND_SHARED.source, ...keys, ...args.flat()]),
  ],
  [
    6,
    fc.tuple(
      locks,
      weighted([6, reader], [1, word("")]),
      fc.oneof(
        fc.constant([]),
        readersTicket.map((ticket) => [ticket]),
        fc.tuple(readersTicket, ticketScore),
      ),
    ).map(([keys, value, parting]) => [
      ...["EVAL", RELEASE_QUEUED.source, ...keys, value, ...parting],
    ]),
  ],
  [4, queueScript],
  [2, fc.tuple(fc.constant("DEL"), lock)],
  [1, fc.tuple(fc.constant("SET"), lock, word("w", SHARED))],
  [1, fc.tuple(word("DEL", "ZCARD"), word(...READER_KEYS))],
  [1, fc.tuple(fc.constant("SET"), word(...READER_KEYS), reader)],
  [2, lock.map((key) => ["ZADD", queueOf(key), ...row])],
);
const shortReader: fc.Arbitrary<Command> = fc.tuple(locks, reader).map(([keys, value]) => {
  return ["EVAL", ACQUIRE_SHARED.source, ...keys, value, "1", ""];
});

/** A step with a command about locks in shared mode. */
export const readerStep: fc.Arbitrary<Step> = weighted(
  [8, steps(readerCommand, 1)],
  [2, steps(listening, 0, 2)],
  [1, expiring(shortReader, 1)],
);
