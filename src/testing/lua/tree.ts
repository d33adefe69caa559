/**
 * The syntax tree of a Lua function. Names are resolved: a variable knows its slot in the frame of
 * the function.
 *
 * @module
 */

/** A local variable, or one of an enclosing function as this function sees it. */
export interface Variable {
  readonly name: string;
  /** Its place in the frame; set when the function has been read. */
  slot: number;
  /** Whether a function inside uses it too, so that it stands in a box. */
  boxed: boolean;
  /** Whether it belongs to an enclosing function. */
  readonly isUpvalue: boolean;
}

/** An expression. */
export type Expression =
  | { readonly kind: "constant"; readonly value: undefined | boolean | number | string }
  | { readonly kind: "variable"; readonly variable: Variable }
  | { readonly kind: "global"; readonly name: string; readonly line: number }
  | { readonly kind: "varargs"; readonly slot: Variable }
  | Index
  | Call
  | { readonly kind: "unary"; readonly operator: string; readonly operand: Expression } & Placed
  | Binary
  | { readonly kind: "concatenation"; readonly operands: readonly Expression[] } & Placed
  | { readonly kind: "parentheses"; readonly inner: Expression }
  | { readonly kind: "function"; readonly code: FunctionCode }
  | Constructor;

interface Placed {
  /** The line that an error names. */
  readonly line: number;
}

/** `table[key]`. */
export interface Index extends Placed {
  readonly kind: "index";
  readonly table: Expression;
  readonly key: Expression;
}

/** `callee(…)`, or `callee:method(…)`. */
export interface Call extends Placed {
  readonly kind: "call";
  readonly callee: Expression;
  readonly method?: string;
  readonly args: readonly Expression[];
}

/** An operator with two operands. */
export interface Binary extends Placed {
  readonly kind: "binary";
  readonly operator: string;
  readonly left: Expression;
  readonly right: Expression;
}

/** `{ … }`. */
export interface Constructor extends Placed {
  readonly kind: "table";
  readonly items: readonly Expression[];
  /** Each with the number of the items before it. */
  readonly fields: readonly (readonly [key: Expression, value: Expression, at: number])[];
}

/** What stands for a value that is set. */
export type Target = Extract<Expression, { kind: "variable" }> | Index;

/** A statement. */
export type Statement =
  | Local
  | { readonly kind: "assignment"; readonly targets: readonly Target[] } & Valued
  | { readonly kind: "call"; readonly call: Call }
  | { readonly kind: "do"; readonly body: Block }
  | { readonly kind: "while"; readonly test: Expression; readonly body: Block }
  | { readonly kind: "repeat"; readonly body: Block; readonly test: Expression }
  | {
    readonly kind: "if";
    readonly tests: readonly Expression[];
    readonly bodies: readonly Block[];
  }
  | NumericLoop
  | Loop
  | { readonly kind: "function"; readonly variable: Variable; readonly code: FunctionCode }
  | { readonly kind: "return" } & Valued
  | { readonly kind: "break" };

interface Valued {
  readonly values: readonly Expression[];
}

/** `local a, b = …`. */
export interface Local extends Valued {
  readonly kind: "local";
  readonly variables: readonly Variable[];
}

/** `for variable = from, to, by do … end`. */
export interface NumericLoop extends Placed {
  readonly kind: "numeric";
  readonly variable: Variable;
  readonly from: Expression;
  readonly to: Expression;
  readonly by: Expression | undefined;
  readonly body: Block;
}

/** `for variables in values do … end`. */
export interface Loop extends Valued, Placed {
  readonly kind: "for";
  readonly variables: readonly Variable[];
  readonly body: Block;
}

/** Statements. */
export type Block = readonly Statement[];

/** The code of a function. */
export interface FunctionCode {
  readonly parameters: readonly Variable[];
  /** Where the rest of the arguments stands, if there is one. */
  readonly rest: Variable | undefined;
  /** The variables of the enclosing function that it uses, in the order of its first slots. */
  readonly captures: readonly Variable[];
  /** How many slots its frame has. */
  readonly size: number;
  readonly body: Block;
}
