/**
 * Random programs in the subset of Lua that the server in memory compiles, and single pieces of it.
 */
import fc from "fast-check";

/** What a program finds on the server. */
export const PREPARED: readonly string[][] = [
  ["FLUSHALL"],
  ["SET", "text", "v:1:70"],
  ["SET", "number", "41"],
  ["ZADD", "set", "1", "x", "2.5", "y", "1700000000000001", "z"],
];
export const KEYS: readonly string[] = ["text", "number", "set", "none"];
export const ARGS: readonly string[] = ["v:1:70", "41", "", "a\0\r\nb"];

/** Shows any value with its type, so that a reply hides nothing. */
const SHOW = `local function show(value, depth)
  if type(value) ~= 'table' then return type(value) .. ' ' .. tostring(value) end
  if value.err then return 'error ' .. value.err end
  if value.ok then return 'status ' .. value.ok end
  local parts = {}
  for index, item in ipairs(value) do
    parts[index] = depth > 3 and '…' or show(item, depth + 1)
  end
  return '{' .. table.concat(parts, ', ') .. '}'
end
`;

const pick = (text: string) => fc.constantFrom(...text.split(" | "));
const NAMES = "a | b | c";

/** Expressions and statements, each inside of others. */
const { expression, block, routine } = fc.letrec<{
  expression: string;
  text: string;
  number: string;
  table: string;
  block: string;
  routine: string;
  statement: string;
}>((tie) => {
  const join = (...parts: (string | fc.Arbitrary<string>)[]) =>
    fc.tuple(...parts.map((part) => typeof part === "string" ? fc.constant(part) : part))
      .map((texts) => texts.join(""));
  const many = (part: fc.Arbitrary<string>, maxLength: number, separator = ", ") =>
    fc.array(part, { minLength: 1, maxLength }).map((parts) => parts.join(separator));
  const any = tie("expression");
  const pattern = pick(
    "'^(.-):' | '%d+' | ':' | '%w*' | '[^:]+' | '^%x*:' | '(%a)(%d*)' | '.-$' | '[%w_-]' | '%D' | '%s*$' | 'b?' | '^:'",
  );
  const command = fc.oneof(
    join(
      pick("'GET' | 'PTTL' | 'EXISTS' | 'TYPE' | 'INCR' | 'DECR' | 'DEL' | 'get' | 'ZCARD'"),
      ", ",
      any,
    ),
    join("'ZRANGE', 'set', ", tie("number"), ", ", tie("number"), pick(" | , 'WITHSCORES'")),
    join("'SET', ", any, ", ", any, pick(" | , 'NX' | , 'PX', 60000 | , 'PX'")),
    join("'ZADD', 'set', ", pick(" | 'XX', | 'NX', "), tie("number"), ", ", any),
    join(pick("'ZSCORE' | 'ZRANK' | 'ZREM'"), ", 'set', ", any),
    join(
      "'ZREMRANGEBYSCORE', 'set', ",
      pick("'-inf' | 1 | '(1' | 0"),
      ", ",
      pick("2 | '(2.5' | '+inf' | x"),
    ),
    pick(
      "'PUBLISH', 'news', 1 | 'PUBSUB', 'NUMSUB', 'news' | 'PING' | 'NOPE' | 'EVAL', 'return 1', 0 | 'GET'",
    ),
  );
  return {
    number: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      pick(
        "0 | 1 | 2 | 3 | -1 | 0.5 | 10 | 1e15 | 123456789012345 | 9007199254740993 | 1e300 | #KEYS | 1e-7",
      ),
      join(tie("number"), pick(" + | - | * | / | % "), tie("number")),
      join("math.", pick("floor | ceil | abs"), "(", tie("number"), ")"),
      join("math.", pick("max | min"), "(", tie("number"), ", ", tie("number"), ")"),
      join("tonumber(", tie("text"), ")"),
      join("#", tie("text")),
      join("#", tie("table")),
      join("-(", tie("number"), ")"),
    ),
    text: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      pick(
        "'' | 'v:1:70' | 'abc' | '12' | ' 7 ' | '0x10' | '1e3' | [[x\ny]] | ARGV[1] | ARGV[2] | KEYS[1] | '\\'\\n'",
      ),
      join("(", tie("text"), " .. ", fc.oneof(tie("text"), tie("number")), ")"),
      join("tostring(", any, ")"),
      join("string.format(", pick("'%.0f' | '%d' | '%s'"), ", ", tie("number"), ")"),
      join("string.format(", pick("'%s' | '%%%s' | '%d'"), ", ", tie("text"), ")"),
      join("(", tie("text"), ")", pick(":sub(1, 2) | :sub(-2) | :sub(2, -2) | :len() | :sub(0)")),
      join(
        "(",
        tie("text"),
        "):",
        pick("match | find"),
        "(",
        pattern,
        pick(" | , 2 | , -1 | , 1, true"),
        ")",
      ),
    ),
    table: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      pick("{} | KEYS | ARGV | {1, 2, 3} | {x = 1, ['y'] = 2} | {nil} | t"),
      join("{ ", many(any, 3), " }"),
      join("{ ", any, ", redis.pcall(", command, ") }"),
    ),
    expression: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      pick(`nil | true | false | t | ${NAMES} | x`),
      tie("number"),
      tie("text"),
      tie("table"),
      join("(", any, pick("== | ~= | and | or").map((it) => ` ${it} `), any, ")"),
      join(
        "(",
        tie("number"),
        pick("< | <= | > | >= | .. | ==").map((it) => ` ${it} `),
        tie("number"),
        ")",
      ),
      join(
        "(",
        tie("text"),
        pick("< | <= | > | >= | .. | + | ==").map((it) => ` ${it} `),
        tie("text"),
        ")",
      ),
      join("not ", any),
      join("(", tie("table"), ")[", tie("number"), "]"),
      join("type(", any, ")"),
      join(pick("redis.call | redis.pcall | redis.pcall"), "(", command, ")"),
      join("unpack(", tie("table"), pick(" | , 2 | , 1, 0"), ")"),
      join("table.concat(", tie("table"), pick(" | , ','"), ")"),
      join("redis.", pick("error_reply | status_reply"), "((", tie("text"), "))"),
      join("f(", many(any, 2), ")"),
    ),
    statement: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      join("local ", pick(`${NAMES} | a, b`), " = ", many(any, 2)),
      join(pick(`${NAMES} | a, b | t[#t + 1] | t[1] | t.x | x`), " = ", many(any, 2)),
      join(
        "if ",
        any,
        " then ",
        tie("block"),
        pick(" | else x = 1 | elseif x then x = 2 ").map((it) => `\n${it}`),
        " end",
      ),
      join(
        "for i = ",
        tie("number"),
        ", ",
        pick("3 | 0 | -1 | x"),
        pick(" | , 2 | , -1"),
        " do ",
        tie("block"),
        " x = i if x > 2 then break end end",
      ),
      join(
        "for k, v in ",
        pick("ipairs | pairs"),
        "(",
        tie("table"),
        ") do x = k; ",
        tie("block"),
        " end",
      ),
      join("while #t < 3 do t[#t + 1] = ", any, " if not t[#t] then break end end"),
      join("repeat local y = ", any, " x = y until true or y"),
      join("table.insert(t, ", any, ")"),
      join("redis.pcall(", command, ")"),
      join("if ", any, " then return ", any, " end"),
    ),
    // None is in a loop.
    routine: fc.oneof(
      join(
        "local function g(p) x = p ",
        tie("block"),
        "\nreturn ",
        any,
        ", p end x, a = g(",
        any,
        ")",
      ),
      join("x = (function(a, b) return b, ", any, " end)(", many(any, 3), ")"),
      join("do local y = ", any, " f = function() y = ", any, " return y, a end a = f() end"),
    ),
    block: fc.array(tie("statement"), { maxLength: 3 }).map((statements) => statements.join("\n")),
  };
});

