/**
 * The values of Lua in JavaScript: nil is `undefined`, a string is a byte string, a function takes
 * and returns lists. And what goes wrong with them.
 *
 * @module
 */
import type { Reply } from "../server/replies.ts";

/** A value. */
export type Value = undefined | boolean | number | string | LuaTable | LuaFunction;
/** What a call returns: one value, or a list of any other number. */
export type Result = Value | Value[];
/** A function; a list is never a value, so a single result needs none. */
export type LuaFunction = (args: Value[]) => Result;
/** Executes a command of a script; throws the {@linkcode CommandError} of one that fails. */
export type CallCommand = (name: string, args: string[]) => Reply;

/** Where in a script something is called, and by which name, for errors. */
export interface Site {
  readonly line: number;
  readonly name?: string | undefined;
  readonly isMethod?: boolean;
}

/** Most loop iterations and calls of one run, so that a loop without an end is an error. */
const STEPS_MAX = 5_000_000;
/** Most calls inside each other. */
const DEPTH_MAX = 190;
/** Most scripts or patterns that are kept. */
const KEPT_MAX = 256;
/** Most bytes of a string that a script makes. */
const STRING_BYTES_MAX = 16 * 1024 * 1024;

/** A script has what this implementation has not. No script can catch it. */
export class UnsupportedError extends Error {
  override readonly name = "UnsupportedError";

  constructor(what: string, line: number = machine.site.line) {
    super(
      `MemoryRedis cannot run this script: line ${line}: it does not support ${what}; ` +
        "change the script, or test it with redis-server",
    );
  }
}

/** An error that Lua raises; the value is what `error` was called with. */
export class LuaError extends Error {
  override readonly name = "LuaError";
  readonly value: Value;
  /** The line of the innermost function that the script has. */
  readonly line: number;

  constructor(value: Value, line: number = machine.site.line) {
    super(typeof value === "string" ? value : "a script raised an error");
    this.value = value;
    this.line = line;
  }
}

/** Raises an error with its position in front, as Lua does. */
export function raise(text: string, { line }: Site = machine.site): never {
  throw new LuaError(`user_script:${line}: ${text}`, line);
}

/** A table: a list from 1 on without holes, and fields. */
export class LuaTable {
  readonly list: Value[];
  #fields: Map<Value, Value> | undefined;

  /** @param list The values from 1 on, none of which is nil. It is not copied. */
  constructor(list: Value[] = []) {
    this.list = list;
  }

  /** The value of a key; `site` is where a script reads it. */
  get(key: Value, _site?: Site): Value {
    if (typeof key === "number") {
      const value = this.list[key - 1];
      if (value !== undefined) return value;
    }
    return this.#fields?.get(key);
  }

  set(key: Value, value: Value): void {
    const { list } = this;
    if (typeof key === "number") {
      if (list[key - 1] !== undefined) {
        if (value !== undefined) list[key - 1] = value;
        else if (key === list.length) list.pop();
        else throw new UnsupportedError("a list that gets a hole");
        return;
      }
      if (key === list.length + 1 && !this.#fields?.has(key)) {
        if (value !== undefined) list.push(value);
        return;
      }
      if (Number.isNaN(key)) raise("table index is NaN");
    } else if (key === undefined) {
      raise("table index is nil");
    }
    this.#fields ??= new Map();
    if (value !== undefined) this.#fields.set(key, value);
    else this.#fields.delete(key);
  }

  /** Whether there has never been anything but the list. */
  get isList(): boolean {
    return this.#fields === undefined;
  }

  /** The list; a table with holes has several lengths, and which one Lua takes is unknown here. */
  get items(): readonly Value[] {
    for (const key of this.#fields?.keys() ?? []) {
      if (typeof key === "number") throw new UnsupportedError("the length of a table with holes");
    }
    return this.list;
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

  override get(key: Value, { line } = machine.site): Value {
    const value = super.get(key);
    if (value !== undefined) return value;
    throw new UnsupportedError(`'${this.#name}.${typeof key === "string" ? key : "?"}'`, line);
  }

  override set(): void {
    raise("Attempt to modify a readonly table");
  }
}

/** A run: the commands, `KEYS` and `ARGV` of a script, where it is, and what it may do yet. */
class Machine {
  readonly call: CallCommand;
  readonly keys: LuaTable;
  readonly args: LuaTable;
  site: Site = { line: 0 };
  steps: number = STEPS_MAX;
  depth = 0;

  constructor(call: CallCommand, keys: string[], args: string[]) {
    this.call = call;
    this.keys = new LuaTable(keys);
    this.args = new LuaTable(args);
  }
}

/** The run that goes on; before the first one, nothing can be called. */
export let machine: Machine = new Machine(() => null, [], []);

/**
 * Runs a script with its commands, `KEYS` and `ARGV`. Runs may be nested, because a published
 * message may make a client call a script.
 */
export function runWith<T>(call: CallCommand, keys: string[], args: string[], run: () => T): T {
  const outer = machine;
  machine = new Machine(call, keys, args);
  try {
    return run();
  } finally {
    machine = outer;
  }
}

/** Counts an iteration of a loop, or a call. */
export function step(site: Site): void {
  machine.site = site;
  if (--machine.steps < 0) throw new UnsupportedError(`more than ${STEPS_MAX} steps`);
}

/** Counts a call that is inside of others; the caller decreases the depth again. */
export function enter(): void {
  step(machine.site);
  if (++machine.depth > DEPTH_MAX) {
    throw new UnsupportedError(`more than ${DEPTH_MAX} calls inside each other`);
  }
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
  throw new UnsupportedError(`a string of more than ${STRING_BYTES_MAX} bytes`);
}

/** The name of a value's type. */
export function typeName(value: Value): string {
  if (value === undefined) return "nil";
  if (value instanceof LuaTable) return "table";
  return typeof value;
}

/** Whether a value counts as true. */
export function isTrue(value: Value): boolean {
  return value !== undefined && value !== false;
}

/** A single result of several. */
export function first(result: Result): Value {
  return Array.isArray(result) ? result[0] : result;
}
