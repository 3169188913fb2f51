import { test } from 'tap'
import { Caps } from '../../src/sockets/caps.ts'
import { PUBLIC, relayWorld, TRADING } from '../support/relay-world.ts'
import { until } from '../support/until.ts'

const full = { code: 4429, reason: 'too_many_relays' }

await test('public sockets leave a quarter of all places to trading', async (t) => {
  const world = await relayWorld(t, { settings: { MAX_RELAYS: '8' } })
  const market = await Promise.all(Array.from({ length: 6 }, () => world.line(PUBLIC).opened()))
  t.same(await world.line(PUBLIC).closed, full)
  const trading = await Promise.all(Array.from({ length: 2 }, () => world.line(TRADING).opened()))
  t.same(await world.line(TRADING).closed, full, 'which is not without an end')

  market[0]?.socket.close()
  await market[0]?.closed
  await until(() => world.upstream.open === 7)
  const third = await world.line(TRADING).opened()
  t.same(await world.line(PUBLIC).closed, full, 'and trading may have more than its quarter')
  trading[0]?.socket.close()
  await trading[0]?.closed
  await world.line(PUBLIC).opened()
  for (const line of [...market, ...trading, third]) line.socket.terminate()
})

await test('PUBLIC_HANDSHAKES_PER_MINUTE: an address opens so many public sockets, and costs upstream no more', async (t) => {
  const world = await relayWorld(t, { settings: { PUBLIC_HANDSHAKES_PER_MINUTE: '3', TRUST_PROXY: '1' } })
  const from = (address: string, path = PUBLIC) =>
    world.line(path, { headers: { 'x-forwarded-for': address } })
  const opened = async (address: string): Promise<void> => {
    const line = await from(address).opened()
    line.socket.close()
    await line.closed
  }
  for (const last of ['1', '2', 'ffff']) await opened(`2001:db8::${last}`)
  for (let count = 0; count < 5; count++) {
    t.same(await from(`[2001:db8::${count}]:4711`).closed, { code: 4429, reason: 'rate_limited' })
  }
  t.equal(world.upstream.upgrades.length, 3)
  await opened('192.0.2.1')
  const cookie = world.browser.cookieHeader(new URL(world.server.url), undefined)
  const headers = { 'x-forwarded-for': '2001:db8::1', cookie }
  const trading = await world.line(TRADING, { headers }).opened()
  trading.socket.close()
})

await test('PUBLIC_HANDSHAKES_PER_MINUTE is four times MAX_PUBLIC_RELAYS_PER_IP unless set, and 0 is no limit', async (t) => {
  for (const [setting, most] of [
    ['', 4],
    ['0', 12],
  ] as const) {
    const settings = { MAX_PUBLIC_RELAYS_PER_IP: '1', PUBLIC_HANDSHAKES_PER_MINUTE: setting }
    const world = await relayWorld(t, { settings, anonymous: true })
    let opened = 0
    for (let count = 0; count < 12; count++) {
      const line = world.line(PUBLIC)
      await Promise.race([line.opened().then(() => line.socket.close()), line.closed])
      if ((await line.closed).code === 1005) opened++
    }
    t.equal(opened, most)
  }
})

await test('places, and their immediate return', async (t) => {
  const settings = {
    MAX_RELAYS: '6',
    MAX_RELAYS_PER_SESSION: '2',
    MAX_PUBLIC_RELAYS_PER_IP: '3',
    TRUST_PROXY: '1',
  }
  const world = await relayWorld(t, { settings })
  const full = { code: 4429, reason: 'too_many_relays' }
  const from = (address: string) =>
    world.line(PUBLIC, { headers: { cookie: '', 'x-forwarded-for': address } })
  const trading = [await world.line(TRADING).opened(), await world.line(TRADING).opened()]
  await until(() => world.upstream.open === 2)
  t.same(await world.line(TRADING).closed, full, 'of a session')
  t.equal(world.upstream.otpRequests.length, 2, 'which costs no one-time URL')

  const household = [from('2001:db8:1:2::1'), from('2001:db8:1:2:ffff::1'), from('2001:db8:1:2:3:4:5:6')]
  await until(() => world.upstream.open === 5)
  t.same(await from('2001:db8:1:2::9').closed, full, 'of an address: an IPv6 client has all of its /64')
  const neighbour = from('2001:db8:1:3::1')
  await until(() => world.upstream.open === 6)
  t.same(await from('192.0.2.1').closed, full, 'of the process')

  household[0]?.socket.close()
  await household[0]?.closed
  const again = from('192.0.2.1')
  await until(() => world.upstream.open === 6)
  for (const line of [...trading, ...household, neighbour, again]) line.socket.terminate()
  for (let round = 0; round < 20; round++) {
    const two = [await world.line(TRADING).opened(), await world.line(TRADING).opened()]
    for (const line of two) {
      line.socket.close(1000)
      await line.closed
    }
  }
  t.pass('a page that reloads is never refused for the relay that it has just closed')
  await world.quiet()
})

await test('a place is given back once, however often', async (t) => {
  const caps = new Caps({ maxRelays: 1, maxPerSession: 2, maxPublicPerIp: 1, publicHandshakesPerMinute: 0 })
  const leave = caps.acquireProcess()
  t.equal(caps.acquireProcess(), undefined)
  leave?.()
  leave?.()
  t.ok(caps.acquireProcess())
  t.equal(caps.acquireProcess(), undefined)
  const first = caps.acquireSession('a')
  t.ok(caps.acquireSession('a'))
  t.equal(caps.acquireSession('a'), undefined)
  t.ok(caps.acquireSession('b'), 'another session has its own')
  first?.()
  first?.()
  t.ok(caps.acquireSession('a'))
  t.equal(caps.acquireSession('a'), undefined, 'one was given back, not two')
})
