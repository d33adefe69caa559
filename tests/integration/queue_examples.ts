/** Commands about queues that must not be left to chance, for a server in memory and a real one. */
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import { CHANNELS, type Command, type Step } from "./random_commands.ts";

function joining(ticket: string, score: string): Command {
  return ["EVAL", ACQUIRE_OR_WAIT.source, "1", "a", "v", "60000", "", ticket, score, ""];
}

function releasing(...parting: string[]): Command {
  return ["EVAL", RELEASE_QUEUED.source, "1", "a", "v", ...parting];
}

const LISTENING: Step = {
  over: 0,
  commands: [["SUBSCRIBE", ...CHANNELS.slice(0, 2)]],
  expires: false,
};

/** What must not be left to chance. */
export const QUEUE_EXAMPLES: readonly (readonly Step[])[] = [
  // The first does not use its turn, and the second drops it.
  [
    ["SET", "a", "w"],
    joining("x:1", "5000000000"),
    joining("y:1", "5000100000"),
    joining("x:2", "5000200000"),
    ["DEL", "a"],
    joining("x:2", "5000200000"),
    ["PEXPIRE", "hasp:turn:a", "2000"],
    joining("y:1", "5000100000"),
  ],
  // One that won the key but not the lock goes back before those who came later.
  [
    joining("x:1", "5000000000"),
    joining("y:1", "9000000000"),
    releasing("x:1", "5000000000"),
    releasing("x:1", "5000000000"),
    joining("y:1", "9000000000"),
    releasing("x:1"),
  ],
  // One that comes much too early goes to the end, and moves itself back.
  [
    ["SET", "a", "w"],
    joining("x:1", "5000600000"),
    joining("y:1", "5000000000"),
    joining("y:1", "5000700000"),
  ],
].map((commands) => [LISTENING, { over: 1, commands, expires: false }]);
