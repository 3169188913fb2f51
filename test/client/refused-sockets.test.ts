import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { createClient } from '../../client/dist/client.js'
import { failure, pageEvents } from '../support/client/page-client.ts'
import { socketPeer } from '../support/client/socket-peer.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { nextEvent, until } from '../support/time/until.ts'

await test('a request waits for the next connection while the server refuses connections', async (t) => {
  const world = await socketPeer(t)
  let refusals = 0
  world.onSocket = (socket) => refusals++ < 2 && socket.close(1013, 'upstream_unreachable')
  const socket = world.client.publicSocket()
  t.match(await socket.request({ active_symbols: 'brief' }), { ok: true })
  t.equal(world.sockets.length, 3)
  t.equal(world.seen.filter(({ on }) => on === 3).length, 1)
})

await test('a request on a connection that has worked is not sent again', async (t) => {
  const world = await socketPeer(t)
  world.reply = () => world.sockets[0]?.terminate()
  const socket = world.client.publicSocket()
  await socket.request({ ping: 1 })
  t.match(await failure(socket.request({ time: 1 })), { code: 'connection_lost' })
  await socket.request({ ping: 1 })
  t.equal(world.seen.length, 1)
})

await test('a socket that is closed and opened again keeps the delay that the server asked for', async (t) => {
  const world = await socketPeer(t)
  world.onSocket = (socket) => socket.close(4429, 'upstream_budget;retry_after=2')
  const first = world.client.tradingSocket('VRTC100')
  await until(() => first.status().retryAt !== undefined)
  const before = first.status()
  first.close()
  // An unused connection stays open for 200 ms.
  await pause(400)
  const again = world.client.tradingSocket('VRTC100')
  t.same(again.status(), before)
  t.equal(again.status().state, 'waiting')
  const request = again.request({ time: 1 })
  await pause(200)
  t.equal(world.sockets.length, 1)
  world.onSocket = () => undefined
  t.match(await request, { ok: true })
  t.ok(Date.now() >= Number(before.retryAt) - 10)
  // Now it has worked, so there is no delay.
  again.close()
  await pause(400)
  await world.client.tradingSocket('VRTC100').request({ time: 1 })
})

await test('a machine that slept beyond the delay connects when it wakes up', async (t) => {
  const world = await socketPeer(t)
  world.onSocket = (socket) => socket.close(4429, 'upstream_budget;retry_after=600')
  const socket = world.client.tradingSocket('VRTC100')
  await until(() => socket.status().retryAt !== undefined)
  world.onSocket = () => undefined
  timeAhead(t)(700_000)
  await until(() => socket.status().state === 'open', 'open', 5000)
  t.equal(world.sockets.length, 2)
})

for (const [reason, delays, laterMs] of [
  ['upstream_unreachable', [500, 1000, 2000, 4000], 10_000],
  ['upstream_limit;retry_after=60', [60_500, 61_000, 62_000, 64_000], 100_000],
] as const) {
  await test(`a socket that is refused again and again (${reason}) comes back later and later, although others work, until it has worked for a while`, async (t) => {
    t.intercept(Math, 'random', { value: () => 0.5 })
    const page = pageEvents(t)
    const sleep = timeAhead(t)
    const world = await socketPeer(t)
    world.onSocket = (socket) => socket.close(1013, reason)
    const socket = world.client.tradingSocket('VRTC100')
    const waits: number[] = []
    socket.onStatus(() => {
      const waitMs = (socket.status().retryAt ?? 0) - Date.now()
      if (waitMs > 100) waits.push(Math.round(waitMs / 100) * 100)
    })
    for (const [before] of delays.entries()) {
      if (before > 0) {
        // The first message on another connection shows that the server is back.
        await (await socketPeer(t)).client.publicSocket().request({ time: 1 })
        sleep(laterMs)
        page.dispatchEvent(new Event('online'))
      }
      await until(() => waits.length === before + 1)
    }
    world.onSocket = () => undefined
    sleep(laterMs)
    page.dispatchEvent(new Event('online'))
    await until(() => socket.status().state === 'open')
    sleep(11_000)
    world.sockets.at(-1)?.terminate()
    await until(() => waits.length > delays.length)
    t.same(waits, [...delays, 500])
  })
}

