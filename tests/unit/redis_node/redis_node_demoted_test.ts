import { assertEquals } from "@std/assert";
import { test } from "../../support/redis_node_bench.ts";
import { NAME } from "../../support/stream_bench.ts";

/** What a server replies that is a replica. */
const DEMOTED = [
  "READONLY You can't write against a read only replica.",
  "READONLY You can't write against a read only slave.",
  "READONLY You can't write against a read only replica. script: 1, on @user_script:1.",
  "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write against a read only replica. ",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
];

for (const text of DEMOTED) {
  const shown = text.replace(" script: 1, on @user_script:1.", "");
  const error = `Connection to ${NAME} leads to a replica: ${shown.trim()}`;
  test.opened(`RedisNode leaves a server that replies ${text}, behind the replies of its chunk, and connects again`, async (bench) => {
    const requests = [bench.ask("acquire"), bench.ask("extend"), await bench.send("raiseCounters")];
    const { transport } = bench;
    await bench.answer(`-${text}\r\n`.repeat(3));
    for (const { answers } of requests) assertEquals(answers, [["failed", 0, shown]]);
    assertEquals(transport.closed, true);
    assertEquals(bench.events, [`${NAME}: ${error}`]);
    const { answers } = await bench.send("acquire");
    assertEquals(answers, [["failed", 0, error]]);
    await bench.reconnect();
    assertEquals(bench.network.targets.length, 2);
    assertEquals(bench.events.at(-1), `${NAME} connected`);
  });
}
