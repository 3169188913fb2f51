import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { test } from 'tap'
import { WebSocketServer } from 'ws'
import { asyncApi } from '../../client/generate-asyncapi.ts'
import { createClient } from '../../client/dist/client.js'
import { parseJson, writeJson } from '../../client/src/core/base/json.ts'
import { BODIES } from '../../src/proxy/upstream-bodies.ts'
import { httpServer } from '../support/server/http-server.ts'

const ID = '9007199254740993'

/** A JSON text, and the value that it should have. */
interface Sample {
  readonly text: string
  readonly value: unknown
}

const digits = fc.oneof(fc.bigInt(), fc.bigInt({ min: 2n ** 53n - 2n, max: 2n ** 53n + 2n })).map(String)
const integer = digits.map((text): Sample => {
  const value = Number(text)
  return { text, value: Number.isSafeInteger(value) ? value : text }
})
const otherNumber = fc
  .oneof(
    fc
      .double({ noNaN: true, noDefaultInfinity: true })
      .filter((value) => !Number.isInteger(value))
      .map(String),
    fc.tuple(digits, fc.stringMatching(/^[0-9]{1,25}$/)).map(([whole, fraction]) => `${whole}.${fraction}`),
    fc.tuple(digits, fc.integer({ min: -9, max: 9 })).map(([whole, exponent]) => `${whole}e${exponent}`),
  )
  .map((text): Sample => ({ text, value: Number(text) }))
