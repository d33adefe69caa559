/** What the source exports, as `deno doc` sees it. */

import { plainCommand } from "../support/plain_command.ts";
import { ROOT } from "./pages.ts";

interface TypeNode {
  readonly kind: string;
  readonly value: unknown;
  readonly repr?: string;
}

interface Member {
  readonly name: string;
  readonly tsType?: TypeNode;
}

interface Definition {
  readonly extends?: readonly { readonly repr: string }[];
  readonly properties?: readonly Member[];
  readonly methods?: readonly Member[];
  readonly tsType?: TypeNode;
}

const symbols = new Map<string, Definition>(
  (await Promise.all(
    ["mod.ts", ...["nodes", "operate", "redis", "testing"].map((name) => `src/${name}/mod.ts`)].map(
      documented,
    ),
  )).flat(),
);

/**
 * The names of the public properties and methods of an exported class or interface, inherited ones
 * included.
 */
export function membersOf(name: string): string[] {
  const { properties = [], methods = [], extends: bases = [] } = symbols.get(name)!;
  const own = [...properties, ...methods].map((member) => member.name);
  const inherited = bases.flatMap(({ repr }) => symbols.has(repr) ? membersOf(repr) : []);
  return [...new Set([...inherited, ...own])].filter((member) => !member.startsWith("["));
}

/** The strings of an exported union, or of one property of an exported interface. */
export function stringsOf(name: string, property?: string): string[] {
  const definition = symbols.get(name)!;
  const type = property === undefined
    ? definition.tsType!
    : definition.properties!.find((member) => member.name === property)!.tsType!;
  const parts = type.kind === "union" ? type.value as TypeNode[] : [type];
  return parts.map(({ value }) => (value as { string: string }).string);
}

/** An object of an exported union: its `type`, and its other fields. */
interface UnionMember {
  readonly type: string;
  readonly fields: readonly string[];
}

/**
 * The objects of an exported union, each of which has fields of its own, and perhaps those of an
 * interface.
 */
export function objectsOf(name: string): UnionMember[] {
  return (symbols.get(name)!.tsType!.value as TypeNode[]).map((part) => {
    const inner = part.kind === "parenthesized" ? part.value as TypeNode : part;
    const types = inner.kind === "intersection" ? inner.value as TypeNode[] : [inner];
    const own = types.flatMap(({ kind, value }) =>
      kind === "typeLiteral" ? (value as { properties: readonly Member[] }).properties : []
    );
    const bases = types.filter(({ kind }) => kind !== "typeLiteral");
    const type = own.find((member) => member.name === "type")!.tsType!.repr!;
    const inherited = bases.flatMap(({ repr }) => membersOf(repr!));
    return { type, fields: [...inherited, ...own.map((member) => member.name)] };
  });
}

async function documented(path: string): Promise<[string, Definition][]> {
  const { stdout } = await plainCommand(Deno.execPath(), {
    args: ["doc", "--json", path],
    cwd: ROOT,
  }).output();
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout));
  const [module] = Object.values<{
    symbols: { name: string; declarations: { def: Definition }[] }[];
  }>(nodes);
  return module.symbols.map(({ name, declarations }) => [name, declarations[0].def]);
}
