import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { createMetrics } from '../../src/measure.ts'
import type { Ending } from '../../src/relay/close-codes.ts'
import { Relay, type RelayLimits } from '../../src/relay/relay.ts'
import { PUBLIC, relayWorld, until, type RelayWorld } from '../support/relay-world.ts'

const MESSAGE = 16_384
/** More than the kernel's buffers of a whole path take. */
const MANY = 2500

const buffered = async (world: RelayWorld): Promise<number> =>
  (await world.metric('bff_relay_buffered_bytes')).get('') ?? 0

/** Numbered messages. */
function flood(socket: WebSocket): void {
  for (let index = 0; index < MANY; index++) {
    const message = Buffer.alloc(MESSAGE, index)
    message.writeUInt32BE(index)
    socket.send(message)
  }
}

function inOrder(messages: readonly Buffer[]): boolean {
  return messages.every((data, index) => data.length === MESSAGE && data.readUInt32BE() === index)
}

/** Resolves when the sender gets no further: what it still holds stays the same. */
async function stalled(sender: WebSocket): Promise<number> {
  let before = -1
  for (let same = 0; same < 20;) {
    await new Promise((resolve) => void setTimeout(resolve, 10))
    same = sender.bufferedAmount === before ? same + 1 : 0
    before = sender.bufferedAmount
  }
  return before
}

await test('a browser that does not read for a while has upstream wait, and gets everything', async (t) => {
  const world = await relayWorld(t, { anonymous: true, settings: { MAX_BUFFERED_BYTES: '200000' } })
  const line = await world.line(PUBLIC).opened()
  const peer = await world.upstream.socket()
  line.socket.pause()
  flood(peer)
  // Pings that nobody can answer just now are no reason to cut it off.
  for (let count = 0; count < 500; count++) line.socket.ping(String(count))
  t.ok((await stalled(peer)) > 0, 'upstream is kept from sending')
  const waiting = await buffered(world)
  t.ok(waiting > 100_000 && waiting < 200_000 + 65_536 + MESSAGE, `${waiting} bytes wait here`)
  const lastPong = new Promise<void>((resolve) => {
    line.socket.on('pong', (data: Buffer) => {
      if (data.toString() === '499') resolve()
    })
  })
  line.socket.resume()
  const got = await line.count(MANY)
  await lastPong
  t.ok(got.length === MANY && inOrder(got.map(({ data }) => data)))
  t.equal(await buffered(world), 0)
  line.socket.close(1000)
  t.equal((await line.closed).code, 1000)
  await world.quiet()
})

await test('an upstream that does not read for a while has the browser wait, and gets everything', async (t) => {
  const world = await relayWorld(t, { anonymous: true, settings: { MAX_BUFFERED_BYTES: '200000' } })
  const line = await world.line(PUBLIC).opened()
  const peer = await world.upstream.socket()
  const got: Buffer[] = []
  peer.on('message', (data: Buffer) => got.push(data))
  peer.pause()
  flood(line.socket)
  t.ok((await stalled(line.socket)) > 0, 'the browser is kept from sending')
  const waiting = await buffered(world)
  t.ok(waiting > 100_000 && waiting < 200_000 + 65_536 + MESSAGE, `${waiting} bytes wait here`)
  // It says good-bye while most of what it said is still on its way.
  line.socket.close(1000, 'bye')
  peer.resume()
  const [code, reason] = (await once(peer, 'close')) as [number, Buffer]
  t.same([code, reason.toString()], [1000, 'bye'])
  t.ok(got.length === MANY && inOrder(got))
  await world.quiet()
})

await test('a browser that keeps upstream waiting for too long is cut off, and told why', async (t) => {
  const world = await relayWorld(t, {
    anonymous: true,
    settings: { MAX_BUFFERED_BYTES: '200000', SLOW_CONSUMER_SECONDS: '1' },
  })
  const line = await world.line(PUBLIC).opened()
  const peer = await world.upstream.socket()
  line.socket.pause()
  flood(peer)
  const [code] = (await once(peer, 'close')) as [number]
  t.equal(code, 1001)
  line.socket.resume()
  t.same(await line.closed, { code: 4408, reason: 'slow_consumer' })
  t.ok(line.received.length > 0 && inOrder(line.received.map(({ data }) => data)), 'what it got is whole')
  t.equal((await world.metric('bff_relay_endings_total')).get('code="4408"'), 1)
  await world.quiet()
})

