import { test } from 'tap'
import type { WebSocket } from 'ws'
import { flood, inOrder, MANY, MESSAGE, isolatedRelay, stalled } from '../support/sockets/isolated-relay.ts'
import { nextEvent, until, within } from '../support/time/until.ts'
import { PUBLIC } from '../support/user.ts'
import { startWorld, type World } from '../support/world.ts'

/** What a paused peer has sent before, and nobody has taken yet: a message, and what its connection has read. */
const READ = 2 * (65_536 + MESSAGE)

const buffered = async (world: World<'scripted'>): Promise<number> =>
  (await world.metric('bff_relay_buffered_bytes')).get('') ?? 0

/** Resolves with the bytes that wait in the server once it holds many and the sender can send no more. */
async function bufferedWhenStalled(world: World<'scripted'>, sender: WebSocket): Promise<number> {
  let waiting = 0
  const isFull = async (): Promise<boolean> => {
    await stalled(sender)
    waiting = await buffered(world)
    return waiting > 100_000
  }
  // On a busy machine a sender may also be kept from sending because the server has not read for a while.
  await until(isFull, 'the server holds messages')
  return waiting
}

await test('upstream waits while a browser reads nothing, and the browser then receives every message', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted', settings: { MAX_BUFFERED_BYTES: '200000' } })
  const client = await world.socket(PUBLIC).opened()
  const peer = await world.upstream.socket()
  client.socket.pause()
  flood(peer)
  // The server cannot answer these pings now. They must not end the relay.
  for (let count = 0; count < 500; count++) client.socket.ping(String(count))
  const waiting = await bufferedWhenStalled(world, peer)
  t.ok(peer.bufferedAmount > 0, 'upstream is kept from sending')
  t.ok(waiting < 200_000 + READ, `${waiting} bytes wait in the server`)
  const lastPong = new Promise<void>((resolve) => {
    client.socket.on('pong', (data: Buffer) => {
      if (data.toString() === '499') resolve()
    })
  })
  client.socket.resume()
  const got = await client.count(MANY)
  await within(lastPong, 'the last pong')
  t.ok(got.length === MANY && inOrder(got.map(({ data }) => data)))
  await until(async () => (await buffered(world)) === 0, 'nothing waits in the server')
  client.socket.close(1000)
  t.equal((await client.closed).code, 1000)
  await world.quiet()
})

await test('a browser waits while upstream reads nothing, and upstream then receives every message', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted', settings: { MAX_BUFFERED_BYTES: '200000' } })
  const client = await world.socket(PUBLIC).opened()
  const peer = await world.upstream.socket()
  const got: Buffer[] = []
  peer.on('message', (data: Buffer) => got.push(data))
  peer.pause()
  flood(client.socket)
  const waiting = await bufferedWhenStalled(world, client.socket)
  t.ok(client.socket.bufferedAmount > 0, 'the browser is kept from sending')
  t.ok(waiting < 200_000 + READ, `${waiting} bytes wait in the server`)
  // The browser closes while most of its messages are still on their way.
  client.socket.close(1000, 'bye')
  peer.resume()
  const [code, reason] = (await nextEvent(peer, 'close')) as [number, Buffer]
  t.same([code, reason.toString()], [1000, 'bye'])
  t.ok(got.length === MANY && inOrder(got))
  await world.quiet()
})

await test('a browser that reads nothing for SLOW_CONSUMER_SECONDS is closed with 4408', async (t) => {
  const world = await startWorld(t, {
    upstream: 'scripted',
    settings: { MAX_BUFFERED_BYTES: '200000', SLOW_CONSUMER_SECONDS: '1' },
  })
  const client = await world.socket(PUBLIC).opened()
  const peer = await world.upstream.socket()
  client.socket.pause()
  flood(peer)
  const [code] = (await nextEvent(peer, 'close')) as [number]
  t.equal(code, 1001)
  client.socket.resume()
  t.same(await client.closed, { code: 4408, reason: 'slow_consumer' })
  t.ok(
    client.received.length > 0 && inOrder(client.received.map(({ data }) => data)),
    'the messages that it received are whole and in order',
  )
  t.equal((await world.metric('bff_relay_endings_total')).get('kind="public",code="4408"'), 1)
  await world.quiet()
})

await test('a million empty messages do not accumulate for a browser that reads nothing', async (t) => {
  const { browser, upstream, relay } = await isolatedRelay(t, {
    maxBufferedBytes: 64_000_000,
    heartbeatMs: 60_000,
  })
  browser.pause()
  upstream.send(Buffer.alloc(32_000_000))
  await until(() => relay.waitingBytes > 32_000_000, 'the whole message waits')
  const before = relay.waitingBytes
  for (let index = 0; index < 1_000_000; index++) upstream.send('')
  await until(() => relay.waitingBytes > before)
  await stalled(upstream)
  const more = relay.waitingBytes - before
  // Each counts with its overhead, and one read has 32,768 of them. Without the limit they were 512 million bytes.
  t.ok(more > 0 && more < 50_000_000, `${more} bytes of them wait`)
  relay.end({ code: 1000, reason: '' })
})
