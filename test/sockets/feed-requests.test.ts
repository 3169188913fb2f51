import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { test } from 'tap'
import { RequestReader, parseRequest, prefixOf, type FeedRequest } from '../../src/sockets/feed/wire/parse-request.ts'
import { jsonObject, jsonValue, spelling, type Json } from '../support/feed/json-spelling.ts'

const RUNS = { numRuns: 500 }

const parse = (text: string): FeedRequest | undefined => parseRequest(Buffer.from(text))
/** What all answers to a request begin with, completed to an object. */
const echoed = (prefix: Buffer | undefined): unknown => JSON.parse(`${prefix?.toString()}"end":0}`)
const without = (value: object, ...keys: string[]): object =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)))
/** An empty object for an object or a list. */
const unnested = (value: unknown): unknown => (typeof value === 'object' && value !== null ? {} : value)
/** The members of a request as the feed keeps them: of lists only the one that says which streams are meant. */
const fieldsOf = (text: string, operation: string): object =>
  Object.fromEntries(
    Object.entries(JSON.parse(text) as object).map(([key, value]: [string, unknown]) => {
      const isRead = Array.isArray(value) && key === operation && ['ticks', 'forget_all'].includes(key)
      return [key, isRead ? value.map(unnested) : unnested(value)]
    }),
  )

/** The members of a request besides its operation: no other operation, and only what may be shared. */
const others = fc.record(
  {
    subscribe: fc.constantFrom<Json>(1, 0, true, '1'),
    count: fc.constantFrom<Json>(1, 10, '10'),
    style: jsonValue,
    req_id: fc.maxSafeInteger().map((id) => (id === 0 ? 0 : id)),
    passthrough: jsonObject,
  },
  { requiredKeys: [], noNullPrototype: true },
)
const request = fc
  .tuple(
    fc.constantFrom('ticks', 'ticks_history', 'forget_all', 'proposal'),
    fc.oneof(fc.constant('R_100'), jsonValue),
    others,
  )
  .map(([operation, value, rest]): { [key: string]: Json } => Object.assign(rest, { [operation]: value }))

await test('parseRequest keeps the meaning of a request, however it is spelled', async (t) => {
  const keeps = fc.property(request, spelling, spelling, (value, spellA, spellB) => {
    const text = spellA(value)
    const a = parse(text)
    const b = parse(spellB(value))
    if (a === undefined || b === undefined) return text.length > 1000
    const shared = without(value, 'req_id', 'passthrough')
    return (
      a.key === b.key &&
      isDeepStrictEqual(JSON.parse(a.key), shared) &&
      isDeepStrictEqual(Object.fromEntries(a.fields), fieldsOf(text, a.operation)) &&
      isDeepStrictEqual(JSON.parse(a.toUpstream(7).toString()), { ...shared, req_id: 7 }) &&
      a.toUpstream(7).equals(b.toUpstream(7)) &&
      isDeepStrictEqual(JSON.parse(a.toUpstreamOnce(8).toString()), { ...without(shared, 'subscribe'), req_id: 8 })
    )
  })
  fc.assert(keeps, { numRuns: 1000 })
  t.equal(
    parse('{"subscribe":1,"count":2,"ticks_history":"R_100","req_id":5}')?.toUpstream(9).toString(),
    '{"ticks_history":"R_100","count":2,"subscribe":1,"req_id":9}',
    'the operation comes first',
  )
})

await test('two requests have one key exactly when they are equal but for req_id and passthrough', async (t) => {
  const few = fc.constantFrom<Json>(1, '1', true, null, [], [1], [[1]], {}, { a: 1 }, { a: [1] }, { a: { a: 1 } }, '')
  const small = fc.record(
    { ticks: few, a: few, b: few, req_id: fc.nat(2), passthrough: fc.constant({ a: 1 }) },
    { requiredKeys: ['ticks'], noNullPrototype: true },
  )
  const distinguishes = fc.property(small, small, spelling, (a, b, spell) => {
    const [shareA, shareB] = [a, b].map((each) => without(each, 'req_id', 'passthrough'))
    return (parse(spell(a))?.key === parse(spell(b))?.key) === isDeepStrictEqual(shareA, shareB)
  })
  fc.assert(distinguishes, { numRuns: 3000 })
  t.end()
})

