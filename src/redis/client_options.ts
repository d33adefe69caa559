/**
 * The options of a client of one server, and how it is reached.
 *
 * @module
 */
import type { GetCredentials } from "../credentials.ts";
import { connect as connectDefault } from "../transport/default.ts";
import type { Connect, TlsOptions } from "../transport/transport.ts";
import {
  checkAll,
  checkOptions,
  FUNCTION,
  isObject,
  NAME,
  numberThat,
  POSITIVE,
  type Rule,
  type Rules,
  textThat,
  typeError,
} from "../validate.ts";
import type { RedisAddress } from "./address.ts";
import type { ConnectionOptions } from "./connection.ts";
import { REPLY_BYTES_MAX, REPLY_ELEMENTS_MAX } from "./decoder.ts";

/** Default timeout for opening a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1_000;

/** Options of {@linkcode connect} and {@linkcode RedisClient}: how to reach a server. */
export interface ClientOptions {
  /**
   * Timeout for opening a connection and logging in, in milliseconds; up to twice as long if the
   * process stands still meanwhile. Greater than 0 and finite.
   *
   * @default {1000}
   */
  connectTimeoutMs?: number | undefined;
  /**
   * Timeout for silence: if replies are due and nothing arrives for this long, in milliseconds, and
   * at the latest after a quarter longer, the connection is closed and replaced. Greater than 0;
   * `Infinity` turns it off, for commands that block, such as `BLPOP`.
   *
   * @default {2000}
   */
  stallTimeoutMs?: number | undefined;
  /**
   * Timeout for one whole reply, also while bytes arrive, in milliseconds: if a command has no
   * reply after this time, and at the latest after twice this time, the connection is closed and
   * replaced. Greater than 0; `Infinity` turns it off.
   *
   * @default {5 * stallTimeoutMs}
   */
  replyTimeoutMs?: number | undefined;
  /**
   * Most bytes of one reply; greater than 0, and `Infinity` turns it off. A longer reply closes the
   * connection, and its commands reject.
   *
   * @default {536870912}
   */
  replyBytesMax?: number | undefined;
  /**
   * Most elements of one reply, those of nested arrays included; greater than 0, and `Infinity`
   * turns it off. A longer reply closes the connection, and its commands reject.
   *
   * @default {1048576}
   */
  replyElementsMax?: number | undefined;
  /**
   * TLS settings for `rediss://` addresses; throws a `TypeError` if no address begins with
   * `rediss://` or `valkeys://`.
   *
   * @default {the runtime's own certificate authorities, no client certificate}
   */
  tls?: TlsOptions | undefined;
  /**
   * Name of this client in the server's `CLIENT LIST`: printable ASCII without spaces. If the
   * server does not allow the client to set one, the connection has no name.
   *
   * @default {no name}
   */
  clientName?: string | undefined;
  /**
   * Function that returns the user name and the password for a login, or a promise of them: called
   * with the name of the server, its address without credentials, at each login of each connection.
   * It has `connectTimeoutMs` with everything else that a connection takes; if it throws, the
   * connection could not be made, and is tried again. What it returns replaces the credentials in
   * the address, and a refused login is tried again too, because the next credentials may be
   * others.
   *
   * @default {the credentials in the address}
   */
  credentials?: GetCredentials | undefined;
  /**
   * Function that opens a stream to a server, instead of the runtime's sockets.
   *
   * @default {the sockets of the runtime}
   */
  connect?: Connect | undefined;
}

/** The options for reaching a server; the others of {@linkcode ClientOptions} limit its replies. */
export type ConnectOptions = Pick<
  ClientOptions,
  "connectTimeoutMs" | "tls" | "clientName" | "credentials" | "connect"
>;

const CONNECT_RULES: Rules = {
  connectTimeoutMs: POSITIVE,
  tls: { text: "must be an object", holds: isObject, isForm: true },
  // The server refuses another name too, but only once it is connected to.
  clientName: /* @__PURE__ */ textThat(
    "must be printable ASCII without spaces",
    (name) => /^[!-~]+$/u.test(name),
  ),
  credentials: FUNCTION,
  connect: FUNCTION,
};

