import { assertEquals, assertGreaterOrEqual, assertMatch, assertStringIncludes } from "@std/assert";
import { type Series, throughputSvg } from "../bench/plot.ts";

/** The middle of a line of text is this far from the next. */
const READABLE_APART = 24;

function line(name: string, rates: readonly number[]): Series {
  return { name, title: name, points: rates.map((rate, i) => ({ inFlight: 10 ** i, rate })) };
}

/** Where the names of lines stand: all texts in their groups. */
function labels(svg: string): { text: string; y: number }[] {
  return [...svg.matchAll(/<text x="[\d.]+" y="([\d.]+)">([^<]+)<\/text>\n<\/g>/gu)]
    .map(([, y, text]) => ({ text: text!, y: Number(y) }));
}

Deno.test("throughputSvg() closes every element that it opens, and needs nothing else", () => {
  const svg = throughputSvg([line("ours", [1, 20, 300]), line("<b> & co", [1, 10, 90])]);
  const open: string[] = [];
  for (const [, end, name, single] of svg.matchAll(/<(\/?)([a-z]+)[^<>]*?(\/?)>/gu)) {
    if (end) assertEquals(open.pop(), name);
    else if (!single) open.push(name!);
  }
  assertEquals(open, []);
  assertStringIncludes(svg, "&lt;b&gt; &amp; co");
  assertEquals(svg.match(/href|url\(|@import|<script/gu), null);
});

Deno.test("throughputSvg() has colours for light and for dark", () => {
  const svg = throughputSvg([line("ours", [1, 20])]);
  const colours = [...svg.matchAll(/svg\{([^}]+)\}/gu)].map(([, rules]) => rules!.split(";"));
  const [light, dark] = colours.map((rules) => rules.map((rule) => rule.split(":")[0]));
  assertEquals(light, dark);
  assertMatch(svg, /@media \(prefers-color-scheme:dark\)\{svg\{/u);
});

Deno.test("throughputSvg() writes each name beside its line, in their order, and none over another", () => {
  const names = ["floor", "ours", "a", "b", "c", "d"];
  const svg = throughputSvg(names.map((name, i) => line(name, [100, 1_000 + 10 * i])));
  const placed = labels(svg).sort((a, b) => a.y - b.y);
  assertEquals(placed.map(({ text }) => text), [...names].reverse());
  for (let i = 1; i < placed.length; i++) {
    assertGreaterOrEqual(placed[i]!.y - placed[i - 1]!.y, READABLE_APART);
  }
});

Deno.test("throughputSvg() draws what was measured alone", () => {
  const svg = throughputSvg([line("ours", [10, NaN, 1_000]), line("failed", [NaN, NaN])]);
  assertEquals(labels(svg).map(({ text }) => text), ["ours"]);
  assertEquals(svg.match(/<circle/gu)?.length, 2);
  assertEquals(svg.includes("NaN"), false);
});

Deno.test("throughputSvg() places values by their logarithms", () => {
  const svg = throughputSvg([line("ours", [10, 100, 1_000])]);
  const places = /<polyline points="([^"]+)"/u.exec(svg)![1]!.split(" ")
    .map((place) => place.split(",").map(Number) as [number, number]);
  const [first, second, third] = places;
  assertEquals(Math.round(second![0] - first![0]), Math.round(third![0] - second![0]));
  assertEquals(Math.round(second![1] - first![1]), Math.round(third![1] - second![1]));
});
