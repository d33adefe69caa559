/**
 * Which variable a name stands for.
 *
 * @module
 */
import type { Variable } from "./tree.ts";
import { UnsupportedError } from "./values.ts";

/** Most variables of one function. */
const VARIABLES_MAX = 200;

/** The names of one function that is being read. */
export class FunctionScope {
  /** Variables of the enclosing function that this one uses. */
  readonly captures: Variable[] = [];
  readonly #outer: FunctionScope | undefined;
  readonly #locals: Variable[] = [];
  readonly #upvalues: Variable[] = [];
  #visible: Variable[] = [];

  /** @param outer The enclosing function. */
  constructor(outer?: FunctionScope) {
    this.#outer = outer;
  }

  /** Makes a variable, which is not visible yet. */
  create(name: string, line: number): Variable {
    if (this.#locals.length >= VARIABLES_MAX) {
      throw new UnsupportedError(`a function with more than ${VARIABLES_MAX} variables`, line);
    }
    const variable = { name, slot: this.#locals.length, boxed: false, isUpvalue: false };
    this.#locals.push(variable);
    return variable;
  }

  /** Makes variables visible, from here to the end of the block. */
  show(...variables: readonly Variable[]): void {
    this.#visible.push(...variables);
  }

  /** Reads a block: what becomes visible in it is not visible behind it. */
  block<T>(read: () => T): T {
    const { length } = this.#visible;
    const result = read();
    this.#visible.length = length;
    return result;
  }

  /** The variable that a name stands for; `undefined` if it is a global. */
  find(name: string): Variable | undefined {
    const local = this.#visible.filter((variable) => variable.name === name).at(-1);
    if (local) return local;
    const outer = this.#outer?.find(name);
    if (!outer) return undefined;
    outer.boxed = true;
    const slot = this.captures.indexOf(outer);
    if (slot !== -1) return this.#upvalues[slot];
    const upvalue = { name, slot: this.captures.length, boxed: true, isUpvalue: true };
    this.captures.push(outer);
    this.#upvalues.push(upvalue);
    return upvalue;
  }

  /**
   * Gives the variables their slots: those of the enclosing function stand first. Returns how many
   * there are.
   */
  finish(): number {
    for (const variable of this.#locals) variable.slot += this.captures.length;
    return this.captures.length + this.#locals.length;
  }
}
