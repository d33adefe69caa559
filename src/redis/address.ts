/**
 * Where a server is and how to be let in, read from a URL.
 *
 * @module
 */

/** The port of a Redis server where none is named. */
const DEFAULT_PORT = 6379;
/** Highest database number that is accepted; servers have 16 unless told otherwise. */
const DATABASE_MAX = 2 ** 31 - 1;

/** A server's address, taken apart. */
export interface RedisAddress {
  /** Plain TCP, TLS over TCP, or a Unix domain socket. */
  readonly kind: "tcp" | "tls" | "unix";
  /** Host name or IP address, without brackets; empty for a socket. */
  readonly hostname: string;
  /** The TCP port; 0 for a socket. */
  readonly port: number;
  /** The socket's path; empty for TCP. */
  readonly path: string;
  /** The ACL user, or undefined for the default one. */
  readonly username: string | undefined;
  /** The password, or undefined where none is needed. */
  readonly password: string | undefined;
  /** The database number. */
  readonly database: number;
  /** The address as it may be shown: without credentials. */
  readonly name: string;
  /** What is equal for two addresses of one server, whatever their databases and credentials. */
  readonly server: string;
}

/**
 * Reads `redis://[user[:password]@]host[:port][/db]`, `rediss://…` (TLS) or `redis+unix:///path[?db=n]`.
 *
 * Credentials and paths are percent-decoded; IPv6 addresses stand in brackets.
 *
 * @param address The URL or its text.
 * @returns Its parts.
 * @throws {TypeError} If it is none of the three forms. The message shows no credentials.
 */
export function parseAddress(address: string | URL): RedisAddress {
  const url = toUrl(address);
  switch (url.protocol) {
    case "redis:":
      return tcpAddress(url, "tcp");
    case "rediss:":
      return tcpAddress(url, "tls");
    case "redis+unix:":
      return unixAddress(url);
    default:
      throw invalid(
        `its scheme must be 'redis', 'rediss' or 'redis+unix': current value is '${
          url.protocol.slice(0, -1)
        }'`,
      );
  }
}

function toUrl(address: unknown): URL {
  if (address instanceof URL) return address;
  if (typeof address !== "string") {
    throw invalid(`it must be a string or a URL: current type is '${typeof address}'`);
  }
  try {
    return new URL(address);
  } catch {
    // The runtime's own error repeats its input, and with it the password.
    throw invalid("it is not a URL such as 'redis://10.0.0.1:6379'");
  }
}

function tcpAddress(url: URL, kind: "tcp" | "tls"): RedisAddress {
  if (url.hostname === "") throw invalid("it names no host");
  if (url.search !== "" || url.hash !== "") throw invalid("it must have no '?' and no '#' part");
  const hostname = hostnameOf(url);
  const port = url.port === "" ? DEFAULT_PORT : Number(url.port);
  if (port === 0) throw invalid("its port must not be 0");
  const database = databaseNumber(url.pathname.replace(/^\//u, ""));
  const server = `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  const name = `${url.protocol}//${server}${database === 0 ? "" : `/${database}`}`;
  return { kind, hostname, port, path: "", ...credentials(url), database, name, server };
}

/** What no host name holds: it would be shown, and looked up, as something else than it is. */
const NO_HOSTNAME = /[\0-\x20\x7f%/@[\]?#\\:]/u;

function hostnameOf(url: URL): string {
  const [, ipv6] = /^\[(.*)\]$/u.exec(url.hostname) ?? [];
  if (ipv6 !== undefined) return ipv6.toLowerCase();
  const hostname = decode(url.hostname, "host");
  if (NO_HOSTNAME.test(hostname)) throw invalid("its host has a character that no host name holds");
  return hostname.toLowerCase();
}

function unixAddress(url: URL): RedisAddress {
  const path = decode(url.pathname, "path");
  if (url.hostname !== "" || path.length < 2 || !path.startsWith("/")) {
    throw invalid("a socket is written 'redis+unix:///path/to.sock'");
  }
  if (path.includes("\0")) throw invalid("its path must not contain NUL");
  if (url.hash !== "" || [...url.searchParams.keys()].some((key) => key !== "db")) {
    throw invalid("a socket's only parameter is 'db'");
  }
  const database = databaseNumber(url.searchParams.get("db") ?? "");
  const name = `redis+unix://${path}${database === 0 ? "" : `?db=${database}`}`;
  return {
    kind: "unix",
    hostname: "",
    port: 0,
    path,
    ...credentials(url),
    database,
    name,
    server: path,
  };
}

function credentials(url: URL): Pick<RedisAddress, "username" | "password"> {
  const username = url.username === "" ? undefined : decode(url.username, "user");
  if (url.password === "") return { username, password: username === undefined ? undefined : "" };
  return { username, password: decode(url.password, "password") };
}

function databaseNumber(text: string): number {
  if (text === "") return 0;
  const database = Number(text);
  if (!/^\d+$/u.test(text) || database > DATABASE_MAX) {
    throw invalid(`its database must be an integer from 0 to ${DATABASE_MAX}`);
  }
  return database;
}

function decode(text: string, part: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid(`its ${part} is not percent-encoded UTF-8`);
  }
}

function invalid(reason: string): TypeError {
  return new TypeError(`Cannot use Redis address as ${reason}`);
}
