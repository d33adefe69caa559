/**
 * A project of its own that has the npm package installed, from the very tarball that would be published.
 *
 * @module
 */

import { join } from "node:path";
import { buildNpm } from "../build_npm.ts";
import { CACHE, succeed } from "./tools.ts";

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
  /** The path of the tarball. */
  readonly tarballPath: string;
  readonly tarball: Tarball;
}

/**
 * Builds, packs and installs the package.
 *
 * @throws {Error} If one of them fails.
 */
export async function startConsumer(): Promise<Consumer> {
  await Deno.mkdir(CACHE, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: CACHE, prefix: "consumer-" });
  const remove = () => Deno.remove(folder, { recursive: true });
  try {
    const built = join(folder, "built");
    await buildNpm(undefined, built);
    const packed = await succeed("npm", [
      "pack",
      "--json",
      "--silent",
      "--pack-destination",
      folder,
    ], {
      cwd: built,
    });
    const [tarball] = JSON.parse(packed.slice(packed.indexOf("["), packed.lastIndexOf("]") + 1));
    const tarballPath = join(folder, tarball.filename.replace("@", "").replace("/", "-"));
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
    return { folder, built, tarballPath, tarball, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
