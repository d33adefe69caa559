/**
 * The parts of a node on Redis that are loaded when a request first needs them.
 *
 * @module
 */
import { Part } from "../part.ts";

/** Extensions. */
export const extending = /* @__PURE__ */ new Part(
  "extensions",
  () => import("./extend_operation.ts"),
);
/** Locks on several keys, and queues. */
export const queueing = /* @__PURE__ */ new Part("queues", () => import("./queue_operations.ts"));
/** Notifications of releases. */
export const notifying = /* @__PURE__ */ new Part(
  "notifications",
  () => import("./release_subscription.ts"),
);
/** The connection that carries notifications. */
export const subscribing = /* @__PURE__ */ new Part(
  "subscriptions",
  () => import("../redis/subscriber.ts"),
);
/** Fencing tokens. */
export const counting = /* @__PURE__ */ new Part(
  "fencing tokens",
  () => import("./count_operations.ts"),
);
/** The restart guard. */
export const guarding = /* @__PURE__ */ new Part(
  "'restartGuardMs'",
  () => import("./restart_guard.ts"),
);
/** What a node has under a key. */
export const inspecting = /* @__PURE__ */ new Part("inspect()", () => import("./inspect_key.ts"));
/** What a server reports about itself. */
export const diagnosing = /* @__PURE__ */ new Part("check()", () => import("./diagnostics.ts"));

/** All of them. */
export const NODE_PARTS: readonly Part<unknown>[] = [
  extending,
  queueing,
  notifying,
  subscribing,
  counting,
  guarding,
  inspecting,
  diagnosing,
];
