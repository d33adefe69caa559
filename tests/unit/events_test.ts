import { assertEquals } from "@std/assert";
import { emit, type RedlockEvent } from "../../src/events.ts";

const EVENT: RedlockEvent = { type: "node-connected", node: "redis://h:6379" };

Deno.test("emit() calls the listener", () => {
  const events: RedlockEvent[] = [];
  emit((event) => events.push(event), EVENT);
  assertEquals(events, [EVENT]);
});

Deno.test("emit() lets a listener throw", () => {
  emit(() => {
    throw new Error("no");
  }, EVENT);
});

Deno.test("emit() lets a listener reject without an unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const note = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", note);
  emit(() => Promise.reject(new Error("no")), EVENT);
  await new Promise((resolve) => setTimeout(resolve, 0));
  globalThis.removeEventListener("unhandledrejection", note);
  assertEquals(unhandled, []);
});

Deno.test("emit() lets a listener return what has a broken then", () => {
  const thenable = {
    get then() {
      throw new Error("no");
    },
  };
  emit(() => thenable as unknown as void, EVENT);
});