const word = fc.oneof(
  fc.string(),
  digits,
  fc.constantFrom('"', '\\', '\\"', `"contract_id":"${ID}"`, String.raw`\\"sell":"1`, '\u2028', 'contract_id', 'sell'),
  fc.array(fc.constantFrom('"', '\\', '1', ':', ID), { maxLength: 8 }).map((parts) => parts.join('')),
)
// Node.js 24 itself confuses the names `\` and `"`.
const name = word.filter((text) => !/["\\]/.test(text))
const { sample } = fc.letrec<{ sample: Sample }>((tie) => ({
  sample: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    integer,
    otherNumber,
    word.map((value): Sample => ({ text: JSON.stringify(value), value })),
    fc.constantFrom(null, true, false).map((value): Sample => ({ text: String(value), value })),
    fc.array(tie('sample'), { maxLength: 5 }).map((items): Sample => ({
      text: `[ ${items.map(({ text }) => text).join(' ,')}]`,
      value: items.map(({ value }) => value),
    })),
    fc.array(fc.tuple(name, tie('sample')), { maxLength: 5 }).map((members): Sample => ({
      text: `{${members.map(([name, { text }]) => `${JSON.stringify(name)}:\n${text}`).join(',')}}`,
      value: Object.fromEntries(members.map(([name, { value }]) => [name, value])),
    })),
  ),
}))

await test('integers beyond 2^53 are read as texts of their digits, and nothing else is', (t) => {
  fc.assert(
    fc.property(sample, ({ text, value }) => assert.deepStrictEqual(parseJson(text), value)),
    { numRuns: 3000 },
  )
  t.same(parseJson(`{"a":${ID},"b":[-${ID},9007199254740991],"c":"${ID}","d":1${'0'.repeat(30)}.5}`), {
    a: ID,
    b: [`-${ID}`, 9_007_199_254_740_991],
    c: ID,
    d: 1e30,
  })
  for (const wrong of [
    `{"a":0${ID}}`,
    `{"a":${ID}"}`,
    `{"a":"${ID}}`,
    `[1 ${ID}]`,
    `{"a":${ID}${'"'.repeat(3)}}`,
    `--${ID}`,
  ]) {
    t.throws(() => parseJson(wrong), SyntaxError, wrong)
  }
  t.end()
})

/** Makes numbers of the texts that should leave as numbers. */
function asNumbers(name: string, member: unknown): unknown {
  const isNumber = typeof member === 'string' && /^-?(0|[1-9]\d*)$/.test(member)
  return isNumber && /^(agent_id|cancel|contract_id|sell)$/.test(name) ? Number(member) : member
}

await test('a text of digits leaves as digits in the members that are ids, and no other text changes', (t) => {
  fc.assert(
    fc.property(sample, ({ text }) => {
      const value = JSON.parse(text) as unknown
      assert.deepStrictEqual(JSON.parse(writeJson(value)), JSON.parse(JSON.stringify(value), asNumbers))
    }),
    { numRuns: 3000 },
  )
  t.equal(
    writeJson({ sell: ID, price: 0, buy: ID, note: `"sell":"1"` }),
    `{"sell":${ID},"price":0,"buy":"${ID}","note":"\\"sell\\":\\"1\\""}`,
  )
  t.equal(writeJson({ contract_id: 'word' }), '{"contract_id":"word"}')
  t.end()
})

await test('these members are all ids of requests that the trading service describes as numbers', (t) => {
  interface Node {
    readonly properties?: Readonly<Record<string, { readonly type?: string | readonly string[] }>>
  }
  const schemas = { ...asyncApi().components.schemas, ...BODIES } as Readonly<Record<string, Node>>
  const requests = Object.entries(schemas).filter(([name]) => /Request$|Withdrawal$|Transfer$/.test(name))
  const named = requests.flatMap(([, { properties = {} }]) =>
    Object.entries(properties).flatMap(([name, { type }]) =>
      [type].flat().every((each) => /^(integer|number|null)$/.test(String(each))) &&
      /(?<!req)_id$|^(buy|sell|cancel)$/.test(name)
        ? [name]
        : [],
    ),
  )
  t.same([...new Set(named)].toSorted(), ['agent_id', 'cancel', 'contract_id', 'sell'])
  for (const name of named) t.equal(writeJson({ [name]: '1' }), `{"${name}":1}`)
  t.end()
})

await test('sockets and calls give ids as they came, and send them back as numbers', async (t) => {
  const seen: string[] = []
  const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => sockets.close())
  sockets.on('connection', (socket) =>
    socket.on('message', (data: Buffer) => {
      const text = data.toString()
      seen.push(text)
      const id = /"req_id":(\d+)/.exec(text)?.[1]
      socket.send(
        `{"req_id":${id},"msg_type":"any","proposal_open_contract":{"contract_id":${ID}},"buy":{"contract_id":7}}`,
      )
    }),
  )
  const baseUrl = await httpServer(t, ({ url }, response) => {
    if (url === '/auth/session') return void response.end('{"authenticated":false,"now":1}')
    response.writeHead(200, { 'x-request-id': '1' }).end(`{"data":[{"id":${ID},"balance":1.5}]}`)
  })
  const bodies: unknown[] = []
  const client = createClient({
    baseUrl,
    fetch: (url, init) => {
      if (init.body) bodies.push(init.body)
      return fetch(url, init)
    },
    WebSocket: class extends WebSocket {
      constructor() {
        super(`ws://127.0.0.1:${(sockets.address() as { port: number }).port}`)
      }
    },
  })
  t.teardown(() => client.close())
  const socket = client.tradingSocket('VRTC100')
  const { buy } = await socket.request({ portfolio: 1 } as never)
  t.same(buy, { contract_id: 7 })
  const opened = await socket.request({ proposal_open_contract: 1, contract_id: ID })
  t.equal(opened.proposal_open_contract.contract_id, ID)
  await socket.command({ sell: ID, price: 0 })
  const told: unknown[] = []
  const stops = [ID, '7', 7].map((contract_id) =>
    socket.subscribe({ proposal_open_contract: 1, contract_id }, ({ proposal_open_contract: { contract_id } }) =>
      told.push(contract_id),
    ),
  )
  await socket.request({ time: 1 })
  for (const stop of stops) stop()
  t.same(new Set(told), new Set([ID]))
  const sent = seen.filter((text) => /contract_id|sell/.test(text)).map((text) => text.replace(/,"req_id":\d+/, ''))
  t.same(sent, [
    `{"proposal_open_contract":1,"contract_id":${ID}}`,
    `{"sell":${ID},"price":0}`,
    `{"proposal_open_contract":1,"contract_id":${ID},"subscribe":1}`,
    '{"proposal_open_contract":1,"contract_id":7,"subscribe":1}',
  ])

  const response = await client.api('/wallet/v1/wallets')
  const copy = response.clone()
  const wallets = { data: [{ id: ID, balance: 1.5 }] }
  t.same([await response.json(), await copy.json()], [wallets, wallets])
  const data = { agent_id: ID, amount: '1.00', currency: 'USD' }
  await client.api('/payment-agents/v1/withdraw/verification_code', { method: 'POST', json: { data } })
  t.same(bodies, [`{"data":{"agent_id":${ID},"amount":"1.00","currency":"USD"}}`])
})