await test('the prefix of a request repeats the text of the browser, its req_id and its passthrough', async (t) => {
  const repeats = fc.property(request, spelling, (value, spell) => {
    const text = spell(value)
    const prefix = parse(text)?.prefix
    if (prefix === undefined) return text.length > 1000
    const own = { req_id: value['req_id'], passthrough: value['passthrough'] }
    const expected = Object.entries(own).filter(([, each]) => each !== undefined)
    return (
      prefix.includes(`{"echo_req":${text.replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, '')},`) &&
      isDeepStrictEqual(echoed(prefix), { echo_req: value, ...Object.fromEntries(expected), end: 0 })
    )
  })
  fc.assert(repeats, RUNS)
  for (const id of [0, -1, 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
    t.equal(
      parse(`{"time":1,"req_id":${id}}`)?.prefix.toString(),
      `{"echo_req":{"time":1,"req_id":${id}},"req_id":${id},`,
    )
  }
  const hostile = '{"time":1,"passthrough":{"__proto__":{"req_id":3},"req_id":"x","constructor":[{}]}}'
  t.equal(parse(hostile)?.fields.has('req_id'), false)
  t.match(
    parse(hostile)?.prefix.toString(),
    '"passthrough":{"__proto__":{"req_id":3},"req_id":"x","constructor":[{}]},',
  )
})

await test('parseRequest copies the numbers of a passthrough, and judges all others', async (t) => {
  const numbers = '{"a":1.50,"b":[1e5,-0,{"ticks":1e400}],"c":12345678901234567890}'
  t.equal(
    parse(`{"time":1,"passthrough": ${numbers},"req_id":3}`)?.prefix.toString(),
    `{"echo_req":{"time":1,"passthrough": ${numbers},"req_id":3},"req_id":3,"passthrough":${numbers},`,
  )
  t.equal(parse('{"time":1,"passthrough":{"a":1.0}}')?.key, '{"time":1}')
  for (const text of [
    '{"time":1,"passthrough":{"a":1.10},"b":1.10}',
    '{"time":1,"b":{"passthrough":{"a":1.10}}}',
    '{"time":1,"passthrough":{"a":1.10,"a":1.10}}',
  ]) {
    t.equal(parse(text), undefined, text)
  }
})

const nested = (depth: number): string => `{"time":1,"passthrough":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`

await test('parseRequest does not interpret what only upstream may judge', async (t) => {
  t.ok(parse(nested(31)), 'depth 32')
  t.ok(parse(`{"time":1}${' '.repeat(4086)}`), '4096 bytes')
  t.ok(parse(`{"time":1,"passthrough":{"a":[${'{},[],'.repeat(40)}1]}}`), 'any number side by side')
  for (const text of [
    '',
    '{',
    '[]',
    '"ticks"',
    'null',
    '{}',
    '{"req_id":1}',
    '{"ticks":"R_100",}',
    '{"ticks":"R_100"} {}',
    '\ufeff{"time":1}',
    '\u00a0{"time":1}',
    '{"nothing":1}',
    '{"__proto__":1}',
    '{"constructor":1}',
    '{"Ticks":"R_100"}',
    '{"ticks":"R_100","time":1}',
    '{"ticks":"R_100","proposal":1}',
    '{"ticks":"R_100","ticks":"R_100"}',
    '{"ticks":"R_100","tick\\u0073":"R_50"}',
    '{"ticks":"R_100","subscribe":0,"subscribe":1}',
    '{"ticks":"R_100","passthrough":{"a":1,"a":1}}',
    '{"ticks":"R_100","a":[[{"b":{"c":1,"d":2,"\\u0063":1}}]]}',
    '{"ticks":"R_100","a":{"__proto__":1,"__proto__":1}}',
    ...['1.10', '1.0', '1e400', '1E5', '1e5', '12345678901234567890', '-0', '0.10', '9007199254740993', '-1e-400'].map(
      (number) => `{"ticks":"R_100","count":[${number}]}`,
    ),
    ...['"1"', '1.5', '1e21', '1e+21', 'null', 'true', '[]', '{}', '9007199254740992', '-9007199254740992', '-0'].map(
      (id) => `{"ticks":"R_100","req_id":${id}}`,
    ),
    ...['null', '[]', '"a"', '1', 'false'].map((value) => `{"ticks":"R_100","passthrough":${value}}`),
    '{"ticks":"\\ud800"}',
    '{"ticks":"R_100","\\udc00":1}',
    '{"ticks":"R_100\\u0000"}',
    '{"ticks\\u0000":"R_100"}',
    nested(32),
    nested(600),
    `{"ticks":"R_100","a":"${'x'.repeat(4096)}"}`,
    `{"time":1}${' '.repeat(4087)}`,
    '['.repeat(60_000),
    '{"a":'.repeat(10_000),
  ]) {
    t.equal(parse(text), undefined, text.slice(0, 80))
  }
  t.ok(parse('{"ticks":"\\ud83d\\ude00"}'), 'a pair of surrogates')
})

await test('parseRequest and prefixOf never throw, and understand only what JSON.parse understands', async (t) => {
  const piece = fc.constantFrom(
    ...[
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"',
      '\\',
      '"ticks"',
      '"a"',
      '"a":',
      '1',
      '-',
      'e',
      'true',
      'nul',
      ' ',
      '\\u0000',
    ],
    ...['{"ticks":"R_100",', '"req_id":1', '\ud83d', '\u2028', '\ufeff', '\0', '__proto__', '"ticks":1}'],
  )
  const noise = fc.oneof(
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
    fc.string({ unit: 'binary' }),
  )
  const survives = fc.property(noise, (text) => {
    const bytes = Buffer.from(text)
    const prefix = prefixOf(bytes)
    const found = parseRequest(bytes)
    if (found !== undefined) return isDeepStrictEqual(Object.fromEntries(found.fields), fieldsOf(text, found.operation))
    return typeof echoed(prefix) === 'object'
  })
  fc.assert(survives, { numRuns: 5000 })
  t.end()
})

const prefix = (text: string): string => prefixOf(Buffer.from(text)).toString()

await test('prefixOf echoes an object that is not shared, to the digit, and nothing of other messages', async (t) => {
  t.equal(prefix(' {"a":1.10,"a":2 } '), '{"echo_req":{"a":1.10,"a":2 },')
  t.equal(
    prefix('{"proposal":1,"req_id":12345678901234567890}'),
    '{"echo_req":{"proposal":1,"req_id":12345678901234567890},"req_id":12345678901234567890,',
  )
  t.equal(prefix('{"buy":1,"req\\u005fid":"x"}'), '{"echo_req":{"buy":1,"req\\u005fid":"x"},"req_id":"x",')
  const passthrough = '"passthrough":{"a":1.50,"req_id":[],"é":"€"}'
  t.equal(
    prefix(`{"req_id":1,${passthrough},"req_id":2}`),
    `{"echo_req":{"req_id":1,${passthrough},"req_id":2},"req_id":2,${passthrough},`,
  )
  for (const text of ['', '[]', '{', '{"a":1}}', 'null', '"req_id"', `{"a":"${'x'.repeat(4096)}"}`]) {
    t.equal(prefix(text), '{', text.slice(0, 20))
  }
})

await test('RequestReader parses a short text once, and remembers no more than 256 of them', (t) => {
  const reader = new RequestReader()
  const read = (id: number, bytes = 0): FeedRequest | undefined =>
    reader.read(Buffer.from(`{"time":1,"req_id":${id}}`.padEnd(bytes)))
  const first = read(1)
  for (let id = 2; id <= 256; id++) read(id)
  t.equal(read(1), first)
  read(257)
  t.not(read(1), first, 'there was no room for one more')
  t.equal(read(1, 512), read(1, 512))
  t.not(read(1, 513), read(1, 513), 'a long text')
  // Their bytes are equal but for the highest bits.
  const [one, other] = ['é', 'C)'].map((symbol) => reader.read(Buffer.from(`{"ticks":"${symbol}"}`)))
  t.not(one?.key, other?.key)
  t.end()
})
