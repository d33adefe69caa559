/**
 * Random commands about locks in shared mode, for a server in memory and a real one.
 *
 * @module
 */
import fc from "fast-check";
import {
  ACQUIRE_SHARED,
  EXTEND_SHARED,
  READERS_PREFIX,
  RELEASE_SHARED,
  SHARED,
} from "../../src/redis_node/scripts/readers.ts";
import { queueOf } from "../../src/redis_node/scripts/queue.ts";
import {
  agreed,
  type Command,
  expiring,
  listening,
  lock,
  LOCKS,
  locks,
  queueScript,
  type Step,
  steps,
  ticketScore,
  weighted,
  word,
} from "./random_commands.ts";

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
const readersStuck = weighted([6, word("")], [2, word(" x:R1 ", " y:R1 x:1 ", " gone:R1 ")]);
const readersLife = word("60000", "90000", "120000");
const readersQueue = fc.tuple(readersTicket, readersStuck, ticketScore, agreed);
const readerCommand: fc.Arbitrary<Command> = weighted(
  [
    10,
    fc.tuple(locks, reader, readersLife, fc.oneof(fc.constant([]), fc.constant([""]), readersQueue))
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
      ...["EVAL", RELEASE_SHARED.source, ...keys, value, ...parting],
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
