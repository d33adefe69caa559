/**
 * Ways to break the library on purpose: a checker that does not notice is blind.
 *
 * Each names a mark in the sources and the operator that breaks what is marked. Each mark has one mutation. See
 * `mutation_operators.ts` for both.
 *
 * @module
 */
import {
  again,
  becomes,
  drop,
  inPart,
  late,
  now,
  once,
  type Operator,
  part,
  sometimes,
  without,
} from "./mutation_operators.ts";

/** One way to break it. */
export interface Mutation {
  /** The mark in the sources. */
  readonly mark: string;
  /** What is broken, as the end of a sentence. */
  readonly name: string;
  /** How it is broken. */
  readonly operator: Operator;
}

const never = becomes("false");
const always = becomes("true");

/** All of them, by mark. */
const BY_MARK: Readonly<Record<string, readonly [operator: Operator, name: string]>> = {
  // Validity and the quorum.
  "validity-without-drift": [part(0), "the drift is not taken off the validity"],
  "quorum-one-too-small": [part(0), "the quorum is one too small"],
  "settled-by-grants-alone": [part(2), "a vote is settled only by grants"],
  "validity-from-the-answers-on": [now, "validity counts from the answers on"],
  "granted-too-late": [always, "a quorum that came too late is a lock all the same"],
  "no-deadline": [drop, "the deadline of an answer never comes"],
  "silent-nodes-count-as-free": [
    never,
    "a node that does not answer counts as free in inspect()",
  ],
  // Clocks.
  "elapsed-by-wall-clock-alone": [always, "elapsed is what the wall clock says"],
  "elapsed-by-monotonic-clock-alone": [never, "elapsed is what the monotonic clock says"],
  "loss-gives-time-back": [
    becomes("gainMs > NOISE_MS || (gainMs = Math.max(gainMs, -this.steppedMs)) < 0"),
    "elapsed is the greater of what the two clocks say",
  ],
  "loss-hides-a-sleep": [part(0), "a wall clock that is set back hides the next sleep"],
  "small-gains-forgotten": [always, "small gains of the wall clock are forgotten each time"],
  "steps-unnoticed": [never, "the wheel does not notice steps of the wall clock"],
  "extended-by-monotonic-clock-alone": [
    becomes("this.#extendMs <= this.client.wheel.clock.monotonicMs()"),
    "extensions are due by the monotonic clock alone",
  ],
  // The end of a lock.
  "end-aborts-nothing": [drop, "the end of the validity aborts nothing"],
  "no-expiry-margin": [becomes("0"), "the signal aborts at the last moment"],
  "short-lock-without-margin": [
    without(1),
    "the signal of a lock of a few milliseconds aborts early by a share of them alone",
  ],
  "signal-does-not-look-at-the-clock": [
    drop,
    "the signal waits for its timer, however late that is",
  ],
  "late-deadline-judged-at-once": [
    inPart(1, part(2)),
    "a deadline that is late does not wait for what has come",
  ],
  "held-after-release": [drop, "a lock stays held after its release"],
  // Extending.
  "extended-validity-from-the-answers-on": [
    now,
    "an extension's validity counts from the answers on",
  ],
  "extended-after-its-end": [without(1), "an extension is counted after the validity has ended"],
  "nodes-closed-before-calls-end": [drop, "nodes are closed while calls have yet to undo"],
  "doubtful-extension-stays": [drop, "an extension in doubt is left behind"],
  "filled-in-key-forgotten": [drop, "a key that was filled in is forgotten"],
  "filled-in-node-counts": [
    becomes("isGrant(outcome) || outcome === MISSING"),
    "a node that is filled in counts at once",
  ],
  "extension-sets-missing-keys": [
    becomes("found === undefined && keyspace.set(key, value, keyspace.nowMs() + BigInt(ttl))"),
    "an extension sets missing keys",
  ],
  "extension-steals": [never, "an extension steals"],
  "extension-shortens-ttl": [always, "an extension shortens the TTL"],
  "missing-key-counts-as-extended": [
    inPart(1, inPart(2, becomes('"granted"'))),
    "a key that is missing counts as extended",
  ],
  "filled-in-after-its-end": [always, "a lock that is over is filled in"],
  // Any one of several.
  "any-key-of-a-pool-counts": [
    becomes("names.find((name) => !keys.has(name)) ?? names[place]"),
    "a node grants whichever key of a pool is free",
  ],
  "held-key-of-a-pool-granted": [never, "a node grants a key of a pool that is held"],
  "won-queue-alone-is-left": [
    becomes("index === place && tickets.some((each) => remove(keys, name, each))"),
    "one that has a key of a pool stays in the queues of the others",
  ],
  "notification-of-a-pool-kept": [
    drop,
    "one that has a key of a pool keeps the notification of another",
  ],
  "free-keys-ignored": [always, "a call for any key of a pool asks for those that are held"],
  // Shared mode.
  "readers-pass-who-waits": [never, "a reader enters beside others though a writer waits"],
  "entered-reader-notifies-nobody": [drop, "a reader that enters does not notify the next"],
  "admitted-reader-goes-on-waiting": [
    drop,
    "readers that wait behind another of their client do not notice that it has entered",
  ],
  "reader-deletes-the-marker": [
    becomes("ours && !keys.delete(key)"),
    "a reader that leaves frees the key though others hold it",
  ],
  "key-expires-with-the-last-comer": [
    becomes("keys.expireAt(key, keys.nowMs() + BigInt(ttlMs))"),
    "a key expires with the reader that came last",
  ],
  "dead-first-holds-readers-back": [never, "a dead first in the queue holds readers back"],
  // Keys that are left behind, or taken from others.
  "failed-attempt-stays": [drop, "a failed attempt is not taken back"],
  "undo-spares-no-node": [never, "a failed attempt is taken back where it was denied, too"],
  "undo-spares-what-may-be-set": [
    part(0),
    "a failed attempt is not taken back where a node denied, though it may have set a key",
  ],
  "accepted-in-its-cooldown": [part(0), "a lock is accepted though its cooldown has begun"],
  "one-value-for-all-attempts": [once, "every attempt has the same value"],
  "release-does-not-compare": [drop, "a release does not compare"],
  "release-forgotten": [drop, "a release that did not reach its node is forgotten"],
  "pending-release-forgotten": [
    drop,
    "a release is forgotten where the next connection breaks too",
  ],
  "set-sent-again": [again(200), "a SET is sent again"],
  "set-after-its-undo": [late(60), "a SET may go out after its undo"],
  "script-never-sent": [never, "NOSCRIPT is an error like any other"],
  "script-sent-for-undone-attempt": [
    never,
    "a script is sent again for an attempt that was taken back",
  ],
  // A lock that moves.
  "giver-keeps-holding": [drop, "a lock that was handed over stays held"],
  "adopted-value-kept": [becomes("call.replaces ?? random"), "an adopted lock keeps its value"],
  "adoption-takes-any-key": [becomes("names"), "a lock of another is adopted"],
  "failed-adoption-deletes": [becomes("undefined"), "an adoption that fails deletes the lock"],
  "adopted-lock-never-heals": [never, "a node that has missed an adoption never adopts the lock"],
  "former-value-stays": [never, "a release leaves the former value where an adoption was missed"],
  "dead-value-stays": [drop, "the value of a lock that nobody can adopt any more is left"],
  // The connection.
  "refused-login-accepted": [
    never,
    "commands behind a login that was refused count like any others",
  ],
  "sent-commands-count-as-unsent": [
    inPart(0, becomes("this.#downError")),
    "commands on a connection that breaks count as not sent",
  ],
  "server-that-hangs-counts-as-connected": [
    becomes("false"),
    "a connection that is made again is used before the server has answered",
  ],
  "database-not-awaited": [part(0), "selecting the database is not waited for"],
  "silent-connection-kept": [never, "a silent connection is kept"],
  "no-reconnect": [never, "a lost connection is not made again"],
  "reply-goes-to-the-wrong-command": [sometimes(drop), "a reply goes to the command before"],
  // Waiting.
  "release-notifies-nobody": [never, "a release notifies nobody"],
  "release-forgets-who-waits": [
    drop,
    "a client forgets that others wait for the lock that it releases",
  ],
  "native-release-notifies-nobody": [
    without(0),
    "a release by a native command ignores the queue",
  ],
  "dead-waiter-notified": [always, "one that died is notified, and nobody else"],
  "newcomers-overtake": [never, "newcomers pass those who wait"],
  "unnotified-waiter-never-asks": [becomes("Infinity"), "nobody asks who is not notified"],
  "stuck-first-never-overtaken": [becomes("Infinity"), "the first in the queue is never overtaken"],
  "notified-first-never-overtaken": [drop, "a first that was notified and is stuck is waited for"],
  "first-overtaken-though-it-took-the-key": [
    drop,
    "the second asks though the first has the key",
  ],
  "waiters-ordered-by-their-own-clocks": [
    part(1),
    "waiters are ordered by their clients' own clocks",
  ],
  "scores-stay-apart": [drop, "each client stays first in the queue on nodes of its own"],
  "dead-subscription-taken-for-a-refusal": [
    always,
    "a node on which a subscription died counts as one that refuses it",
  ],
  "stopped-client-keeps-its-place": [never, "a client that was stopped claims its place"],
  "extended-below-the-claim": [drop, "an extension gives a node less than the lock claims"],
  "subscription-outlives-its-server": [
    never,
    "a subscription is not looked at when its server was restarted",
  ],
  "lost-lock-blocks-its-client": [drop, "a lock that is lost keeps its own client waiting"],
  "failed-call-blocks-its-client": [drop, "a caller that gives up keeps its own client waiting"],
  // Fencing tokens and the restart guard.
  "token-settled-by-lower-counters": [
    never,
    "a token is settled by counters that are not below it",
  ],
  "raising-without-a-limit": [
    without(0),
    "counters that cannot agree are raised until the validity is over",
  ],
  "counters-stand-still": [drop, "counters are not increased"],
  "counter-starts-from-any-hint": [
    part(2),
    "a client's clock decides what a counter starts from",
  ],
  "leaping-counter-expires-early": [
    part(0),
    "a counter that a token has put ahead of the clock expires in a week",
  ],
  "restarted-node-counts": [becomes("-Infinity"), "a node that was restarted counts at once"],
  "emptied-node-counts": [without(1), "a node that was emptied counts at once"],
  "old-counters-believed": [always, "counters that were rolled back are believed"],
};

/** All of them. */
export const MUTATIONS: readonly Mutation[] = Object.entries(BY_MARK)
  .map(([mark, [operator, name]]) => ({ mark, name, operator }));
