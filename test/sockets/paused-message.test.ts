import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as fc from 'fast-check'
import { test } from 'tap'
import { asyncApi } from '../../client/generate-asyncapi.ts'
import { CLOSINGS, ordersPaused, readPaused } from '../../src/sockets/relay/paused-message.ts'
import { OPERATIONS, READS } from '../../src/sockets/operations.ts'

const kindOf = (text: string): string => readPaused(Buffer.from(text), false).kind
const MEMBERS: Readonly<Record<string, readonly string[]>> = { ...READS, ...CLOSINGS }
const ORDERS = [...OPERATIONS].filter((name) => !(name in MEMBERS))

/** A read that is nested so deep. */
const nested = (depth: number): string =>
  `{"ping":1,"passthrough":${'{"a":'.repeat(depth - 1)}1${'}'.repeat(depth - 1)}}`

/** A read with this value inside of two objects. */
const around = (value: string): string => `{"ping":1,"passthrough":{"a":${value}}}`

/** A read that is nested so deep, with lists. */
const lists = (depth: number): string => around('['.repeat(depth - 2) + ']'.repeat(depth - 2))

/** A read of so many bytes. */
const long = (bytes: number): string => JSON.stringify({ ping: 1, passthrough: { a: 'x'.repeat(bytes - 33) } })

/** How many members a text has for a parser that knows nothing but strings: no member is hidden from it by an equal one. */
function membersIn(text: string): number {
  return [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined).length
}

await test('every operation of the lists passes as it is described, with each of its members', (t) => {
  for (const [operation, members] of Object.entries(READS)) {
    t.equal(kindOf(JSON.stringify({ [operation]: 1 })), 'read', operation)
    const all = Object.fromEntries([operation, ...members, 'req_id', 'passthrough'].map((name) => [name, 1]))
    t.equal(kindOf(JSON.stringify(all)), 'read', operation)
    t.equal(kindOf(JSON.stringify({ ...all, more: 1 })), 'order', `${operation} with a member that is not its own`)
  }
  for (const operation of Object.keys(CLOSINGS)) t.equal(kindOf(JSON.stringify({ [operation]: 1 })), 'closing')
  for (const operation of ORDERS) t.equal(kindOf(JSON.stringify({ [operation]: 1 })), 'order', operation)
  t.same(ORDERS.toSorted(), ['auto_resume', 'auto_start', 'buy', 'contract_update'])
  t.end()
})

await test('the lists have the members that asyncapi.yaml describes, and are those of upstream.md', (t) => {
  const { components, operations } = asyncApi()
  const described = Object.entries(MEMBERS).filter(([name]) => `trading.${name}` in operations)
  t.ok(described.length > 15)
  for (const [operation, members] of described) {
    const name = operation
      .split('_')
      .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
      .join('')
    const schema =
      JSON.stringify(components.schemas[`${name}Request`]) +
      (operation === 'proposal' ? JSON.stringify(components.schemas['ContractTerms']) : '')
    for (const member of members.filter(
      (each) =>
        !(operation === 'contracts_for' && each === 'currency') &&
        !(operation === 'contracts_list' && each === 'detail'),
    )) {
      t.ok(schema.includes(`"${member}":`), `${operation} ${member}`)
    }
  }
  const guide = readFileSync(fileURLToPath(new URL('../../docs/upstream.md', import.meta.url)), 'utf8')
  const section = guide.slice(guide.indexOf('### Orders paused')).split('\n### ', 2).join('')
  for (const [operation, members] of Object.entries(MEMBERS)) {
    const row = section.split('\n').find((line) => line.startsWith(`| \`${operation}\` |`)) ?? ''
    t.same(
      [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name),
      [operation, ...members],
      operation,
    )
  }
  t.end()
})

