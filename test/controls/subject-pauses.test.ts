import { test } from 'tap'
import { control, controlsWorld, pause, shown } from '../support/controls/controls-world.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { ACCOUNTS, type User } from '../support/user.ts'

const PAUSED = { status: 503, json: { code: 'orders_paused' } }
const BUY = '{"buy":"x","price":1,"req_id":1}'
const SELL = '{"sell":1,"price":0,"req_id":2}'

await test('one user is paused while others trade, on all instances, by calls and open sockets', async (t) => {
  const { servers, user, trade, agreed, upstream } = await controlsWorld(t)
  const [first, second, third] = servers
  const [own, other] = [await user('CR1'), await user('CR2')]
  const sockets = { own: await trade(own, third), other: await trade(other, third) }
  const paused = await pause(first, { subject: 'CR1', message: 'We are looking at your account.' })
  await agreed(paused.json['version'])
  for (const server of servers) {
    t.match(await own.order({ at: server }), { ...PAUSED, json: { detail: 'We are looking at your account.' } })
    t.equal((await other.order({ at: server })).status, 200)
    t.equal((await own.call('GET', ACCOUNTS, { at: server })).status, 200)
  }
  for (const { browser } of Object.values(sockets)) {
    browser.socket.send(BUY)
    browser.socket.send(SELL)
  }
  await until(() => sockets.other.seen.length === 2 && sockets.own.seen.length === 1)
  t.same(sockets.own.seen, [SELL], 'what was bought can be closed')
  t.match(JSON.parse((await sockets.own.browser.count(1))[0]?.data.toString() ?? ''), {
    error: { code: 'OrdersPaused', message: 'We are looking at your account.' },
  })
  t.equal(sockets.other.browser.received.length, 0)
  t.equal(upstream.identityRequests.length, 2, 'both sessions have a subject since their logins')
  t.match(
    await samplesOf(second.opsUrl, 'bff_orders_paused'),
    new Map([
      ['scope="all"', 0],
      ['scope="subject"', 1],
    ]),
  )
  t.match(
    first.log.find(({ audit }) => audit === 'controls_changed'),
    { subject: /^[\w-]{10}$/, action: 'set' },
  )
  t.notMatch(JSON.stringify(first.log.filter(({ audit }) => audit === 'controls_changed')), 'CR1')

  await pause(second)
  await agreed((await control(second, 'DELETE', '/orders')).json['version'])
  t.match(await own.order({ at: third }), PAUSED, 'a pause of all that is lifted leaves that of one user')
  await agreed((await control(third, 'DELETE', '/orders?subject=CR1')).json['version'])
  for (const server of servers) t.equal((await own.order({ at: server })).status, 200)
})

await test('with a pause of all and one of a user, that user waits for both, and closes only what both allow', async (t) => {
  const world = await controlsWorld(t, { instances: 1 })
  const { server } = world
  const [own, other] = [await world.user('CR1'), await world.user('CR2')]
  const soon = Math.floor(Date.now() / 1000) + 100
  await pause(server, { until: soon, message: 'all' })
  await pause(server, { until: soon + 1000, subject: 'CR1', closing: false, message: 'one' })
  const seconds = async (user: User): Promise<number> =>
    Number((await user.order({ at: server })).headers['retry-after'])
  t.ok((await seconds(other)) <= 101 && (await seconds(other)) > 90)
  t.ok((await seconds(own)) <= 1101 && (await seconds(own)) > 1090)
  const [mine, theirs] = [await world.trade(own, server), await world.trade(other, server)]
  mine.browser.socket.send(SELL)
  theirs.browser.socket.send(SELL)
  await mine.browser.count(1)
  await until(() => theirs.seen.length === 1)
  t.equal(mine.seen.length, 0)
})

