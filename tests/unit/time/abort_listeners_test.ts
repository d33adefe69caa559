import { assertEquals } from "@std/assert";
import { getEventListeners } from "node:events";
import { offAbort, onAbort } from "../../../src/time/abort_listeners.ts";

/** A signal, how many listeners it has, and what was called. */
function setUp() {
  const controller = new AbortController();
  const { signal } = controller;
  const called: unknown[] = [];
  const first = () => called.push("first"), second = () => called.push("second");
  return {
    controller,
    signal,
    listeners: () => getEventListeners(signal, "abort").length,
    called,
    first,
    second,
  };
}

Deno.test("offAbort() forgets one callback, and the last one takes the listener with it", () => {
  const { controller, signal, listeners, called, first, second } = setUp();
  onAbort(signal, first);
  onAbort(signal, second);
  offAbort(signal, first);
  assertEquals(listeners(), 1);
  for (let times = 0; times < 2; times++) {
    offAbort(signal, second);
    assertEquals(listeners(), 0);
  }
  onAbort(signal, second);
  assertEquals(listeners(), 1);
  controller.abort();
  offAbort(signal, second); // too late
  assertEquals(called, ["second"]);
});

Deno.test("offAbort() within a callback keeps another of the same signal from being called", () => {
  const { controller, signal, called, first, second } = setUp();
  onAbort(signal, () => {
    first();
    offAbort(signal, second);
  });
  onAbort(signal, second);
  controller.abort();
  assertEquals(called, ["first"]);
});
