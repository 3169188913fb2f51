import { once } from 'node:events'
import { connect } from 'node:net'
import { createClient } from 'redis'
import { test, type Test } from 'tap'
import type { BrowserSocket } from '../support/browser-socket.ts'
import { logOut, PUBLIC, relayWorld, TRADING, type RelayWorld } from '../support/relay-world.ts'
import { logIn, testServer, type TestServer } from '../support/world.ts'
import { until } from '../support/until.ts'

const EXPIRED = { code: 4401, reason: 'session_expired' }

/** An open trading relay, and how upstream hears of its end. */
async function trading(
  world: RelayWorld,
  port?: number,
): Promise<{ line: BrowserSocket; told: Promise<number> }> {
  const line = await world.line(TRADING, port === undefined ? {} : { port }).opened()
  const peer = await world.upstream.socket()
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

await test('relays outlive the store for a while, and no longer', async (t) => {
  const world = await relayWorld(t, { redis: true, settings: { RELAY_STORE_GRACE_SECONDS: '2' } })
  const second = await testServer(t, {
    ...world.settings,
    PUBLIC_URL: world.server.url,
    RELAY_STORE_GRACE_SECONDS: '60',
  })
  const short = await trading(world)
  const long = await trading(world, second.port)
  const market = await world.line(PUBLIC).opened()
  const stream = await world.upstream.socket()
  world.redis?.process.kill('SIGKILL')
  t.same(await short.line.closed, { code: 1013, reason: 'session_store_unavailable' })
  t.same(
    await world.line(TRADING).closed,
    { code: 1013, reason: 'session_store_unavailable' },
    'nor a new one',
  )
  t.equal(long.line.socket.readyState, 1, 'within its grace it stays')
  stream.send('on it goes')
  t.equal((await market.count(1)).length, 1, 'market data needs no session')
  for (const line of [long.line, market]) line.socket.close()
  await world.quiet()
})

await test('relays do not need the provider', async (t) => {
  const world = await relayWorld(t)
  const { line } = await trading(world)
  await world.provider.close()
  const { line: another } = await trading(world)
  for (const each of [line, another]) {
    each.socket.ping()
    await once(each.socket, 'pong')
    t.equal(each.socket.readyState, 1)
    each.socket.close()
  }
  await world.quiet()
})

await test('an upstream that dies takes its relays along, and nothing else', async (t) => {
  const world = await relayWorld(t)
  const lines = [await world.line(PUBLIC).opened(), await world.line(TRADING).opened()]
  await until(() => world.upstream.open === 2)
  await world.upstream.close()
  for (const line of lines) t.same(await line.closed, { code: 1013, reason: 'upstream_lost' })
  t.same(await world.line(PUBLIC).closed, { code: 1013, reason: 'upstream_unreachable' })
  t.same(await world.line(TRADING).closed, { code: 1013, reason: 'upstream_unreachable' })
  await world.quiet()
})

await test('a server that stops says so to everybody', async (t) => {
  const world = await relayWorld(t, { settings: { DRAIN_SECONDS: '2' } })
  const { upstream, server } = world
  const restarting = { code: 1012, reason: 'shutting_down' }
  const open = [await world.line(PUBLIC).opened(), await world.line(TRADING).opened()]
  // One that reads nothing any more, and one that still waits for upstream.
  const deaf = await world.line(PUBLIC).opened()
  deaf.socket.pause()
  await until(() => upstream.open === 3)
  upstream.onOtp = () => undefined
  const waiting = world.line(TRADING)
  await until(() => upstream.otpRequests.length === 2)
  // A handshake that is still on its way when the server has begun to stop.
  const late = connect(server.port, '127.0.0.1')
  await once(late, 'connect')
  late.write(`GET ${PUBLIC} HTTP/1.1\r\nHost: localhost\r\nOrigin: ${server.url}\r\nUpgrade: websocket\r\n`)
  const answer: Buffer[] = []
  late.on('data', (chunk: Buffer) => answer.push(chunk))
  const lateIsOver = once(late, 'close')

  const stopped = server.close()
  for (const { closed } of [...open, waiting]) t.same(await closed, restarting)
  late.write(
    'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await until(() => Buffer.concat(answer).includes('shutting_down'))
  t.match(Buffer.concat(answer).toString('latin1'), /^HTTP\/1\.1 101 /)
  await stopped
  await lateIsOver
  deaf.socket.resume()
  t.same(await deaf.closed, restarting, 'it waits to be read')
  t.equal(upstream.open, 0)
  await t.rejects(fetch(server.url))
  t.equal(
    server.app.server.initialConfig.pluginTimeout,
    0,
    'nor does Fastify give up on a drain after ten seconds',
  )
})
