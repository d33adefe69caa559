/**
 * Ways to break the library on purpose: a checker that does not notice is blind.
 *
 * Each is a replacement of text in a scratch copy of the sources. One whose text is no longer there is an error, so
 * that none is passed by in silence.
 *
 * @module
 */

/** One way to break it. */
export interface Mutation {
  /** What is broken, in few words. */
  readonly name: string;
  /** The file under `src`. */
  readonly file: string;
  /** The text that stands there, once. */
  readonly from: string;
  /** What stands there instead. */
  readonly to: string;
}

/** All of them. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: "the drift is not taken off the validity",
    file: "time/validity.ts",
    from: "return ttlMs - driftMs(ttlMs, driftFactor);",
    to: "return ttlMs;",
  },
  {
    name: "the quorum is one too small",
    file: "quorum/quorum.ts",
    from: "return Math.floor(nodeCount / 2) + 1;",
    to: "return Math.max(Math.floor(nodeCount / 2), 1);",
  },
  {
    name: "a vote is settled only by grants",
    file: "quorum/quorum.ts",
    from: 'return granted + pending < quorum ? "refused" : "open";',
    to: 'return "open";',
  },
  {
    name: "validity counts from the answers on",
    file: "lock/held_lock.ts",
    from: "this.#since = round;",
    to: "const { clock } = round.nodeSet.wheel;\n" +
      "    this.#since = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };",
  },
  {
    name: "an extension's validity counts from the answers on",
    file: "lock/renewal.ts",
    from: "lock.extended(round, newValidityMs);",
    to: "const { clock } = client.wheel;\n" +
      "    const since = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };\n" +
      "    lock.extended(since, newValidityMs);",
  },
  {
    name: "a failed attempt is not taken back",
    file: "lock/acquire.ts",
    from: "if (!granted) undo(round, true);",
    to: "if (!granted) round.cancel();",
  },
  {
    name: "a quorum that came too late is a lock all the same",
    file: "lock/acquire.ts",
    from: "const inTime = remainingMs > expiryMarginMs(validityMs);",
    to: "const inTime = remainingMs > -Infinity;",
  },
  {
    name: "every attempt has the same value",
    file: "lock/acquire.ts",
    from: "const value = client.wheel.random.value();",
    to: "const value = (call as { value?: string }).value ??= client.wheel.random.value();",
  },
  {
    name: "a release does not compare",
    file: "testing/scripts/queue_functions.ts",
    from: "if (found !== undefined && found !== value) return integer(0);",
    to: "",
  },
  {
    name: "an extension steals",
    file: "testing/scripts/script_functions.ts",
    from: "else if (found !== value) return 0;",
    to: "else if (found !== value) reply = 1;",
  },
  {
    name: "an extension shortens the TTL",
    file: "testing/scripts/script_functions.ts",
    from: "if (Number(keyspace.remainingMs(key)) < ttlMs) {",
    to: "if (ttlMs > 0) {",
  },
  {
    name: "an extension sets keys that are missing",
    file: "testing/scripts/script_functions.ts",
    from: "atPlace(place, () => expireKey(keyspace, key, ttl));",
    to: "setInScript(keyspace, key, args, place);",
  },
  {
    name: "a key that is missing counts as extended",
    file: "redis_node/replies.ts",
    from: 'return ofInteger(reply, "denied", "granted", "missing");',
    to: 'return ofInteger(reply, "denied", "granted", "granted");',
  },
  {
    name: "elapsed is what the wall clock says",
    file: "time/clock.ts",
    from: "return Math.max(monotonicMs - start.monotonicMs, wallMs - start.wallMs, 0);",
    to: "return Math.max((wallMs - start.wallMs) + 0 * monotonicMs, 0);",
  },
  {
    name: "elapsed is what the monotonic clock says",
    file: "time/clock.ts",
    from: "return Math.max(monotonicMs - start.monotonicMs, wallMs - start.wallMs, 0);",
    to: "return Math.max((monotonicMs - start.monotonicMs) + 0 * wallMs, 0);",
  },
  {
    name: "jumps of the wall clock go unnoticed",
    file: "time/timer_wheel.ts",
    from: "const jumped = leadMs - this.#leadMs > JUMP_MS;",
    to: "const jumped = leadMs - this.#leadMs > 1e9 + JUMP_MS;",
  },
  {
    name: "a slow lead of the wall clock is forgotten each time",
    file: "time/timer_wheel.ts",
    from: "if (jumped || leadMs < this.#leadMs) this.#leadMs = leadMs;",
    to: "this.#leadMs = leadMs;",
  },
  {
    name: "a node that does not answer counts as free in inspect()",
    file: "lock/inspection.ts",
    from: "if (most.length + nodes.length - answered.length >= quorum) {",
    to: "if (most.length + answered.length < 0) {",
  },
  {
    name: "a release that did not reach its node is forgotten",
    file: "redis_node/redis_node.ts",
    from: "if (request.maybeSet & bit) this.#pendingReleases.add(request);",
    to: "if (request.maybeSet < 0) this.#pendingReleases.add(request);",
  },
  {
    name: "a release is forgotten where the next connection breaks too",
    file: "redis_node/redis_node.ts",
    from:
      "return this.#pendingReleases.addAgain(context as PendingRelease);\n    }\n    if (operation === OPERATION.leave) return; //",
    to: "return;\n    }\n    if (operation === OPERATION.leave) return; //",
  },
  {
    name: "a SET without an answer is sent again",
    file: "redis_node/redis_node.ts",
    from: "    if (operation === OPERATION.release) {\n      if (request.maybeSet",
    to: '    if (operation === 0 && (error as ConnectionError).outcome === "unknown") {\n' +
      '      const again = encodeOperation(0, request, "EVALSHA");\n' +
      "      const send = () => this.#connection.submit(again, this, request, tag);\n" +
      "      this.#server.wheel.after(200, send);\n" +
      "      return;\n    }\n" +
      "    if (operation === OPERATION.release) {\n      if (request.maybeSet",
  },
  {
    name: "a SET may go out after its undo",
    file: "redis_node/redis_node.ts",
    from: "this.#ask(acquireOperation(request, queues), request, nodeIndex);",
    to: "this.#server.wheel.after(nodeIndex === 0 ? 60 : 0, () => {\n" +
      "      this.#ask(acquireOperation(request, queues), request, nodeIndex, REPEATED);\n    });",
  },
  {
    name: "NOSCRIPT is an error like any other",
    file: "redis_node/redis_node.ts",
    from: "if (reply.prefix === UNKNOWN_SCRIPT && !(tag & WHOLE) &&",
    to: "if (reply.prefix === UNKNOWN_SCRIPT && tag < 0 &&",
  },
  {
    name: "a script is sent again for an attempt that was taken back",
    file: "redis_node/redis_node.ts",
    from: "if (operation < OPERATION.release && !request.wanted) return false;",
    to: "if (operation < 0 && !request.wanted) return false;",
  },
  {
    name: "the end of the validity aborts nothing",
    file: "lock/held_lock.ts",
    from: "if (this.remainingMs() <= expiryMarginMs(this.#validityMs)) return this.#runOut();",
    to: "if (this.remainingMs() <= expiryMarginMs(this.#validityMs)) return;",
  },
  {
    name: "the signal aborts at the last moment",
    file: "time/validity.ts",
    from: "return Math.min(marginMs, EXPIRY_MARGIN_MAX_MS, validityMs / 2);",
    to: "return 0;",
  },
  {
    name: "an extension is counted after the validity has ended",
    file: "lock/renewal.ts",
    from: 'round.decision === "granted" && lock.held && // step 7',
    to: 'round.decision === "granted" &&',
  },
  {
    name: "an extension in doubt is left behind",
    file: "lock/held_lock.ts",
    from: "if (ranOut) this.#undoLater();\n    else undo(this.round);",
    to: "if (!ranOut) undo(this.round);",
  },
  {
    name: "a lock stays held after its release",
    file: "lock/held_lock.ts",
    from: 'this.#end ??= "released"; // step 5: before any key is deleted',
    to: "",
  },
  {
    name: "nobody's time for an answer ends",
    file: "quorum/round.ts",
    from: "      if (dueMs <= nowMs) {\n        this.#note",
    to: "      if (dueMs <= nowMs - 60_000) {\n        this.#note",
  },
  {
    name: "logging in is not waited for",
    file: "redis/connection.ts",
    from: "if (commands.length === 0) this.#opened();\n    else this.#wire.flush();",
    to: "this.#opened();",
  },
  {
    name: "a silent connection is kept",
    file: "redis/reply_watch.ts",
    from: "if (late !== undefined) this.#onLate(late);",
    to: "if (late !== undefined && this.#quietTicks < 0) this.#onLate(late);",
  },
  {
    name: "a lost connection is not made again",
    file: "redis/connection.ts",
    from: "if (!closing) this.#planRetry();",
    to: "if (!closing && this.#failures < 0) this.#planRetry();",
  },
  {
    name: "a reply goes to the command before",
    file: "redis/command_queue.ts",
    from: "    this.#sent--;\n    receiver!.onReply",
    to: "    if (this.#sent > 2) this.#dropFirst(this.#slots[this.#head]), this.#sent--;\n" +
      "    this.#sent--;\n    receiver!.onReply",
  },
  {
    name: "a release notifies nobody",
    file: "testing/scripts/queue_functions.ts",
    from: "if (first === undefined || first === own) return false;",
    to: "if (first === undefined || own === undefined || first === own) return false;",
  },
  {
    name: "one that died is notified, and nobody else",
    file: "testing/scripts/queue_functions.ts",
    from: "if (publish(context, first, first) > 0) {",
    to: "if (publish(context, first, first) >= 0) {",
  },
  {
    name: "newcomers pass those who wait",
    file: "testing/scripts/queue_functions.ts",
    from: 'if (!blocked && priority !== "1") {',
    to: 'if (!blocked && priority === "none") {',
  },
  {
    name: "a token is settled by counters that are not below it",
    file: "fencing/token.ts",
    from: "if (answer > token) agreed = 0;",
    to: "if (answer > token) agreed = Math.max(agreed, 0);",
  },
  {
    name: "counters are not increased",
    file: "testing/scripts/fence_functions.ts",
    from: "const before = countable(keys, name);",
    to: "const read = countable(keys, name);\n  const before = read > 0n ? read - 1n : read;",
  },
  {
    name: "a client's clock decides what a counter starts from",
    file: "fencing/token.ts",
    from:
      "return Math.abs(hint - timeUs) > HINT_TOLERANCE_MS * MICROSECONDS_PER_MS ? timeUs : hint;",
    to: "return Math.max(hint, 0 * timeUs);",
  },
  {
    name: "a counter that a token has put ahead of the clock expires in a week",
    file: "testing/scripts/fence_functions.ts",
    from: "const ttlMs = COUNTER_TTL_MS + Math.max(0, Math.ceil((highest - timeUs) / 1_000));",
    to: "const ttlMs = COUNTER_TTL_MS;",
  },
  {
    name: "a node that was restarted counts at once",
    file: "redis_node/quarantine.ts",
    from: "return receivedAtMs - uptimeMs + UPTIME_ERROR_MS;",
    to: "return -Infinity;",
  },
  {
    name: "a node that was emptied counts at once",
    file: "redis_node/quarantine.ts",
    from: "const sinceMs = Math.max(restartedMs, createdMs);",
    to: "const sinceMs = restartedMs;",
  },
  {
    name: "counters that were rolled back are believed",
    file: "redis_node/restart_guard.ts",
    from: "if (count === undefined || count >= oldBelow)",
    to: "if (count === undefined || oldBelow < Infinity)",
  },
  {
    name: "nobody asks who is not notified",
    file: "waiting/queued_waiter.ts",
    from: "    return this.#nowMs + delayMs;",
    to: "    return Infinity;",
  },
  {
    name: "a lock that is lost keeps its own client waiting",
    file: "lock/held_lock.ts",
    from:
      "this.#emitLost(cause);\n    this.client.localQueues.leave(queueKey(this.round.keys), this);",
    to: "this.#emitLost(cause);",
  },
  {
    name: "a caller that gives up keeps its own client waiting",
    file: "lock/acquire_in_turn.ts",
    from: "    localQueues.leave(name, call);\n    throw error;",
    to: "    throw error;",
  },
];

/**
 * Applies a mutation to the text of its file.
 *
 * @throws {Error} If the text to replace is not there, or more than once.
 */
export function mutate(source: string, { name, file, from, to }: Mutation): string {
  const count = source.split(from).length - 1;
  if (count !== 1) {
    throw new Error(`Cannot apply mutation "${name}": its text is ${count} times in src/${file}`);
  }
  return source.replace(from, () => to);
}
