import { test, type Test } from 'tap'
import { ApiError, once, type Client } from '../../client/dist/client.js'
import { createFakeClient, problem } from '../../client/dist/testing.js'
import { failure } from '../support/client/page-client.ts'
import { scriptedClient, type Event } from '../support/client/scripted-client.ts'
import { until } from '../support/time/until.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const WITHDRAWAL = '/payment-agents/v1/withdraw'
const POST = { method: 'POST', body: '{}' } as const
const NOT_MADE = { isMade: () => false }

/** An order, and the keys of the calls that have arrived. */
async function scripted(t: Test, ...script: readonly Event[]): Promise<{ client: Client; keys: () => unknown[] }> {
  const { client, calls } = await scriptedClient(t, ...script)
  return { client, keys: () => calls.map(({ key }) => key) }
}

/** What a page may write by mistake. All of it compiles. */
const SLIPS: readonly (readonly [string, (client: Client, key: string) => Promise<unknown>])[] = [
  ['no key', ({ api }) => api(TRANSFER, POST)],
  ['idempotencyKey: true', ({ api }) => api(TRANSFER, { ...POST, idempotencyKey: true })],
  ['another key', ({ api }) => api(TRANSFER, { ...POST, idempotencyKey: 'mine' })],
  ['a key that it has changed', ({ api }, key) => api(TRANSFER, { ...POST, idempotencyKey: `${key}-2` })],
  ['no key, and an answer that is read', async ({ api }) => (await api(TRANSFER, POST)).text()],
]

for (const [slip, order] of SLIPS) {
  await test(`once(): a call with ${slip} is sent once; lost, its outcome is unknown, and detail says why`, async (t) => {
    for (const event of ['cut', 'cut in the body'] as const) {
      const { client, keys } = await scripted(t, event)
      const made = once(async (key) => (await Promise.resolve(order(client, key))) as Response, NOT_MADE)
      if (event === 'cut in the body' && !slip.includes('read')) {
        t.match(await made, { status: 200 })
        continue
      }
      const error = await failure(made)
      t.ok(error instanceof ApiError)
      t.match(error, { outcome: 'unknown', detail: /^not repeated: .*idempotencyKey/ })
      t.equal(keys().length, 1, event)
    }
  })
}

await test('once(): a request that the page sends by itself is sent once', async (t) => {
  let sent = 0
  const order = async (_key: string): Promise<never> => {
    sent++
    throw new TypeError('Failed to fetch')
  }
  t.match(await failure(once(order, NOT_MADE)), { outcome: 'unknown', detail: /nothing was sent with/ })
  t.equal(sent, 1)
  t.equal(await once(order, { isMade: () => true }), undefined)
})

await test('once(): of two calls, only the one with the key is sent again', async (t) => {
  const before = await scripted(t, [200, ''], 'cut')
  const order = async (idempotencyKey: string) => {
    await before.client.api(WITHDRAWAL, POST)
    return before.client.api(TRANSFER, { ...POST, idempotencyKey })
  }
  t.match(await once(order, NOT_MADE), { status: 200 })
  const [without, first, second] = before.keys()
  t.equal(without, undefined)
  t.equal(first, second)
  t.equal(before.keys().length, 3)

  const after = await scripted(t, [200, ''], 'cut')
  const lost = once(async (idempotencyKey) => {
    await after.client.api(TRANSFER, { ...POST, idempotencyKey })
    return after.client.api(WITHDRAWAL, POST)
  }, NOT_MADE)
  t.match(await failure(lost), {
    outcome: 'unknown',
    detail: `not repeated: POST ${WITHDRAWAL} was sent without the idempotencyKey of once()`,
  })
  t.equal(after.keys().length, 2)
})

await test('once(): a page that fails after the answer is called again only if nothing else was sent', async (t) => {
  const alone = await scripted(t)
  let calls = 0
  const order = async (idempotencyKey: string) => {
    const response = await alone.client.api(TRANSFER, { ...POST, idempotencyKey })
    if (++calls === 1) throw new Error('a fault of the page')
    return response
  }
  t.match(await once(order, NOT_MADE), { status: 200 })
  t.equal(new Set(alone.keys()).size, 1)

  const client = createFakeClient({ session: {} })
  t.teardown(() => client.close())
  client.server.respond('POST', TRANSFER, { data: {} })
  client.server.reply('buy', { buy: { contract_id: 7 } as never })
  const socket = client.tradingSocket('VRTC100')
  await until(() => socket.status().state === 'open')
  const buying = once(async (idempotencyKey) => {
    await client.api(TRANSFER, { ...POST, idempotencyKey })
    await socket.command({ buy: 'a-proposal', price: 10 })
    throw new Error('a fault of the page')
  }, NOT_MADE)
  t.match(await failure(buying), { outcome: 'unknown', detail: /a command/ })
  t.equal(client.server.messages.filter(({ message }) => 'buy' in message).length, 1)
})

