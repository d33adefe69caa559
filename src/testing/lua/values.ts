/**
 * The values of Lua in JavaScript: nil is `undefined`, a string is a byte string, a function takes
 * and returns lists.
 *
 * @module
 */

/** A value. */
export type Value = undefined | boolean | number | string | LuaTable | LuaFunction;
/** What a call returns: one value, or a list of any other number. */
export type Result = Value | Value[];
/** A function; a list is never a value, so a single result needs none. */
export type LuaFunction = (args: Value[]) => Result;

/** No value at all. */
export const NOTHING: Value[] = [];

/** Where in a script something is called, and by which name, for errors. */
export interface Site {
  readonly line: number;
  readonly name?: string | undefined;
  readonly isMethod?: boolean;
}

/** Most loop iterations and calls of one run, so that a loop without an end is an error. */
export const STEPS_MAX = 5_000_000;
/** Most calls inside each other. */
const DEPTH_MAX = 190;
/** Most values that one call returns. */
const RESULTS_MAX = 7_000;
/** Most scripts, patterns or formats that are kept. */
const KEPT_MAX = 256;
/** Most bytes of a string that a script makes. */
const STRING_BYTES_MAX = 16 * 1024 * 1024;

/**
 * The run that goes on. Runs may be nested, because a published message may make a client call a
 * script.
 */
export const machine: { site: Site; steps: number; depth: number } = {
  site: { line: 0 },
  steps: 0,
  depth: 0,
};

/** An error that Lua raises; the value is what `error` was called with. */
export class LuaError extends Error {
  override readonly name = "LuaError";
  readonly value: Value;
  /** The line of the innermost function that the script has. */
  readonly line: number;

  constructor(value: Value, line = machine.site.line) {
    super(typeof value === "string" ? value : "a script raised an error");
    this.value = value;
    this.line = line;
  }
}

/**
 * A script has what this implementation has not. Unlike a {@linkcode LuaError}, no script can catch
 * it.
 */
export class UnsupportedError extends Error {
  override readonly name = "UnsupportedError";

  constructor(what: string, line = machine.site.line) {
    super(`MemoryRedis cannot run this script: line ${line}: ${what}`);
  }
}

/** Raises an error with its position in front, as Lua does. */
export function raise(text: string, { line } = machine.site): never {
  throw new LuaError(`user_script:${line}: ${text}`, line);
}

/** Counts an iteration of a loop or a call. */
export function step(): void {
  if (--machine.steps < 0) throw new UnsupportedError(`it takes more than ${STEPS_MAX} steps`);
}

/** Counts a call that is inside of others; the caller decreases the depth again. */
export function enter(): void {
  step();
  if (++machine.depth > DEPTH_MAX) {
    throw new UnsupportedError(`more than ${DEPTH_MAX} calls are inside each other`);
  }
}

/** Refuses a call with too many results. */
export function checkResults(count: number): void {
  if (count > RESULTS_MAX) throw new UnsupportedError(`more than ${RESULTS_MAX} results`);
}

/** A function that keeps what it made of the last texts, so that none is read twice. */
export function keeping<T>(make: (text: string) => T): (text: string) => T {
  const kept = new Map<string, T>();
  return (text) => {
    const known = kept.get(text);
    if (known !== undefined) return known;
    const made = make(text);
    if (kept.size >= KEPT_MAX) kept.clear();
    kept.set(text, made);
    return made;
  };
}

/** The string, unless it is too long. */
export function bounded(text: string): string {
  if (text.length <= STRING_BYTES_MAX) return text;
  throw new UnsupportedError(`a string has more than ${STRING_BYTES_MAX} bytes`);
}

/** A table: a list from 1 on without holes, and fields. */
export class LuaTable {
  readonly list: Value[];
  #fields: Map<Value, Value> | undefined;
  /** Whether Lua may have items of the list among the fields, in an order of its own. */
  #isMixed = false;

  /** @param list The values from 1 on, none of which is nil. It is not copied. */
  constructor(list: Value[] = []) {
    this.list = list;
  }

