import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { answerJson } from '../support/scripted-upstream.ts'
import { logOut, PUBLIC, relayWorld, TRADING, type RelayWorld } from '../support/relay-world.ts'
import { logIn, testServer } from '../support/world.ts'
import { until, within } from '../support/until.ts'

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

/** A store that announces no change, as when its announcement is still on the way. */
class SilentStore extends MemoryStore {
  override onChange(): void {
    // Nobody is notified.
  }
}

await test('a session that ends in the last moment of a handshake is closed with 4401, and no message passes', async (t) => {
  const store = new SilentStore()
  const world = await relayWorld(t, { store })
  const { upstream, browser } = world
  const [cookie] = browser.named('__Host-session')
  const arrived: unknown[] = []
  upstream.onSocket = (peer) => {
    peer.on('message', (data) => arrived.push(data))
    peer.send('{"balance":1}')
  }
  upstream.onUpgrade = (request, raw, head) => {
    void store.remove(sessionKey(cookie?.value.split('.')[0] ?? '')).then((wasThere) => {
      t.ok(wasThere, 'the session ends while upstream opens')
      upstream.accept(request, raw, head)
    })
  }
  const line = world.line(TRADING)
  line.socket.on('open', () => line.socket.send('{"buy":1}'))
  const close = await within(line.closed, 'the handshake is refused', 2000)
  t.same(close, { code: 4401, reason: 'session_expired' })
  t.same(line.texts, [], 'the browser receives nothing')
  await world.quiet()
  t.same(arrived, [], 'upstream receives nothing')
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
