/**
 * The parts of the lock client that are loaded when a call first needs them.
 *
 * @module
 */
import { Part } from "../part.ts";

/** Waiting for a lock that others have, behind earlier calls, or for the end of a cooldown. */
export const waiting = /* @__PURE__ */ new Part("waiting", () => import("./contend.ts"));
/** The errors of calls that get no lock. */
export const refusing = /* @__PURE__ */ new Part("refusals", () => import("./refusal.ts"));
/** Extensions. */
export const extending = /* @__PURE__ */ new Part("extensions", () => import("./renewal.ts"));
/** Cooldowns. */
export const cooling = /* @__PURE__ */ new Part("cooldowns", () => import("./cooldowns.ts"));
/** Fencing tokens that the nodes count. */
export const counting = /* @__PURE__ */ new Part(
  "fencing tokens",
  () => import("../fencing/fenced_attempt.ts"),
);
/** Fencing tokens from elsewhere. */
export const drawing = /* @__PURE__ */ new Part(
  "'tokenSource'",
  () => import("../fencing/token_source.ts"),
);
/** Errors about the votes of a round. */
export const explaining = /* @__PURE__ */ new Part("messages", () => import("../messages.ts"));
/** `inspect()`. */
export const inspecting = /* @__PURE__ */ new Part("inspect()", () => import("./inspection.ts"));

/** All of them. */
export const LOCK_PARTS: readonly Part<unknown>[] = [
  waiting,
  refusing,
  extending,
  cooling,
  counting,
  drawing,
  explaining,
  inspecting,
];
