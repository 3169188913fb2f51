import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { control, controlsWorld, pause, type ControlsWorld } from '../support/controls/controls-world.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { testServer, type TestServer } from '../support/server/test-server.ts'
import { replace } from '../support/time/replace.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { type Answer, ACCOUNTS } from '../support/user.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { slowNames } from '../support/upstream/slow-names.ts'
import { exactly } from '../support/exactly.ts'

const RECORDS = 'bff:1:idempotency:*'
const PAUSED = { status: 503, json: { code: 'orders_paused' } }
/** Controls that were read longer ago are too old for an order. */
const CONTROLS_MS = 1000
/** Longer than a body that is sent only once it is complete. */
const LONG = 'x'.repeat(100_000)

await test('orders that wait for a connection when the pause comes are not sent, and their keys are free; reads are sent', async (t) => {
  const world = await controlsWorld(t, { instances: 1, settings: { UPSTREAM_CONNECT_SECONDS: '600' } })
  const { upstream, orders } = world
  const names = slowNames(t)
  const slow = await world.instance({ API_URL: `http://${upstream.host.replace('127.0.0.1', names.host)}` })
  const user = await world.user('CR1')
  const client = await world.storeClient()
  const waiting = [
    user.order({ at: slow }),
    user.order({ key: 'one', at: slow, body: '{"amount":2}' }),
    user.order({ at: slow, body: LONG }),
  ]
  const read = user.call('GET', ACCOUNTS, { at: slow })
  await until(() => names.waiting === 4, 'each waits for a connection of its own')
  t.equal((await client.keys(RECORDS)).length, 1)
  const { json } = await pause(world.server)
  await world.agreed(json['version'], [world.server, slow])
  names.release()
  for (const answer of await Promise.all(waiting)) t.match(answer, PAUSED)
  t.equal((await read).status, 200)
  t.same(orders, [], 'upstream has seen none')
  t.same(await client.keys(RECORDS), [])
  await control(slow, 'DELETE', '/orders')
  t.match(await user.order({ key: 'one', at: slow, body: '{"amount":2}' }), { status: 200 })
  t.same(orders, ['{"amount":2}'])
})

await test('an order that waits for a connection when a user is paused is not sent before it is known whose it is', async (t) => {
  const world = await controlsWorld(t, { instances: 1, settings: { UPSTREAM_CONNECT_SECONDS: '600' } })
  const { upstream, orders } = world
  const { onIdentity: answer } = upstream
  const names = slowNames(t)
  const slow = await world.instance({ API_URL: `http://${upstream.host.replace('127.0.0.1', names.host)}` })
  upstream.onIdentity = (_request, response) => answerJson(response, 500, {})
  const [own, other] = [await world.user('CR1'), await world.user('CR2')]
  const gates: (() => void)[] = []
  upstream.onIdentity = (request, response) => void gates.push(() => answer(request, response))
  const calls = [own.order({ at: slow, body: 'own' }), other.order({ at: slow, body: 'other' })]
  await until(() => names.waiting === 2, 'each waits for a connection of its own')
  const { json } = await pause(world.server, { subject: 'CR1' })
  await world.agreed(json['version'], [world.server, slow])
  names.release()
  await until(() => gates.length === 2 || orders.length > 0, 'upstream is asked about each session')
  t.same(orders, [], 'upstream has seen no order before')
  for (const gate of gates) gate()
  t.match(await Promise.all(calls), [PAUSED, { status: 200 }])
  t.same(orders, ['other'])
})

await test('an order that waits for a connection while an instance hears of no pause is not sent before it has asked', async (t) => {
  const world = await controlsWorld(t, { instances: 1, settings: { UPSTREAM_CONNECT_SECONDS: '600' } })
  const { upstream, orders, settings } = world
  const names = slowNames(t)
  const store = await connectedStore(t, settings['REDIS_URL'] ?? '')
  const API_URL = `http://${upstream.host.replace('127.0.0.1', names.host)}`
  const slow = await testServer(t, { ...settings, API_URL }, store)
  const user = await world.user('CR1')
  const order = user.order({ at: slow })
  const read = user.call('GET', ACCOUNTS, { at: slow })
  await until(() => names.waiting === 2, 'each waits for a connection of its own')
  const hears = Promise.withResolvers<void>()
  const readMarked = store.readMarked.bind(store)
  replace(t, store, 'readMarked', async (...asked: Parameters<typeof readMarked>) => {
    await hears.promise
    return readMarked(...asked)
  })
  t.equal((await pause(world.server, { subject: 'CR1' })).status, 200)
  await delay(CONTROLS_MS)
  names.release()
  t.equal((await read).status, 200, 'a read does not need the controls')
  t.same(orders, [], 'upstream has not seen the order')
  hears.resolve()
  t.match(await order, PAUSED)
  t.same(orders, [])
})

await test('an order whose body arrives while orders are paused is not sent', async (t) => {
  const world = await controlsWorld(t, { instances: 1 })
  const user = await world.user('CR1')
  const body = new PassThrough()
  body.write('{"amount"')
  const answer = user.order({ headers: { 'transfer-encoding': 'chunked' }, body })
  await until(async () => (await pause(world.server)).status === 200)
  body.end(':1}')
  t.match(await answer, PAUSED)
  t.same(world.orders, [])
})

