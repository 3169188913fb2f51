import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { test } from 'tap'
import { Sessions } from '../../src/sessions/index.ts'
import { SocketSlot } from '../../src/sockets/registry.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { replace } from '../support/time/replace.ts'
import { nextEvent, until, within } from '../support/time/until.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'

type Opening = Parameters<SocketSlot['opened']>

/** With a single permit, a handshake that keeps it blocks the next one. */
const ONE_PERMIT = { MAX_RELAYS: '1', MAX_RELAYS_PER_SESSION: '1', MAX_PUBLIC_RELAYS_PER_IP: '1' }

/** The connection of a browser that has sent its handshake and can leave before the response. */
async function halfOpen(world: World<'scripted'>, path: string, port = world.server.port): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await nextEvent(socket, 'connect')
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

/** Resolves once the server ends a connection to upstream that never became a WebSocket. */
async function hungUp(raw: Duplex): Promise<void> {
  await within(Promise.race([once(raw, 'end'), once(raw, 'close')]), 'the connection ends')
  raw.destroy()
}

const left = async (world: World<'scripted'>): Promise<number> =>
  (await world.metric('bff_relay_refusals_total')).get('reason="browser_left"') ?? 0

/** Whether the one permit is free. */
async function isFree(world: World<'scripted'>, path = TRADING): Promise<boolean> {
  const client = await world.socket(path).opened()
  const peer = await world.upstream.socket()
  client.socket.close(1000)
  const { code } = await client.closed
  await nextEvent(peer, 'close')
  return code === 1000
}

for (const [how, leave] of LEAVES) {
  await test(`a browser that leaves while the server requests its one-time URL releases its permit (${how})`, async (t) => {
    const world = await startWorld(t, { ...RELAY, settings: ONE_PERMIT })
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
    t.ok(await isFree(world), 'the permit is released before upstream responds')
    answer()
    t.ok(await isFree(world))
    t.equal(upstream.upgrades.length, 2, 'the one-time URL is not used')
    await world.quiet()
  })

  await test(`a browser that leaves while upstream opens ends that handshake and releases its permit (${how})`, async (t) => {
    const world = await startWorld(t, { ...RELAY, settings: ONE_PERMIT })
    const { upstream } = world
    for (const path of [PUBLIC, TRADING]) {
      const before = await left(world)
      const upgrading = new Promise<Duplex>((resolve) => {
        upstream.onUpgrade = (_request, raw) => resolve(raw)
      })
      const socket = await halfOpen(world, path)
      const raw = await within(upgrading, 'a handshake')
      leave(socket)
      await hungUp(raw)
      t.equal((await left(world)) - before, 1, 'the refusal is counted once')
      upstream.onUpgrade = undefined
      t.ok(await isFree(world, path))
    }
    await world.quiet()
  })
}

await test('a browser that leaves while its session is read causes no call upstream', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: ONE_PERMIT, redis: true })
  // A second instance, whose near cache does not have the session.
  const fresh = await world.instance()
  world.redis?.process.kill('SIGSTOP')
  const socket = await halfOpen(world, TRADING, fresh.port)
  socket.destroy()
  const refused = async (): Promise<string> => (await fetch(`${fresh.opsUrl}/metrics`)).text()
  await until(async () => (await refused()).includes('bff_relay_refusals_total{reason="browser_left"} 1'))
  world.redis?.process.kill('SIGCONT')
  const client = await world.socket(TRADING, { at: fresh }).opened()
  await world.upstream.socket()
  t.equal(world.upstream.otpRequests.length, 1, 'only the browser that stayed gets a one-time URL')
  client.socket.close()
  await client.closed
})

await test('the last check of the session: a browser that leaves ends upstream, and without Redis no relay opens', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: ONE_PERMIT, redis: true })
  const { upstream } = world
  const store = world.redis?.process
  upstream.onUpgrade = (request, raw, head) => {
    store?.kill('SIGSTOP')
    upstream.accept(request, raw, head)
  }
  const socket = await halfOpen(world, TRADING)
  const peer = await upstream.socket()
  const over = nextEvent(peer, 'close')
  socket.destroy()
  await over
  t.equal(await left(world), 1, 'a browser that leaves during the check ends upstream')
  store?.kill('SIGCONT')

  const refused = { code: 1013, reason: 'session_store_unavailable' }
  let answer = await world.socket(TRADING).closed
  // The first handshake may still find the store unavailable.
  while (answer.reason === refused.reason && upstream.upgrades.length === 1) answer = await world.socket(TRADING).closed
  t.same(answer, refused, 'a handshake whose last check fails is refused')
  store?.kill('SIGCONT')
  await world.quiet()
})

