/**
 * The operators that break a marked point of the library. They work on the syntax tree, so that no
 * rename and no reformatting of the source takes one away.
 *
 * A **mark** is a comment on a line of its own, `// mutation: a-failed-attempt-stays`. It marks the
 * statement that begins behind it, or for the largest expression that does. Several marks may be
 * one above the other.
 *
 * What an operator works on is the **value** of that statement: what an `if` tests, what a `return`
 * returns, what a declaration or an assignment assigns. Its **parts** are the operands of an
 * operator, the three parts of a conditional, or the arguments of a call.
 */
import ts from "typescript";
import { MUTANT } from "./mutant.ts";

/** A mark, on a line of its own. */
const MARK = /^[ \t]*\/\/ mutation: (\S+)$/gmu;
/** What may be between a mark and what it marks: other marks, other comments, space. */
const BETWEEN = /^(?:\s|\/\/[^\n]*\n)*$/u;

/** One change of a text. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A way to break what is marked. */
export type Operator = (marked: ts.Node, file: ts.SourceFile) => Edit;

/**
 * Where the marks of a source are: the position behind each, by name. A name may be there more than
 * once.
 */
export function marksIn(source: string): [name: string, end: number][] {
  return [...source.matchAll(MARK)].map((match) => [match[1], match.index + match[0].length]);
}

/**
 * Breaks a source at every mark of one name.
 *
 * @param source The text of a module.
 * @param mark The name of the mark.
 * @param operator How to break it.
 * @throws {Error} If there is no such mark, if nothing begins behind it, or if the operator does
 * not fit.
 */
export function mutate(source: string, mark: string, operator: Operator): string {
  const file = ts.createSourceFile("marked.ts", source, ts.ScriptTarget.Latest, true);
  const ends = marksIn(source).filter(([name]) => name === mark).map(([, end]) => end);
  if (ends.length === 0) throw new Error(`There is no mark "${mark}"`);
  const edits = ends.map((end) => operator(nodeBehind(file, end, mark), file));
  return edits.reduceRight(
    (text, edit) => text.slice(0, edit.start) + edit.text + text.slice(edit.end),
    source,
  );
}

/** Leaves the statement out, which must not declare what others use. */
export const drop: Operator = (marked, file) => {
  if (ts.isVariableStatement(marked)) throw misfit("a statement to leave out", marked);
  return replace(statement(marked), ";", file);
};

/** Puts a constant in place of the value. */
export function becomes(constant: string): Operator {
  return (marked, file) => replace(valueOf(marked), constant, file);
}

/** Leaves of the value one part only. */
export function part(index: number): Operator {
  return (marked, file) => {
    const value = valueOf(marked);
    return replace(value, `(${partOf(value, index).getText(file)})`, file);
  };
}

/** Leaves one part out of the value: an operand of a chain of `&&` or `||`, or an argument. */
export function without(index: number): Operator {
  return (marked, file) => {
    const value = valueOf(marked);
    const left = partOf(value, index);
    const kept = partsOf(value).filter((each) => each !== left).map((each) => each.getText(file));
    if (ts.isCallExpression(value)) {
      return replace(value, `${value.expression.getText(file)}(${kept.join(", ")})`, file);
    }
    if (!ts.isBinaryExpression(value)) throw misfit("operands", value);
    return replace(value, `(${kept.join(` ${value.operatorToken.getText(file)} `)})`, file);
  };
}

/** Applies an operator to one part of the value. */
export function inPart(index: number, operator: Operator): Operator {
  return (marked, file) => operator(partOf(valueOf(marked), index), file);
}

/**
 * Puts a reading of the clock at that very moment in place of the value, which is an earlier one.
 */
export const now: Operator = (marked, file) => replace(valueOf(marked), `${MUTANT}.now()`, file);

/** Evaluates the value only once in each process, and keeps it. */
export const once: Operator = (marked, file) => {
  const value = valueOf(marked);
  return replace(value, `${MUTANT}.once(() => ${value.getText(file)})`, file);
};

/** Makes the call of the statement late, each third time, by so many milliseconds. */
export function late(delayMs: number): Operator {
  return (marked, file) => {
    const call = valueOf(marked);
    if (!ts.isCallExpression(call)) throw misfit("a call", call);
    const callee = call.expression.getText(file);
    const args = call.arguments.map((each) => each.getText(file)).join(", ");
    return replace(
      call,
      `${MUTANT}.late(${delayMs}, (...args) => ${callee}(...args), ${args})`,
      file,
    );
  };
}

/** Runs the statement, and once more so many milliseconds later, each third time. */
export function again(delayMs: number): Operator {
  return (marked, file) => {
    const text = statement(marked).getText(file);
    return replace(marked, `{ ${text} ${MUTANT}.again(${delayMs}, () => { ${text} }); }`, file);
  };
}

/** Applies an operator to a statement, each third time that it runs. */
export function sometimes(operator: Operator): Operator {
  return (marked, file) => {
    const text = statement(marked).getText(file);
    const { start, end, text: changed } = operator(marked, file);
    const from = marked.getStart(file);
    const broken = text.slice(0, start - from) + changed + text.slice(end - from);
    return replace(marked, `{ if (${MUTANT}.third()) { ${broken} } else { ${text} } }`, file);
  };
}

/** The largest node that begins behind a mark. */
function nodeBehind(file: ts.SourceFile, end: number, mark: string): ts.Node {
  const find = (node: ts.Node): ts.Node | undefined =>
    node.getStart(file) >= end && node !== file ? node : ts.forEachChild(node, find);
  const found = find(file);
  if (found && BETWEEN.test(file.text.slice(end, found.getStart(file)))) return found;
  throw new Error(`Nothing begins behind the mark "${mark}"`);
}

function statement(node: ts.Node): ts.Node {
  if (ts.isStatement(node)) return node;
  throw misfit("a statement", node);
}

/** What a statement tests, returns or assigns; an expression is its own value. */
function valueOf(node: ts.Node): ts.Expression {
  let value: ts.Node | undefined = node;
  if (ts.isVariableStatement(node)) value = node.declarationList.declarations[0].initializer;
  else if (ts.isIfStatement(node) || ts.isReturnStatement(node)) value = node.expression;
  else if (ts.isExpressionStatement(node)) value = node.expression;
  if (value && ts.isBinaryExpression(value) && assigns(value)) return value.right;
  if (!value || !ts.isExpression(value)) throw misfit("a value", node);
  return value;
}

function assigns({ operatorToken: { kind } }: ts.BinaryExpression): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
}

function partOf(value: ts.Expression, index: number): ts.Expression {
  const found = partsOf(value)[index];
  if (!found) throw misfit(`part ${index}`, value);
  return found;
}

function partsOf(value: ts.Expression): readonly ts.Expression[] {
  if (ts.isParenthesizedExpression(value)) return partsOf(value.expression);
  if (ts.isConditionalExpression(value)) return [value.condition, value.whenTrue, value.whenFalse];
  if (ts.isCallExpression(value)) return value.arguments;
  if (ts.isArrayLiteralExpression(value)) return value.elements;
  if (!ts.isBinaryExpression(value)) return [];
  const { left, right, operatorToken: { kind } } = value;
  const chained = ts.isBinaryExpression(left) && left.operatorToken.kind === kind;
  return chained ? [...partsOf(left), right] : [left, right];
}

function replace(node: ts.Node, text: string, file: ts.SourceFile): Edit {
  return { start: node.getStart(file), end: node.getEnd(), text };
}

function misfit(what: string, node: ts.Node): Error {
  return new Error(`Cannot find ${what} in a ${ts.SyntaxKind[node.kind]}`);
}