/** A program that ends by showing what it has made. */
export const program: fc.Arbitrary<string> = fc.tuple(
  fc.array(routine, { maxLength: 2 }),
  block,
  fc.array(expression, { minLength: 1, maxLength: 3 }),
  fc.boolean(),
).map(([routines, body, results, isRaw]) =>
  `${SHOW}local t, x, a, b, c = {}, nil, 1, 'b', false
local f = function(p, q) return q, p end
${routines.join("\n")}
${body}
local results = { ${results.map((each) => `(${each})`).join(", ")} }
${
    isRaw
      ? "return results"
      : "return { show(results, 0), show(t, 0), show(x, 0), show(a, 0), show(b, 0) }"
  }
`
);

/** Pieces that must run: each is an expression. */
export const PIECES: readonly string[] = `
1e14 .. '' | 1e15 .. '' | 123456789012345 .. '' | 1234567890123456 .. '' | 0.1 .. '' | 1/3 .. '' | -1.5e-7 .. '' | 2^53 .. '' | 1e100 .. '' | tostring(1e15) | tostring(1/0) | tostring(nil) | tostring(true) | 4.76837158203125e-7 .. '' | 100 .. '' | 5 % -3 | -5 % 3 | 5.5 % 2
('abc'):find('b', 2) | ('abc'):find('b', 3) | ('abc'):find('b', -2) | ('abc'):find('', 10) | ('a.b'):find('.', 1, true) | ('a.b'):find('%.') | ('abc'):find('(b)(c)') | {unpack({1, 2, 3}, 2)} | {unpack({1, 2, 3}, 2, 2)} | {unpack({1, 2, 3}, 3, 2)} | string.format('%.0f', 0.5) | string.format('%.0f', 1.5) | string.format('%.0f', 2^53)
string.format('%s %s', 1, 'a') | string.format('%d', 3.7) | string.format('%d', '10') | string.format('%%') | tonumber('0x10') | tonumber(' 10 ') | tonumber('1e2') | tonumber('') | tonumber('x') | tonumber('1 2') | tonumber(nil) | tonumber('5.') | tonumber('.5') | ('abc'):sub(0) | ('abc'):sub(-100, 2) | ('abc'):sub(3, 2) | ('v:1:70'):match('^[^:]*:%w+:(%d+)')
('[x]'):match('%[(.-)%]') | ('a-b'):match('[a%-]+') | ('x^'):match('[%^]') | (']'):match('[]]') | ('a' < 'b') | ('a' < 'B') | ('10' == 10) | (nil == false) | (1 == 1.0) | ({} == {}) | ('' < 'a') | math.max(1, '10') | math.min(2, 1) | math.huge | -math.huge | math.floor(-1.5)
2 ^ 10 | 2 ^ 0 | (-2) ^ 3 | -2 ^ 2 | 2 ^ 3 ^ 2 | 1 .. 2 | not nil | #{1, 2, nil} == 2 or true | #KEYS | type(redis) | type(type) | ({1, 2, nil, 4})[1] | (function() local s = 0 for k, v in pairs({1, 2, 3}) do s = s + k * v end return s end)()
redis.call('GET', 'text') | redis.call('GET', 'none') | redis.call('SET', 'a', 1) | redis.call('SET', 'a', 1.5) | redis.call('SET', 'a', 1e17) and redis.call('GET', 'a') | redis.call('SET', 'a', 0.1) and redis.call('GET', 'a')
redis.call('SET', 'a', 2^63) and redis.call('GET', 'a') | redis.call('SET', 'a', 0 * ARGV[2] * -1) and redis.call('GET', 'a') | redis.call('INCR', 'number') | redis.call('DECR', 'number') | redis.pcall('INCR', 'text') | redis.call('TYPE', 'set') | redis.call('TYPE', 'set').ok
redis.call('ZRANGE', 'set', 0, -1, 'WITHSCORES') | redis.call('ZSCORE', 'set', 'z') | redis.call('ZADD', 'set', 'XX', 7, 'nope') | redis.call('ZADD', 'nope', 'XX', 7, 'x') | redis.call('EXISTS', 'nope') | redis.call('ZADD', 'set', 'XX', 'NX', 7, 'nope')
redis.call('ZREMRANGEBYSCORE', 'set', '-inf', 2) | redis.call('ZREMRANGEBYSCORE', 'set', '', '(') | redis.call('ZREMRANGEBYSCORE', 'set', '', 1) | redis.call('ZREMRANGEBYSCORE', 'set', '(1', '(2.5') | redis.call('ZREMRANGEBYSCORE', 'set', 'x', 2) | redis.call('ZREMRANGEBYSCORE', 'text', 0, 2) | redis.call('PUBSUB', 'NUMSUB', 'x', 'y')
redis.call('GET') | redis.call('get', 'text') | redis.call('NOPE') | redis.call() | redis.pcall() | redis.call('SET', 'a', {}) | redis.call('SET', 'a', nil) | redis.call({}) | redis.pcall('SET', 'a', true) | redis.call('EVAL', 'return 1', 0) | redis.call('SUBSCRIBE', 'x') | redis.call('CONFIG', 'GET', 'x') | redis.call('SCRIPT', 'LOAD', 'return 1')
redis.call('AUTH', 'x') | redis.call('PUBSUB', 'NOPE') | redis.call('PUBSUB') | redis.call('INCR', 'text') | redis.call('ZCARD', 'text') | redis.call('PING') | redis.call('PING', 'x') | redis.call('PEXPIRE', 'text', 60000) | redis.call('PEXPIRE', 'text', '1.5')
redis.error_reply('MINE is wrong') | redis.error_reply('wrong') | redis.error_reply('-MINE x') | redis.error_reply('-wrong') | redis.error_reply('a b\\r\\nc') | redis.error_reply('') | redis.error_reply('x\\r\\n') | redis.status_reply('FINE') | redis.status_reply('a\\r\\nb')
{err = 'a b'} | {ok = 'fine'} | {err = 'x\\ny'} | {1, {2, {'x'}}, {ok = 'in'}, {err = 'in'}, false, nil, 3} | {1, true, false} | 3.99 | -3.99 | 1e19 | -1e19 | 2^53 + 1 | 0/0 | {} | {{}} | redis.replicate_commands() | error('mine') | error({err = 'MINE is wrong'}) | error({err = 'MINE'}) | error() | error(nil) | error(12)
nil + 1 | ('x') + 1 | {} + 1 | nil .. 'x' | 'x' .. nil | 'x' .. {} | #nil | -nil | -'2' | -'x' | nil < 1 | 'a' < 1 | {} < {} | nil < nil | (nil)[1] | (nil)() | KEYS[1]() | KEYS.x.y | KEYS[9] + 1 | ARGV[1] + 1 | ARGV[2] + 1 | KEYS.x()
(function(a) return a.b end)() | (function(a) return a.b.c end)({}) | (function(a) return a:b() end)({}) | (function(a) a.b = 1 end)() | (function(a) a() end)() | (function() local u; return (function() return u + 1 end)() end)() | (function() local u; return (function() return u.x end)() end)()
(function() local t = {} t[nil] = 1 end)() | (function() for i = 'x', 2 do end end)() | (function() for i = 1, {} do end end)() | (function() for i = 1, 2, 'x' do end end)() | (function() for i = '1', '3' do return i end end)() | (function() for i = 1e-20, 0 do return i end end)()
math.max() | math.max('x') | math.floor() | math.floor({}) | string.format() | string.format('%d') | string.format('%d', 'x') | string.sub('x') | unpack() | unpack('x') | tostring() | tonumber() | type() | table.concat({1, {}, 3}) | table.concat({1, 2, 3}, ', ') | table.concat({}) | table.concat() | table.insert() | table.insert({}) | table.insert({}, 1, 2, 3) | table.insert(nil, 1)
(function() KEYS[1] = 'z' return KEYS end)() | (function() local a, b, c = (function() return 1, 2 end)() return {a, b, c == nil} end)() | {(function() return 1, 2 end)(), 3} | {3, (function() return 1, 2 end)()} | {((function() return 1, 2 end)())}
(function() local f do local x = 1 f = function() return x end end do local y = 2 end return f() end)() | (function() local function f(n) if n == 0 then return 0 end return n + f(n - 1) end return f(50) end)() | (function() local i = 0 repeat local j = i i = i + 1 until j == 3 return i end)()
(function() local t = {1, 2, 3} t[#t] = nil t[#t] = nil return #t end)() | (function() local t = {} t[2] = 2 t[1] = 1 return {t[1], t[2], t[3] == nil} end)() | (function() local a, b = 1, 2 a, b = b, a return {a, b} end)() | (function() local s = '' for i = 10, 1, -3 do s = s .. i end return s end)()
(function() do return 1 end return 2 end)() | (function() while true do break end return 3 end)() | (function() for i = 1, 5 do for j = 1, 5 do if j == 2 then break end if i == 3 then return {i, j} end end end end)() | (function() end)() | (function() return end)() | (function() return nil end)() | ('abc'):sub(2, -9) | ('abc'):sub(2, 9) | math.max(2, 1, 2) | math.min(1, 2, 1)
('b'):match('[a-c]') | ('b'):match('[c-a]') | string.format('%d', 0) | string.format('a%db%sc', 1, 'x') | string.format('%.0f', 1e21) | "\\t" | [[long]] | [==[a]]b]==] | 3. | .5 | 1e2 | 1E-2 | ('a'):len() --[[ comment ]] | 'a' .. 1 .. 2 | 1 < 2 == true | not 1 == 2 | 2 * 3 + 4 | 2 + 3 * 4 | (2 + 3) * 4 | -3 ^ 2 | 'x' == 'x' and 1 or 2 | nil and 1 or 2 | 1 and nil | false or nil
assert(5, 'x') | assert(false) | assert(nil, 'none') | assert() | ('aZ['):lower() | string.upper('aZ{') | (function() local t = {1, 2} return {table.remove(t), #t, table.remove(t), t} end)() | tostring((table.remove({}))) | redis.log(redis.LOG_NOTICE, 'x') | (function() error(redis.LOG_WARNING) end)()
(function() local x = 1 local function f() x = 5 return 1 end return {x + f(), x} end)() | (function() local x = 1 local function f() x = 5 return 3 end return {x < f(), x .. f(), (x) == f()} end)() | (function() local x = 1 local function f() x = 5 return 1 end return {x, f()} end)() | (function() local t = {1} local function f() t = {5} return 1 end return t[f()] end)()
(function() local t, i = {1, 1}, 1 local function f() i = 2 return 9 end t[i] = f() return t end)() | (function() local t, i = {1, 1}, 1 local function f() i = 2 return 9 end t[i], i = f(), 4 return t end)() | (function() local t, i = {1, 1}, 1 local function f() i = 2 return 9 end i, t[i] = f(), 4 return t end)() | (function() local t = {1} local u = t t[1], t = 5, {} return u end)()
`.trim().split(/\s*[|\n]\s*/u).filter(Boolean);

