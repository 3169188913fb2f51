import { readFile } from 'node:fs/promises'
import { Parser } from '@asyncapi/parser'
import { test } from 'tap'
import { asyncApiJson } from '../../client/generate-asyncapi.ts'
import { OPERATIONS } from '../../src/sockets/operations.ts'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { messageSocket, rise, trading } from '../support/sandbox/world.ts'
import { asyncApi, messageChecker, messageKinds, SOURCE, type AsyncApiDocument } from '../support/openapi/messages.ts'
import { checkerOf } from '../support/openapi/document.ts'
import { startWorld, RELAY } from '../support/world.ts'

type Message = Readonly<Record<string, unknown>>

/**
 * Messages in the shapes of the trading service, with invented values: as they were recorded, and, for the operations of which
 * none was, as the public schemas have them.
 */
const RECORDED = (await readFile(new URL('messages.jsonl', import.meta.url), 'utf8')).trim().split('\n')

/** What AsyncAPI's own parser has against a document. That there is a newer version of the format is no fault. */
async function faultsOf(source: string): Promise<readonly string[]> {
  const { diagnostics } = await new Parser().parse(source)
  const faults = diagnostics.filter(({ code }) => code !== 'asyncapi-latest-version')
  return faults.map(({ message, path }) => `${path.join('.')}: ${message}`)
}

await test('docs/asyncapi.yaml is an AsyncAPI 3 document for the parser of AsyncAPI, which still finds faults', async (t) => {
  t.same(await faultsOf(SOURCE), [])
  t.not((await faultsOf(SOURCE.replace("schemas/Tick'", "schemas/Tikc'"))).length, 0)
})

await test('src/openapi/asyncapi.json is made from docs/asyncapi.yaml', async (t) => {
  const committed = await readFile(new URL('../../src/openapi/asyncapi.json', import.meta.url), 'utf8')
  t.equal(committed, asyncApiJson(), 'npm run build:client')
})

await test('it lists the operations that the server knows, but those of automation, and every close of the server', (t) => {
  const described = Object.keys(asyncApi.operations).flatMap((name) => name.split('trading.')[1] ?? [])
  const UNDOCUMENTED = /^auto_|^contract_update_history$/
  t.same(described.toSorted(), [...OPERATIONS].filter((name) => !UNDOCUMENTED.test(name)).toSorted())
  const closes = Object.values(CLOSE).map(({ code, reason }) => `${code} ${reason}`)
  const listed = asyncApi['x-close-codes'].flatMap(({ code, reason }) =>
    reason === undefined ? [] : `${code} ${reason}`,
  )
  t.same(listed.toSorted(), [...new Set(closes)].toSorted())
  t.end()
})

await test('every enum and every object with members has a name, so that generators need not make one up', (t) => {
  const nameless = (part: unknown, path: string): readonly string[] => {
    if (typeof part !== 'object' || part === null) return []
    const isNameless = 'enum' in part || ('properties' in part && !path.includes('/allOf/'))
    return [
      ...(isNameless ? [path] : []),
      ...Object.entries(part).flatMap(([name, value]) => nameless(value, `${path}/${name}`)),
    ]
  }
  const named = Object.entries(asyncApi.components.schemas)
  t.same(
    named.flatMap(([name, { enum: _enum, properties, ...rest }]) => nameless({ ...rest, members: properties }, name)),
    [],
  )
  t.equal(nameless({ a: { properties: { b: { enum: [1] } } } }, 'A').length, 2)
  t.end()
})

await test('messages that were recorded are as described, and of one kind', (t) => {
  const check = messageChecker()
  const kinds = messageKinds()
  for (const line of RECORDED) {
    const message = JSON.parse(line) as Message
    const asked = Object.keys(message['echo_req'] as Message)
    const operation = asked.find((key) => `trading.${key}` in asyncApi.operations) ?? ''
    t.same(check(operation, message), [], operation)
    t.equal(kinds(message).length, 1, kinds(message).join())
    t.equal(kinds(message)[0] === 'Refusal', 'error' in message, operation)
  }
  t.same(check('ticks', { msg_type: 'tick', echo_req: { ticks: 'R_1', granularity: 60 }, tick: { epoch: 1 } }), [
    'request has granularity',
    "answer /tick must have required property 'quote'",
  ])
  t.end()
})

