import { assertEquals } from "@std/assert";
import { RELEASE } from "../../../src/redis_node/scripts/release.ts";
import { FakeRequest, ticketOf } from "../../support/fake_request.ts";
import { wire } from "../../support/fake_transport.ts";
import { laterRelease, NodeBench, NOSCRIPT, wholeRelease } from "../../support/redis_node_bench.ts";
import { testOn } from "../../support/stream_bench.ts";

const FIND = wire("COMMAND", "INFO", "delex", "delifeq");
const DELEX = "*2\r\n*3\r\n$5\r\ndelex\r\n:-2\r\n*1\r\n+write\r\n*-1\r\n";
const DELIFEQ = "*2\r\n*-1\r\n*2\r\n$7\r\ndelifeq\r\n:3\r\n";
const NATIVE = wire("delex", "k", "IFEQ", "v") + wire("EXISTS", "hasp:queue:k");

class Bench extends NodeBench {
  override native = true;

  /** Makes the first connection, and releases once; the server answers what it has. */
  async found(reply = DELEX): Promise<this> {
    await this.connected();
    await this.send("release");
    await this.answer(":1\r\n" + reply);
    this.transport.writes.length = 0;
    return this;
  }
}

const test = Object.assign(testOn(() => new Bench()), {
  found: testOn(() => new Bench().found()),
});

test("RedisNode asks behind the first script of a connection which commands the server has, once", async (bench) => {
  await bench.connected();
  bench.transport.writes.length = 0;
  bench.ask("release");
  await bench.send("release");
  assertEquals(bench.transport.writes, [wholeRelease() + FIND + laterRelease()]);
  await bench.answer(":1\r\n" + DELEX + ":0\r\n");
  await bench.send("release");
  assertEquals(bench.transport.writes, [NATIVE]);
  await bench.hangUp();
  await bench.reconnect();
  bench.transport.writes.length = 0;
  await bench.send("release", new FakeRequest("k", { value: "w" }));
  assertEquals(bench.transport.writes, [wholeRelease("w") + FIND]);
});

for (
  const [replies, outcomes, hasWaiters, then] of [
    [":1\r\n:0\r\n", ["granted"], false, ""],
    [":0\r\n:0\r\n", ["denied"], false, ""],
    [":1\r\n:1\r\n", ["granted"], true, laterRelease()],
    [":0\r\n:1\r\n", [], false, laterRelease()],
    ["-ERR Key should be of string type\r\n:0\r\n", [], false, laterRelease()],
    [":1\r\n-NOPERM no\r\n", ["granted"], true, laterRelease()],
    ["+OK\r\n:0\r\n", [], false, laterRelease()],
  ] as const
) {
  test.found(`RedisNode.release() by DELEX is ${outcomes[0] ?? "open"} for ${JSON.stringify(replies)}`, async (bench) => {
    const request = await bench.send("release");
    assertEquals(bench.transport.writes, [NATIVE]);
    await bench.answer(replies);
    assertEquals([request.outcomes, request.hasWaiters], [outcomes, hasWaiters]);
    assertEquals(bench.transport.writes.join(""), then);
    if (then !== "") await bench.answer(":0\r\n");
    assertEquals(request.outcomes, outcomes.length > 0 ? outcomes : ["denied"]);
  });
}

test.found("RedisNode.release() stays with the script on a connection on which DELEX was refused", async (bench) => {
  await bench.send("release");
  await bench.answer("-NOPERM no\r\n:0\r\n");
  await bench.answer(":1\r\n");
  await bench.send("release");
  assertEquals(bench.transport.writes, [laterRelease()]);
});

test.found("RedisNode.release() notifies by the script that the server may have lost", async (bench) => {
  await bench.send("release");
  await bench.answer(":1\r\n:1\r\n");
  await bench.answer(NOSCRIPT);
  assertEquals(bench.transport.writes, [wire("EVAL", RELEASE.source, "1", "k", "v")]);
});

test.found("RedisNode.release() by DELEX notifies who waits, also if the replies come while the node closes", async (bench) => {
  await bench.send("release");
  const closing = bench.node.close();
  await bench.answer(":1\r\n:1\r\n");
  assertEquals(bench.transport.writes, [laterRelease()]);
  await bench.answer(":1\r\n");
  await closing;
});

test.found("RedisNode.release() by DELEX is sent again by the script if the connection breaks before both replies", async (bench) => {
  const request = bench.release();
  await bench.answer("");
  await bench.feed(":1\r\n");
  await bench.hangUp();
  assertEquals(request.outcomes, ["failed"]);
  assertEquals((await bench.reconnect()).startsWith(wholeRelease()), true);
});

test.found("RedisNode.release() of several keys, with a ticket, or of a failed adoption is a script", async (bench) => {
  for (
    const request of [
      new FakeRequest(["k", "l"]),
      new FakeRequest("k", { ticket: ticketOf() }),
      new FakeRequest("k", { replaces: "w" }),
    ]
  ) {
    await bench.send("release", request);
  }
  assertEquals(bench.transport.written.includes("delex"), false);
  assertEquals(bench.transport.written.includes("EVAL"), true);
});

test("RedisNode.release() uses DELIFEQ where the server has that, and each node its own", async (bench) => {
  await bench.found(DELIFEQ);
  const other = await new Bench().found();
  const request = new FakeRequest();
  bench.ask("release", request);
  other.ask("release", request);
  await bench.answer("");
  const asks = wire("EXISTS", "hasp:queue:k");
  assertEquals(bench.written, wire("delifeq", "k", "v") + asks);
  assertEquals(other.written, NATIVE);
  await other.close();
});

test.found("RedisNode.release() by DELEX is for the key of the request, also if another key had that value", async (bench) => {
  await bench.send("release", new FakeRequest("l"));
  await bench.send("release");
  const other = wire("delex", "l", "IFEQ", "v") + wire("EXISTS", "hasp:queue:l");
  assertEquals(bench.transport.writes, [other, NATIVE]);
});

for (
  const reply of ["*2\r\n*-1\r\n*-1\r\n", "-NOPERM no\r\n", "+OK\r\n", "*1\r\n*1\r\n$3\r\nset\r\n"]
) {
  test(`RedisNode.release() stays with the script after ${JSON.stringify(reply)}`, async (bench) => {
    await bench.found(reply);
    await bench.send("release");
    assertEquals(bench.transport.writes, [laterRelease()]);
  });
}