/** The names of {@linkcode ConnectOptions}. */
export const CONNECT_OPTION_NAMES: readonly string[] = /* @__PURE__ */ Object.keys(CONNECT_RULES);

/** The call that fails if an option is wrong, for messages. */
const ACTION = "connect to Redis";

/**
 * Fills in the defaults of the options for reaching a server, and checks them.
 *
 * @param options The user's options, of which others are ignored.
 * @param addresses The servers that the options are for.
 */
export function resolveConnectOptions(
  options: ConnectOptions,
  addresses: readonly RedisAddress[],
): Pick<ConnectionOptions, keyof ConnectOptions> {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, tls, clientName, credentials } = options;
  const { connect = connectDefault } = options;
  checkAll(ACTION, { connectTimeoutMs, tls, clientName, credentials, connect }, CONNECT_RULES);
  const ownTls = tls === undefined ? {} : checkTls(tls, addresses);
  return { connectTimeoutMs, tls: ownTls, clientName, credentials, connect };
}

/** Default silence while replies are due after which a connection is replaced, in milliseconds. */
const STALL_TIMEOUT_MS = 2_000;
/** Default of `replyTimeoutMs`, as a multiple of `stallTimeoutMs`. */
const REPLY_TIMEOUT_STALLS = 5;

/** The rule for time-outs and limits; `Infinity` turns one off. */
const LIMIT = /* @__PURE__ */ numberThat("must be greater than 0", (it) => it > 0);
const LIMIT_RULES: Rules = {
  stallTimeoutMs: LIMIT,
  replyTimeoutMs: LIMIT,
  replyBytesMax: LIMIT,
  replyElementsMax: LIMIT,
};

/**
 * Fills in the defaults of the client's options and checks them.
 *
 * @param options The user's options.
 * @param addresses The servers that the options are for.
 */
export function resolveClientOptions(
  options: ClientOptions = {},
  addresses: readonly RedisAddress[] = [],
): ConnectionOptions {
  checkOptions(ACTION, options, [...CONNECT_OPTION_NAMES, ...Object.keys(LIMIT_RULES)]);
  const {
    stallTimeoutMs = STALL_TIMEOUT_MS,
    replyTimeoutMs = REPLY_TIMEOUT_STALLS * stallTimeoutMs,
    replyBytesMax = REPLY_BYTES_MAX,
    replyElementsMax = REPLY_ELEMENTS_MAX,
  } = options;
  const limits = { stallTimeoutMs, replyTimeoutMs, replyBytesMax, replyElementsMax };
  checkAll(ACTION, limits, LIMIT_RULES);
  return { ...resolveConnectOptions(options, addresses), ...limits };
}

/** A path would be ignored: Node then calls the server's certificate self-signed. */
const isPem = (value: unknown): boolean =>
  typeof value === "string" && value.includes("-----BEGIN");
const PEM: Rule = { text: "must be a PEM text", holds: isPem, isForm: true };
const TLS_RULES: Rules = {
  caCerts: {
    text: "must be an array of PEM texts",
    holds: (texts: unknown) => Array.isArray(texts) && texts.every(isPem),
    isForm: true,
  },
  cert: PEM,
  key: PEM,
  serverName: NAME,
};

/**
 * Returns one copy for all connections, because transports cache what they derive from it; of
 * inherited settings too.
 */
function checkTls(tls: TlsOptions, addresses: readonly RedisAddress[]): TlsOptions {
  checkOptions(ACTION, tls, Object.keys(TLS_RULES), "tls.");
  const { caCerts, cert, key, serverName } = tls;
  checkAll(ACTION, { caCerts, cert, key, serverName }, TLS_RULES, "tls.");
  if ((cert === undefined) !== (key === undefined)) {
    throw typeError(ACTION, "'tls.cert' and 'tls.key' need each other");
  }
  if (!addresses.some(({ target }) => target.kind === "tls")) {
    const needed = "an address that begins with 'rediss://' or 'valkeys://'";
    throw typeError(ACTION, `'tls' needs ${needed}`);
  }
  return { caCerts: caCerts && [...caCerts], cert, key, serverName };
}
