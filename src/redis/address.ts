/**
 * Where a server is and how to log in, read from a URL or an object.
 *
 * @module
 */
import type { ConnectTarget } from "../transport/transport.ts";
import { messageOf } from "../to_error.ts";
import { isObject, typeOf } from "../validate.ts";

/** The port of a Redis server if the address has none. */
const DEFAULT_PORT = 6379;
/**
 * Highest database number that is accepted; servers have 16 databases unless configured otherwise.
 */
const DATABASE_MAX = 2_147_483_647;

/** The schemes of TCP addresses. */
const TCP_SCHEMES: { readonly [protocol: string]: "tcp" | "tls" | undefined } = {
  "redis:": "tcp",
  "valkey:": "tcp",
  "rediss:": "tls",
  "valkeys:": "tls",
};
const PORT_MAX = 65_535;
/** `scheme://` and what follows it. */
const SCHEME = /^\s*([a-z][a-z0-9+.-]*):\/\/(.*)$/isu;
/** `host:port` and nothing else. */
const HOST_AND_PORT = /^[\w.-]+:\d+$/u;
/** The host of an address, and its port if that is a number. */
const SHOWN_HOST = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5}(?!\w))?/iu;

const FORMS_RULE = "it must be a string, a URL or an object with a 'host'";
const PORT_RULE = "its port must be an integer from 1 to 65535";
const SCHEME_RULE =
  "its scheme must be 'redis', 'rediss', 'valkey', 'valkeys' or 'redis+unix': current value is";
const HOST_RULE = "its host must be a name or an IP address, without a scheme and a port";
const UNIX_RULE =
  "the address of a socket must have the form 'redis+unix:///path/to.sock', without credentials";

/**
 * Separates addresses in one text: what stands before a scheme, so that a password may contain a
 * comma.
 */
const SEPARATOR = /(?<![\s,])[\s,]+(?=[a-z][a-z0-9+.-]*:\/\/)/iu;
/** What has no address: white space and commas at the ends of a text. */
const ENDS = /^[\s,]+|(?<![\s,])[\s,]+$/gu;
/** Fields by which ioredis finds a server in another way than by its address. */
const FOUND_ELSEWHERE = ["sentinels", "nodes", "rootNodes", "natMap", "Connector"];
/** Methods of clients: of ioredis and node-redis, of Bun and this library, of GLIDE. */
const CLIENT_METHODS = ["sendCommand", "send", "customCommand"];
const USE_CLIENT = "lock on your client instead, with commandNode() of @hasp/redlock/nodes";
const OVER_HTTP = "over HTTP, lock by upstashNode() of @hasp/redlock/upstash";
/** What to do instead if somebody passes something else, by a field that no address has. */
const INSTEAD: Readonly<Record<string, string>> = {
  token: OVER_HTTP, // options of Upstash
  evalsha: OVER_HTTP, // its client
  url: "pass its 'url'",
  socket: "move 'host' and 'port' out of its 'socket'", // options of node-redis
  connection: "pass its 'connection'", // options of BullMQ
  addresses: "pass its 'addresses'",
  address: "pass its 'address'",
  hostname: "its 'hostname' must be named 'host'",
  acquire: "nodes go to new Redlock()",
  then: "await it",
};

/** A server's address: a URL or its text, or an object. */
export type Address = string | URL | AddressParts;

/**
 * A server's address as an object, with the names that ioredis uses. Either `host` or `path` is
 * required. Other fields, such as how that client retries, have no effect; those by which it finds
 * a server in another way are errors.
 */
export interface AddressParts {
  /** Host name or IP address; an IPv6 address without brackets. */
  host?: string | undefined;
  /**
   * The TCP port.
   *
   * @default {6379}
   */
  port?: number | string | undefined;
  /** The path of a Unix domain socket, in place of a host. */
  path?: string | null | undefined;
  /**
   * The ACL user.
   *
   * @default {the default user}
   */
  username?: string | null | undefined;
  /** The password, if the server needs one. */
  password?: string | null | undefined;
  /**
   * The database number.
   *
   * @default {0}
   */
  db?: number | string | undefined;
  /** `true` or `{}` for TLS. Settings belong into the option `tls` of the client. */
  tls?: object | boolean | null | undefined;
}

type TlsTarget = Extract<ConnectTarget, { kind: "tls" }>;

/** A server's address, taken apart. */
export interface RedisAddress {
  /** Where it is, without the settings of TLS. A host name or IP address has no brackets. */
  readonly target: Exclude<ConnectTarget, TlsTarget> | Omit<TlsTarget, "tls">;
  /** The ACL user; `undefined` for the default user. */
  readonly username: string | undefined;
  /** The password; `undefined` if the address has none. */
  readonly password: string | undefined;
  /**
   * User name and password, as far as there are any, the longer one first: what no message may
   * show.
   */
  readonly secrets: readonly string[];
  /** The database number. */
  readonly database: number;
  /** The address without credentials, for messages and events. */
  readonly name: string;
  /** Equal for two addresses of one server, whatever their databases and credentials. */
  readonly server: string;
}