  get(key: Value): Value {
    if (typeof key === "number") {
      const value = this.list[key - 1];
      if (value !== undefined) return value;
    }
    return this.#fields?.get(key);
  }

  set(key: Value, value: Value): void {
    const { list } = this;
    if (typeof key === "number") {
      if (key >= 1 && key <= list.length && Number.isInteger(key)) return this.#replace(key, value);
      if (key === list.length + 1 && value !== undefined) return this.#append(value);
      if (Number.isNaN(key)) raise("table index is NaN");
    } else if (key === undefined) {
      raise("table index is nil");
    }
    if (value !== undefined) (this.#fields ??= new Map()).set(key, value);
    else {
      this.#fields?.delete(key);
      if (key !== list.length + 1) this.#isMixed = true; // Lua has room for a field now
    }
  }

  /** Says that Lua may have items of the list among the fields. */
  mix(): void {
    this.#isMixed = true;
  }

  /** Whether there is nothing but the list. */
  get isList(): boolean {
    return this.#fields === undefined;
  }

  /** The length; a table with holes has several, and which one Lua takes cannot be known here. */
  get length(): number {
    for (const key of this.#fields?.keys() ?? []) {
      if (typeof key === "number" && Number.isInteger(key) && key > 0) {
        throw new UnsupportedError("the length of a table with holes");
      }
    }
    return this.list.length;
  }

  /**
   * The key behind another one; the order of fields is unknown, so there may be one at most. Lua
   * goes on behind some keys that the table has no longer, and raises an error about others.
   */
  next(key: Value): Value {
    const { list } = this;
    const count = this.#fields?.size ?? 0;
    if (count > 1 || this.#isMixed && count + list.length > 1) {
      throw new UnsupportedError("the order of a table's fields");
    }
    const [field] = this.#fields?.keys() ?? [];
    if (key === undefined) return list.length > 0 ? 1 : field;
    if (this.get(key) === undefined) {
      throw new UnsupportedError("'next' or 'pairs' behind a key that the table has not");
    }
    return key === field ? undefined : (key as number) < list.length ? (key as number) + 1 : field;
  }

  #append(value: Value): void {
    this.list.push(value);
    while (this.#fields) {
      const next = this.#fields.get(this.list.length + 1);
      if (next === undefined) return;
      this.#fields.delete(this.list.length + 1);
      this.#isMixed = true;
      this.list.push(next);
    }
  }

  #replace(key: number, value: Value): void {
    if (value !== undefined) this.list[key - 1] = value;
    else if (key === this.list.length) this.list.pop();
    else {
      const rest = this.list.splice(key - 1);
      this.#fields ??= new Map();
      for (let index = 1; index < rest.length; index++) this.#fields.set(key + index, rest[index]);
    }
  }
}

/** A table of Redis or of Lua itself, which no script may change. */
export class Library extends LuaTable {
  readonly #name: string;

  constructor(name: string, members: Readonly<Record<string, Value>>) {
    super();
    this.#name = name;
    for (const [member, value] of Object.entries(members)) super.set(member, value);
  }

  override get(key: Value): Value {
    const value = super.get(key);
    if (value !== undefined) return value;
    throw new UnsupportedError(`'${this.#name}.${typeof key === "string" ? key : "?"}'`);
  }

  override set(): void {
    raise("Attempt to modify a readonly table");
  }
}

/** The name of a value's type. */
export function typeName(value: Value): string {
  if (value === undefined) return "nil";
  if (value instanceof LuaTable) return "table";
  return typeof value;
}

/** What `ipairs` returns: the next item of a table. */
export const nextItem: LuaFunction = ([table, at]) => {
  const key = (at as number) + 1;
  const value = (table as LuaTable).get(key);
  return value === undefined ? undefined : [key, value];
};

/** A single result of several. */
export function first(result: Result): Value {
  return Array.isArray(result) ? result[0] : result;
}

/** All results as a list. */
export function listOf(result: Result): Value[] {
  return Array.isArray(result) ? result : [result];
}