await test('what two parsers may read differently counts as an order', (t) => {
  t.equal(kindOf(nested(16)), 'read')
  for (const [what, text] of Object.entries({
    nothing: '',
    'no JSON': 'ping',
    'a number': '1',
    null: 'null',
    'a list': '[{"ping":1}]',
    'a string': '"ping"',
    'an empty object': '{}',
    'no operation': '{"req_id":1}',
    'two operations': '{"ping":1,"buy":"x"}',
    'two reads': '{"ping":1,"time":1}',
    'a member twice': '{"ping":1,"ping":1}',
    'a member twice, once with an escape': '{"ping":1,"p\\u0069ng":2}',
    'an order hidden by an equal member': '{"buy":"x","ping":1,"buy":1}',
    'a member twice, further down': '{"ping":1,"passthrough":{"a":1,"a":2}}',
    'a member twice in a list': '{"ping":1,"passthrough":{"a":[{"b":1,"b":2}]}}',
    'req_id twice': '{"ping":1,"req_id":1,"req_id":2}',
    'another case': '{"Ping":1}',
    'an order in another case': '{"ping":1,"BUY":"x"}',
    'a letter that folds to another': '{"ping":1,"\u017fell":1}',
    __proto__: '{"ping":1,"__proto__":{"buy":1}}',
    '__proto__ alone': '{"__proto__":{"ping":1}}',
    constructor: '{"ping":1,"constructor":1}',
    'the name of an inherited member': '{"toString":1}',
    'a byte order mark': '\ufeff{"ping":1}',
    'a comment': '{"ping":1/*,"time":1*/}',
    'a comment before': '//x\n{"ping":1}',
    'a comma at the end': '{"ping":1,}',
    'two objects': '{"ping":1}{"buy":1}',
    'two lines': '{"ping":1}\n{"buy":1}',
    'text after it': '{"ping":1}x',
    'single quotes': "{'ping':1}",
    'no quotes': '{ping:1}',
    NaN: '{"ping":NaN}',
    'a hexadecimal number': '{"ping":0x1}',
    'U+0000 in a string': '{"ping":"\\u0000"}',
    'U+0000 after it': '{"ping":1}\u0000',
    'a lone surrogate': '{"ping":"\\ud800"}',
    'a lone surrogate in a name': '{"ping":1,"passthrough":{"\\udfff":1}}',
    'a vertical tab': '{"ping":1\u000b}',
    'a no-break space': '{\u00a0"ping":1}',
    'depth 17': nested(17),
    'much depth': nested(2000),
    'a closing with an order': '{"sell":1,"price":0,"parameters":{}}',
  })) {
    t.equal(kindOf(text), 'order', what)
  }
  t.equal(Buffer.byteLength(long(16_384)), 16_384)
  t.equal(kindOf(long(16_384)), 'read')
  t.equal(kindOf(long(16_385)), 'order')
  t.equal(readPaused(Buffer.from('{"ping":1}'), true).kind, 'order', 'a binary message')
  t.end()
})

await test('the depth of a read is that of its deepest object or list, whatever stands beside it or in a text', (t) => {
  t.equal(kindOf(lists(16)), 'read')
  t.equal(kindOf(lists(17)), 'order')
  for (const [what, value] of Object.entries({
    'lists side by side': `[${Array.from({ length: 20 }, () => '[[]]').join()}]`,
    'objects side by side': `[${Array.from({ length: 20 }, () => '{"b":{}}').join()}]`,
    'brackets in a text': JSON.stringify('[{'.repeat(20)),
    'brackets in a text after quotes': JSON.stringify(`"\\"${'[{'.repeat(20)}`),
  })) {
    t.equal(kindOf(around(value)), 'read', what)
  }
  t.end()
})

await test('numbers of any size pass in a read, as they are written', (t) => {
  for (const number of ['1e400', '-1e999', '123456789012345678901234567890', '1.10', '0.1e-400', '-0']) {
    t.equal(kindOf(`{"ticks_history":"R_100","end":"latest","count":${number}}`), 'read', number)
  }
  t.end()
})

