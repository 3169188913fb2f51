import { once } from 'node:events'
import { createClient } from 'redis'
import { test, type Test } from 'tap'
import type { BrowserSocket } from '../support/browser-socket.ts'
import { joined, logOut, PUBLIC, relayWorld, TRADING, type RelayWorld } from '../support/relay-world.ts'
import { logIn, testServer, type TestServer } from '../support/world.ts'
import { until } from '../support/until.ts'

const EXPIRED = { code: 4401, reason: 'session_expired' }

/** An open trading relay, and how upstream hears of its end. */
async function trading(
  world: RelayWorld,
  port?: number,
): Promise<{ line: BrowserSocket; told: Promise<number> }> {
  const { line, peer } = await joined(world, TRADING, port === undefined ? {} : { port })
  return { line, told: once(peer, 'close').then(([code]: number[]) => code ?? 0) }
}

function secondServer(t: Test, world: RelayWorld): Promise<TestServer> {
  return testServer(t, { ...world.settings, PUBLIC_URL: world.server.url })
}

async function redisOf(t: Test, world: RelayWorld) {
  const client = await createClient({ url: world.redis?.url ?? '' }).connect()
  t.teardown(() => client.close())
  return client
}

for (const redis of [false, true]) {
  await test(`logging out ends every trading relay, and only those (${redis ? 'Redis' : 'memory'})`, async (t) => {
    const world = await relayWorld(t, { redis })
    const market = await world.line(PUBLIC).opened()
    const stream = await world.upstream.socket()
    const relays = [await trading(world), await trading(world)]
    t.equal((await logOut(world.browser)).status, 204)
    for (const { line, told } of relays) {
      t.same(await line.closed, EXPIRED)
      t.equal(await told, 1001)
    }
    stream.send('on it goes')
    t.equal((await market.count(1)).length, 1)
    market.socket.close()
    await world.quiet()
  })

  await test(`a new login ends the relays of the session it replaces (${redis ? 'Redis' : 'memory'})`, async (t) => {
    const world = await relayWorld(t, { redis })
    const { line } = await trading(world)
    await logIn(world.browser, world.server.url)
    t.same(await line.closed, EXPIRED)
    const { line: next } = await trading(world)
    next.socket.close()
    await world.quiet()
  })
}

await test('a replaced session is dead at once, and its sockets are told a second later, on every instance', async (t) => {
  const world = await relayWorld(t, { redis: true })
  const other = await secondServer(t, world)
  const relays = [await trading(world), await trading(world, other.port)]
  const before = world.browser.clone()
  await logIn(world.browser, world.server.url)
  const replacedAt = performance.now()
  const closings = relays.map(async ({ line }) => {
    t.same(await line.closed, EXPIRED)
    return performance.now() - replacedAt
  })
  const old = before.cookieHeader(new URL(world.server.url), undefined)
  for (const { port, url } of [world.server, other]) {
    const headers = { cookie: old, 'x-csrf': '1' }
    const call = (): Promise<Response> => fetch(`${url}/api/account/v1/nickname`, { headers })
    if (port === world.server.port) t.equal((await call()).status, 401)
    else await until(async () => (await call()).status === 401)
    t.match(await world.line(TRADING, { port, browser: before }).closed, { code: 4401 })
  }
  for (const { line } of relays) t.equal(line.socket.readyState, line.socket.OPEN, 'not told yet')
  // By the contract within two seconds; how long this machine takes is no matter of the test.
  for (const afterMs of await Promise.all(closings)) t.ok(afterMs > 900, `${Math.round(afterMs)} ms`)
  const ended = [world.server, other].flatMap(({ log }) =>
    log.filter(({ audit }) => audit === 'session_ended'),
  )
  t.same(
    ended.map(({ reason }) => reason),
    ['replaced'],
    'recorded once',
  )
  await world.quiet()
})

await test('a session ends its relays when it expires: at the absolute limit', async (t) => {
  const world = await relayWorld(t, { settings: { SESSION_MAX_SECONDS: '2' } })
  const { line } = await trading(world)
  t.same(await line.closed, EXPIRED)
  await world.quiet()
})

await test('a session ends its relays when it expires: with its token', async (t) => {
  const world = await relayWorld(t, { provider: { accessTokenSeconds: 2 }, redis: true })
  const { line } = await trading(world)
  t.same(await line.closed, EXPIRED)
  await world.quiet()
})

await test('a live relay counts as use of its session', async (t) => {
  const world = await relayWorld(t, { settings: { SESSION_IDLE_SECONDS: '1' }, redis: true })
  const { line } = await trading(world)
  const client = await redisOf(t, world)
  const [key = ''] = await client.keys('*session*')
  const first = await client.pExpireTime(key)
  // More than an idle limit later it is still there, though nobody called.
  await until(async () => (await client.pExpireTime(key)) > first + 1500 || line.socket.readyState !== 1)
  t.equal(line.socket.readyState, 1)
  line.socket.close()
  await world.quiet()
  await until(async () => (await client.exists(key)) === 0)
  t.pass('and ends once the relay is gone')
})

await test('unless RELAYS_KEEP_SESSION is off', async (t) => {
  const settings = { SESSION_IDLE_SECONDS: '1', RELAYS_KEEP_SESSION: 'false' }
  const world = await relayWorld(t, { settings, redis: true })
  const { line } = await trading(world)
  t.same(await line.closed, EXPIRED)
  await world.quiet()
})

await test('a logout on one instance closes the relay on another that holds nothing else', async (t) => {
  const world = await relayWorld(t, { redis: true })
  const second = await secondServer(t, world)
  const client = await redisOf(t, world)
  const { line, told } = await trading(world, second.port)
  const [key = ''] = await client.keys('*session*')
  // Two idle touches of the first instance: each is a change that the second must hear of, and go on listening.
  for (let touch = 1; touch <= 2; touch++) {
    await client.pExpireAt(key, Date.now() + 1_800_000 + touch * 1000)
    line.socket.ping()
    await once(line.socket, 'pong')
  }
  t.equal((await logOut(world.browser)).status, 204)
  t.same(await line.closed, EXPIRED)
  t.equal(await told, 1001)
  t.equal(world.upstream.open, 0)
})

await test('a session that is gone from the store ends its relays everywhere', async (t) => {
  const world = await relayWorld(t, { redis: true })
  const second = await secondServer(t, world)
  const client = await redisOf(t, world)
  for (const remove of [
    async () => client.del(await client.keys('*session*')),
    async () => client.flushAll(),
  ]) {
    await logIn(world.browser, world.server.url)
    const relays = [await trading(world), await trading(world, second.port)]
    await remove()
    for (const { line } of relays) t.same(await line.closed, EXPIRED)
  }
  await world.quiet()
})
