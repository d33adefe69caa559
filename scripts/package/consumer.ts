/**
 * A project of its own that has the npm package installed, from the very tarball that would be
 * published.
 *
 * @module
 */

import { join } from "node:path";
import { BUILT, PACKED, packNpm, WAY, type Way } from "../build_npm.ts";
import { makeWorkFolder, succeed } from "./tools.ts";

/** One file of the tarball. */
export interface PackedFile {
  readonly path: string;
  readonly size: number;
}

/** What `npm pack` says of the tarball. */
export interface Tarball {
  readonly filename: string;
  readonly version: string;
  /** Bytes of the tarball. */
  readonly size: number;
  /** Bytes of what is in it. */
  readonly unpackedSize: number;
  readonly files: readonly PackedFile[];
}

/** A folder with the package in its `node_modules`; removed at the end of the block. */
export interface Consumer extends AsyncDisposable {
  readonly folder: string;
  /** The package as it was built, before it was packed. */
  readonly built: string;
  /** How its code was emitted. */
  readonly way: Way;
  /** The path of the tarball. */
  readonly tarballPath: string;
  readonly tarball: Tarball;
}

/**
 * Environment variable with the folder of {@linkcode packNpm}, so that a whole run builds the
 * package once.
 */
export const PACKED_VARIABLE = "HASP_PACKED";

/**
 * Installs the package, which is built and packed first unless this run has done that.
 *
 * @throws {Error} If one of them fails.
 */
export async function startConsumer(): Promise<Consumer> {
  const folder = await makeWorkFolder("consumer-");
  const remove = () => Deno.remove(folder, { recursive: true });
  try {
    const source = Deno.env.get(PACKED_VARIABLE) ?? folder;
    if (source === folder) await packNpm(folder);
    const [tarball] = JSON.parse(await Deno.readTextFile(join(source, PACKED)));
    const tarballPath = join(source, tarball.filename.replace("@", "").replace("/", "-"));
    await Deno.writeTextFile(join(folder, "package.json"), '{"private":true,"type":"module"}');
    await succeed("npm", [
      "install",
      "--offline",
      "--silent",
      "--no-audit",
      "--no-fund",
      tarballPath,
    ], {
      cwd: folder,
    });
    const built = join(source, BUILT);
    const way = await Deno.readTextFile(join(source, WAY)) as Way;
    return { folder, built, way, tarballPath, tarball, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
