/**
 * The commands about the connection: PING, AUTH, SELECT, CLIENT, RESET, QUIT.
 *
 * @module
 */
import { type Command, type CommandContext, wrongArity } from "./command.ts";
import { parseInteger } from "./integers.ts";
import { CommandError, OK, type Reply, Status } from "../server/replies.ts";

const PONG = new Status("PONG");
const INT32_MAX = 2n ** 31n - 1n;

/** The commands by their names in lower case. */
export const CONNECTION_COMMANDS: Readonly<Record<string, Command>> = {
  ping: { arity: -1, whileSubscribed: true, run: ping },
  auth: { arity: -2, beforeLogin: true, notInScripts: true, run: auth },
  select: { arity: 2, run: select },
  reset: {
    arity: 1,
    beforeLogin: true,
    whileSubscribed: true,
    notInScripts: true,
    run: reset,
  },
  quit: { arity: -1, beforeLogin: true, whileSubscribed: true, notInScripts: true, run: quit },
  client: {
    arity: -2,
    subcommands: {
      id: { arity: 2, notInScripts: true, run: ({ connection }) => connection.id },
      getname: { arity: 2, notInScripts: true, run: ({ connection }) => connection.name || null },
      setname: { arity: 3, notInScripts: true, run: setName },
    },
  },
};

function ping({ connection }: CommandContext, args: readonly string[]): Reply {
  if (args.length > 1) throw wrongArity("ping");
  if (connection.subscriptions?.size) return ["pong", args[0] ?? ""];
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
  if (user !== "default" || (server.password !== undefined && password !== server.password)) {
    throw new CommandError("WRONGPASS invalid username-password pair or user is disabled.");
  }
  connection.authenticated = true;
  return OK;
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
  server.channels?.leave(connection);
  connection.database = 0;
  connection.name = "";
  connection.authenticated = server.password === undefined;
  return new Status("RESET");
}

function quit({ connection }: CommandContext): Reply {
  connection.quit = true;
  return OK;
}

function setName({ connection }: CommandContext, [name]: readonly string[]): Reply {
  if (!/^[!-~]*$/u.test(name)) {
    throw new CommandError(
      "ERR Client names cannot contain spaces, newlines or special characters.",
    );
  }
  connection.name = name;
  return OK;
}