await test('once(): a GET that is lost after the answer does not say that the order was not made', async (t) => {
  const client = createFakeClient({ session: {} })
  t.teardown(() => client.close())
  client.server.respond('POST', TRANSFER, { data: {} })
  let reads = 0
  client.server.respond('GET', '/wallet/v1/wallets', () => (reads++ < 2 ? Response.error() : { data: [] }))
  const order = async (idempotencyKey: string) => {
    await client.api('/wallet/v1/wallets').catch(() => undefined)
    await client.api(TRANSFER, { ...POST, idempotencyKey })
    return client.api('/wallet/v1/wallets')
  }
  t.match(await once(order, NOT_MADE), { status: 200 })
  const posts = client.server.calls.filter(({ method }) => method === 'POST')
  t.equal(posts.length, 2)
  t.equal(new Set(posts.map(({ headers }) => headers.get('idempotency-key'))).size, 1)
  client.server.respond('GET', '/wallet/v1/wallets', Response.error())
  t.match(await failure(once(order, NOT_MADE)), { outcome: 'unknown' })
  client.server.respond('POST', TRANSFER, problem(409, 'outcome_unknown', { outcome: 'unknown' }))
  const looking = once(async (idempotencyKey) => {
    await client.api(TRANSFER, { ...POST, idempotencyKey }).catch(() => undefined)
    return client.api('/wallet/v1/wallets')
  }, NOT_MADE)
  t.match(await failure(looking), { outcome: 'unknown' }, 'nor does one after an answer that the page has caught')
})

await test('once(): a call that began before it, and one within another once(), are sent once', async (t) => {
  const early = await scripted(t, 'cut')
  const began = early.client.api(TRANSFER, POST)
  t.match(await failure(once(async (_key) => (await began).text(), NOT_MADE)), { outcome: 'unknown', detail: String })
  t.equal(early.keys().length, 1)

  for (const pause of [false, true]) {
    const nested = await scripted(t, [200, ''], 'cut')
    const { api } = nested.client
    const order = async (outer: string) => {
      if (pause) await new Promise((resolve) => void setTimeout(resolve, 1))
      await once((idempotencyKey) => api(WITHDRAWAL, { ...POST, idempotencyKey }), NOT_MADE)
      return api(TRANSFER, { ...POST, idempotencyKey: outer })
    }
    t.match(await once(order, NOT_MADE), { status: 200 })
    t.equal(nested.keys().length, 3)
    t.equal(new Set(nested.keys()).size, 2)
  }
})

await test('once(): a call that the page has not waited for is not repeated after once() is over', async (t) => {
  const client = createFakeClient({ session: {} })
  t.teardown(() => client.close())
  const answer = Promise.withResolvers<Response>()
  client.server.respond('POST', TRANSFER, () => answer.promise as Promise<never>)
  let call: Promise<unknown> | undefined
  const over = once(async (idempotencyKey) => {
    call = failure(client.api(TRANSFER, { ...POST, idempotencyKey }))
    return 'the page goes on'
  }, NOT_MADE)
  t.equal(await over, 'the page goes on')
  answer.resolve(Response.error())
  t.match(await call, { outcome: 'unknown' })
  t.equal(client.server.calls.length, 1)
})

/** Makes an order as it should be made. */
function send({ api }: Client) {
  return once((idempotencyKey) => api(TRANSFER, { ...POST, idempotencyKey }), NOT_MADE)
}

await test('once(): orders at the same moment, and one through another client, are each repeated with their own key', async (t) => {
  const { client, keys } = await scripted(t, 'cut', 'cut')
  const other = await scripted(t, 'cut')
  const answers = await Promise.all([send(client), send(client), send(other.client)])
  t.same(
    answers.map((answer) => answer?.status),
    [200, 200, 200],
  )
  t.equal(keys().length, 4)
  t.equal(new Set(keys()).size, 2)
  t.equal(new Set(other.keys()).size, 1)
})
