/**
 * Random programs in the subset of Lua that the server in memory compiles, and single pieces of it.
 */
import fc from "fast-check";

/** What a program finds on the server. */
export const PREPARED: readonly (readonly string[])[] = [
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
const { expression, block } = fc.letrec<{
  expression: string;
  text: string;
  number: string;
  table: string;
  block: string;
  statement: string;
}>((tie) => {
  const join = (...parts: (string | fc.Arbitrary<string>)[]) =>
    fc.tuple(...parts.map((part) => typeof part === "string" ? fc.constant(part) : part))
      .map((texts) => texts.join(""));
  const many = (part: fc.Arbitrary<string>, maxLength: number, separator = ", ") =>
    fc.array(part, { minLength: 1, maxLength }).map((parts) => parts.join(separator));
  const any = tie("expression");
  const pattern = pick(
    "'^(.-):' | '%d+' | ':' | '%w*' | '[^:]+' | '^%x*():' | '(%a)(%d*)' | '.-$' | '[%w_-]' | '[%D]' | '%s*$' | 'b?' | '^:'",
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
        "0 | 1 | 2 | 3 | -1 | 0.5 | 10 | 1e15 | 123456789012345 | 0x1F | 9007199254740993 | 1e300 | #KEYS | 1e-7",
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
        "'' | 'v:1:70' | 'abc' | \"a\\0b\" | '12' | ' 7 ' | '0x10' | '1e3' | [[x\ny]] | ARGV[1] | ARGV[2] | KEYS[1] | '\\065\\n'",
      ),
      join("(", tie("text"), " .. ", fc.oneof(tie("text"), tie("number")), ")"),
      join("tostring(", any, ")"),
      join(
        "string.format(",
        pick("'%.0f' | '%d' | '%5d' | '%05d' | '%.2f' | '%.14g' | '%g' | '%s'"),
        ", ",
        tie("number"),
        ")",
      ),
      join("string.format(", pick("'%s' | '%5s' | '%%%s' | '%.1s' | '%d'"), ", ", tie("text"), ")"),
      join(
        "(",
        tie("text"),
        ")",
        pick(
          ":sub(1, 2) | :sub(-2) | :sub(2, -2) | :rep(2) | :upper() | :lower() | :reverse() | :len() | :byte() | :sub(0)",
        ),
      ),
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
      join(
        "(",
        tie("text"),
        "):gsub(",
        pattern,
        ", ",
        pick("'<%0>' | '%1-' | {v = 1} | '', 1 | f"),
        ")",
      ),
    ),
    table: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      pick("{} | KEYS | ARGV | {1, 2, 3} | {'a', 'b', x = 1} | {[1] = 2} | {nil} | t"),
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
      join("unpack(", tie("table"), pick(" | , 2 | , 2, 3"), ")"),
      join("select(", pick("'#' | 2 | -1"), ", ", many(any, 3), ")"),
      join("table.concat(", tie("table"), pick(" | , ','"), ")"),
      join("redis.", pick("error_reply | status_reply | sha1hex"), "(", tie("text"), ")"),
      join("f(", many(any, 2), ")"),
      join("(function(...) local a, b = ...; return b, ", any, " end)(", many(any, 3), ")"),
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
        pick(" | else x = 1 | elseif x then x = 2 "),
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
      join("table.insert(t, ", pick(" | 1, | 2, "), any, ")"),
      join("x = table.remove(t", pick(" | , 1 | , 2"), ")"),
      join("f = function(p, ...) x = p; return ", any, ", ... end"),
      join("do local x = ", any, " f = function() x = ", any, " return x end end"),
      join("redis.pcall(", command, ")"),
      join("if ", any, " then return ", any, " end"),
    ),
    block: fc.array(tie("statement"), { maxLength: 3 }).map((statements) => statements.join("\n")),
  };
});

