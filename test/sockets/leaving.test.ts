import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { test } from 'tap'
import { answerJson } from '../support/scripted-upstream.ts'
import { logOut, PUBLIC, relayWorld, TRADING, type RelayWorld } from '../support/relay-world.ts'
import { logIn, testServer } from '../support/world.ts'
import { until } from '../support/until.ts'

/** With one place in all, whatever keeps it is seen by the next who wants it. */
const ONE_PLACE = { MAX_RELAYS: '1', MAX_RELAYS_PER_SESSION: '1', MAX_PUBLIC_RELAYS_PER_IP: '1' }

/** A handshake by hand: the connection of a browser that can leave in its middle. */
async function halfOpen(world: RelayWorld, path: string, port = world.server.port): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const head = [
    `GET ${path} HTTP/1.1`,
    'Host: localhost',
    `Origin: ${world.server.url}`,
    `Cookie: ${world.browser.cookieHeader(new URL(world.server.url), undefined)}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  socket.on('error', () => undefined)
  return socket
}

const LEAVES: [how: string, leave: (socket: Socket) => void][] = [
  ['closing its end', (socket) => socket.end()],
  ['hanging up', (socket) => socket.destroy()],
  ['resetting', (socket) => socket.resetAndDestroy()],
]

/** Our end of a connection that nobody made a WebSocket of. */
async function hungUp(raw: Duplex): Promise<void> {
  await Promise.race([once(raw, 'end'), once(raw, 'close')])
  raw.destroy()
}

const left = async (world: RelayWorld): Promise<number> =>
  (await world.metric('bff_relay_refusals_total')).get('reason="browser_left"') ?? 0

/** The one place is free again. */
async function isFree(world: RelayWorld, path = TRADING): Promise<boolean> {
  const line = await world.line(path).opened()
  const peer = await world.upstream.socket()
  line.socket.close(1000)
  const { code } = await line.closed
  await once(peer, 'close')
  return code === 1000
}

for (const [how, leave] of LEAVES) {
  await test(`a browser that leaves while its one-time URL is asked for (${how})`, async (t) => {
    const world = await relayWorld(t, { settings: ONE_PLACE })
    const { upstream } = world
    const { onOtp } = upstream
    const asked = new Promise<() => void>((resolve) => {
      upstream.onOtp = (_request, response) => {
        resolve(() => answerJson(response, 200, { data: { url: upstream.otpUrl() } }))
      }
    })
    const socket = await halfOpen(world, TRADING)
    const answer = await asked
    leave(socket)
    await until(async () => (await left(world)) === 1)
    upstream.onOtp = onOtp
    t.ok(await isFree(world), 'its place is given back before upstream has answered')
    answer()
    t.ok(await isFree(world))
    t.equal(upstream.upgrades.length, 2, 'its one-time URL was not used')
    await world.quiet()
  })

  await test(`a browser that leaves while upstream opens (${how})`, async (t) => {
    const world = await relayWorld(t, { settings: ONE_PLACE })
    const { upstream } = world
    for (const path of [PUBLIC, TRADING]) {
      const before = await left(world)
      const held = new Promise<Duplex>((resolve) => {
        upstream.onUpgrade = (_request, raw) => resolve(raw)
      })
      const socket = await halfOpen(world, path)
      const raw = await held
      leave(socket)
      await hungUp(raw)
      t.equal((await left(world)) - before, 1, 'upstream is hung up on')
      upstream.onUpgrade = undefined
      t.ok(await isFree(world, path))
    }
    await world.quiet()
  })
}

await test('a browser that leaves while its session is read costs upstream nothing', async (t) => {
  const world = await relayWorld(t, { settings: ONE_PLACE, redis: true })
  // Another instance, which does not hold the session near.
  const fresh = await testServer(t, { ...world.settings, PUBLIC_URL: world.server.url })
  world.redis?.process.kill('SIGSTOP')
  const socket = await halfOpen(world, TRADING, fresh.port)
  socket.destroy()
  const refused = async (): Promise<string> => (await fetch(`${fresh.opsUrl}/metrics`)).text()
  await until(async () => (await refused()).includes('bff_relay_refusals_total{reason="browser_left"} 1'))
  world.redis?.process.kill('SIGCONT')
  const line = await world.line(TRADING, { port: fresh.port }).opened()
  await world.upstream.socket()
  t.equal(world.upstream.otpRequests.length, 1, 'only for the one who stayed')
  line.socket.close()
  await line.closed
})

await test('the last look at the session, when upstream is open already', async (t) => {
  const world = await relayWorld(t, { settings: ONE_PLACE, redis: true })
  const { upstream } = world
  const store = world.redis?.process
  upstream.onUpgrade = (request, raw, head) => {
    store?.kill('SIGSTOP')
    upstream.accept(request, raw, head)
  }
  const socket = await halfOpen(world, TRADING)
  const peer = await upstream.socket()
  const over = once(peer, 'close')
  socket.destroy()
  await over
  t.equal(await left(world), 1, 'a browser that leaves just then takes upstream along')
  store?.kill('SIGCONT')

  const refused = { code: 1013, reason: 'session_store_unavailable' }
  let answer = await world.line(TRADING).closed
  // The first may still be told that the store was just away.
  while (answer.reason === refused.reason && upstream.upgrades.length === 1)
    answer = await world.line(TRADING).closed
  t.same(answer, refused, 'and without an answer nobody gets a socket')
  store?.kill('SIGCONT')
  await world.quiet()
})

await test('a session that ends in the middle never gets a socket', async (t) => {
  const world = await relayWorld(t, { redis: true })
  const second = await testServer(t, { ...world.settings, PUBLIC_URL: world.server.url })
  const { upstream, browser } = world
  const { onOtp } = upstream
  for (const port of [world.server.port, second.port]) {
    const copy = browser.clone()
    upstream.onOtp = () => undefined
    const asking = world.line(TRADING, { browser: copy, port })
    await until(() => upstream.otpRequests.length > 0)
    t.equal((await logOut(browser)).status, 204)
    t.same(await asking.closed, { code: 4401, reason: 'session_expired' }, 'while upstream is asked')
    upstream.onOtp = onOtp

    await logIn(browser, world.server.url)
    const held = new Promise<Duplex>((resolve) => {
      upstream.onUpgrade = (_request, raw) => resolve(raw)
    })
    const opening = world.line(TRADING, { browser: browser.clone(), port })
    const raw = await held
    const over = hungUp(raw)
    await logOut(browser)
    t.same(await opening.closed, { code: 4401, reason: 'session_expired' }, 'while upstream opens')
    await over
    upstream.onUpgrade = undefined
    upstream.otpRequests.length = 0
    await logIn(browser, world.server.url)
  }
  t.equal(upstream.open, 0)
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
