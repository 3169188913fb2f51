import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { test } from 'tap'
import { dissect } from '../../src/sockets/feed/wire/dissect.ts'
import { frameOf, messageBytes, startOfFrame } from '../../src/sockets/feed/wire/frame-of.ts'
import { rateLimitError } from '../../src/sockets/feed/wire/answers.ts'
import { jsonObject, jsonValue, spelling, type Json } from '../support/feed/json-spelling.ts'
import { frame } from '../support/sockets/raw-frames.ts'

const PERSONAL: ReadonlySet<string> = new Set(['echo_req', 'req_id', 'passthrough'])

/** What a browser with the request `{}` reads of a message. */
function delivered(text: string): { whole: unknown; text: string } | undefined {
  const found = dissect(Buffer.from(text))
  if (found === undefined) return undefined
  const joined = `{"echo_req":{},${found.subscription.toString()}${found.body.toString()}`
  return { whole: JSON.parse(joined), text: joined }
}

const member = <Value extends Json>(value: fc.Arbitrary<Value>): fc.Arbitrary<Json> => fc.oneof(value, jsonValue)
const message = fc.record(
  {
    msg_type: member(fc.constant('tick')),
    tick: jsonValue,
    echo_req: member(fc.record({ req_id: member(fc.nat()) }, { noNullPrototype: true })),
    req_id: member(fc.nat()),
    passthrough: jsonValue,
    subscription: member(fc.record({ id: member(fc.string()), more: jsonValue }, { noNullPrototype: true })),
    error: member(fc.record({ code: member(fc.string()), message: fc.string() }, { noNullPrototype: true })),
    more: jsonObject,
  },
  { requiredKeys: [], noNullPrototype: true },
)

await test('dissect cuts out what belongs to one request and leaves the rest as JSON.parse reads it', async (t) => {
  const cuts = fc.property(message, jsonObject, spelling, (known, unknown, spell) => {
    const value: { [key: string]: Json } = { ...unknown, ...known }
    const found = dissect(Buffer.from(spell(value)))
    const rest = Object.entries(value).filter(([key]) => !PERSONAL.has(key))
    if (rest.every(([key]) => key === 'subscription')) return found === undefined
    const reqId = value['req_id'] ?? memberOf(value['echo_req'], 'req_id')
    const { subscription, error } = value
    return (
      found !== undefined &&
      isDeepStrictEqual(delivered(spell(value))?.whole, { echo_req: {}, ...Object.fromEntries(rest) }) &&
      found.reqId === (Number.isSafeInteger(reqId) ? reqId : undefined) &&
      found.subscriptionId === textOf(memberOf(subscription, 'id')) &&
      found.errorCode === (error === undefined || error === null ? undefined : (textOf(memberOf(error, 'code')) ?? ''))
    )
  })
  fc.assert(cuts, { numRuns: 2000 })
  t.end()
})

