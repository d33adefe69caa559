import { assertEquals, assertStrictEquals } from "@std/assert";
import { promising } from "../../../src/testing/runtime_stream.ts";
import type { OnChunk } from "../../../src/transport/transport.ts";
import { CallingTransport } from "../../support/fake_transport.ts";

Deno.test("promising() reads and writes on a stream that only calls back, up to its end or a failure", async () => {
  const [buffer, shared] = [new Uint8Array(4), new Uint8Array(8)];
  const failure = new Error("broken pipe");
  for (const [error, end] of [[undefined, null], [failure, failure]] as const) {
    const chunks = ["abcdefg", "hi"];
    const goOn: boolean[] = [];
    const receive = (onChunk: OnChunk, onEnd: (error?: Error) => void) => {
      const chunk = chunks.shift();
      if (chunk === undefined) return onEnd(error);
      goOn.push(onChunk(shared, new TextEncoder().encodeInto(chunk, shared).written));
      shared.fill(0); // used again, as sockets do
    };
    const called = Object.assign(new CallingTransport(), { receive, writeError: error });
    const stream = promising(called);
    const read = async () => {
      const count = await stream.read(buffer);
      return count && new TextDecoder().decode(buffer.subarray(0, count));
    };
    assertEquals([await read(), await read(), await read()], ["abcd", "efg", "hi"]);
    assertEquals(goOn, [false, false]);
    assertStrictEquals(await read().catch((thrown) => thrown), end);
    const written = await stream.write(buffer).catch((thrown) => thrown);
    assertStrictEquals(written, error ?? 4);
  }
});
