/**
 * The commands about the connection: HELLO, PING, AUTH, SELECT, CLIENT, RESET, QUIT.
 *
 * @module
 */
import { type CommandContext, type CommandTable, wrongArity } from "./command.ts";
import { parseInteger } from "./integers.ts";
import { VERSION } from "./server_commands.ts";
import { CommandError, Fields, OK, type Protocol, type Reply, Status } from "../server/replies.ts";

/** The error of a HELLO before the login. */
const LOGIN_FIRST =
  "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
const PONG = new Status("PONG");
const INT32_MAX = 2n ** 31n - 1n;

/** The commands. */
export const CONNECTION_COMMANDS: CommandTable = {
  ping: { arity: -1, whileSubscribed: true, run: ping },
  hello: { arity: -1, beforeLogin: true, notInScripts: true, run: hello },
  auth: { arity: -2, beforeLogin: true, notInScripts: true, run: auth },
  select: { arity: 2, run: select },
  reset: { arity: 1, beforeLogin: true, whileSubscribed: true, notInScripts: true, run: reset },
  quit: { arity: -1, beforeLogin: true, whileSubscribed: true, notInScripts: true, run: quit },
  client: { arity: -2 },
  "client|id": { arity: 2, notInScripts: true, run: ({ connection }) => connection.id },
  "client|getname": {
    arity: 2,
    notInScripts: true,
    run: ({ connection }) => connection.name || null,
  },
  "client|setname": { arity: 3, notInScripts: true, run: setName },
};

function ping({ connection }: CommandContext, args: readonly string[]): Reply {
  if (args.length > 1) throw wrongArity("ping");
  if (connection.isForMessages) return ["pong", args[0] ?? ""];
  return args.length === 0 ? PONG : args[0];
}

function auth({ server, connection }: CommandContext, args: readonly string[]): Reply {
  if (args.length > 2) throw new CommandError("ERR syntax error");
  if (args.length === 1 && server.password === undefined) {
    throw new CommandError(
      "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
    );
  }
  const [user, password] = args.length === 2 ? args : ["default", args[0]];
  login({ server, connection }, user, password);
  return OK;
}

function login(
  { server, connection }: Pick<CommandContext, "server" | "connection">,
  user: string,
  password: string,
): void {
  if (user !== "default" || (server.password !== undefined && password !== server.password)) {
    throw new CommandError("WRONGPASS invalid username-password pair or user is disabled.");
  }
  connection.authenticated = true;
}

/** Chooses the version of the protocol, and logs in and names the connection on the way. */
function hello(context: CommandContext, [version, ...options]: readonly string[]): Reply {
  const { connection } = context;
  const protocol = version === undefined ? connection.protocol : protocolOf(version);
  let credentials: readonly string[] | undefined;
  let name: string | undefined;
  for (let at = 0; at < options.length; at++) {
    const option = options[at].toUpperCase();
    const left = options.length - 1 - at;
    if (option === "AUTH" && left >= 2) credentials = [options[++at], options[++at]];
    else if (option === "SETNAME" && left >= 1) name = checkedName(options[++at]);
    else throw new CommandError(`ERR Syntax error in HELLO option '${options[at]}'`);
  }
  if (credentials) login(context, credentials[0], credentials[1]);
  if (!connection.authenticated) throw new CommandError(LOGIN_FIRST);
  connection.name = name ?? connection.name;
  connection.protocol = protocol;
  return new Fields([
    ["server", "redis"],
    ["version", VERSION],
    ["proto", protocol],
    ["id", connection.id],
    ["mode", "standalone"],
    ["role", "master"],
    ["modules", []],
  ]);
}

function protocolOf(version: string): Protocol {
  const number = /^(?:0|-?[1-9]\d{0,17})$/u.test(version) ? Number(version) : undefined;
  if (number === undefined) {
    throw new CommandError("ERR Protocol version is not an integer or out of range");
  }
  if (number !== 2 && number !== 3) {
    throw new CommandError("NOPROTO unsupported protocol version");
  }
  return number;
}

function select(context: CommandContext, [number]: readonly string[]): Reply {
  const { server, connection } = context;
  const database = parseInteger(number);
  if (database > INT32_MAX || database < -INT32_MAX - 1n) {
    throw new CommandError(
      "ERR value is out of range, value must between -2147483648 and 2147483647",
    );
  }
  if (database < 0n || database >= server.databases.length) {
    throw new CommandError("ERR DB index is out of range");
  }
  if (context.inScript) context.keys = server.databases[Number(database)];
  else connection.database = Number(database);
  return OK;
}

/** Resets the connection to its initial state. */
function reset({ server, connection }: CommandContext): Reply {
  connection.subscriptions.clear();
  connection.database = 0;
  connection.name = "";
  connection.protocol = 2;
  connection.authenticated = server.password === undefined;
  return new Status("RESET");
}

function quit({ connection }: CommandContext): Reply {
  connection.close();
  return OK;
}

function setName({ connection }: CommandContext, [name]: readonly string[]): Reply {
  connection.name = checkedName(name);
  return OK;
}

function checkedName(name: string): string {
  if (/^[!-~]*$/u.test(name)) return name;
  throw new CommandError(
    "ERR Client names cannot contain spaces, newlines or special characters.",
  );
}