function memberOf(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return Object.entries(value).find(([each]) => each === key)?.[1]
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

await test('dissect changes nothing inside a value: digits, escapes and spaces stay', async (t) => {
  const value =
    '{ "quote": 842.20, "big":12345678901234567890,"exp":1e400, "text":"\\u00e9\\/ \\"}{," ,"echo_req":{"req_id":1}}'
  for (const text of [
    `{"tick":${value},"echo_req":{"ticks":"}\\"{","req_id":1},"msg_type":"tick","req_id":1}`,
    `{"echo_req":[[{"a":"]"}]],"tick":${value},"req_id":1,"passthrough":{"x":"\\\\"},"msg_type":"tick"}`,
    ` { "echo\\u005freq" : 1 , "tick" : ${value} , "req\\u005fid" : 1, "msg_type" : "tick" } \n`,
  ]) {
    const found = dissect(Buffer.from(text))
    t.ok(found?.body.includes(value), text)
    t.equal(found?.reqId, 1)
    t.notOk(/passthrough|echo\\u/.test(found?.body.toString() ?? ''), 'no trace of the request')
  }
  const stream = dissect(Buffer.from('{"subscription" : {"id":"a-1", "n":1.0},"tick":{},"msg_type":"tick"}'))
  t.equal(stream?.subscription.toString(), '"subscription" : {"id":"a-1", "n":1.0},')
  t.equal(stream?.body.toString(), '"tick":{},"msg_type":"tick"}')
  t.equal(stream?.reqId, undefined)
  const once = dissect(Buffer.from('{"echo_req":{"ticks":"R_100"},"msg_type":"tick","tick":{"id":"a-1"},"req_id":1}'))
  t.equal(once?.subscriptionId, undefined, 'the id of a price is not that of a stream')
})

await test('dissect refuses what is no JSON object, and every message that is cut short', async (t) => {
  const whole = '{"echo_req":{"ticks":"R_100"},"msg_type":"tick","req_id":1,"tick":{"a":[1,{"b":"\\"}"}]}}'
  t.ok(dissect(Buffer.from(whole)))
  for (let length = 0; length < whole.length; length++)
    t.notOk(dissect(Buffer.from(whole.slice(0, length))), `${length}`)
  for (const text of [
    ...['', ' ', '[]', 'null', '"{}"', '{}', '{"req_id":1}', '{"echo_req":{},"subscription":{"id":"a"}}', '<html>'],
    ...['["a","b"]', '["req_id",1,{"a":1}]'],
    ...['{"a":1}}', '{"a":1}{"a":1}', '{"a":1},', '{"a" 1}', '{a:1}', "{'a':1}", '{"a":}', '{"a":1,}', '{,"a":1}'],
    ...['{"a":[}]}', '{"a":{]}}', '{"a":[1,]}', '{"a":nul}', '{"a":01}', '{"a":"\n"}', '\ufeff{"a":1}'],
    ...['{"a":1 "b":2}', '{"a":}"}', '{"a":"\\"}', '{"a":[}', '{"\\x":1}', '{"a":1;}', '{"a"::1}'],
  ]) {
    t.notOk(dissect(Buffer.from(text)), text)
  }
})

await test('dissect never throws, and agrees with JSON.parse wherever that succeeds', async (t) => {
  const edit = fc.record({ at: fc.nat(400), remove: fc.nat(3), insert: fc.string({ unit: 'binary', maxLength: 3 }) })
  const structural = fc.record({ at: fc.nat(400), remove: fc.nat(2), insert: fc.stringMatching(/^[{}[\]:,"\\ 01ue]$/) })
  const edits = fc.array(fc.oneof(edit, structural), { maxLength: 3 })
  const agrees = fc.property(message, spelling, edits, (value, spell, changes) => {
    const text = changes.reduce((all, { at, remove, insert }) => {
      const from = at % (all.length + 1)
      return all.slice(0, from) + insert + all.slice(from + remove)
    }, spell(value))
    const found = dissect(Buffer.from(text))
    const parsed = parsedObject(text.toWellFormed())
    if (parsed === undefined) return found === undefined
    const rest = Object.entries(parsed).filter(([key]) => !PERSONAL.has(key))
    if (rest.every(([key]) => key === 'subscription')) return found === undefined
    return isDeepStrictEqual(delivered(text)?.whole, { echo_req: {}, ...Object.fromEntries(rest) })
  })
  fc.assert(agrees, { numRuns: 5000 })
  t.end()
})

function parsedObject(text: string): Record<string, Json> | undefined {
  if (!/^[ \t\r\n]*\{/.test(text)) return undefined
  try {
    return JSON.parse(text) as Record<string, Json>
  } catch {
    return undefined
  }
}

await test('frameOf writes the frame of RFC 6455 for every length', async (t) => {
  for (const size of [0, 1, 124, 125, 126, 127, 128, 65_534, 65_535, 65_536, 70_000]) {
    const payload = Buffer.alloc(size, 'xyz')
    const [head, rest] = [payload.subarray(0, size / 3), payload.subarray(size / 3)]
    const written = frameOf(head, rest)
    t.ok(frame({ opcode: 1, payload }).equals(written), `${size} bytes`)
    t.equal(messageBytes(written), size)
    const start = startOfFrame(rest.length, head)
    t.ok(Buffer.concat([start, rest]).equals(written))
    t.equal(messageBytes(start), head.length)
  }
})

await test('an error of this server has the type that upstream gives its own', (t) => {
  for (const [operation, type] of [
    ['ticks', 'tick'],
    ['ticks_history', 'history'],
    ['time', 'time'],
    ['other', 'error'],
  ] as const) {
    const written = rateLimitError({ operation, prefix: Buffer.from('{') })
    const error = JSON.parse(written.subarray(-messageBytes(written)).toString()) as Record<string, unknown>
    t.equal(error['msg_type'], type)
  }
  t.end()
})
