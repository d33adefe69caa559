/**
 * Text of a server, made fit for messages and logs.
 *
 * @module
 */
export { printable } from "../printable.ts";
