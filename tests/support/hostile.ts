/** What code of other makers may throw, reject with or return. */

/** Levels of nesting that overflow the stack of a function that calls itself for each. */
const LEVELS = 20_000;

let WITH_CAUSES = new Error("x");
for (let level = 0; level < LEVELS; level++) WITH_CAUSES = new Error("x", { cause: WITH_CAUSES });

/** Each value by what it is; a function, because some of them are changed by what looks at them. */
export const HOSTILE: Readonly<Record<string, () => unknown>> = {
  "arrays nested 20 000 deep": () => JSON.parse("[".repeat(LEVELS) + "]".repeat(LEVELS)),
  "objects nested 20 000 deep": () => JSON.parse('{"a":'.repeat(LEVELS) + "1" + "}".repeat(LEVELS)),
  "a circular array": () => {
    const circular: unknown[] = [];
    circular.push(circular);
    return circular;
  },
  "a circular object": () => {
    const circular: Record<string, unknown> = {};
    return circular.message = circular;
  },
  "an object without a prototype": () => Object.create(null),
  "a revoked proxy": () => revoked({}),
  "a revoked proxy of an array": () => revoked([]),
  "a revoked proxy of an error": () => revoked(new Error("x")),
  "an error whose message is a number": () => Object.assign(new Error(), { message: 5 }),
  "an error whose message is a symbol": () => Object.assign(new Error(), { message: Symbol("x") }),
  "an error whose name is a symbol": () => Object.assign(new Error(), { name: Symbol("x") }),
  "an error whose message throws": () => throwing(new Error("x"), "message"),
  "an error whose name throws": () => throwing(new Error("x"), "name"),
  "an error whose stack throws": () => throwing(new Error("x"), "stack"),
  "an error without a prototype": () => Object.setPrototypeOf(new Error("x"), null),
  "an error with a revoked cause": () => new Error("x", { cause: revoked({}) }),
  "an error with 20 000 causes": () => WITH_CAUSES,
  "an error that is its own cause": () => {
    const error = new Error("x");
    return Object.assign(error, { cause: error });
  },
  "an error with a megabyte": () => new Error("x".repeat(1_000_000)),
  "an error that shows itself": () => {
    const show = () => {
      throw new Error("shown");
    };
    return Object.assign(new Error("x"), {
      [Symbol.for("nodejs.util.inspect.custom")]: show,
      [Symbol.for("Deno.customInspect")]: show,
    });
  },
  "a thenable that throws": () => throwing({}, "then"),
  "a promise that rejects": () => {
    const rejected = Promise.reject(new Error("x"));
    rejected.catch(() => {}); // whoever is given it may not look at it
    return rejected;
  },
  "undefined": () => undefined,
  "null": () => null,
  "NaN": () => NaN,
  "a symbol": () => Symbol("x"),
  "a function": () => () => {},
  "a text of a megabyte": () => "x".repeat(1_000_000),
};

function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function throwing<T extends object>(target: T, name: string): T {
  return Object.defineProperty(target, name, {
    get() {
      throw new Error(`${name} was read`);
    },
  });
}
