/**
 * Certificates for tests, created by `openssl` each time: an authority, a server on loopback, a
 * client.
 */

import type { ServerTls } from "./servers.ts";

/** One certificate with its private key, and the files that hold them. */
export interface Certificate extends ServerTls {
  /** The certificate in PEM. */
  readonly cert: string;
  /** Its private key in PEM. */
  readonly key: string;
}

/** Everything that a server and its clients need. Made by {@linkcode makeCertificates}. */
export interface Certificates extends AsyncDisposable {
  /** The authority that signed the others. */
  readonly authority: Certificate;
  /** An authority that signed none of them. */
  readonly stranger: Certificate;
  /** For clients. */
  readonly client: Certificate;
  /** For a server that bears the names `localhost` and `127.0.0.1`. */
  readonly server: Certificate;
  /** For a server that bears the name `redis.test` only. */
  readonly namedServer: Certificate;
}

/** Makes them in a folder of their own, which is removed at the end. */
export async function makeCertificates(): Promise<Certificates> {
  await using stack = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "certificates-" });
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const [authority, stranger] = await Promise.all([
    makeAuthority(folder, "authority"),
    makeAuthority(folder, "stranger"),
  ]);
  const [client, server, namedServer] = await Promise.all([
    makeSigned(folder, "client", "DNS:client.test", authority),
    makeSigned(folder, "server", "DNS:localhost,IP:127.0.0.1", authority),
    makeSigned(folder, "named", "DNS:redis.test", authority),
  ]);
  const made = stack.move();
  const remove = () => made.disposeAsync();
  return { authority, stranger, client, server, namedServer, [Symbol.asyncDispose]: remove };
}

function makeAuthority(folder: string, name: string): Promise<Certificate> {
  return make(folder, name, [
    ["-addext", "basicConstraints=critical,CA:TRUE"],
    ["-addext", "keyUsage=critical,keyCertSign"],
  ]);
}

function makeSigned(
  folder: string,
  name: string,
  names: string,
  authority: Certificate,
): Promise<Certificate> {
  return make(folder, name, [
    ["-addext", `subjectAltName=${names}`],
    ["-addext", "basicConstraints=critical,CA:FALSE"],
    ["-addext", "extendedKeyUsage=serverAuth,clientAuth"],
    ["-CA", authority.certFile, "-CAkey", authority.keyFile],
  ]);
}

async function make(folder: string, name: string, options: string[][]): Promise<Certificate> {
  const certFile = `${folder}/${name}.crt`;
  const keyFile = `${folder}/${name}.key`;
  const { success, stderr } = await new Deno.Command("openssl", {
    args: [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-days", "2", "-subj", `/CN=${name}`, "-keyout", keyFile, "-out", certFile],
      ...options.flat(),
    ],
    stdin: "null",
  }).output();
  if (!success) throw new Error(`openssl: ${new TextDecoder().decode(stderr)}`);
  const [cert, key] = await Promise.all([certFile, keyFile].map((file) => Deno.readTextFile(file)));
  return { cert, key, certFile, keyFile };
}