await test('sockets that are lost at the same moment come back together', async (t) => {
  t.intercept(Math, 'random', { value: () => 0.5 })
  const world = await socketPeer(t)
  const sockets = [world.client.publicSocket(), world.client.tradingSocket('VRTC100')]
  await until(() => sockets.every((socket) => socket.status().state === 'open'))
  for (const socket of world.sockets) socket.terminate()
  const retries = (): number[] => sockets.flatMap((socket) => socket.status().retryAt ?? [])
  await until(() => retries().length === 2)
  const [one = 0, other = 0] = retries()
  t.ok(Math.abs(one - other) < 100, `${one} and ${other}`)
})

await test('an attempt to connect that leads nowhere is given up after 20 seconds', async (t) => {
  const accepts = createServer().listen(0, '127.0.0.1')
  t.teardown(() => accepts.close())
  await once(accepts, 'listening')
  const { port } = accepts.address() as AddressInfo
  const client = createClient({ baseUrl: `http://127.0.0.1:${port}` })
  t.teardown(() => client.close())
  const socket = client.publicSocket()
  // The attempt has begun.
  await nextEvent(accepts, 'connection')
  t.equal(socket.status().state, 'connecting')
  timeAhead(t)(21_000)
  await until(() => socket.status().state === 'waiting', 'it waits for the next one', 10_000)
})

for (const isLoggedIn of [true, false]) {
  await test(`a connection that the page closes while the session is confirmed after 4401 stays closed, logged in ${isLoggedIn}`, async (t) => {
    const body = isLoggedIn
      ? { authenticated: true, now: 1, expires_at: 9, idle_expires_at: 9, scope: '', session: 's' }
      : { authenticated: false, now: 1 }
    const confirmed = Promise.withResolvers<Response>()
    let checks = 0
    const fetch = (): Promise<Response> => (checks++ === 0 ? confirmed.promise : Promise.resolve(Response.json(body)))
    const world = await socketPeer(t, { fetch })
    world.reply = () => world.sockets[0]?.close(4401, 'login_required')
    const socket = world.client.tradingSocket('VRTC100')
    const states: string[] = []
    t.match(await failure(socket.request({ time: 1 })), { code: 'connection_lost' })
    await until(() => checks === 1)
    socket.onStatus(() => states.push(socket.status().state))
    // The client no longer asks for the session after its own end, but after that of a socket.
    const close = isLoggedIn ? () => world.client.close() : () => socket.close()
    for (let times = 0; times < 2; times++) close()
    await until(() => socket.status().state === 'ended')
    confirmed.resolve(Response.json(body))
    // The delay before the first attempt is at most a second, and the end is believed after four checks of 600 ms each.
    await pause(2500)
    t.same([states, socket.status().code, world.sockets.length], [['ended'], 1000, 1])
  })
}

await test('a client that is closed at once, or by a listener that closes it only once, opens no connection', async (t) => {
  let opened = 0
  class PageSocket extends WebSocket {
    constructor(url: string) {
      super(url)
      opened++
    }
  }
  const early = await socketPeer(t, { WebSocket: PageSocket as never })
  early.client.publicSocket()
  early.client.close()
  // A connection is opened in a microtask.
  await pause(0)
  t.equal(opened, 0)
  const world = await socketPeer(t, { WebSocket: PageSocket as never })
  const socket = world.client.publicSocket()
  await until(() => socket.status().state === 'open')
  const stop = socket.onStatus(() => {
    if (socket.status().state !== 'waiting') return
    stop()
    world.client.close()
  })
  world.sockets[0]?.terminate()
  await until(() => socket.status().state === 'ended')
  // The delay before the first attempt is at most a second.
  await pause(1200)
  t.same([socket.status().state, opened], ['ended', 1])
})

await test('what cannot be the id of an account is no path of a socket', (t) => {
  const client = createClient({ baseUrl: 'http://127.0.0.1:1' })
  for (const id of ['', 'a/b', 'a b', '\u00e9', 'x'.repeat(65)]) {
    t.throws(() => client.tradingSocket(id), new TypeError(`not an account id: ${id}`))
  }
  client.close()
  t.end()
})
