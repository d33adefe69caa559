import { assert, assertEquals, assertGreater } from "@std/assert";
import { npmTag } from "../../scripts/package/manifest.ts";

const read = (name: string) =>
  Deno.readTextFileSync(new URL(`../../.github/workflows/${name}`, import.meta.url));
const WORKFLOWS = ["ci.yml", "pages.yml", "release.yml"].map((name) => ({
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

for (const [name, publishing] of [["release.yml", ["jsr", "npm"]], ["pages.yml", ["publish"]]]) {
  Deno.test(`${name} runs nothing of the project where it may publish`, () => {
    const [, jobs] = read(String(name)).split(/^jobs:\n/mu);
    const privileged = jobs.split(/^ {2}(?=\w+:$)/mu).filter((job) =>
      job.includes("id-token: write")
    );
    assertEquals(privileged.map((job) => job.split(":")[0]), publishing);
    for (const job of privileged) {
      assert(!/scripts\/|\.ci\/|(?:deno|deno@\S+) task|npm (ci|install|run)/u.test(job));
    }
  });
}
