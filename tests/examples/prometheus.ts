import type { RedlockEvent } from "@hasp/redlock";

const events = new Map<RedlockEvent["type"], number>();
let heldMs = 0;

/** Pass it as `onEvent`. */
export function count(event: RedlockEvent): void {
  events.set(event.type, (events.get(event.type) ?? 0) + 1);
  if (event.type === "released" || event.type === "lost") heldMs += event.heldMs;
}

/** The body of `/metrics`, of the type `text/plain; version=0.0.4`. */
export function page(): string {
  const lines = [
    "# HELP redlock_events_total Events of locks and nodes.",
    "# TYPE redlock_events_total counter",
    ...[...events].map(([type, total]) => `redlock_events_total{type="${type}"} ${total}`),
    "# HELP redlock_held_seconds_total Time for which locks were held.",
    "# TYPE redlock_held_seconds_total counter",
    `redlock_held_seconds_total ${heldMs / 1_000}`,
  ];
  return lines.join("\n") + "\n";
}
