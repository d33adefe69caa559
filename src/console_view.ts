/**
 * What `console.log` shows of an object whose state is private.
 *
 * @module
 */

/** Converts a value to text; the runtime passes its own. */
type Inspect = (value: unknown, options: unknown) => string;

/** The method that Node, Bun and Deno call to show an object. */
const VIEW = Symbol.for("nodejs.util.inspect.custom");

/**
 * Defines what `console.log` shows of a class's instances, in Deno, Node and Bun.
 *
 * Call it in the initializer of a static field, marked as pure, so that bundlers leave out a class
 * that nobody uses.
 *
 * @param owner The class.
 * @param name The name of the class, which a minifier may change in the class itself.
 * @param view Returns what is shown of an instance: plain data without secrets.
 */
export function defineConsoleView<T extends object>(
  { prototype }: { readonly prototype: T },
  name: string,
  view: (instance: T) => object,
): void {
  Object.defineProperty(prototype, VIEW, {
    value(this: T, depth: number, options: unknown, inspect: Inspect): string {
      if (this === prototype) return name;
      return depth < 0 ? `[${name}]` : `${name} ${inspect(view(this), options)}`;
    },
  });
}