/** A program that ends by showing what it has made. */
export const program: fc.Arbitrary<string> = fc.tuple(
  block,
  fc.array(expression, { minLength: 1, maxLength: 3 }),
  fc.boolean(),
).map(([body, results, isRaw]) =>
  `${SHOW}local t, x, a, b, c = {}, nil, 1, 'b', false
local f = function(p, ...) return p, ... end
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
1e14 .. '' | 1e15 .. '' | 123456789012345 .. '' | 1234567890123456 .. '' | 0.1 .. '' | 1/3 .. '' | -1.5e-7 .. '' | 2^53 .. '' | 1e100 .. ''
tostring(1e15) | tostring(-0) | tostring(1/0) | tostring(nil) | tostring(true) | 4.76837158203125e-7 .. '' | 100 .. '' | 5 % -3 | -5 % 3 | 5.5 % 2
('abc'):find('b', 2) | ('abc'):find('b', 3) | ('abc'):find('b', -2) | ('abc'):find('', 10) | ('a.b'):find('.', 1, true) | ('a.b'):find('%.') | ('abc'):find('(b)(c)')
{unpack({1, 2, 3}, 2)} | {unpack({1, 2, 3}, 2, 2)} | {unpack({1, 2, 3}, 3, 2)} | {unpack({1}, 1, 3)} | (function() local t = {1, 2} table.insert(t, 1, 0) return t end)()
(function() local t = {1, 2} table.insert(t, 3, 0) return t end)() | (function() local t = {1, 2, 3} return {table.remove(t, 1), t} end)() | (function() local t = {} return {table.remove(t)} end)()
string.format('%5d', 42) | string.format('%05d', -42) | string.format('%.0f', 0.5) | string.format('%.0f', 1.5) | string.format('%.0f', 2^53) | string.format('%.2f', 2.675) | string.format('%x', 255)
string.format('%s %s', 1, 'a') | string.format('%d', 3.7) | string.format('%d', '10') | string.format('%g', 1e20) | string.format('%5s', 'a') | string.format('%.3s', 'abcdef') | string.format('%%')
tonumber('0x10') | tonumber(' 10 ') | tonumber('1e2') | tonumber('') | tonumber('x') | tonumber('10', 10) | tonumber('1 2') | tonumber(nil) | tonumber('5.') | tonumber('.5') | tonumber('-0x1') | tonumber('1\\0x')
('x'):rep(3) | ('abc'):sub(0) | ('abc'):sub(-100, 2) | ('abc'):sub(3, 2) | ('abc'):byte(1, -1) | ('abc'):byte(10) | string.char(65, 66) | ('aBc'):upper() | ('äB'):lower() | ('abc'):reverse() | #'a\\0b'
('v:1:70'):match('^[^:]*:%w+:(%d+)') | ('a,b,,c'):gsub(',', ';') | ('abc'):gsub('%w', '%0%0') | ('abc'):gsub('', '-') | ('abc'):gsub('%w*', 'x') | ('hello world'):gsub('o', {o = '0'}) | ('abc'):gsub('b', function(c) return c .. c end)
(function() local n = 0 for w in ('a b c'):gmatch('%a') do n = n + 1 end return n end)() | ('abc'):match('()b()') | ('[x]'):match('%[(.-)%]') | ('a-b'):match('[a%-]+') | ('x^'):match('[%^]') | (']'):match('[]]')
('a' < 'b') | ('a' < 'B') | ('10' == 10) | (nil == false) | (1 == 1.0) | ({} == {}) | ('' < 'a') | ('a\\0a' < 'a\\0b') | math.max(1, '10') | math.min(2, 1) | math.huge | -math.huge | math.floor(-1.5) | math.fmod(-5, 3)
2 ^ 10 | 2 ^ 0 | (-2) ^ 3 | -2 ^ 2 | 2 ^ 3 ^ 2 | 1 .. 2 | not nil | #{1, 2, nil} == 2 or true | #KEYS | type(redis) | type(type) | ({1, 2, nil, 4})[1]
select('#') | select('#', nil, nil) | {select(2, 1, 2, 3)} | {select(-1, 1, 2, 3)} | (select(1, 'a', 'b')) | next({}) | next({5}) | (function() local s = 0 for k, v in pairs({1, 2, 3}) do s = s + k * v end return s end)()
redis.call('GET', 'text') | redis.call('GET', 'none') | redis.call('SET', 'a', 1) | redis.call('SET', 'a', 1.5) | redis.call('SET', 'a', 1e17) and redis.call('GET', 'a') | redis.call('SET', 'a', 0.1) and redis.call('GET', 'a')
redis.call('SET', 'a', 2^63) and redis.call('GET', 'a') | redis.call('SET', 'a', -0) and redis.call('GET', 'a') | redis.call('INCR', 'number') | redis.call('DECR', 'number') | redis.pcall('INCR', 'text') | redis.call('TYPE', 'set') | redis.call('TYPE', 'set').ok
redis.call('ZRANGE', 'set', 0, -1, 'WITHSCORES') | redis.call('ZSCORE', 'set', 'z') | redis.call('ZADD', 'set', 'XX', 7, 'nope') | redis.call('ZADD', 'nope', 'XX', 7, 'x') | redis.call('EXISTS', 'nope') | redis.call('ZADD', 'set', 'XX', 'NX', 7, 'nope')
redis.call('ZREMRANGEBYSCORE', 'set', '-inf', 2) | redis.call('ZREMRANGEBYSCORE', 'set', '(1', '(2.5') | redis.call('ZREMRANGEBYSCORE', 'set', 'x', 2) | redis.call('ZREMRANGEBYSCORE', 'text', 0, 2) | redis.call('PUBSUB', 'NUMSUB', 'x', 'y')
redis.call('GET') | redis.call('get', 'text') | redis.call('NOPE') | redis.call() | redis.pcall() | redis.call('SET', 'a', {}) | redis.call('SET', 'a', nil) | redis.call({}) | redis.pcall('SET', 'a', true) | redis.call('EVAL', 'return 1', 0) | redis.call('SUBSCRIBE', 'x') | redis.call('CONFIG', 'GET', 'x') | redis.call('SCRIPT', 'LOAD', 'return 1')
redis.call('AUTH', 'x') | redis.call('PUBSUB', 'NOPE') | redis.call('PUBSUB') | redis.call('INCR', 'text') | redis.call('ZCARD', 'text') | redis.call('PING') | redis.call('PING', 'x') | redis.call('PEXPIRE', 'text', 60000) | redis.call('PEXPIRE', 'text', '1.5')
redis.error_reply('MINE is wrong') | redis.error_reply('wrong') | redis.error_reply('-MINE x') | redis.error_reply('-wrong') | redis.error_reply('a b\\r\\nc') | redis.error_reply('') | redis.error_reply('x\\r\\n') | redis.error_reply(1) | redis.error_reply() | redis.status_reply('FINE') | redis.status_reply('a\\r\\nb') | redis.status_reply()
{err = 'a b'} | {ok = 'fine'} | {err = 'x\\ny'} | {1, {2, {'x'}}, {ok = 'in'}, {err = 'in'}, false, nil, 3} | {1, true, false} | 3.99 | -3.99 | 1e19 | -1e19 | 2^53 + 1 | 0/0 | {} | {{}} | redis.sha1hex('') | redis.sha1hex('abc') | redis.sha1hex() | redis.replicate_commands()
error('mine') | error('mine', 0) | error({err = 'MINE is wrong'}) | error({err = 'MINE'}) | error() | error(nil) | error(12) | assert(false) | assert(nil, 'why') | assert(1, 2) | assert(false, 'why')
nil + 1 | ('x') + 1 | {} + 1 | nil .. 'x' | 'x' .. nil | 'x' .. {} | #nil | -nil | -'2' | -'x' | nil < 1 | 'a' < 1 | {} < {} | nil < nil | (nil)[1] | (nil)() | KEYS[1]() | KEYS.x.y | KEYS[9] + 1 | ARGV[1] + 1 | ARGV[2] + 1 | KEYS.x()
(function(a) return a.b end)() | (function(a) return a.b.c end)({}) | (function(a) return a:b() end)({}) | (function(a) a.b = 1 end)() | (function(a) a() end)() | (function() local u; return (function() return u + 1 end)() end)() | (function() local u; return (function() return u.x end)() end)()
(function() local t = {} t[nil] = 1 end)() | (function() for i = 'x', 2 do end end)() | (function() for i = 1, {} do end end)() | (function() for i = 1, 2, 'x' do end end)() | (function() for k in nil do end end)() | (function() for i = '1', '3' do return i end end)()
math.max() | math.max('x') | math.floor() | math.floor({}) | ('x'):rep() | string.rep() | string.format() | string.format('%d') | string.format('%d', 'x') | string.sub('x') | ipairs() | ipairs(nil) | unpack() | unpack('x') | tostring() | tonumber() | type() | select() | select(0) | select('x')
table.concat({1, {}, 3}) | table.concat({1, 2, 3}, ', ') | table.concat({1, 2, 3}, ', ', 2) | table.concat({1, 2, 3}, ',', 2, 3) | table.concat({}) | table.concat() | table.insert() | table.insert({}) | table.insert({}, 1, 2, 3) | table.insert(nil, 1) | table.remove() | string.char(256) | string.char('x')
(function() redis.x = 1 end)() | (function() string.x = 1 end)() | (function() KEYS[1] = 'z' return KEYS end)() | (function() local a, b, c = (function() return 1, 2 end)() return {a, b, c == nil} end)() | {(function() return 1, 2 end)(), 3} | {3, (function() return 1, 2 end)()} | {((function() return 1, 2 end)())}
(function() local t = {} for i = 1, 3 do t[i] = function() i = i + 1 return i end end return {t[1](), t[1](), t[2]()} end)() | (function() local function f(n) if n == 0 then return 0 end return n + f(n - 1) end return f(50) end)() | (function() local i = 0 repeat local j = i i = i + 1 until j == 3 return i end)()
(function() local t = {1, 2, 3} t[#t] = nil t[#t] = nil return #t end)() | (function() local t = {} t[2] = 2 t[1] = 1 return {t[1], t[2], t[3] == nil} end)() | (function() local a, b = 1, 2 a, b = b, a return {a, b} end)() | (function() local s = '' for i = 10, 1, -3 do s = s .. i end return s end)()
(function() do return 1 end return 2 end)() | (function() while true do break end return 3 end)() | (function() for i = 1, 5 do for j = 1, 5 do if j == 2 then break end if i == 3 then return {i, j} end end end end)() | (function(...) return select('#', ...) end)(nil, nil) | (function(...) local a = ... return a end)(7, 8) | (function() end)() | (function() return end)() | (function() return nil end)()
(function() local t = {3, 10, 2} table.sort(t) return t end)() | (function() local t = {'b', 'a', 'B'} table.sort(t) return t end)() | (function() local t = {} table.sort(t) return #t end)() | table.remove({1, 2}, 3) | {table.remove({1, 2}, 0)} | {table.remove({}, 1), 5} | table.concat({1, 2, x = 3}, ',', 1, 2)
{select(-2, 1, 2)} | select(-3, 1, 2) | ('abc'):byte(-1) | ('abc'):byte(2, 9) | ('abc'):byte(0) | ('abc'):sub(2, -9) | ('abc'):sub(2, 9) | ('x'):rep(-1) | (''):rep(3) | string.char(0, 255) | string.char(-1) | tostring 'x' | type {} | (function(s) return s end) [[x]] | (function(t) return t[1] end) {7} | math.max(2, 1, 2) | math.min(1, 2, 1)
('aaa'):gsub('^a', 'x') | ('abc'):gsub('(b)', '%1%1') | ('abc'):gsub('b', '%%') | ('abc'):gsub('b', {b = false}) | ('abc'):gsub('b', {}) | ('abc'):gsub('b', function() end) | ('abc'):gsub('b', 5) | ('abc'):gsub('b', nil) | ('abc'):gsub('b', 'x', 0) | ('bbb'):gsub('b', 'x', 2) | ('b'):match('[a-c]') | ('b'):match('[c-a]')
string.format('%X', 255) | string.format('%5.1f', 2.25) | string.format('%g', 0.1) | string.format('%.3g', 1234.5) | string.format('%f', -0.5) | string.format('%5.1f', -2.25) | string.format('%d', 0) | string.format('a%db%sc', 1, 'x') | string.format('%.2f', 9.999) | string.format('%g', 1e-5) | string.format('%g', 100000) | string.format('%.0f', 1e21)
'\\97\\'\\"\\\\' | "\\t" | [[long]] | [==[a]]b]==] | 0x10 | 3. | .5 | 1e2 | 1E-2 | ('a'):len() --[[ comment ]] | 'a' .. 1 .. 2 | 1 < 2 == true | not 1 == 2 | 2 * 3 + 4 | 2 + 3 * 4 | (2 + 3) * 4 | -3 ^ 2 | 'x' == 'x' and 1 or 2 | nil and 1 or 2 | 1 and nil | false or nil
`.trim().split(/\s*[|\n]\s*/u).filter(Boolean);

/**
 * Pieces that are refused, or do the same: Lua has an order of its own there, ends a pattern at a
 * zero byte, or has too many results.
 */
export const REFUSABLE: readonly string[] = `
('ab\\0x'):find('b\\0.') | ('ab'):match('a\\0x') | ('ab'):gsub('a\\0x', 'c') | ('a\\0b'):find('\\0') | ('x'):rep(9000):byte(1, -1)
(function() local t = {1, 2} local n = 0 for k in pairs(t) do n = n + 1 t[k] = nil end return n end)()
(function() local t = {x = 1} local n = 0 for k in pairs(t) do n = n + 1 t[k] = nil end return n end)()
(function() local t = {1, 2, 3} local s = '' for k in pairs(t) do s = s .. k t[3] = nil end return s end)()
next({}, 'none') | next({1}, 5) | next({1, 2}, 1.5) | next({x = 1}, 'y') | next({1}, 1) | next({1, 2}, 1) | next({1, x = 2}, 1) | next({1, x = 2}, 'x')
(function() local s = '' for k in pairs({[2] = 'b', [1] = 'a'}) do s = s .. k end return s end)()
(function() local s = '' for k in pairs({x = 1, [1] = 2}) do s = s .. k end return s end)()
(function() local s = '' for k in pairs({[3] = 1, [2] = 2, [1] = 3}) do s = s .. k end return s end)()
(function() local t = {x = 1, y = 2} t.y = nil t[1] = 3 local s = '' for k in pairs(t) do s = s .. k end return s end)()
(function() local t = {x = 1, y = 2} t.x = nil t[1] = 3 local s = '' for k in pairs(t) do s = s .. k end return s end)()
(function() local t = {y = 1, y = 2, 3} table.insert(t, 5) local s = '' for k in pairs(t) do s = s .. k end return s end)()
(function() local t = {x = nil} t[1] = 3 t.y = 1 local s = '' for k in pairs(t) do s = s .. k end return s end)()
(function() local t = {} t.x = 1 for i = 1, 9 do t[#t + 1] = i end local s = '' for k in pairs(t) do s = s .. k end return s end)()
(function() local t = {1, 2, 3} t[2] = nil local s = '' for k in pairs(t) do s = s .. k end return s end)()
(function() local t = {1, 2, x = 3} t[3] = 4 t[4] = 5 local s = '' for k in pairs(t) do s = s .. k end return s end)()
(function() local t = {1} for k in pairs(t) do if k < 9 then t[k + 1] = k end end return #t end)()
(function() local t = {2, 1} table.sort(t, function(a, b) return a < b end) return t end)() | (function() local t = {1, 'a'} table.sort(t) return t end)() | (function() local t = {{}, {}} table.sort(t) return 1 end)() | (function() local t = {1, 2, x = 3} table.sort(t) return t end)()
('abc'):gsub('b', function() return {} end) | (function() local n = 0 for w in ('aa'):gmatch('^a') do n = n + 1 end return n end)() | string.format('%-5d.', 3) | string.format('%c', 65)
2 ^ 0.5 | 2 ^ -1 | 3 ^ 2 | 10 ^ 15 | 3 ^ 40 | 1.5 ^ 2 | 0 ^ 0 | (1/0) ^ 2 | string.format('%x', -1) | string.format('%x', 1.5) | string.format('%x', 2^32) | string.format('%5.2d', 3) | ('abc'):gsub('b', '%2') | ('x').y | tostring({}) | (function() function f() end end)() | (function() x = 1 end)() | (function() return nothing end)() | ('x'):rep(20000000) | 1 @ 2
{'x', [1] = 'y'} | {[1] = 'y', 'x'} | {nil, [1] = 'y'} | {'x', [2] = 'y'} | {[2] = 'y', 'x', 'z'} | {unpack({1, 2, 3}), x = 1} | {x = 1, unpack({1, 2, 3})} | {[1] = 9, unpack({1, 2, 3})} | {unpack({1, 2}), unpack({1, 2}), [3] = 3}
(function() local n = 0 local function f() n = n + 1 return n end local t = {x = f(), f(), y = f(), f()} return {t.x, t[1], t.y, t[2]} end)()
(function() local t = {[1.5] = 1, [0] = 2, 'a', [-1] = 3} return {t[1.5], t[0], t[1], t[-1]} end)() | {'a', [nil] = 1} | {'a', [0/0] = 1} | {${
  "1, ".repeat(49)
}[1] = 'y'} | {${"1, ".repeat(50)}[1] = 'y'} | {${"1, ".repeat(50)}2, [51] = 'y'}
`.trim().split(/\s*[|\n]\s*/u);
