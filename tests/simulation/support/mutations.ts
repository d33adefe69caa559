/**
 * Ways to break the library on purpose: a checker that does not notice is blind.
 *
 * Each names a mark in the sources and the operator that breaks what is marked. Each mark has one
 * mutation. See `mutation_operators.ts` for both. Lua scripts have no marks, because servers would
 * get them too: there the text is named that is replaced.
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

/** A text of a Lua script, and what replaces it. */
export type ScriptEdit = readonly [from: string, to: string];

/** One way to break it. */
export interface Mutation {
  /** The mark in the sources, or, if a Lua script is broken, a name of the same kind. */
  readonly mark: string;
  /** What is broken, as the end of a sentence. */
  readonly name: string;
  /** How the code at the mark is broken. */
  readonly operator?: Operator;
  /** How Lua scripts are broken. */
  readonly edits?: readonly ScriptEdit[];
}

const never = becomes("false");
const always = becomes("true");

/** Those with a mark. */
const BY_MARK: Readonly<Record<string, readonly [operator: Operator, name: string]>> = {
  // Validity and the quorum.
  "validity-without-drift": [part(0), "the drift is not taken off the validity"],
  "quorum-one-too-small": [part(0), "the quorum is one too small"],
  "decided-by-grants-alone": [part(2), "a round is decided only by grants"],
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
    becomes("this.#extendMs > this.client.wheel.clock.monotonicMs()"),
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
    never,
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
    becomes('vote === "granted" || outcome === MISSING'),
    "a node that is filled in counts at once",
  ],
  "missing-key-counts-as-extended": [
    becomes('{ "-1": GRANTED, 0: DENIED, 1: GRANTED }'),
    "a key that is missing counts as extended",
  ],
  "filled-in-after-its-end": [always, "a lock that is over is filled in"],
  // Any one of several.
  "free-keys-ignored": [always, "a call for any key of a pool asks for those that are held"],
  // Shared mode.
  "admitted-reader-goes-on-waiting": [
    drop,
    "readers that wait behind another of their client do not notice that it has entered",
  ],
  // Keys that are left behind, or taken from others.
  "failed-attempt-stays": [drop, "a failed attempt is not taken back"],
  "undo-spares-no-node": [never, "a failed attempt is taken back where it was denied, too"],
  "undo-spares-what-may-be-set": [
    becomes('round.voteOf(nodeIndex) === "denied"'),
    "a failed attempt is not taken back where a node denied, though it may have set a key",
  ],
  "accepted-in-its-cooldown": [never, "a lock is accepted though its cooldown has begun"],
  "one-value-for-all-attempts": [once, "every attempt has the same value"],
  "release-forgotten": [drop, "a release that did not reach its node is forgotten"],
  "pending-release-forgotten": [
    becomes("pending === release"),
    "a release is forgotten where the next connection breaks too",
  ],
  "set-sent-again": [again(200), "a SET is sent again"],
  "set-after-its-undo": [late(60), "a SET may go out after its undo"],
  "script-never-sent": [never, "NOSCRIPT is an error like any other"],
  "script-sent-for-undone-attempt": [
    always,
    "a script is sent again for an attempt that was taken back",
  ],
  // A lock that moves.
  "giver-keeps-holding": [drop, "a lock that was handed over stays held"],
  "adopted-value-kept": [
    becomes("call.adopts?.value ?? newValue(client.wheel, label)"),
    "an adopted lock keeps its value",
  ],
  "failed-adoption-deletes": [becomes("undefined"), "an adoption that fails deletes the lock"],
  "adopted-lock-never-heals": [
    without(1),
    "a node that has missed an adoption never adopts the lock",
  ],
  "at-least-is-forgotten": [never, "a release deletes keys that atLeastMs keeps"],
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
  "no-reconnect": [always, "a lost connection is not made again"],
  "group-answers-the-neighbour": [
    becomes("replies[(at + 1) % replies.length] ?? null"),
    "a group answers a key with its neighbour's reply",
  ],
  "gate-lets-nobody-in": [drop, "a release that is over lets no other begin"],
  "reply-goes-to-the-wrong-command": [sometimes(drop), "a reply goes to the command before"],
  // Waiting.
  "release-forgets-who-waits": [
    never,
    "a client forgets that others wait for the lock that it releases",
  ],
  "unnotified-waiter-never-asks": [
    becomes("Math.min(followMs, watchEndMs, this.#pollMs)"),
    "nobody asks who is not notified",
  ],
  "several-keys-split-the-vote": [
    without(2),
    "a call for a free key and a held one takes the free one from others again and again",
  ],
  "last-asks-ever-more-rarely": [never, "the last in the queue asks ever more rarely"],
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
  "stopped-client-keeps-its-place": [never, "a client that was stopped claims its place"],
  "extended-below-the-claim": [drop, "an extension gives a node less than the lock claims"],
  "subscription-outlives-its-server": [
    never,
    "a subscription is not looked at when its server was restarted",
  ],
  "lost-lock-blocks-its-client": [drop, "a lock that is lost keeps its own client waiting"],
  "failed-call-blocks-its-client": [drop, "a caller that gives up keeps its own client waiting"],
  // Fencing tokens and the restart guard.
  "token-agreed-by-lower-counters": [
    never,
    "a token is agreed on by counters that are not below it",
  ],
  "raising-without-a-limit": [
    without(0),
    "counters that cannot agree are raised until the validity is over",
  ],
  "restarted-node-counts": [becomes("-Infinity"), "a node that was restarted counts at once"],
  "emptied-node-counts": [without(1), "a node that was emptied counts at once"],
  "old-counters-believed": [never, "counters that were rolled back are believed"],
};

