import { assert, assertEquals } from "@std/assert";
import { PRINTABLE_LENGTH_MAX } from "../../../src/printable.ts";
import { ConnectionError, ProtocolError, ReplyError } from "../../../src/redis/errors.ts";

const DETAILS = { address: "redis://h:6379", outcome: "unknown" } as const;

for (
  const text of [
    "ERR unknown command 'AUTH', with args beginning with: 'user' 'secret' ",
    "ERR unknown command `AUTH`, with args beginning with: `secret`, ",
    "ERR unknown command 'AUTH' with args beginning with: secret",
  ]
) {
  Deno.test(`ReplyError cuts off the arguments that a server repeats: ${text.slice(0, 28)}`, () => {
    const { message, prefix } = new ReplyError(text);
    assert(message.startsWith("ERR unknown command ") && !message.includes("secret"), message);
    assertEquals(prefix, "ERR");
  });
}

Deno.test("ReplyError keeps control characters and a password out of its message and its prefix", () => {
  const error = new ReplyError("hunter2\x1b[31m wrong hunter2\nnode-2: fine", ["hunter2"]);
  assertEquals(error.message, "***\\u{1b}[31m wrong ***\\u{a}node-2: fine");
  assertEquals(error.prefix, "***\\u{1b}[31m");
});

Deno.test("ReplyError cuts a long text off", () => {
  const { message, prefix } = new ReplyError("x".repeat(100_000));
  for (const { length } of [message, prefix]) assertEquals(length, PRINTABLE_LENGTH_MAX + 1);
});

for (const password of ["NO", "NOSCRIPT", "SCRIPT", "O"]) {
  Deno.test(`ReplyError keeps a prefix that programs act on, although the password is ${password}`, () => {
    const { message, prefix } = new ReplyError("NOSCRIPT No matching script", [password]);
    assertEquals([prefix, message.slice(prefix.length).includes(password)], ["NOSCRIPT", false]);
  });
}

Deno.test("ReplyError shows no user name, and is as permanent as without one", () => {
  const denied = new ReplyError("NOPERM User bob has no permissions to run 'get'", [
    "hunter2",
    "bob",
  ]);
  assertEquals(denied.message, "NOPERM User *** has no permissions to run 'get'");
  const unknown = new ReplyError("ERR unknown command 'EVAL'", ["command"]);
  assertEquals(unknown.message, "ERR unknown *** 'EVAL'");
  for (const error of [denied, unknown]) assert(error.commandRefused && error.permanent);
});

const PERMANENT = [
  "NOAUTH Authentication required.",
  "WRONGPASS invalid username-password pair or user is disabled.",
  "NOPERM this user has no permissions to run the 'set' command",
  "DENIED Redis is running in protected mode",
  "ERR unknown command 'EVAL'",
  "ERR invalid password",
  "ERR Client sent AUTH, but no password is set",
  "ERR AUTH <password> called without any password configured for the default user.",
  "ERR DB index is out of range",
  "ERR invalid DB index",
  "ERR SELECT is not allowed in cluster mode",
  "MOVED 3999 10.0.0.2:6379",
  "CROSSSLOT Keys in request don't hash to the same slot",
  "ERR Script attempted to access keys that do not hash to the same slot script: 1",
  "ERR Command 'GET' in script attempted to access keys that don't hash to the same slot",
  "ERR ACL failure in script: User bob has no permissions to run the 'zadd' command script: 1",
  "ERR The user executing the script can't run this command or subcommand script: 1",
  "ERR Error running script (call to 1): @user_script:1: -NOPERM bob has no ACL permissions",
  // before Redis 7
  "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: The user executing the",
  "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: Unknown Redis command",
  "@user_script: 1: The user executing the script can't run this command or subcommand",
];
const PASSING = [
  "ERR max number of clients reached",
  "LOADING Redis is loading the dataset in memory",
  "READONLY You can't write against a read only replica.",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "CLUSTERDOWN The cluster is down",
  "TRYAGAIN Multiple keys request during rehashing of slot",
  // also while a slot moves
  "ERR Script attempted to access a non local key in a cluster node script: 1",
  "ERR Lua script attempted to access a non local key in a cluster node",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "BUSY Redis is busy running a script.",
];

for (const text of [...PERMANENT, ...PASSING]) {
  const permanent = PERMANENT.includes(text);

  Deno.test(`ReplyError and the ConnectionError that it causes are ${permanent ? "" : "not "}permanent: ${text}`, () => {
    const cause = new ReplyError(text);
    const caused = new ConnectionError("Refused", { ...DETAILS, cause });
    assertEquals([cause.permanent, caused.permanent], [permanent, permanent]);
    assertEquals(cause.commandRefused, /^NOPERM|unknown .*command|user executing|ACL/iu.test(text));
  });
}

Deno.test("ConnectionError has no cause that consoles would show if there is none", () => {
  assertEquals("cause" in new ConnectionError("Lost", { ...DETAILS, cause: undefined }), false);
});

Deno.test("ConnectionError is permanent if the transport's error says so", () => {
  const cause = Object.assign(new Error("Not in this request"), { permanent: true });
  assert(new ConnectionError("Lost", { ...DETAILS, cause }).permanent);
});

Deno.test("ConnectionError is permanent if the runtime was started without the permission to connect", () => {
  class NotCapable extends Error {
    override name = "NotCapable"; // of Deno
  }
  // of Node
  const denied = Object.assign(new Error("Access to this API"), { code: "ERR_ACCESS_DENIED" });
  for (const cause of [new NotCapable("Requires net access"), denied]) {
    assert(new ConnectionError("Lost", { ...DETAILS, cause }).permanent);
  }
});

Deno.test("ConnectionError is not permanent if it passes although its cause is", () => {
  const cause = new ReplyError(PERMANENT[1]);
  assertEquals(new ConnectionError("Lost", { ...DETAILS, cause, passes: true }).permanent, false);
});

Deno.test("RedisError is not permanent unless the server or the transport says so", () => {
  for (const cause of [undefined, new Error("refused")]) {
    assertEquals(new ConnectionError("Lost", { ...DETAILS, cause }).permanent, false);
  }
  assertEquals(new ProtocolError("Cannot read reply").permanent, false);
});