/** A relay on its own between two real sockets, with a heart that beats fast. */
async function relayAlone(
  t: Test,
  limits: Partial<RelayLimits> = {},
): Promise<{
  browser: WebSocket
  upstream: WebSocket
  relay: Relay
  ended: Promise<Ending | undefined>
}> {
  const servers = [0, 1].map(
    () => new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false }),
  )
  t.teardown(() => {
    for (const server of servers) {
      for (const client of server.clients) client.terminate()
      server.close()
    }
  })
  const [browsers, upstreams] = servers
  if (browsers === undefined || upstreams === undefined) throw new Error('two servers')
  const connectTo = async (server: WebSocketServer): Promise<[WebSocket, WebSocket]> => {
    if (server.address() === null) await once(server, 'listening')
    const accepted = once(server, 'connection')
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
    const client = new WebSocket(url, { perMessageDeflate: false })
    await once(client, 'open')
    const [socket] = (await accepted) as [WebSocket]
    t.teardown(() => client.terminate())
    return [client, socket]
  }
  const [browser, ourBrowser] = await connectTo(browsers)
  const [ourUpstream, upstream] = await connectTo(upstreams)
  ourUpstream.pause()
  let relay: Relay | undefined
  const ended = new Promise<Ending | undefined>((resolve) => {
    relay = new Relay(
      { browser: ourBrowser, upstream: ourUpstream },
      {
        limits: { maxBufferedBytes: 200_000, slowConsumerMs: 3_600_000, heartbeatMs: 100, ...limits },
        metrics: createMetrics(),
        onEnd: resolve,
      },
    )
  })
  if (relay === undefined) throw new Error('no relay')
  return { browser, upstream, relay, ended }
}

/** Resolves with true when so many pings have come before the relay ended. */
async function pings(socket: WebSocket, count: number, ended: Promise<unknown>): Promise<boolean> {
  let alive = true
  void ended.then(() => (alive = false))
  let seen = 0
  socket.on('ping', () => seen++)
  await until(() => seen >= count || !alive)
  return alive
}

await test('idle peers are pinged, and stay as long as they answer', async (t) => {
  const { browser, upstream, relay, ended } = await relayAlone(t)
  t.same(await Promise.all([pings(browser, 8, ended), pings(upstream, 8, ended)]), [true, true])
  relay.end({ code: 1012, reason: 'shutting_down' })
  t.same(await ended, { code: 1012, reason: 'shutting_down' })
})

await test('a peer that says nothing any more is gone', async (t) => {
  const first = await relayAlone(t)
  first.browser.pause()
  const [code] = (await once(first.upstream, 'close')) as [number]
  t.equal(code, 1001)
  t.match(await first.ended, { code: 1006 }, 'there is nobody to tell')

  const second = await relayAlone(t)
  second.upstream.pause()
  const [told, reason] = (await once(second.browser, 'close')) as [number, Buffer]
  t.same([told, reason.toString()], [1013, 'upstream_lost'])
})

await test('the clock stands still for a peer that is kept from talking', async (t) => {
  const { browser, upstream, ended } = await relayAlone(t)
  // It does not read, but talks: so it lives, and upstream, which cannot be heard meanwhile, must not be given up.
  browser.pause()
  const talk = setInterval(() => browser.send('still here'), 20)
  t.teardown(() => clearInterval(talk))
  flood(upstream)
  await stalled(upstream)
  let alive = true
  void ended.then(() => (alive = false))
  let heard = 0
  upstream.on('message', () => heard++)
  await until(() => heard === 40 || !alive)
  t.ok(alive, 'alive after eight heartbeats')
  let got = 0
  browser.on('message', () => got++)
  browser.resume()
  await until(() => got === MANY)
  clearInterval(talk)
  t.ok(await pings(browser, 4, ended), 'and all is well afterwards')
})

await test('a browser that reads on in time is not cut off later', async (t) => {
  const { browser, upstream, relay, ended } = await relayAlone(t, { slowConsumerMs: 1000, heartbeatMs: 200 })
  browser.pause()
  flood(upstream)
  await until(() => relay.bufferedBytes > 100_000)
  let got = 0
  browser.on('message', () => got++)
  browser.resume()
  await until(() => got === MANY)
  t.ok(await pings(browser, 8, ended), 'longer than it would have had')
})

await test('the time for which a peer was kept from talking is not counted afterwards either', async (t) => {
  const { browser, upstream, relay, ended } = await relayAlone(t)
  browser.pause()
  const talk = setInterval(() => browser.send('still here'), 20)
  t.teardown(() => clearInterval(talk))
  // One message that is too much, and nothing behind it: when upstream may talk again, it has nothing to say.
  upstream.send(Buffer.alloc(16 * 1024 * 1024))
  await until(() => relay.bufferedBytes > 100_000)
  let heard = 0
  upstream.on('message', () => heard++)
  await until(() => heard === 40)
  browser.resume()
  await once(browser, 'message')
  t.ok(await pings(upstream, 4, ended))
})

await test('messages that are nothing but many do not pile up', async (t) => {
  const { browser, upstream, relay } = await relayAlone(t, {
    maxBufferedBytes: 64_000_000,
    heartbeatMs: 60_000,
  })
  browser.pause()
  upstream.send(Buffer.alloc(32_000_000))
  await until(() => relay.bufferedBytes > 1_000_000)
  const before = relay.bufferedBytes
  for (let index = 0; index < 1_000_000; index++) upstream.send('')
  await until(() => relay.bufferedBytes > before)
  await stalled(upstream)
  const more = relay.bufferedBytes - before
  t.ok(more > 0 && more < 300_000, `${more} bytes of them wait`)
  relay.end({ code: 1000, reason: '' })
})
