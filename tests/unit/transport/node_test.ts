import { assertEquals, assertStrictEquals } from "@std/assert";
import type { LookupFunction } from "node:net";
import { lastError, shareLookups } from "../../../src/transport/node.ts";

Deno.test("shareLookups() has one look-up of a host under way, and another one after its answer", () => {
  const asked: [hostname: string, answer: Parameters<LookupFunction>[2]][] = [];
  const answers: unknown[] = [];
  const lookup = shareLookups((hostname, _options, answer) => void asked.push([hostname, answer]));
  const ask = (hostname: string, options = { all: true }) => {
    lookup(hostname, options, (error, address) => answers.push(error ?? address));
  };
  for (let times = 0; times < 3; times++) ask("a.test");
  ask("b.test");
  ask("a.test", { all: false });
  assertEquals(asked.map(([hostname]) => hostname), ["a.test", "b.test", "a.test"]);
  const failure = new Error("EAI_AGAIN");
  asked[0][1](failure, "");
  assertEquals(answers, [failure, failure, failure]);
  ask("a.test");
  assertEquals(asked.length, 4);
  asked[3][1](null, "10.0.0.1", 4);
  assertEquals(answers.slice(3), ["10.0.0.1"]);
});

Deno.test("lastError() has a message also if a host has several addresses", () => {
  const errors = ["::1", "127.0.0.1"].map((host) => new Error(`connect ECONNREFUSED ${host}:1`));
  assertStrictEquals(lastError(new AggregateError(errors)), errors[1]);
  assertStrictEquals(lastError(errors[0]), errors[0]);
});