/**
 * Pieces that are refused, or do the same: Lua has an order of its own there, ends a pattern at a
 * zero byte, or has too many results.
 */
export const REFUSABLE: readonly string[] = `
('ab'):match(ARGV[4]) | ('ab'):find(ARGV[4]) | tonumber(ARGV[4]) | string.format('%s', ARGV[4]) | ('x'):find('[]') | ('^'):find('[^]') | ('x'):find('(x') | ('x'):find('x)') | ('x'):find('%') | ('a-'):match('[%w-]+') | (']'):match('[^]]') | (function() local t = {1, 2} local n = 0 for k in pairs(t) do n = n + 1 t[k] = nil end return n end)()
(function() local t = {x = 1} local n = 0 for k in pairs(t) do n = n + 1 t[k] = nil end return n end)() | (function() local t = {1, 2, 3} local s = '' for k in pairs(t) do s = s .. k t[3] = nil end return s end)() | (function() local s = '' for k in pairs({[2] = 'b', [1] = 'a'}) do s = s .. k end return s end)()
(function() local t = {x = 1, y = 2} t.y = nil t[1] = 3 local s = '' for k in pairs(t) do s = s .. k end return s end)() | (function() local t = {x = nil} t[1] = 3 t.y = 1 local s = '' for k in pairs(t) do s = s .. k end return s end)() | (function() local t = {} t.x = 1 for i = 1, 9 do t[#t + 1] = i end local s = '' for k in pairs(t) do s = s .. k end return s end)()
(function() local t = {} for i = 1, 9 do t[#t + 1] = i end t[9] = nil t[9] = 8 local s = '' for k, v in pairs(t) do s = s .. k .. v end return s end)() | (function() local t = {} t[3] = 3 t[2] = 2 t[1] = 1 return t end)() | (function() local t = {} t[2] = 2 t[1] = 1 t[2] = nil return t end)() | (function() local t = {1, 2, 3} t[2] = nil return t end)() | (function() local t = {1, nil, 3} return #t end)()
(function() local t = {1} for k in pairs(t) do if k < 9 then t[k + 1] = k end end return #t end)() | 3 ^ 2 | 10 ^ 15 | 0 ^ 0 | 12345678901234.5 .. '' | 12345678901235.5 .. '' | 2 ^ 53 * 4 .. '' | redis.call('ZADD', 'set', 2.98023223876953125e-8, 'x') and redis.call('ZSCORE', 'set', 'x') | string.format('%.0f', -2.5) | string.format('%.0f', 1e22) | string.format('%.0f', -0.4) | string.format('%.0f', 1/0)
{1, nil, 3} | {nil, 2} | {nil} | {{x = 1}} | {ok = 1} | {double = 1.5} | {['x'] = 1} | {[1] = 'y'} | {f = 1, err = 'x'} | -(1 - 1) .. -(-(0))
`.trim().split(/\s*[|\n]\s*/u);