/**
 * Takes apart a text that may have several addresses, separated by commas or white space.
 *
 * @param text The addresses.
 * @returns Each of them; the text itself, if it has none.
 */
export function splitAddresses(text: string): string[] {
  return text.replace(ENDS, "").split(SEPARATOR);
}

/**
 * Reads `redis://[user[:password]@]host[:port][/db]`, `rediss://…` (TLS) or
 * `redis+unix:///path[?db=n]`, or an object. `valkey://` and `valkeys://` mean the same as
 * `redis://` and `rediss://`.
 *
 * In a URL, credentials and paths are percent-decoded; IPv6 addresses are in brackets.
 *
 * @param address The URL, its text, or its parts.
 * @param place Where it was found, for messages about an address that cannot be shown.
 * @returns Its parts.
 * @throws {TypeError} If it has none of these forms. The message shows the address without
 * credentials.
 */
export function parseAddress(address: Address, place?: string): RedisAddress {
  const text = address instanceof URL ? address.href : address;
  const isText = typeof text === "string";
  try {
    if (!isText) return addressOfParts(text);
    return addressOfUrl(address instanceof URL ? address : toUrl(text));
  } catch (error) {
    const reason = isText && reasonInText(text) || messageOf(error);
    const shown = isText && shownAddress(text) || place;
    throw new TypeError(`Cannot use Redis address ${shown ? `${shown} ` : ""}as ${reason}`);
  }
}

function toUrl(text: string, reason = "it is not a URL such as 'redis://10.0.0.1:6379'"): URL {
  try {
    return new URL(text);
  } catch {
    // The runtime's own error repeats its input, and with it the password.
    throw new TypeError(reason);
  }
}

function addressOfUrl(url: URL): RedisAddress {
  const kind = TCP_SCHEMES[url.protocol];
  if (kind) return tcpAddress(url, kind);
  if (url.protocol === "redis+unix:") return unixAddress(url);
  const scheme = url.protocol.slice(0, -1);
  const instead = /^https?$/u.test(scheme) ? `; ${OVER_HTTP}` : "";
  throw new TypeError(`${SCHEME_RULE} '${scheme}'${instead}`);
}

/**
 * Reads the parts by way of a URL without credentials, so that both forms of an address have the
 * same rules.
 */
function addressOfParts(parts: AddressParts): RedisAddress {
  if (!isObject(parts)) throw new TypeError(`${FORMS_RULE}: current type is '${typeOf(parts)}'`);
  const fields = parts as Readonly<Record<string, unknown>>;
  if (CLIENT_METHODS.some((name) => typeof fields[name] === "function")) {
    throw new TypeError(
      `it is a client: pass the URL or the options that the client was made from, or ${USE_CLIENT}`,
    );
  }
  const elsewhere = FOUND_ELSEWHERE.find((name) => fields[name] != null);
  if (elsewhere) {
    throw new TypeError(`'${elsewhere}' finds the server in another way: ${USE_CLIENT}`);
  }
  if (fields.keyPrefix) {
    throw new TypeError("its 'keyPrefix' must be the option 'keyPrefix' instead");
  }
  const { host, port = DEFAULT_PORT, path, username, password, db = 0, tls } = parts;
  if (tls && Object.keys(tls).length > 0) {
    throw new TypeError("the settings in its 'tls' must be in the option 'tls' instead");
  }
  for (const [name, value] of Object.entries({ host, path, username, password })) {
    if (value != null && typeof value !== "string") {
      throw new TypeError(`its '${name}' must be a string`);
    }
  }
  if (path && tls) throw new TypeError("it has both a 'path' and 'tls'");
  if (!host && !path) {
    const other = Object.keys(INSTEAD).find((name) => fields[name]);
    const why = other ? INSTEAD[other] : `its 'host' is ${host === "" ? "empty" : host}`;
    throw new TypeError(`${FORMS_RULE}: ${why}`);
  }
  if (!isPort(String(port))) throw new TypeError(PORT_RULE);
  const escaped = (text: string) => text.split("/").map(encodeURIComponent).join("/");
  const hostname = host?.includes(":") ? `[${host}]` : encodeURIComponent(host ?? "");
  const url = path
    ? `redis+unix://${escaped(path)}?db=${db}`
    : `${tls ? "rediss" : "redis"}://${hostname}:${port}/${db}`;
  return {
    ...addressOfUrl(toUrl(url, HOST_RULE)),
    ...credentialsOf(username ?? "", password ?? ""),
  };
}

