/**
 * Compiles a Lua source to closures while it reads it, so that nothing is looked up by name when a
 * script runs, and no source is evaluated by the runtime, which not all runtimes allow.
 *
 * Here are the statements; expressions are in `expressions.ts`.
 *
 * @module
 */
import {
  BREAK,
  type Evaluate,
  type Execute,
  type Expression,
  ExpressionReader,
  type Frame,
  listOf,
  type Target,
} from "./expressions.ts";
import { toNumber } from "./numbers.ts";
import { END, NAME } from "./tokens.ts";
import {
  isTrue,
  type LuaFunction,
  LuaTable,
  raise,
  step,
  typeName,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** What ends a block. */
const BLOCK_ENDS = ["end", "else", "elseif", "until", END];
/** What a function returns that returns nil: `undefined` means that nothing was returned yet. */
const NIL: Value[] = [undefined];

/** Begins a loop; returns what prepares the next round, and whether there is one. */
type Begin = (frame: Frame) => () => boolean;

/**
 * Compiles a source.
 *
 * @param source The source, as a byte string.
 * @returns A function that runs it.
 * @throws {UnsupportedError} If it is no Lua, or has what this implementation has not.
 */
export function compile(source: string): LuaFunction {
  return new Compiler(source).main();
}

class Compiler extends ExpressionReader {
  main(): LuaFunction {
    const body = this.block();
    if (this.token.kind !== END) throw this.unexpected();
    return this.creates(body, 0)();
  }

  block(): Execute {
    return this.scoped(() => this.#statements());
  }

  #statements(): Execute {
    const statements: Execute[] = [];
    while (!BLOCK_ENDS.includes(this.token.kind)) {
      const { kind } = this.token;
      statements.push(this.nested(() => this.#statement()));
      this.skip(";");
      const isLast = kind === "return" || kind === "break";
      if (isLast && !BLOCK_ENDS.includes(this.token.kind)) throw this.unexpected("end");
    }
    if (statements.length === 1) return statements[0];
    return (frame) => {
      for (let at = 0; at < statements.length; at++) {
        const outcome = statements[at](frame);
        if (outcome !== undefined) return outcome;
      }
      return undefined;
    };
  }

  #statement(): Execute {
    switch (this.token.kind) {
      case "local":
        return this.#declaration();
      case "if":
        return this.#if();
      case "for":
        return this.scoped(() => this.#for());
      case "while":
        return this.#while();
      case "repeat":
        return this.scoped(() => this.#repeat());
      case "do":
        return this.body("do");
      case "return":
        return this.#return();
      case "break":
        if (!this.isInLoop) throw this.unexpected();
        this.next();
        return () => BREAK;
      case "function":
        throw this.unsupported("a global function");
      default:
        return this.#assignmentOrCall();
    }
  }

  #declaration(): Execute {
    this.next();
    if (this.skip("function")) {
      const slot = this.declare(this.expect(NAME).text); // first: the function can call itself
      const creates = this.newFunction();
      return (frame) => void (frame[slot] = creates(frame));
    }
    const names = this.names();
    const values = this.skip("=") ? this.expressions() : [];
    const slots = names.map((name) => this.declare(name));
    if (slots.length === 1 && values.length === 1) {
      const [[slot], [{ evaluate }]] = [slots, values];
      return (frame) => void (frame[slot] = evaluate(frame));
    }
    const all = listOf(values);
    return (frame) => {
      const list = all(frame);
      for (let at = 0; at < slots.length; at++) frame[slots[at]] = list[at];
    };
  }

  #if(): Execute {
    const tests: Evaluate[] = [];
    const blocks: Execute[] = [];
    do {
      this.next();
      tests.push(this.expression().evaluate);
      this.expect("then");
      blocks.push(this.block());
    } while (this.token.kind === "elseif");
    const otherwise = this.skip("else") ? this.block() : undefined;
    this.expect("end");
    return (frame) => {
      for (let at = 0; at < tests.length; at++) {
        if (isTrue(tests[at](frame))) return blocks[at](frame);
      }
      return otherwise?.(frame);
    };
  }

  #return(): Execute {
    this.next();
    if (this.token.kind === ";" || BLOCK_ENDS.includes(this.token.kind)) return () => [];
    const values = this.expressions();
    if (values.length > 1) return listOf(values);
    const evaluate = values[0].evaluateAll ?? values[0].evaluate;
    return (frame) => {
      const result = evaluate(frame);
      return result === undefined ? NIL : result;
    };
  }

  #assignmentOrCall(): Execute {
    const expressions = [this.suffixed()];
    const [{ evaluateAll: call }] = expressions;
    if (call) return (frame) => void call(frame);
    while (this.skip(",")) expressions.push(this.suffixed());
    const slots = expressions.map(({ slot }) => slot);
    const targets = expressions.map(({ target }, at) => {
      if (!target) throw this.unexpected();
      return target(slots.slice(at + 1)); // the last is set first
    });
    this.expect("=");
    return assignment(targets, this.expressions());
  }

  // Loops

  #while(): Execute {
    const { line } = this.next();
    const { evaluate } = this.expression();
    return this.#loop((frame) => () => isTrue(evaluate(frame)), line);
  }

  /** The test sees the variables of the body. */
  #repeat(): Execute {
    const { line } = this.next();
    return this.looped(() => {
      const body = this.#statements();
      this.expect("until");
      const { evaluate } = this.expression();
      const begin = (frame: Frame) => {
        let rounds = 0;
        return () => rounds++ === 0 || !isTrue(evaluate(frame));
      };
      return loop(begin, body, line);
    });
  }

  #for(): Execute {
    this.next();
    const names = this.names();
    return names.length === 1 && this.skip("=") ? this.#numericFor(names[0]) : this.#forIn(names);
  }

  #numericFor(name: string): Execute {
    const limits = this.expressions().map(({ evaluate }) => evaluate);
    if (limits.length < 2 || limits.length > 3) throw this.unexpected("do");
    const { line } = this.token;
    const slot = this.declare(name);
    return this.#loop((frame) => {
      const [from, to, by = 1] = limits.map((limit) => limit(frame)).map((value, at) =>
        toNumber(value) ??
          raise(`'for' ${["initial value", "limit", "step"][at]} must be a number`, { line })
      );
      let number = from - by; // rounded, as in Lua
      return () => {
        number += by;
        frame[slot] = number;
        return by > 0 ? number <= to : to <= number;
      };
    }, line);
  }

  /** A loop over `ipairs`, or over `pairs` of a list. */
  #forIn(names: readonly string[]): Execute {
    this.expect("in");
    const { text: how, line } = this.next();
    const isKnown = (how === "ipairs" || how === "pairs") && !this.local(how);
    const list = isKnown && this.token.kind === "(" ? this.arguments() : [];
    if (list.length !== 1 || names.length > 2) {
      throw this.unsupported("a loop of another form than 'for index, item in ipairs(list) do'");
    }
    const [{ evaluate }] = list;
    const [keySlot, itemSlot] = names.map((name) => this.declare(name));
    return this.#loop((frame) => {
      const table = evaluate(frame);
      if (!(table instanceof LuaTable)) {
        const found = typeName(table);
        return raise(`bad argument #1 to '${how}' (table expected, got ${found})`, { line });
      }
      const { length } = table.list;
      let key = 0;
      return () => {
        if (how === "pairs" && !(table.isList && table.list.length === length)) {
          throw new UnsupportedError("'pairs' of a table that is no list, or changes its length");
        }
        const item = table.get(++key);
        frame[keySlot] = key;
        if (itemSlot !== undefined) frame[itemSlot] = item;
        return item !== undefined;
      };
    }, line);
  }

  /** Reads the body of a loop. */
  #loop(begin: Begin, line: number): Execute {
    return loop(begin, this.looped(() => this.body("do")), line);
  }
}

function loop(begin: Begin, body: Execute, line: number): Execute {
  const site = { line };
  return (frame) => {
    const next = begin(frame);
    for (;;) {
      step(site);
      if (!next()) return undefined;
      const outcome = body(frame);
      if (outcome === BREAK) return undefined;
      if (outcome !== undefined) return outcome;
    }
  };
}

/** `a, b[c] = …`: tables and keys are evaluated before the values. */
function assignment(targets: readonly Target[], values: readonly Expression[]): Execute {
  if (targets.length === 1 && values.length === 1) {
    const [[target], [{ evaluate }]] = [targets, values];
    return (frame) => {
      const set = target(frame);
      set(evaluate(frame));
    };
  }
  const all = listOf(values);
  return (frame) => {
    const setters = targets.map((target) => target(frame));
    const list = all(frame);
    // Lua assigns the last one first.
    for (let at = setters.length - 1; at >= 0; at--) setters[at](list[at]);
  };
}
