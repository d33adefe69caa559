/** Lock clients made from addresses, whose connections are faked streams. */
import { createRedlock, type CreateRedlockOptions } from "../../src/create_redlock.ts";
import type { RedlockEvent } from "../../src/events.ts";
import type { Redlock } from "../../src/redlock.ts";
import { FakeNetwork, type FakeTransport, wire } from "./fake_transport.ts";

/** A lock client on faked streams, and what it reported. */
export function create(
  addresses: Parameters<typeof createRedlock>[0] = ["redis://h"],
  options: CreateRedlockOptions = {},
): { redlock: Redlock; network: FakeNetwork; events: RedlockEvent[] } {
  const network = new FakeNetwork();
  const events: RedlockEvent[] = [];
  const onEvent = (event: RedlockEvent) => void events.push(event);
  const redlock = createRedlock(addresses, { connect: network.connect, onEvent, ...options });
  return { redlock, network, events };
}

/** A command that sets a key to the value that stands in the first command of `transport`. */
export function setCommand({ written }: FakeTransport, key: string, ttlMs: string): string {
  const value = written.split("\r\n")[6]; // behind the count, two words and three lengths
  return wire("SET", key, value, "NX", "PX", ttlMs);
}

/** What was reported of connections. */
export function connectionEvents(events: readonly RedlockEvent[]): unknown[] {
  return events.flatMap((event) => {
    if (event.type === "node-connected") return [[event.type, event.node]];
    return event.type === "node-disconnected"
      ? [[event.type, event.node, event.error.message]]
      : [];
  });
}
