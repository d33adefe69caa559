/**
 * Keeps the warnings of lock clients out of the output of tests, many of which lose locks on
 * purpose. Loaded before the tests; those about the warnings replace the console by their own.
 */
const { warn } = console;
console.warn = (...data: unknown[]) => {
  if (!String(data[0]).startsWith("@hasp/redlock: ")) warn(...data);
};
