import { once } from 'node:events'
import { test } from 'tap'
import { flood, inOrder, MANY, MESSAGE, isolatedRelay, stalled } from '../support/isolated-relay.ts'
import { PUBLIC, relayWorld, type RelayWorld } from '../support/relay-world.ts'
import { until } from '../support/until.ts'

const buffered = async (world: RelayWorld): Promise<number> =>
  (await world.metric('bff_relay_buffered_bytes')).get('') ?? 0

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

await test('messages that are nothing but many do not pile up', async (t) => {
  const { browser, upstream, relay } = await isolatedRelay(t, {
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