/**
 * Texts of the Lua scripts, and what replaces them: each is found once in `src/redis_node/scripts`.
 */
const IN_SCRIPTS: Readonly<Record<string, readonly [name: string, ...ScriptEdit[]]>> = {
  "release-does-not-compare": [
    "a release does not compare",
    ["redis.call('GET', key) == ARGV[1] and 1 or 0", "redis.call('GET', key) and 1 or 0"],
  ],
  "release-notifies-nobody": [
    "a release notifies nobody",
    [
      "if redis.pcall('EXISTS', 'hasp:queue:' .. key) == 0 then return reply end",
      "do return reply end",
    ],
    ["if not found[index] and (hasLeft or not pooled) then", "if false then"],
  ],
  "group-notifies-nobody": [
    "releases of one tick notify nobody",
    ["if redis.pcall('EXISTS', unpack(queues)) == 0 then return", "do return"],
  ],
  "taken-says-not-for-how-long": [
    "nobody is told when the key expires that another took in its turn",
    ["notifyWatchers(key, '-', tonumber(ttl)", "notifyWatchers(key, '-', 600000"],
  ],
  "shortening-notifies-nobody": [
    "nobody is told when a lock that is kept for a while expires",
    ["notifyWatchers(key, '+', tonumber", "notifyWatchers(isReader and key or '', '+', tonumber"],
  ],
  "shortening-reader-notifies-nobody": [
    "nobody is told when a reader that is kept for a while expires",
    ["notifyWatchers(key, '+', tonumber", "notifyWatchers(isReader and '' or key, '+', tonumber"],
  ],
  "several-keys-keep-a-free-one": [
    "nobody is notified of a key that is free while another of the caller's is held",
    ["if rank then\n      local whose", "if false then\n      local whose"],
  ],
  "group-does-not-compare": [
    "releases of one tick do not compare",
    ["if value == (ARGV[index] or ARGV[1]) then", "if value then"],
  ],
  "newcomers-overtake": [
    "newcomers pass those who wait",
    ["contendFor(key, ticket, asked, agreed)\n  blocked", "0\n  blocked"],
  ],
  "newcomer-has-the-turn-of-the-next": [
    "a newcomer may have a key as soon as another's turn for it is over",
    ["if second and not rank then leftMs", "if false then leftMs"],
  ],
  "dead-waiter-notified": [
    "one that died is notified, and nobody else",
    [
      "elseif others and gone(first) or publish(first, '') == 0 then",
      "elseif publish(first, '') and false then",
    ],
  ],
  "dead-first-holds-readers-back": [
    "a dead first in the queue holds readers back",
    ["      if gone(ticket) then", "      if false then"],
    ["if writes and gone(ticket) then", "if false then"],
    ["if dropped then notifyReaders(key, own) end", ""],
  ],
  "any-key-of-a-pool-counts": [
    "a node grants whichever key of a pool is free",
    [
      "ticket and ticket .. number",
      "ticket and ticket .. number\nfor _, name in ipairs(KEYS) do\n  if redis.call('EXISTS', name) == 0 then key = name break end\nend",
    ],
  ],
  "held-key-of-a-pool-granted": [
    "a node grants a key of a pool that is held",
    ["local blocked, free = redis.call('EXISTS', key) == 1, 0", "local blocked, free = false, 0"],
  ],
  "won-queue-alone-is-left": [
    "one that has a key of a pool stays in the queues of the others",
    ["if index ~= number then count", "if false then count"],
  ],
  "turn-of-a-pool-kept-for-one": [
    "a key of a pool is only for the one whose turn it is on the node, though enough are free",
    ["turnMs > 0 and not (rank and mayHave(key, rank))", "turnMs > 0"],
  ],
  "one-ticket-has-all-turns": [
    "the first of those that wait for a pool gets the turns for all its keys",
    ["if hasTurnElsewhere(first, key) then", "if false then"],
  ],
  "extension-steals": [
    "an extension steals",
    ["if reply == value then", "if reply then"],
  ],
  "extension-sets-missing-keys": [
    "an extension sets missing keys",
    [
      "ARGV[2 * index] or ARGV[2]",
      "ARGV[2 * index] or ARGV[2]\n  redis.call('SET', key, value, 'NX', 'PX', ttl)",
    ],
  ],
  "extension-shortens-ttl": [
    "an extension shortens the TTL",
    ["if redis.call('PTTL', key) < tonumber(ttl) then", "if true then"],
  ],
  "full-node-ends-readers": [
    "a full node extends no reader",
    ["    redis.call('PEXPIRE', key, ttl)\n    if isReader", "    if isReader"],
  ],
  "full-node-refuses-adoptions": [
    "a full node refuses adoptions",
    ["  redis.call('PEXPIRE', key, ttls[index])\n", ""],
  ],
  "adoption-takes-any-key": [
    "a lock of another is adopted",
    [
      "    HELD_LUA,\n    FENCE_LUA,\n    `local _",
      "    FENCE_LUA,\n    `local _",
    ],
  ],
  "readers-pass-who-waits": [
    "a reader enters beside others though a writer waits",
    ["blocked = blocked or writer", ""],
  ],
  "entered-reader-notifies-nobody": [
    "a reader that enters does not notify the next",
    ["notifyReaders(key, nil, nil, isFree and 1 or 4)", ""],
  ],
  "reader-deletes-the-marker": [
    "a reader that leaves frees the key though others hold it",
    ["not expireReaders(key, deadline)", "not redis.call('DEL', key)"],
  ],
  "key-expires-with-the-last-comer": [
    "a key expires with the reader that came last",
    [
      "'PX', ttl) or {}\n    expireReaders(key)",
      "'PX', ttl) or {}\n    redis.call('PEXPIRE', key, ttl)",
    ],
  ],
  "counters-stand-still": [
    "counters are not increased",
    [
      "local count = redis.pcall('INCR', name)",
      "local count = redis.pcall('INCR', name)\nif type(count) == 'number' then redis.call('DECR', name) end",
    ],
  ],
  "counter-starts-from-any-hint": [
    "a client's clock decides what a counter starts from",
    [
      "local start = math.abs(hint - nowUs) > ${HINT_TOLERANCE_US} and nowUs or tonumber(hint)",
      "local start = tonumber(hint)",
    ],
    ["if math.abs(hint - start) <= ${HINT_TOLERANCE_US} then", "if true then"],
  ],
  "leaping-counter-expires-early": [
    "a counter that a token has put ahead of the clock expires in a week",
    [
      "local ttlMs = ${COUNTER_TTL_MS} + math.max(0, math.ceil((highest - nowUs) / 1000))",
      "local ttlMs = ${COUNTER_TTL_MS}",
    ],
  ],
};

/** All of them. */
export const MUTATIONS: readonly Mutation[] = [
  ...Object.entries(BY_MARK).map(([mark, [operator, name]]) => ({ mark, name, operator })),
  ...Object.entries(IN_SCRIPTS).map(([mark, [name, ...edits]]) => ({ mark, name, edits })),
];
