import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import type { BrowserSocket } from '../support/browser/browser-socket.ts'
import { storedSessions } from '../support/sessions/stored-sessions.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'

const EXPIRED = { code: 4401, reason: 'session_expired' }

/** An open trading relay, and the code that upstream is closed with. */
async function trading(
  world: World<'scripted'>,
  port?: number,
): Promise<{ client: BrowserSocket; upstreamClosed: Promise<number> }> {
  const { client, peer } = await world.joined(TRADING, port === undefined ? {} : { at: { port } })
  return { client, upstreamClosed: once(peer, 'close').then(([code]: number[]) => code ?? 0) }
}

for (const redis of [false, true]) {
  await test(`POST /auth/logout closes every trading relay of the session with 4401, and no public one (${redis ? 'Redis' : 'memory'})`, async (t) => {
    const world = await startWorld(t, { ...RELAY, redis })
    const market = await world.socket(PUBLIC).opened()
    const stream = await world.upstream.socket()
    const relays = [await trading(world), await trading(world)]
    t.equal((await world.logOut()).status, 204)
    for (const { client, upstreamClosed } of relays) {
      t.same(await client.closed, EXPIRED)
      t.equal(await upstreamClosed, 1001)
    }
    stream.send('on it goes')
    t.equal((await market.count(1)).length, 1)
    market.socket.close()
    await world.quiet()
  })

  await test(`a new login closes the relays of the session that it replaces with 4401 (${redis ? 'Redis' : 'memory'})`, async (t) => {
    const world = await startWorld(t, { ...RELAY, redis })
    const { client, peer } = await world.joined(TRADING)
    const received: string[] = []
    peer.on('message', (data: Buffer) => received.push(data.toString()))
    client.socket.send('before')
    await until(() => received.length === 1)
    await world.logIn()
    client.socket.send('after')
    t.same(await client.closed, EXPIRED)
    t.same(received, ['before'], 'its socket is open for another second, but sends nothing on')
    const { client: next } = await trading(world)
    next.socket.close()
    await world.quiet()
  })
}

for (const leaves of [false, true]) {
  const name = leaves ? 'whose page has left' : 'of an open socket'
  await test(`orders ${name} that wait here because upstream does not read do not leave after the session has ended`, async (t) => {
    const world = await startWorld(t, RELAY)
    const { client, peer } = await world.joined(TRADING)
    let received = 0
    peer.on('message', () => void received++)
    peer.pause()
    const waiting = async (): Promise<number> => (await world.metric('bff_relay_buffered_bytes')).get('') ?? 0
    const order = `{"buy":1,"passthrough":{"x":"${'x'.repeat(50_000)}"}}`
    let sent = 0
    while ((await waiting()) < 500_000) {
      for (const end = sent + 4; sent < end; sent++) client.socket.send(order)
      await delay(5)
    }
    const least = Math.floor((await waiting()) / order.length)
    if (leaves) client.socket.terminate()
    const open = async (): Promise<number> => (await world.metric('bff_relays')).get('kind="demo"') ?? 0
    await until(async () => (await open()) === (leaves ? 0 : 1))
    t.equal((await world.logOut()).status, 204)
    t.match(await client.closed, leaves ? { code: 1006 } : EXPIRED)
    const closed = nextEvent(peer, 'close')
    peer.resume()
    await closed
    t.ok(received <= sent - least, `${received} of ${sent} were received, and at least ${least} waited`)
    await world.quiet()
  })
}

await test('a replaced session is refused at once, and its sockets are closed a second later, on every instance', async (t) => {
  const world = await startWorld(t, { ...RELAY, redis: true })
  const other = await world.instance()
  const relays = [await trading(world), await trading(world, other.port)]
  const before = world.browser.clone()
  const startedAt = performance.now()
  await world.logIn()
  const closings = relays.map(async ({ client }) => {
    t.same(await client.closed, EXPIRED)
    return performance.now() - startedAt
  })
  const old = before.cookieHeader(new URL(world.server.url), undefined)
  for (const { port, url } of [world.server, other]) {
    const headers = { cookie: old, 'x-csrf': '1' }
    const call = (): Promise<Response> => fetch(`${url}/api/account/v1/nickname`, { headers })
    if (port === world.server.port) t.equal((await call()).status, 401)
    else await until(async () => (await call()).status === 401)
    t.match(await world.visitor(before).socket(TRADING, { at: { port } }).closed, { code: 4401 })
  }
  // How long a slow machine takes beyond that second does not matter here.
  for (const afterMs of await Promise.all(closings)) t.ok(afterMs >= 1000, `${Math.round(afterMs)} ms`)
  const ended = [world.server, other].flatMap(({ log }) => log.filter(({ audit }) => audit === 'session_ended'))
  t.same(
    ended.map(({ reason }) => reason),
    ['replaced'],
    'recorded once',
  )
  await world.quiet()
})

await test('relays are closed with 4401 when their session reaches SESSION_MAX_SECONDS', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: { SESSION_MAX_SECONDS: '2' } })
  const { client } = await trading(world)
  t.same(await client.closed, EXPIRED)
  await world.quiet()
})

await test('relays are closed with 4401 when the token of their session expires and cannot be renewed', async (t) => {
  const world = await startWorld(t, { ...RELAY, provider: { accessTokenSeconds: 2 }, redis: true })
  const { client } = await trading(world)
  t.same(await client.closed, EXPIRED)
  await world.quiet()
})

await test('with RELAYS_KEEP_SESSION=false an open relay does not count as use of its session', async (t) => {
  const settings = { SESSION_IDLE_SECONDS: '3', RELAYS_KEEP_SESSION: 'false' }
  const world = await startWorld(t, { ...RELAY, settings, redis: true })
  const { client } = await trading(world)
  t.same(await client.closed, EXPIRED)
  await world.quiet()
})

await test('a token that is renewed without a call does not count as use of its session, either', async (t) => {
  const settings = { SESSION_IDLE_SECONDS: '4', RELAYS_KEEP_SESSION: 'false' }
  const provider = { accessTokenSeconds: 1, refreshTokens: true }
  const world = await startWorld(t, { ...RELAY, provider, settings, redis: true })
  const { client } = await trading(world)
  t.same(await client.closed, EXPIRED)
  t.ok(world.server.log.some(({ audit }) => audit === 'token_refreshed'))
  await world.quiet()
})

await test('a session that an operator deletes from Redis ends its relays on every instance', async (t) => {
  const world = await startWorld(t, { ...RELAY, redis: true })
  const second = await world.instance()
  const redis = await world.storeClient()
  for (const remove of [async () => redis.del(await storedSessions(redis)), async () => redis.flushAll()]) {
    await world.logIn()
    const relays = [await trading(world), await trading(world, second.port)]
    await remove()
    for (const { client } of relays) t.same(await client.closed, EXPIRED)
  }
  await world.quiet()
})
