import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { promising } from "../../../src/testing/runtime_stream.ts";
import { CallingTransport } from "../../support/fake_transport.ts";

const decoder = new TextDecoder();

Deno.test("promising() reads a stream that only calls back, however long its chunks are, up to its end or its failure", async () => {
  const buffer = new Uint8Array(4);
  for (const failure of [undefined, new Error("reset")]) {
    const shared = new Uint8Array(8); // used again for each chunk, as sockets do
    const chunks = ["abcdefg", "hi"];
    const goOn: boolean[] = [];
    const stream = promising(Object.assign(new CallingTransport(), {
      receive(
        onChunk: (bytes: Uint8Array, count: number) => boolean,
        onEnd: (error?: Error) => void,
      ) {
        const chunk = chunks.shift();
        if (chunk === undefined) return onEnd(failure);
        const { written } = new TextEncoder().encodeInto(chunk, shared);
        goOn.push(onChunk(shared, written));
        shared.fill(0);
      },
    }));
    const read: string[] = [];
    const readOne = async () => {
      const count = await stream.read(buffer);
      if (count !== null) read.push(decoder.decode(buffer.subarray(0, count)));
      return count;
    };
    for (let times = 0; times < 3; times++) await readOne();
    assertEquals([read, goOn], [["abcd", "efg", "hi"], [false, false]]);
    if (failure) assertStrictEquals(await assertRejects(readOne), failure);
    else assertEquals(await readOne(), null);
  }
});

Deno.test("promising() writes all bytes, and rejects if that fails", async () => {
  const called = new CallingTransport();
  const stream = promising(called);
  assertEquals(await stream.write(new TextEncoder().encode("abc")), 3);
  assertEquals(called.written, "abc");
  const failure = called.writeError = new Error("broken pipe");
  assertStrictEquals(await assertRejects(() => stream.write(new Uint8Array(1))), failure);
});
