import { type DestinationStream, type Level, pino } from "pino";
import type { EventListener, RedlockEvent, Vote } from "@hasp/redlock";

/**
 * `error`: somebody must look at it; also `denied` without a quorum. `warn`: it may lead to such an
 * event.
 */
const LEVELS: Record<RedlockEvent["type"], Level> = {
  "attempt": "trace",
  "woken": "trace",
  "acquired": "debug",
  "extended": "debug",
  "handed-over": "debug",
  "released": "debug",
  "denied": "info",
  "node-connected": "info",
  "node-disconnected": "warn",
  "node-quarantined": "warn",
  "notify-refused": "warn",
  "list-failed": "warn",
  "lead-failed": "warn",
  "extend-failed": "warn",
  "release-failed": "warn",
  "lost": "error",
};

const { err } = pino.stdSerializers;
const votes = (votes: Vote[]) => votes.map(({ node, outcome }) => `${node} ${outcome}`);

/** Pass it as `onEvent`. Writes a line of JSON for each event. */
export function logTo(destination?: DestinationStream): EventListener {
  const options = { level: "info", serializers: { error: err, cause: err, votes } };
  const logger = pino(options, destination).child({ name: "redlock" });
  return ({ type, ...fields }) => {
    const noQuorum = "reason" in fields && fields.reason === "no-quorum";
    logger[noQuorum ? "error" : LEVELS[type]](fields, type);
  };
}