await test('a session without a subject is identified before its next order, and an open socket keeps its order', async (t) => {
  const { server, upstream, user, trade } = await controlsWorld(t, { instances: 1 })
  const { onIdentity: answer, identityRequests: asked } = upstream
  upstream.onIdentity = (_request, response) => answerJson(response, 500, {})
  const [own, other] = [await user('CR1'), await user('CR2')]
  const sockets = { own: await trade(own, server), other: await trade(other, server) }
  upstream.onIdentity = answer
  asked.length = 0
  t.equal((await own.order({ at: server })).status, 200)
  t.equal(asked.length, 0, 'nobody is asked while nobody is paused')
  await pause(server, { subject: 'CR1' })
  const gates: (() => void)[] = []
  upstream.onIdentity = (request, response) => void gates.push(() => answer(request, response))
  for (const { browser } of Object.values(sockets)) {
    for (const message of ['{"ping":1}', BUY, '{"time":1}', SELL, '{"ping":2}']) browser.socket.send(message)
  }
  const call = own.order({ at: server })
  await until(() => gates.length === 2, 'each session is asked about once')
  for (const { seen } of Object.values(sockets)) t.same(seen, ['{"ping":1}'], 'what follows the order waits')
  for (const gate of gates) gate()
  await until(() => sockets.other.seen.length === 5 && sockets.own.seen.length === 4)
  t.same(sockets.other.seen, ['{"ping":1}', BUY, '{"time":1}', SELL, '{"ping":2}'])
  t.same(sockets.own.seen, ['{"ping":1}', '{"time":1}', SELL, '{"ping":2}'])
  t.match(JSON.parse((await sockets.own.browser.count(1))[0]?.data.toString() ?? ''), {
    req_id: 1,
    error: { code: 'OrdersPaused' },
  })
  t.match(await call, PAUSED)
  sockets.other.browser.socket.send(BUY)
  await until(() => sockets.other.seen.length === 6)
  t.equal(asked.length, 2, 'it is known from then on')
})

await test('a session that cannot be identified may not order while somebody is paused, and upstream is not asked each time', async (t) => {
  const world = await controlsWorld(t, { instances: 1 })
  const { server } = world
  const { onIdentity: answer, identityRequests: asked } = world.upstream
  world.upstream.onIdentity = (_request, response) => answerJson(response, 500, {})
  const user = await world.user('CR2')
  const { browser, seen } = await world.trade(user, server)
  asked.length = 0
  await pause(server, { subject: 'CR1', message: 'for one user only' })
  for (let calls = 0; calls < 5; calls++) {
    const refused = await user.order({ at: server })
    t.match(refused, PAUSED)
    t.notMatch(refused.text, 'for one user only')
  }
  browser.socket.send(BUY)
  browser.socket.send(SELL)
  t.match(JSON.parse((await browser.count(1))[0]?.data.toString() ?? ''), {
    error: { code: 'OrdersPaused', message: 'Orders are paused.' },
  })
  await until(() => seen.length === 1)
  t.same(seen, [SELL])
  t.ok(asked.length <= 2, `asked ${asked.length} times`)
  await pause(server, { subject: 'CR3', closing: false })
  browser.socket.send(SELL)
  await browser.count(2)
  t.equal(seen.length, 1, 'it may be the user who must not even close')
  await control(server, 'DELETE', '/orders?subject=CR1')
  await control(server, 'DELETE', '/orders?subject=CR3')
  t.equal((await user.order({ at: server })).status, 200)
  world.upstream.onIdentity = answer
})

await test('an identification that is refused leaves the session as it is, and one whose token is renewed meanwhile succeeds', async (t) => {
  const world = await controlsWorld(t, { instances: 1 })
  const { server } = world
  const { onIdentity: answer } = world.upstream
  world.upstream.onIdentity = (_request, response) => answerJson(response, 500, {})
  const user = await world.user('CR2')
  await pause(server, { subject: 'CR1' })
  world.upstream.onIdentity = (_request, response) => answerJson(response, 401, {})
  t.match(await user.order({ at: server }), PAUSED)
  t.equal((await user.call('GET', ACCOUNTS, { at: server })).status, 200)
  world.upstream.onIdentity = answer
})

await test('PUT /controls/orders with a subject needs IDENTITY_PATH; without a subject it does not', async (t) => {
  const world = await controlsWorld(t, {
    instances: 1,
    redis: false,
    settings: { IDENTITY_PATH: '', IDENTITY_POINTER: '' },
  })
  const { server } = world
  const user = await world.user('CR1')
  t.match(await pause(server, { subject: 'CR1' }), { status: 400, json: { error: /IDENTITY_PATH/ } })
  t.equal((await user.order({ at: server })).status, 200)
  t.equal((await pause(server)).status, 200)
  t.match(await user.order({ at: server }), PAUSED)
  t.match(await shown(server), { orders: { paused: true, closing: true }, subjects: { length: 0 } })
})

await test('a thousand users can be paused, and not one more', async (t) => {
  const { server } = await controlsWorld(t, { instances: 1, redis: false })
  for (let user = 0; user < 1000; user++) t.equal((await pause(server, { subject: `CR${user}` })).status, 200)
  t.equal((await pause(server, { subject: 'CR1000' })).status, 400)
  t.equal((await pause(server, { subject: 'CR999', message: 'x' })).status, 200)
  t.equal((await control(server, 'DELETE', '/orders?subject=CR0')).status, 200)
  t.equal((await pause(server, { subject: 'CR1000' })).status, 200)
})
