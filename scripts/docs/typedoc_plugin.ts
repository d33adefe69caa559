/**
 * A plugin of TypeDoc, which writes the pages of the API: modules have the names by which they are
 * imported, the errors of a call are one list, each with its class, defaults are values or words,
 * and examples print what the tests check.
 *
 * @module
 */

interface CommentPart {
  readonly kind: "text" | "code";
  readonly text: string;
}

interface BlockTag {
  readonly tag: string;
  readonly typeAnnotation?: string;
  content: CommentPart[];
}

/** The part of a documented symbol that is used here. */
interface Reflection {
  name: string;
  readonly comment?: { blockTags: BlockTag[] };
  kindOf(kind: number): boolean;
}

/** The part of TypeDoc that is used here. */
interface Application {
  readonly converter: {
    on(
      event: "resolveBegin",
      listener: (context: { project: { reflections: Record<string, Reflection> } }) => void,
    ): void;
  };
}

/** TypeDoc's number for a module. */
const MODULE = 2;

/** Called by TypeDoc. */
export function load({ converter }: Application): void {
  converter.on("resolveBegin", ({ project }) => {
    for (const reflection of Object.values(project.reflections)) {
      if (reflection.kindOf(MODULE)) reflection.name = importName(reflection.name);
      if (!reflection.comment) continue;
      joinThrows(reflection.comment);
      readDefault(reflection.comment);
      for (const tag of reflection.comment.blockTags) tag.content = tag.content.map(printing);
    }
  });
}

/** `mod` → `@hasp/redlock`, `src/redis/mod` → `@hasp/redlock/redis`. */
function importName(path: string): string {
  return `@hasp/redlock${path.replace(/^src/u, "").replace(/\/?mod$/u, "")}`;
}

function joinThrows(comment: { blockTags: BlockTag[] }): void {
  const [first, ...others] = comment.blockTags.filter(({ tag }) => tag === "@throws");
  if (first === undefined) return;
  first.content = [first, ...others].flatMap(({ typeAnnotation, content }) => {
    const name = typeAnnotation?.replaceAll(/[{}]/gu, "");
    return [text(name ? `- \`${name}\`: ` : "- "), ...content, text("\n")];
  });
  comment.blockTags = comment.blockTags.filter((tag) => !others.includes(tag));
}

/** A default in code: a number, a constant or a string. */
const VALUE = /^([\d_.]+|true|false|Infinity|"[^"]*")$/u;

/** `@default {30000}` → `30000` in code, `@default {no signal}` → no signal. */
function readDefault({ blockTags }: { blockTags: BlockTag[] }): void {
  for (const tag of blockTags.filter(({ tag }) => tag === "@default")) {
    const value = tag.typeAnnotation?.slice(1, -1) ?? "";
    tag.content = [text(VALUE.test(value) ? `\`${value}\`` : value)];
  }
}

/** What an example of ours asserts, and how a reader would print it. */
const ASSERTIONS: readonly (readonly [assertion: RegExp, print: string])[] = [
  [/^import \{ assert.*\} from "@std\/assert";\n/gmu, ""],
  [
    /^( *)(const \w+ =) await assertRejects\(\(\) => (.*), (\w+)\);$/gmu,
    "$1$2 await $3.catch((error) => error); // $4",
  ],
  [
    /^( *)await assertRejects\(\(\) => (.*), (\w+)\);$/gmu,
    "$1await $2.catch(({ name }) => console.log(name)); // $3",
  ],
  [/^( *)assertMatch\((.*), (\/.*\/)\);$/gmu, "$1console.log($3.test($2)); // true"],
  [/^( *)assertEquals\((.*), ([^,()]+)\);$/gmu, "$1console.log($2); // $3"],
  [/^( *)assert\((.*)\);(?: \/\/.*)?$/gmu, "$1console.log($2); // true"],
];

function printing({ kind, text }: CommentPart): CommentPart {
  if (kind !== "code") return { kind, text };
  return {
    kind,
    text: ASSERTIONS.reduce((code, [assertion, print]) => code.replace(assertion, print), text),
  };
}

function text(text: string): CommentPart {
  return { kind: "text", text };
}
