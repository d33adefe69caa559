/**
 * What became of each test, in JUnit's format: `deno test --junit-path` writes it, and so does the
 * runtime suite.
 *
 * @module
 */

import { ROOT } from "../package/tools.ts";

/** What became of one test. */
export interface TestResult {
  /**
   * Where it stands: a file and a line, or the name of a runtime. If a helper defined it, where in a
   * file of tests it failed, as far as that is known.
   */
  readonly place: string;
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
}

const ESCAPES: readonly (readonly [character: string, escape: string])[] = [
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&apos;"],
  ["&", "&amp;"],
];

/** A line of a file of tests in the stack of a failure. */
const FRAME = /\bfile:\/\/(\S+_test\.ts:\d+)/;

/** Reads a report. What a filter left out has no time in it, and is left out here too. */
export function parseReport(xml: string): TestResult[] {
  return [...xml.matchAll(/<testcase ([^>]*? time="[^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)].map(
    ([, attributes = "", content = ""]) => {
      const value = (name: string) => {
        const [, text = ""] = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes) ?? [];
        return unescape(text);
      };
      const [file, line] = [value("classname"), value("line")];
      const defined = line === "" ? file : `${file}:${line}`;
      const [, frame = defined] = file.endsWith("_test.ts") ? [] : FRAME.exec(content) ?? [];
      return {
        place: frame.replace(`${ROOT}/`, "./"),
        name: value("name"),
        outcome: /<(failure|error)\b/.test(content)
          ? "failed"
          : content.includes("<skipped")
          ? "skipped"
          : "passed",
      };
    },
  );
}

/** Writes a report that {@linkcode parseReport} and other readers of the format understand. */
export function formatReport(results: readonly TestResult[]): string {
  const cases = results.map(({ place, name, outcome }) => {
    const content = { passed: "", failed: "<failure/>", skipped: "<skipped/>" }[outcome];
    return `<testcase name="${escape(name)}" classname="${
      escape(place)
    }" time="0">${content}</testcase>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="suite">
${cases.join("\n")}
</testsuite></testsuites>
`;
}

function escape(text: string): string {
  return ESCAPES.toReversed().reduce((result, [from, to]) => result.replaceAll(from, to), text);
}

function unescape(text: string): string {
  return ESCAPES.reduce((result, [to, from]) => result.replaceAll(from, to), text);
}
