/**
 * What the constructors of tables do when a script runs.
 *
 * @module
 */
import { LuaTable, machine, NOTHING, UnsupportedError, type Value } from "./values.ts";

/** After so many items, Lua sets those before the end of a constructor. */
const FLUSHED = 50;

/** The parts of a field, and how many items are before it. */
export interface Field<F> {
  readonly key: (frame: F) => Value;
  readonly value: (frame: F) => Value;
  readonly at: number;
}

/** A table of items alone. */
export function tableOf(values: Value[]): LuaTable {
  if (!values.includes(undefined)) return new LuaTable(values === NOTHING ? [] : values);
  const table = new LuaTable();
  values.forEach((value, at) => value !== undefined && table.set(at + 1, value));
  return table;
}

/**
 * Makes tables with fields: Lua evaluates everything in its order, and sets each field at once, but
 * the items at the end.
 *
 * @param items What each item evaluates to.
 * @param fields The fields.
 * @param line The line of the constructor, for errors.
 */
export function constructor<F>(
  items: readonly ((frame: F) => Value[])[],
  fields: readonly Field<F>[],
  line: number,
): (frame: F) => LuaTable {
  const site = { line };
  return (frame) => {
    const table = new LuaTable();
    const values: Value[] = [];
    let next = 0;
    for (const { key, value, at } of fields) {
      for (; next < at; next++) values.push(...items[next](frame));
      const [name, set] = [key(frame), value(frame)];
      machine.site = site;
      if (typeof name === "number" && items.length >= FLUSHED) {
        throw new UnsupportedError("a number as a key among many items");
      }
      // Lua has room for as many fields as the constructor names.
      if (typeof name === "number" || fields.length > 1) table.mix();
      table.set(name, set);
    }
    for (; next < items.length; next++) values.push(...items[next](frame));
    values.forEach((value, at) => table.set(at + 1, value));
    return table;
  };
}