/** Spellings of JSON texts and of what looks like them. */
function messages(): fc.Arbitrary<string> {
  const name = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...OPERATIONS) },
    {
      weight: 4,
      arbitrary: fc.constantFrom('req_id', 'passthrough', 'price', 'subscribe', 'parameters', 'contract_id', 'limit'),
    },
    fc.constantFrom('Buy', 'BUY', '__proto__', 'constructor', '', 'buy\u0000', 'buy '),
    fc.string({ maxLength: 4 }),
  )
  const spelt = name.chain((text) =>
    fc
      .boolean()
      .map((escapes) =>
        escapes && text !== ''
          ? `"\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}${JSON.stringify(text.slice(1)).slice(1)}`
          : JSON.stringify(text),
      ),
  )
  const scalar = fc.oneof(
    fc.constantFrom(
      '1',
      '0',
      '1e400',
      '-0',
      'true',
      'null',
      '"x"',
      '"\\u0000"',
      '"\\ud800"',
      'NaN',
      '01',
      "'x'",
      '/**/1',
      '1,',
    ),
    fc.integer().map(String),
    fc.json({ maxDepth: 2 }),
  )
  const { value } = fc.letrec<{ value: string; object: string }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      { weight: 5, arbitrary: scalar },
      tie('object'),
      fc.array(tie('value'), { maxLength: 2 }).map((list) => `[${list.join(',')}]`),
    ),
    object: fc
      .array(fc.tuple(spelt, tie('value')), { maxLength: 4 })
      .map((members) => `{${members.map(([key, each]) => `${key}:${each}`).join(',')}}`),
  }))
  const object = fc
    .array(fc.tuple(spelt, value), { minLength: 1, maxLength: 4 })
    .map((members) => `{${members.map(([key, each]) => `${key}:${each}`).join(',')}}`)
  const around = fc.constantFrom('', '', '', ' ', '\n', '\ufeff', '//\n', '\u0000', '{}', ',')
  return fc.oneof(
    { weight: 6, arbitrary: fc.tuple(around, object, around).map((parts) => parts.join('')) },
    fc.constantFrom(...OPERATIONS).map((each) => JSON.stringify({ [each]: 1, req_id: 1 })),
  )
}

await test('property: what passes is a read by JSON.parse, from which no member is hidden', (t) => {
  const seen = { read: 0, closing: 0, order: 0 }
  fc.assert(
    fc.property(messages(), (text) => {
      const { kind } = readPaused(Buffer.from(text), false)
      seen[kind]++
      if (kind === 'order') return
      const parsed = JSON.parse(text) as Record<string, unknown>
      const operation = Object.keys(parsed).find((name) => name in (kind === 'read' ? READS : CLOSINGS)) ?? ''
      const allowed = new Set([operation, ...(MEMBERS[operation] ?? []), 'req_id', 'passthrough'])
      if (!Object.keys(parsed).every((name) => allowed.has(name))) throw new Error('a member that is not listed')
      if (membersIn(text) !== countOf(parsed)) throw new Error('a member that JSON.parse does not see')
    }),
    { numRuns: 20_000 },
  )
  t.comment(JSON.stringify(seen))
  t.ok(seen.read > 200 && seen.order > 1000)
  t.end()
})

function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce<number>((count, each) => count + countOf(each), own)
}

await test('property: a refusal is one JSON object with the code, and echoes req_id where the message is an object', (t) => {
  fc.assert(
    fc.property(messages(), fc.string({ unit: 'grapheme', maxLength: 20 }), (text, why) => {
      const message = Buffer.from(text)
      const answer = JSON.parse(ordersPaused(message, readPaused(message, false), why).toString()) as Record<
        string,
        unknown
      >
      const { error, msg_type: type } = answer as { error: Record<string, unknown>; msg_type: unknown }
      return error['code'] === 'OrdersPaused' && error['message'] === why && typeof type === 'string'
    }),
    { numRuns: 5000 },
  )
  const buy = Buffer.from('{"buy":"x","price":1.10,"req_id":12345678901234567890}')
  t.match(
    ordersPaused(buy, readPaused(buy, false), undefined).toString(),
    /"req_id":12345678901234567890,.*"msg_type":"buy"/,
  )
  const long = Buffer.from(JSON.stringify({ buy: 'x'.repeat(20_000), req_id: 1 }))
  t.same(JSON.parse(ordersPaused(long, readPaused(long, false), undefined).toString()), {
    error: { code: 'OrdersPaused', message: 'Orders are paused.' },
    msg_type: 'error',
  })
  t.end()
})
