/**
 * From the source to JavaScript and declarations: through dnt, or through TypeScript itself where
 * dnt cannot be had. Both write the same tree into `esm`: the entry points, and what they import
 * under the paths it has here.
 *
 * @module
 */

import { dirname, join, posix, relative } from "node:path";
import { pathToFileURL } from "node:url";
import {
  CODE_FOLDER,
  type Config,
  LIBRARY,
  MAPPINGS,
  PEERS,
  TARGET,
  TRANSPORT_MODULE,
} from "./manifest.ts";
import { filesIn, findTool, findTools, makeWorkFolder, ROOT, succeed } from "./tools.ts";

/** The tool of the field; named here only, and imported when it is used, as it comes from JSR. */
const DNT = "jsr:@deno/dnt@0.43.2";

/** How long loading dnt may take before it counts as out of reach, in milliseconds. */
const DNT_WITHIN_MS = 30_000;

/**
 * dnt knows no import of `cloudflare:`, so it is shown a module that need not exist, and told that
 * this is the name of a package.
 */
const SOCKETS = "cloudflare:sockets";
const SOCKETS_STAND_IN = "./cloudflare_sockets.ts";

/** The part of dnt's options that is used. */
export interface DntOptions {
  readonly cwd: string;
  readonly outDir: string;
  readonly entryPoints: readonly { readonly name: string; readonly path: string }[];
  readonly importMap: string;
  readonly mappings: Readonly<Record<string, string | { readonly name: string }>>;
  readonly shims: Readonly<Record<string, boolean>>;
  readonly polyfills: boolean;
  readonly scriptModule: false;
  readonly declaration: "inline";
  readonly declarationMap: boolean;
  readonly typeCheck: "single";
  readonly test: boolean;
  readonly skipSourceOutput: boolean;
  readonly skipNpmInstall: boolean;
  readonly package: Readonly<Record<string, unknown>>;
  readonly compilerOptions: {
    readonly target: typeof TARGET;
    readonly lib: readonly (typeof LIBRARY)[];
    readonly skipLibCheck: boolean;
  };
}

/** The part of dnt that is used. */
export interface Dnt {
  build(options: DntOptions): Promise<void>;
}

/**
 * Loads dnt.
 *
 * @throws {Error} If it cannot be had.
 */
export async function loadDnt(): Promise<Dnt> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`no answer within ${DNT_WITHIN_MS} ms`);
    timer = setTimeout(() => reject(error), DNT_WITHIN_MS);
  });
  try {
    return await Promise.race([import(DNT) as Promise<Dnt>, late]);
  } catch (cause) {
    const [why] = String(cause instanceof Error ? cause.message : cause).split("\n");
    throw new Error(`dnt cannot be had, as ${DNT} does not load: ${why}`, { cause });
  } finally {
    clearTimeout(timer);
  }
}

/** Emits through dnt into `folder`. */
export async function emitThroughDnt(dnt: Dnt, config: Config, folder: string): Promise<void> {
  // In a folder of its own, as dnt takes the folder of an import map for the root of a project.
  const work = await makeWorkFolder("npm-map-");
  const importMap = join(work, "import_map.json");
  const standIn = join(ROOT, SOCKETS_STAND_IN);
  await Deno.writeTextFile(
    importMap,
    JSON.stringify({ imports: { ...peerImports(), [SOCKETS]: pathToFileURL(standIn) } }),
  );
  try {
    await dnt.build({
      cwd: ROOT,
      outDir: folder,
      entryPoints: [
        ...Object.entries(config.exports).map(([name, path]) => ({ name, path })),
        // Reached by name through the package's imports, so it is no entry point of the final
        // package.json.
        { name: "./transport", path: `./${TRANSPORT_MODULE.replace(/\.js$/, ".ts")}` },
      ],
      importMap,
      mappings: { ...MAPPINGS, [SOCKETS_STAND_IN]: { name: SOCKETS } },
      shims: {},
      polyfills: false,
      scriptModule: false,
      declaration: "inline",
      declarationMap: false,
      typeCheck: "single",
      test: false,
      skipSourceOutput: true,
      skipNpmInstall: true,
      package: { name: config.name, version: config.version }, // finish() writes the whole one
      compilerOptions: { target: TARGET, lib: [LIBRARY], skipLibCheck: true },
    });
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/** What modules import that programs bring, at the versions of the package. */
function peerImports(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(PEERS).map(([name, range]) => [name, `npm:${name}@${range}`]),
  );
}

/** Emits through TypeScript into `folder`. */
export async function emitThroughTsc(config: Config, folder: string): Promise<void> {
  const [tsc, tools] = [await findTool("locked", "tsc"), await findTools("locked")];
  const work = await makeWorkFolder("npm-source-");
  try {
    await copyMapped(work, "mod.ts");
    const sources = (await filesIn(join(ROOT, "src"))).filter((path) => path.endsWith(".ts"));
    for (const path of sources) await copyMapped(work, `src/${path}`);
    const tsconfig = {
      compilerOptions: {
        target: TARGET,
        lib: [LIBRARY],
        module: "nodenext",
        rootDir: work,
        outDir: join(folder, CODE_FOLDER),
        declaration: true,
        rewriteRelativeImportExtensions: true,
        strict: true,
        verbatimModuleSyntax: true,
        skipLibCheck: true,
        typeRoots: [join(tools, "@types")],
        types: ["node"],
      },
      files: [...Object.values(config.exports), TRANSPORT_MODULE.replace(/\.js$/, ".ts")],
    };
    await Deno.writeTextFile(join(work, "tsconfig.json"), JSON.stringify(tsconfig));
    await Deno.writeTextFile(join(work, "package.json"), '{"type":"module"}');
    await Deno.symlink(tools, join(work, "node_modules"));
    await succeed(tsc, ["-p", work]);
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/**
 * Copies one module, with its imports led to what stands in for them: what dnt does with
 * `mappings`.
 */
async function copyMapped(work: string, path: string): Promise<void> {
  const text = await Deno.readTextFile(join(ROOT, path));
  const mapped = text.replaceAll(/(from |import\()"(\.[^"]+)"/g, (whole, before, specifier) => {
    const to = MAPPINGS[`./${posix.join(posix.dirname(path), specifier)}`];
    if (to === undefined) return whole;
    const from = relative(posix.dirname(path), to);
    return `${before}"${from.startsWith(".") ? from : `./${from}`}"`;
  });
  await Deno.mkdir(dirname(join(work, path)), { recursive: true });
  await Deno.writeTextFile(join(work, path), mapped);
}