function tcpAddress(url: URL, kind: "tcp" | "tls"): RedisAddress {
  if (!url.hostname) throw new TypeError("its host is missing");
  if (url.search || url.hash) throw new TypeError("it must not have a part after '?' or '#'");
  const host = hostOf(url);
  const hostname = host.replace(/^\[|\]$/gu, "");
  const port = Number(url.port || DEFAULT_PORT);
  if (port === 0) throw new TypeError(PORT_RULE);
  const database = databaseNumber(url.pathname.replace(/^\//u, ""));
  const server = `${host}:${port}`;
  const name = `${url.protocol}//${server}${database ? `/${database}` : ""}`;
  return { target: { kind, hostname, port }, ...credentialsIn(url), database, name, server };
}

/**
 * Characters that a host name cannot contain: it would be displayed, and looked up, as something
 * else.
 */
const NOT_IN_HOSTNAMES = /[\0-\x20\x7f%/@[\]?#\\:,;]/u;

/** A host name or IP address; an IPv6 address is in brackets. */
function hostOf({ hostname }: URL): string {
  const host = decode(hostname, "host");
  if (!hostname.startsWith("[") && NOT_IN_HOSTNAMES.test(host)) throw new TypeError(HOST_RULE);
  return host.toLowerCase();
}

function unixAddress(url: URL): RedisAddress {
  const path = decode(url.pathname, "path");
  if (url.hostname || path.length < 2 || !path.startsWith("/")) {
    throw new TypeError(UNIX_RULE);
  }
  if (path.includes("\0")) throw new TypeError("its path must not contain NUL");
  if (url.hash || [...url.searchParams.keys()].some((key) => key !== "db")) {
    throw new TypeError("the only parameter of a socket's address is 'db'");
  }
  const database = databaseNumber(url.searchParams.get("db") ?? "");
  const name = `redis+unix://${path}${database ? `?db=${database}` : ""}`;
  const target = { kind: "unix", path } as const;
  return { target, ...credentialsIn(url), database, name, server: path };
}

type Credentials = Pick<RedisAddress, "username" | "password" | "secrets">;

function credentialsIn(url: URL): Credentials {
  return credentialsOf(decode(url.username, "user"), decode(url.password, "password"));
}

/** Who logs in, and what no message may show of it; an empty text stands for none. */
export function credentialsOf(username: string, password: string): Credentials {
  const secrets = [username, password].filter(Boolean);
  secrets.sort((one, other) => other.length - one.length);
  return {
    username: username || undefined,
    password: password || (username ? "" : undefined),
    secrets,
  };
}

function databaseNumber(text: string): number {
  if (text === "") return 0;
  const database = Number(text);
  if (!/^\d+$/u.test(text) || database > DATABASE_MAX) {
    throw new TypeError(`its database must be an integer from 0 to ${DATABASE_MAX}`);
  }
  return database;
}

function decode(text: string, part: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TypeError(`its ${part} is not percent-encoded UTF-8`);
  }
}

/**
 * What is wrong with an address as a user sees it, if that differs from what a URL parser makes of
 * it. A character that is not encoded moves the boundaries of the parts, so the parts of the URL do
 * not show the mistake.
 */
function reasonInText(text: string): string | undefined {
  const [, scheme, rest] = SCHEME.exec(text) ?? [];
  if (scheme === undefined) {
    const wrong = text === "" ? "it is empty" : "its scheme is missing";
    const needed = text.startsWith("/") ? "redis+unix" : "redis";
    return `${wrong}: it must begin with '${needed}://', without quotes`;
  }
  if (scheme.toLowerCase() === "redis+unix") return rest.startsWith("/") ? undefined : UNIX_RULE;
  if (!TCP_SCHEMES[`${scheme.toLowerCase()}:`]) return undefined;
  const [authority] = rest.split(/[/?#]/u, 1);
  const at = rest.lastIndexOf("@");
  const host = authority.slice(at + 1);
  if (/[,;\s]/u.test(host) || /;\s*\w+:\/\//u.test(rest)) {
    return "each address of a list must begin with 'redis://', after a comma or white space";
  }
  if (authority.length < at) {
    return `its credentials must be percent-encoded: they contain '${rest[authority.length]}'`;
  }
  if (!host.startsWith("[") && host.split(":").length > 2) {
    return "its IPv6 address must be in brackets, such as 'redis://[::1]:6379'";
  }
  const port = /^(?:\[[^\]]*\]|[^[:]+):(.+)$/u.exec(host)?.[1];
  return port !== undefined && !isPort(port) ? PORT_RULE : undefined;
}

function isPort(text: string): boolean {
  return /^\d+$/u.test(text) && Number(text) > 0 && Number(text) <= PORT_MAX;
}

/**
 * An address for a message: scheme, host and port. Everything before the last `@` may be part of
 * the password, and so may a port that is not a number.
 *
 * @returns The address, or `undefined` if nothing of it can be shown.
 */
function shownAddress(text: string): string | undefined {
  const [, scheme, rest] = SCHEME.exec(text) ?? [, "", text];
  const at = rest.lastIndexOf("@");
  const [shown] = SHOWN_HOST.exec(rest.slice(at + 1)) ?? [];
  if (shown === undefined || at < 0 && scheme === "" && !HOST_AND_PORT.test(rest)) return undefined;
  return `${scheme && `${scheme}://`}${shown}`;
}
