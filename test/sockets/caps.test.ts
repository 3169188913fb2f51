import { test } from 'tap'
import { Caps } from '../../src/limits/caps.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { until } from '../support/time/until.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

const full = { code: 4429, reason: 'too_many_relays' }

await test('public sockets leave a quarter of MAX_RELAYS to trading sockets', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: { MAX_RELAYS: '8' } })
  const market = await Promise.all(Array.from({ length: 6 }, () => world.socket(PUBLIC).opened()))
  t.same(await world.socket(PUBLIC).closed, full)
  const trading = await Promise.all(Array.from({ length: 2 }, () => world.socket(TRADING).opened()))
  t.same(await world.socket(TRADING).closed, full, 'trading sockets are limited too')

  market[0]?.socket.close()
  await market[0]?.closed
  await until(() => world.upstream.open === 7)
  const third = await world.socket(TRADING).opened()
  t.same(await world.socket(PUBLIC).closed, full, 'trading sockets may take more than a quarter')
  trading[0]?.socket.close()
  await trading[0]?.closed
  await world.socket(PUBLIC).opened()
  for (const client of [...market, ...trading, third]) client.socket.terminate()
})

await test('PUBLIC_HANDSHAKES_PER_MINUTE bounds the public sockets that an address opens, and the handshakes upstream', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: { PUBLIC_HANDSHAKES_PER_MINUTE: '3', TRUST_PROXY: '1' } })
  const from = (address: string) => world.socket(PUBLIC, { headers: { 'x-forwarded-for': address } })
  const opened = async (address: string): Promise<void> => {
    const client = await from(address).opened()
    client.socket.close()
    await client.closed
  }
  for (const last of ['1', '2', 'ffff']) await opened(`2001:db8::${last}`)
  for (let count = 0; count < 5; count++) {
    const { code, reason } = await from(`[2001:db8::${count}]:4711`).closed
    t.equal(code, 4429)
    t.match(reason, /^rate_limited;retry_after=([1-9]|[1-5][0-9]|60)$/)
  }
  t.equal(world.upstream.upgrades.length, 3)
  await opened('192.0.2.1')
  const { cookie } = world
  const headers = { 'x-forwarded-for': '2001:db8::1', cookie }
  const trading = await world.socket(TRADING, { headers }).opened()
  trading.socket.close()
})

await test('PUBLIC_HANDSHAKES_PER_MINUTE is four times MAX_PUBLIC_RELAYS_PER_IP by default, and 0 means no limit', async (t) => {
  for (const [setting, most] of [
    ['', 4],
    ['0', 12],
  ] as const) {
    const settings = { MAX_PUBLIC_RELAYS_PER_IP: '1', PUBLIC_HANDSHAKES_PER_MINUTE: setting }
    const world = await startWorld(t, { upstream: 'scripted', settings })
    let opened = 0
    for (let count = 0; count < 12; count++) {
      const client = world.socket(PUBLIC)
      await Promise.race([client.opened().then(() => client.socket.close()), client.closed])
      if ((await client.closed).code === 1005) opened++
    }
    t.equal(opened, most)
  }
})

await test('MAX_RELAYS, MAX_RELAYS_PER_SESSION and MAX_PUBLIC_RELAYS_PER_IP hold, and a closed socket releases its permit at once', async (t) => {
  const settings = {
    MAX_RELAYS: '6',
    MAX_RELAYS_PER_SESSION: '2',
    MAX_PUBLIC_RELAYS_PER_IP: '3',
    TRUST_PROXY: '1',
  }
  const world = await startWorld(t, { ...RELAY, settings })
  const full = { code: 4429, reason: 'too_many_relays' }
  const from = (address: string) => world.socket(PUBLIC, { headers: { cookie: '', 'x-forwarded-for': address } })
  const trading = [await world.socket(TRADING).opened(), await world.socket(TRADING).opened()]
  await until(() => world.upstream.open === 2)
  t.same(await world.socket(TRADING).closed, full, 'the limit of a session')
  t.equal(world.upstream.otpRequests.length, 2, 'a refused socket causes no request for a one-time URL')

  const household = [from('2001:db8:1:2::1'), from('2001:db8:1:2:ffff::1'), from('2001:db8:1:2:3:4:5:6')]
  await until(() => world.upstream.open === 5)
  t.same(await from('2001:db8:1:2::9').closed, full, 'the limit of an address, which for IPv6 is a /64')
  const neighbour = from('2001:db8:1:3::1')
  await until(() => world.upstream.open === 6)
  t.same(await from('192.0.2.1').closed, full, 'the limit of the process')

  household[0]?.socket.close()
  await household[0]?.closed
  const again = from('192.0.2.1')
  await until(() => world.upstream.open === 6)
  for (const client of [...trading, ...household, neighbour, again]) client.socket.terminate()
  await until(() => world.upstream.open === 0)
  // A page that reloads is not refused because of the sockets that it has just closed.
  for (let round = 0; round < 20; round++) {
    const two = [await world.socket(TRADING).opened(), await world.socket(TRADING).opened()]
    for (const client of two) {
      client.socket.close(1000)
      t.same(await client.closed, { code: 1000, reason: '' }, `round ${round}`)
    }
  }
  await world.quiet()
})

const LIMITS = {
  maxRelays: 1,
  maxSessionSockets: 1,
  maxSessionSocketsPerIp: 1,
  maxPerSession: 2,
  maxPublicPerIp: 1,
  publicHandshakesPerMinute: 1,
}

await test('a permit that is released twice counts once', async (t) => {
  const caps = new Caps(LIMITS, new MemoryStore())
  const release = caps.acquireProcess()
  t.equal(caps.acquireProcess(), undefined)
  release?.()
  release?.()
  t.ok(caps.acquireProcess())
  t.equal(caps.acquireProcess(), undefined)
  const first = await caps.acquireSession('a')
  t.ok(await caps.acquireSession('a'))
  t.equal(await caps.acquireSession('a'), undefined)
  t.ok(await caps.acquireSession('b'), 'another session has permits of its own')
  first?.()
  first?.()
  t.ok(await caps.acquireSession('a'))
  t.equal(await caps.acquireSession('a'), undefined, 'one permit was released, not two')
})

await test('a minute of PUBLIC_HANDSHAKES_PER_MINUTE is a minute, also when the time of day is set', (t) => {
  const caps = new Caps(LIMITS, new MemoryStore())
  t.equal(caps.allowsHandshake('192.0.2.1'), true)
  const now = Date.now()
  for (const stepMs of [3_600_000, -3_600_000]) {
    t.intercept(Date, 'now', { value: () => now + stepMs })
    t.equal(caps.allowsHandshake('192.0.2.1'), false)
    t.ok(caps.handshakeSecondsLeft <= 60, `${caps.handshakeSecondsLeft} s`)
  }
  t.end()
})