/** Orders that have arrived upstream, and wait there for their answers. */
async function held(t: Test, world: ControlsWorld): Promise<ServerResponse[]> {
  const responses: ServerResponse[] = []
  const { onRest } = world.upstream
  world.upstream.onRest = (request, response) => {
    if (request.method === 'GET') return onRest(request, response)
    request.resume().on('end', () => responses.push(response))
  }
  t.teardown(() => responses.map((response) => response.end()))
  return responses
}

await test('an order that was sent before the pause gets its response, which is replayed while orders are paused', async (t) => {
  const world = await controlsWorld(t, { instances: 1 })
  const { server } = world
  const user = await world.user('CR1')
  const responses = await held(t, world)
  const keyed = { 'idempotency-key': 'one' }
  const first = user.order({ at: server, headers: keyed })
  await until(() => responses.length === 1)
  await pause(server)
  t.match(await user.order({ at: server, headers: keyed }), {
    status: 409,
    json: { code: 'idempotency_in_progress' },
  })
  const [response] = responses
  if (response === undefined) throw new Error('no order')
  answerJson(response, 200, { data: { made: true } })
  t.match(await first, { status: 200, json: { data: { made: true } } })
  const repeated = await user.order({ at: server, headers: keyed })
  t.match(repeated, { status: 200, headers: { 'idempotency-replayed': 'true' }, json: { data: { made: true } } })
  t.match(await user.order({ at: server, body: '{"amount":2}', headers: keyed }), { status: 422 })
  t.match(await user.order({ key: 'two', at: server, body: '{"amount":3}' }), PAUSED)
  t.equal(responses.length, 1)
})

await test('an order that waits for the budget when the pause comes is not sent, and costs no call of it', async (t) => {
  const world = await controlsWorld(t, {
    instances: 1,
    settings: { UPSTREAM_BUDGET: '4/20', UPSTREAM_BUDGET_ALONE: '0', UPSTREAM_BUDGET_SHARES: '100,100,100' },
  })
  const { server } = world
  const user = await world.user('CR1')
  const before = await user.order({ at: server })
  t.comment(`an order before: ${before.status}`)
  await pause(server)
  for (let calls = 0; calls < 20; calls++) t.match(await user.order({ at: server }), PAUSED)
  await control(server, 'DELETE', '/orders')
  t.equal((await user.order({ at: server })).status, before.status)
})

await test('orders under load on three instances: none leaves later than a second after the PUT was answered', async (t) => {
  const world = await controlsWorld(t)
  const { servers } = world
  const user = await world.user('CR1')
  const arrivals: number[] = []
  const { onRest } = world.upstream
  world.upstream.onRest = (request, response) => {
    if (request.method === 'POST') arrivals.push(performance.now())
    onRest(request, response)
  }
  const over = new AbortController()
  const statuses = new Map<number, number>()
  const buys: string[] = []
  const flood = async (server: TestServer): Promise<void> => {
    while (!over.signal.aborted) {
      const { status }: Answer = await user.order({ at: server })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const sockets = await Promise.all(servers.map((server) => world.trade(user, server)))
  for (const { peer } of sockets)
    peer.on('message', (data: Buffer) => {
      if (data.toString().includes('buy')) arrivals.push(performance.now())
      buys.push(data.toString())
    })
  const shout = setInterval(() => {
    for (const { browser } of sockets) browser.socket.send('{"buy":"x","price":1}')
  }, 10)
  t.teardown(() => clearInterval(shout))
  const floods = servers.flatMap((server) => [flood(server), flood(server)])
  await until(() => arrivals.length > 100)
  const { status } = await pause(servers[1])
  const answeredAt = performance.now()
  t.equal(status, 200)
  // Everything that still leaves has left by then, and much more would have.
  await until(() => (statuses.get(503) ?? 0) > 600, 'orders are refused')
  await until(() => performance.now() > answeredAt + 1500, 'a while passes')
  over.abort()
  await Promise.all(floods)
  const late = arrivals.map((at) => at - answeredAt).filter((ms) => ms > 0)
  t.comment(
    `${arrivals.length} orders, of which ${late.length} after the answer, the last ${Math.round(late.at(-1) ?? 0)} ms`,
  )
  t.same(
    late.filter((ms) => ms > 1000),
    [],
  )
  t.ok((statuses.get(200) ?? 0) > 0 && [...statuses.keys()].every((each) => each === 200 || each === 503))
})

await test('upgrades go on: a trading socket can be opened while orders are paused', async (t) => {
  const world = await controlsWorld(t, { instances: 1 })
  const user = await world.user('CR1')
  await pause(world.server)
  const { browser, seen } = await world.trade(user, world.server)
  t.equal(world.upstream.otpRequests.length, 1)
  browser.socket.send('{"balance":1,"subscribe":1}')
  browser.socket.send('{"buy":"x","price":1}')
  browser.socket.send(Buffer.from('{"ping":1}'), { binary: true })
  await browser.count(2)
  await until(() => seen.length === 1)
  t.same(seen, ['{"balance":1,"subscribe":1}'])
  t.match(
    browser.texts.map((text) => JSON.parse(text) as unknown),
    exactly(
      { error: { code: 'OrdersPaused' }, msg_type: 'buy' },
      { error: { code: 'OrdersPaused' }, msg_type: 'error' },
    ),
  )
  browser.socket.close()
  await nextEvent(browser.socket, 'close')
})
