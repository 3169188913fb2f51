import { test } from 'tap'
import { WaitingBytes } from '../../src/sockets/waiting-bytes.ts'
import { LARGE, ownWorld } from '../support/feed/own-world.ts'
import { feedWorld } from '../support/feed/world.ts'
import { flood, inOrder, MANY, MESSAGE, stalled } from '../support/sockets/isolated-relay.ts'
import { until } from '../support/time/until.ts'

await test('upstream waits while a browser reads nothing of its own socket, and the browser then receives every message', async (t) => {
  const { market, join, metric } = await feedWorld(t, { MAX_BUFFERED_BYTES: '200000' })
  const buffered = async (): Promise<number> => (await metric('bff_relay_buffered_bytes')).get('') ?? 0
  const { client } = await join()
  client.socket.send('{"proposal":1}')
  const { socket: own } = await market.next('proposal')
  client.socket.pause()
  flood(own)
  await until(async () => (await buffered()) > 100_000, 'the server holds messages')
  await stalled(own)
  t.ok(own.bufferedAmount > 0, 'upstream is kept from sending')
  const waiting = await buffered()
  t.ok(waiting > 100_000 && waiting < 200_000 + 65_536 + MESSAGE, `${waiting} bytes wait in the server`)
  client.socket.resume()
  const got = await client.count(MANY)
  t.ok(got.length === MANY && inOrder(got.map(({ data }) => data)))
})

await test('a browser waits while its own socket takes nothing, and upstream then receives every message', async (t) => {
  const { member, socket, browser, open } = await ownWorld(t)
  const peer = await open()
  let bytes = 0
  peer.on('message', (data: Buffer) => (bytes += data.length))
  peer.pause()
  const message = Buffer.alloc(100_000)
  const count = LARGE / message.length
  for (let sent = 0; sent < count; sent++) browser.send(message)
  await until(() => socket.isPaused, 'the browser is read no more')
  const waiting = member.own?.waitingBytes ?? 0
  t.ok(waiting > 100_000 && waiting < 300_000, `${waiting} bytes wait in the server`)
  // As after every message that has been sent to the browser.
  member.relieve()
  t.equal(socket.isPaused, true)
  peer.resume()
  await until(() => bytes === count * message.length, 'upstream gets everything')
})

await test('a browser that has sent much waits until its own socket is open', async (t) => {
  const { socket, browser, open } = await ownWorld(t)
  browser.send(Buffer.alloc(300_000))
  await until(() => socket.isPaused, 'the browser is read no more')
  const sizes: number[] = []
  browser.send('next')
  const peer = await open()
  peer.on('message', (data: Buffer) => sizes.push(data.length))
  await until(() => sizes.length === 2, 'upstream gets everything')
  t.same(sizes, [300_000, 4])
})

await test('what a browser has sent before its own socket is open is noted for the whole process', async (t) => {
  let weighed = 0
  const { browser } = await ownWorld(t, new WaitingBytes(100_000, () => ++weighed))
  browser.send(Buffer.alloc(100_000))
  await until(() => weighed === 1)
})

await test('a browser that has sent much in single messages is read again once its own socket is open', async (t) => {
  const { member, socket, browser, open } = await ownWorld(t)
  // Each is read alone, and upstream takes each at once.
  for (let sent = 1; !socket.isPaused; sent++) {
    browser.send(Buffer.alloc(60_000))
    await until(() => (member.own?.waitingBytes ?? 0) === sent * 60_000, 'the server has it')
  }
  const sizes: number[] = []
  browser.send('next')
  const peer = await open()
  peer.on('message', (data: Buffer) => sizes.push(data.length))
  await until(() => sizes.length === 5, 'upstream gets everything')
  t.same(sizes, [60_000, 60_000, 60_000, 60_000, 4])
})

await test('an own socket that is opened for a browser that reads nothing is not read until the browser reads', async (t) => {
  const { member, browser, open } = await ownWorld(t)
  browser.pause()
  member.pass(Buffer.alloc(LARGE), true)
  const waiting = member.waitingBytes
  // What was read from upstream before it was paused.
  const read = 2 * 65_536 + MESSAGE
  const peer = await open()
  flood(peer)
  await stalled(peer)
  t.ok(peer.bufferedAmount > 0, 'upstream is kept from sending')
  t.ok(member.waitingBytes < waiting + read, 'nothing more waits for the browser')
  let messages = 0
  browser.on('message', () => messages++)
  browser.resume()
  await until(() => messages === 1 + MANY, 'the browser gets everything')
})

await test('what a browser sends before its own socket is open does not stop it', async (t) => {
  const { upstream, market, join, metric } = await feedWorld(t)
  const open: (() => void)[] = []
  upstream.onUpgrade = (request, socket, head) => void open.push(() => upstream.accept(request, socket, head))
  const browser = await join()
  // Several are read at once, and all together are more than MAX_BUFFERED_BYTES.
  for (let count = 0; count < 50; count++) browser.send(`{"proposal":${count},"a":"${'x'.repeat(28_000)}"}`)
  const waiting = async (): Promise<number> => (await metric('bff_relay_buffered_bytes')).get('') ?? 0
  await until(async () => open.length === 1 && (await waiting()) > 1_048_576, 'the browser is read no more')
  for (const each of open) each()
  await until(() => market.asked('proposal').length === 50, 'upstream gets everything')
  t.equal(await waiting(), 0)
})
