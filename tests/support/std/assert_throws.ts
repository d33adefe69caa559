/** The part of the `@std/assert` stand-in that deals with thrown errors. */

import { AssertionError } from "node:assert/strict";

// deno-lint-ignore no-explicit-any
type ErrorClass<E> = abstract new (...args: any[]) => E;

/** Asserts that `fn` throws, and returns what it threw. */
export function assertThrows(fn: () => unknown, msg?: string): unknown;
/**
 * Asserts that `fn` throws an `errorClass` whose message contains `msgIncludes`; returns the error.
 */
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  errorClass: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): E;
export function assertThrows(
  fn: () => unknown,
  classOrMsg?: ErrorClass<Error> | string,
  msgIncludes?: string,
  msg?: string,
): unknown {
  const note = typeof classOrMsg === "string" ? classOrMsg : msg;
  let error: unknown;
  try {
    fn();
  } catch (thrown) {
    error = thrown;
    if (typeof classOrMsg === "function") assertIsError(error, classOrMsg, msgIncludes, note);
    return error;
  }
  failWith("Expected function to throw", note);
}

/** Asserts that the promise of `fn` rejects, and resolves to what it rejected with. */
export function assertRejects(fn: () => PromiseLike<unknown>, msg?: string): Promise<unknown>;
/**
 * Asserts that the promise of `fn` rejects with an `errorClass` whose message contains
 * `msgIncludes`.
 */
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  errorClass: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;
export async function assertRejects(
  fn: () => PromiseLike<unknown>,
  classOrMsg?: ErrorClass<Error> | string,
  msgIncludes?: string,
  msg?: string,
): Promise<unknown> {
  const note = typeof classOrMsg === "string" ? classOrMsg : msg;
  const promise = startedWithoutThrowing(fn, note);
  try {
    await promise;
  } catch (error) {
    if (typeof classOrMsg === "function") assertIsError(error, classOrMsg, msgIncludes, note);
    return error;
  }
  failWith("Expected function to reject", note);
}

/** Asserts that `error` is an `errorClass` whose message contains `msgIncludes`. */
function assertIsError<E extends Error = Error>(
  error: unknown,
  errorClass?: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): asserts error is E {
  if (!(error instanceof Error)) {
    failWith(`Expected an Error: current value is ${Deno.inspect(error)}`, msg);
  }
  if (errorClass && !(error instanceof errorClass)) {
    failWith(`Expected a ${errorClass.name}: current value is ${Deno.inspect(error)}`, msg, error);
  }
  if (!msgIncludes || error.message.includes(msgIncludes)) return;
  const expected = `Expected an error message with "${msgIncludes}"`;
  failWith(`${expected}: current value is "${error.message}"`, msg, error);
}

function startedWithoutThrowing(
  fn: () => PromiseLike<unknown>,
  note: string | undefined,
): PromiseLike<unknown> {
  let promise: PromiseLike<unknown> | undefined;
  try {
    promise = fn();
  } catch (error) {
    failWith("Function throws when expected to reject", note, error);
  }
  if (typeof promise?.then === "function") return promise;
  failWith("Function returns no promise when expected to reject", note);
}

/** Throws the error of an assertion. */
export function failWith(message: string, msg: string | undefined, cause?: unknown): never {
  const error = new AssertionError({ message: msg ? `${message}: ${msg}` : message });
  if (cause !== undefined) error.cause = cause;
  throw error;
}