/** A store that announces no change. It stands for one whose announcement is still on its way. */
class SilentStore extends MemoryStore {
  override onChange(): void {
    // Nobody is notified.
  }
}

await test('a session that ends in the last moment of a handshake is closed with 4401, and no message passes', async (t) => {
  const store = new SilentStore()
  const { upstream, browser, socket, quiet } = await startWorld(t, { ...RELAY, store })
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
  const client = socket(TRADING)
  client.socket.on('open', () => client.socket.send('{"buy":1}'))
  const close = await within(client.closed, 'the handshake is refused', 2000)
  t.same(close, { code: 4401, reason: 'session_expired' })
  t.same(client.texts, [], 'the browser receives nothing')
  await quiet()
  t.same(arrived, [], 'upstream receives nothing')
})

await test('a session that ends during a handshake is closed with 4401, on every instance', async (t) => {
  const world = await startWorld(t, { ...RELAY, redis: true })
  const second = await world.instance()
  const { upstream, browser } = world
  const { onOtp } = upstream
  for (const port of [world.server.port, second.port]) {
    const copy = browser.clone()
    upstream.onOtp = () => undefined
    const asking = world.visitor(copy).socket(TRADING, { at: { port } })
    await until(() => upstream.otpRequests.length > 0)
    t.equal((await world.logOut()).status, 204)
    t.same(await asking.closed, { code: 4401, reason: 'session_expired' }, 'while the server requests the one-time URL')
    upstream.onOtp = onOtp

    await world.visitor(browser).logIn()
    const upgrading = new Promise<Duplex>((resolve) => {
      upstream.onUpgrade = (_request, raw) => resolve(raw)
    })
    const opening = world.visitor(browser.clone()).socket(TRADING, { at: { port } })
    const raw = await within(upgrading, 'a handshake')
    const over = hungUp(raw)
    await world.logOut()
    t.same(await opening.closed, { code: 4401, reason: 'session_expired' }, 'while upstream opens')
    await over
    upstream.onUpgrade = undefined
    upstream.otpRequests.length = 0
    await world.visitor(browser).logIn()
  }
  t.equal(upstream.open, 0)
})

await test('a socket that this server fails to join leaves no permit and no upstream socket behind', async (t) => {
  const world = await startWorld(t, { ...RELAY, ...ONE_PERMIT })
  for (const path of [PUBLIC, TRADING]) {
    await t.test(path, async (failing) => {
      replace(failing, SocketSlot.prototype, 'opened', () => {
        throw new Error('a fault of this server')
      })
      const { code, reason } = await world.socket(path).closed
      t.same([code, reason], [1011, 'internal_error'], path)
      await nextEvent(await world.upstream.socket(), 'close')
    })
    t.ok(await isFree(world, path))
  }
})

await test('a socket that this server fails to join once it has counted it is counted no more', async (t) => {
  const world = await startWorld(t, RELAY)
  const opened = Reflect.get(SocketSlot.prototype, 'opened') as (this: SocketSlot, ...args: Opening) => unknown
  for (const path of [PUBLIC, TRADING, '/ws/session']) {
    await t.test(path, async (failing) => {
      replace(failing, SocketSlot.prototype, 'opened', function counted(this: SocketSlot, ...args: Opening) {
        opened.apply(this, args)
        throw new Error('a fault of this server')
      })
      t.match(await world.socket(path).closed, { code: 1011 })
      await world.quiet()
    })
  }
})

await test('an upstream socket is closed if the session cannot be judged once it is open', async (t) => {
  const world = await startWorld(t, { ...RELAY, ...ONE_PERMIT })
  await t.test('a fault of this server', async (failing) => {
    replace(failing, Sessions.prototype, 'reread', async () => {
      throw new Error('planted')
    })
    failing.match(await world.socket(TRADING).closed, { code: 1011 })
    await world.upstream.socket()
    await world.quiet()
  })
  t.ok(await isFree(world))
})