await test('the messages of the sandbox are as described, and of one kind', async (t) => {
  const { upstream, otpUrl } = await trading(t)
  const check = messageChecker()
  const line = await messageSocket(t, await otpUrl('demo'))
  const open = await messageSocket(t, `${upstream.wsUrl}/trading/v1/options/ws/public`)
  const seen: Message[] = []
  for (const { socket } of [line, open]) {
    socket.on('message', (data: Buffer) => seen.push(JSON.parse(data.toString()) as Message))
  }
  const { proposal } = await line.ask({ proposal: 1, ...rise(5), subscribe: 1 })
  await line.ask({ transaction: 1, subscribe: 1 })
  await line.ask({ balance: 1, subscribe: 1 })
  await line.ask({ buy: (proposal as { id: string }).id, price: 10, subscribe: 1 })
  const bought = await line.ask({ buy: 1, price: 10, parameters: { ...rise(1), duration_unit: 'm' } })
  const { contract_id: id } = bought['buy'] as { contract_id: number }
  await line.ask({ portfolio: 1 })
  await line.ask({ proposal_open_contract: 1, contract_id: id })
  await line.ask({ sell: id, price: 0 })
  await line.next('proposal_open_contract')
  await line.refusal({ sell: id, price: 0 })
  await line.ask({ profit_table: 1, description: 1, limit: 100, sort: 'DESC' })
  await line.ask({ statement: 1, description: 1, action_type: 'buy', limit: 100 })
  for (const request of [
    { active_symbols: 'brief' },
    { contracts_for: 'R_100' },
    { contracts_list: 1 },
    { trading_times: 'today' },
    { time: 1 },
    { ping: 1 },
    { ticks: ['R_10', 'R_25'], subscribe: 1 },
    { ticks: 'NONE' },
    { ticks_history: 'R_50', end: 'latest', count: 3, subscribe: 1 },
    { ticks_history: 'R_50', end: 'latest', count: 3, style: 'candles', granularity: 60, subscribe: 1 },
    { forget: 'none' },
    { forget_all: ['ticks'] },
  ]) {
    await open.ask(request)
  }
  await open.next('ohlc')
  const operations = new Set<string>()
  const kinds = messageKinds()
  const seenKinds = new Set<string>()
  for (const message of seen) {
    const request = message['echo_req'] as Message
    const operation = Object.keys(request).find((key) => OPERATIONS.has(key)) ?? ''
    operations.add(operation)
    t.same(check(operation, message), [], JSON.stringify(message))
    const [kind = '', ...others] = kinds(message)
    t.same(others, [], kind)
    seenKinds.add(kind)
  }
  t.equal(operations.size, 19, [...operations].join(' '))
  t.ok(
    ['PastPricesAnswer', 'PastCandlesAnswer', 'TicksAnswer', 'OhlcAnswer', 'Refusal'].every((kind) =>
      seenKinds.has(kind),
    ),
  )
})

await test('GET /asyncapi.json names this server, and the session socket sends what it describes', async (t) => {
  const world = await startWorld(t, RELAY)
  const response = await fetch(`${world.server.url}/asyncapi.json`)
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^application\/json/)
  const document = (await response.json()) as AsyncApiDocument
  const { host } = new URL(world.server.url)
  t.match(document.servers, { bff: { host, protocol: 'ws' } })
  t.same({ ...document, servers: asyncApi.servers }, asyncApi)
  const socket = await world.socket(document.channels['session']?.address ?? '').opened()
  await socket.count(1)
  await world.logOut()
  await socket.closed
  const check = checkerOf(document)
  const events = socket.texts.map((text) => JSON.parse(text) as Message)
  t.same(
    events.map(({ event }) => event),
    ['session', 'ended'],
  )
  const { SessionEvent, EndedEvent } = document.components.schemas
  t.same(check(SessionEvent, events[0]), [])
  t.same(check(EndedEvent, events[1]), [])
  t.not(check(EndedEvent, { ...events[1], reason: 'other' }).length, 0)
})
