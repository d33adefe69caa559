import {
  assert,
  assertEquals,
  assertGreater,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { npmTag } from "../../scripts/package/manifest.ts";

const readText = (path: string) => Deno.readTextFileSync(new URL(`../../${path}`, import.meta.url));
const read = (name: string) => readText(`.github/workflows/${name}`);
const config = JSON.parse(readText("deno.json"));
const WORKFLOWS = ["ci.yml", "clients.yml", "pages.yml", "release.yml"].map((name) => ({
  name,
  text: read(name),
}));

Deno.test("npmTag() is latest for a release alone", () => {
  assertEquals(npmTag("1.2.3"), "latest");
  assertEquals(npmTag("1.2.3+build-7"), "latest");
  assertEquals(npmTag("1.2.3-beta.2"), "beta");
  assertEquals(npmTag("1.2.3-rc1"), "rc");
  assertEquals(npmTag("1.2.3-0"), "next");
  assertEquals(npmTag("0.1.0-alpha+build"), "alpha");
});

for (const { name, text } of WORKFLOWS) {
  Deno.test(`${name} pins every action by commit, and names its version`, () => {
    const used = [...text.matchAll(/uses: (.*)/gu)].map(([, action]) => action);
    assertGreater(used.length, 0);
    const loose = used.filter((action) => !/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/u.test(action));
    assertEquals(loose, []);
  });
}

Deno.test("release.yml makes the package with locked tools alone", () => {
  const [, pack] = read("release.yml").match(/^ {2}pack:\n(.*?)\n\n {2}check:$/msu)!;
  const words = pack.replaceAll(/\s+/gu, " ");
  assertEquals(words.match(/ run: /gu)?.length, 3, "the version, the tools, the build");
  assertStringIncludes(words, " run: npm ci --ignore-scripts --prefix scripts/package/deno -");
  assertMatch(
    words,
    / run: > scripts\/package\/deno\/\S+\/deno run -A --no-config --lock=\S+ --frozen scripts\/build_npm\.ts --pack dist --through dnt -/u,
  );
});

Deno.test("the locked tools are those of deno.json and of the tests, and each has a hash", () => {
  const locked = (folder: string) =>
    JSON.parse(readText(`scripts/package/${folder}/package-lock.json`)).packages;
  const tools = locked("tools");
  for (const name of ["commander", "log-update", "string-width"]) {
    assertEquals(`npm:${name}@${tools[`node_modules/${name}`].version}`, config.imports[name]);
  }
  const [deno] = Object.values(locked("deno")[""].devDependencies);
  assertStringIncludes(readText(".ci/run"), `version=${deno}\n`);
  for (const folder of ["tools", "deno"]) {
    const { "": root, ...packages } = locked(folder);
    assertEquals(
      root.devDependencies,
      JSON.parse(readText(`scripts/package/${folder}/package.json`)).devDependencies,
    );
    const loose = Object.entries<{ integrity?: string }>(packages)
      .filter(([, { integrity }]) => !integrity?.startsWith("sha512-"));
    assertEquals(loose, []);
  }
});

for (const [name, publishing] of [["release.yml", ["jsr", "npm"]], ["pages.yml", ["publish"]]]) {
  Deno.test(`${name} runs nothing of the project where it may publish`, () => {
    const [, jobs] = read(String(name)).split(/^jobs:\n/mu);
    const privileged = jobs.split(/^ {2}(?=\w+:$)/mu).filter((job) =>
      job.includes("id-token: write")
    );
    assertEquals(privileged.map((job) => job.split(":")[0]), publishing);
    for (const job of privileged) {
      const commands = job.replaceAll(/^ +- run: npm ci --ignore-scripts --prefix .*$/gmu, "")
        .replaceAll("scripts/package/deno/node_modules/@deno/linux-x64-glibc/deno publish", "");
      assert(!/scripts\/|\.ci\/|\bdeno\b|npx|npm (ci|install|run|exec)/u.test(commands), commands);
    }
  });
}
