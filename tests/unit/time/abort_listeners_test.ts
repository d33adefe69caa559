import { assertEquals } from "@std/assert";
import { offAbort, onAbort } from "../../../src/time/abort_listeners.ts";

/** A signal that counts its listeners. */
function countedSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0, most = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    most = Math.max(most, ++listeners);
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    listeners--;
    removeEventListener.apply(signal, args);
  };
  return { controller, signal, count: () => ({ listeners, most }) };
}

Deno.test("onAbort() calls every callback once, in order, through one listener", () => {
  const { controller, signal, count } = countedSignal();
  const called: number[] = [];
  for (let index = 0; index < 100; index++) onAbort(signal, () => called.push(index));
  assertEquals(count(), { listeners: 1, most: 1 });
  controller.abort();
  controller.abort();
  assertEquals(called, Array.from({ length: 100 }, (_, index) => index));
});

Deno.test("offAbort() forgets one callback, and the last one takes the listener with it", () => {
  const { controller, signal, count } = countedSignal();
  const called: string[] = [];
  const first = () => called.push("first"), second = () => called.push("second");
  onAbort(signal, first);
  onAbort(signal, second);
  offAbort(signal, first);
  assertEquals(count().listeners, 1);
  offAbort(signal, second);
  offAbort(signal, second);
  assertEquals(count(), { listeners: 0, most: 1 });
  onAbort(signal, second);
  assertEquals(count(), { listeners: 1, most: 1 });
  controller.abort();
  assertEquals(called, ["second"]);
});

Deno.test("offAbort() of a callback that a signal does not know changes nothing", () => {
  const { controller, signal } = countedSignal();
  let called = 0;
  offAbort(signal, () => {});
  onAbort(signal, () => called++);
  offAbort(signal, () => {});
  offAbort(new AbortController().signal, () => {});
  controller.abort();
  assertEquals(called, 1);
});

Deno.test("offAbort() within a callback keeps another of the same signal from being called", () => {
  const { controller, signal } = countedSignal();
  const called: string[] = [];
  const second = () => called.push("second");
  onAbort(signal, () => {
    called.push("first");
    offAbort(signal, second);
  });
  onAbort(signal, second);
  controller.abort();
  assertEquals(called, ["first"]);
});

Deno.test("offAbort() after the abort changes nothing", () => {
  const { controller, signal } = countedSignal();
  let called = 0;
  const callback = () => called++;
  onAbort(signal, callback);
  controller.abort();
  offAbort(signal, callback);
  assertEquals(called, 1);
});