/** Pieces that are refused, behind what the error names. */
export const REFUSED: readonly (readonly [construct: string, piece: string])[] = String.raw`
the global variable 'cjson': cjson.encode({}) | the global variable 'pcall': pcall(error) | the global variable 'setmetatable': setmetatable({}, {}) | the global variable 'select': select('#')
the global variable 'next': next({}) | '-0': -0 | the global variable 'nothing': nothing | the global variable 'x': (function() x = 1 end)() | a global function: (function() function f() end end)()
'string.gmatch': string.gmatch('x', 'x') | 'string.gsub': ('x'):gsub('x', 'y') | 'string.rep': string.rep('x', 2) | 'string.y': string.y | 'table.remove' at a place: table.remove({1}, 1) | 'table.sort': table.sort({}) | 'math.random': math.random()
'redis.sha1hex': redis.sha1hex('') | 'redis.log' without a level and a text: redis.log('x', 'x') | 'redis.setresp': (function() local r = redis return r.setresp end)() | '%5d' in a format: string.format('%5d', 1) | '%g' in a format: string.format('%g', 1) | '%d' in a format: string.format('%d', 1e300)
'%.0f' of such a number: string.format('%.0f', 0/0) | the text of NaN: 0/0 .. '' | the address of a table: tostring({}) | the number '-0x1': tonumber('-0x1') | the base of a number: tonumber('10', 10) | the escape sequence '\0': '\065' | a power that is no safe integer: 2 ^ 0.5
'@' at this place: 1 @ 2 | '0x10' at this place: 0x10 | '1' in place of 'end': 1 1 | 'if' at this place: if | 'the end' in place of ')': (1 | items and fields in one table: {1, x = 2} | a number as a key in a table's braces: {[1] = 2}
a call without parentheses: tostring 'x' | a call without parentheses: type {} | '...': (function(...) end)() | '...': {...} | a function in a loop: (function() while true do local f = function() end end end)() | a function in a loop: (function() repeat local y until (function() return y end)() end)() | more than 5000000 steps: (function() while true do end end)()
a loop of another form than 'for index, item in ipairs(list) do': (function() for k in next, {} do end end)() | a loop of another form than 'for index, item in ipairs(list) do': (function() for a, b, c in ipairs({}) do end end)() | a loop of another form than 'for index, item in ipairs(list) do': (function() for k in ipairs() do end end)() | a loop of another form than 'for index, item in ipairs(list) do': (function() local ipairs = 1 for k in ipairs({}) do end end)()
'pairs' of a table that is no list, or changes its length: (function() for k in pairs({x = 1}) do end end)() | 'pairs' of a table that is no list, or changes its length: (function() local t = {1} for k in pairs(t) do t[2] = 1 end end)()
a list that gets a hole: (function() local t = {1, 2} t[1] = nil end)() | the length of a table with holes: (function() local t = {} t[2] = 1 return #t end)() | a reply that was not filled from 1 on: (function() local t = {} t[2] = 1 t[1] = 1 return t end)()
a reply with more than 100 levels: (function() local t = {} for i = 1, 200 do t = {t} end return t end)() | more than 190 calls inside each other: (function() local function f() return f() end f() end)() | more than 7000 results: (function() local t = {} for i = 1, 7001 do t[i] = i end return {unpack(t)} end)()
a string of more than 16777216 bytes: (function() local s = ARGV[1] while true do s = s .. s end end)() | a pattern of more than 1000 bytes: (function() local s = 'x%' for i = 1, 9 do s = s .. s end return s:find(s) end)() | 'unpack' of more than a list has: {unpack({1}, 1, 3)}
'table.insert' at a place: table.insert({}, 1, 2) | 'table.concat' of a part: table.concat({}, '', 1) | an error with a level: error('x', 2) | a function as an error: error(type) | an error or a status that is no text: redis.error_reply(1) | the field of a string: (function() KEYS[1].x = 1 end)() | a reply of RESP3: {double = 1.5}
'%b' in the pattern '%b()': ('x'):find('%b()') | '%D' in a set in the pattern '[%D]': ('x'):find('[%D]') | '()' in the pattern '()': ('x'):find('()') | a parenthesis without the other one in the pattern '(x': ('x'):find('(x') | a zero byte in a format: string.format('%s', ARGV[4])
`.trim().split(/\s*[|\n]\s*/u).map((row) => {
  const [, construct, piece] = /^(.*?): (.*)$/u.exec(row)!;
  return [construct, piece];
});
