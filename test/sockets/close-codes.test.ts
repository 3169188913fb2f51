import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { test } from 'tap'
import { BROWSER, codeLabel, UPSTREAM, WITHOUT_CODE } from '../../src/sockets/close-codes.ts'
import { frame, switchProtocols } from '../support/sockets/raw-frames.ts'
import { PUBLIC } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'
import { nextEvent } from '../support/time/until.ts'

const CLOSE = 8
const reason = (text: string): Buffer => Buffer.from(text)
const fromUpstream = (...close: [number, Buffer]) => UPSTREAM.closed(...close).other
const fromBrowser = (...close: [number, Buffer]) => BROWSER.closed(...close).other

await test('fromUpstream maps 1006 and 4400 to 4499, and passes every other code on', async (t) => {
  t.same(fromUpstream(1000, reason('bye')), { code: 1000, reason: 'bye' })
  t.equal(fromUpstream(1005, reason('')), WITHOUT_CODE)
  t.same(fromUpstream(1006, reason('')), { code: 1013, reason: 'upstream_lost' })
  t.same(fromUpstream(4399, reason('x')), { code: 4399, reason: 'x' })
  t.same(fromUpstream(4400, reason('')), { code: 4000, reason: '4400' })
  t.same(fromUpstream(4499, reason('x')), { code: 4000, reason: '4499 x' })
  t.same(fromUpstream(4500, reason('x')), { code: 4500, reason: 'x' })
  for (const letter of ['a', 'é', '€', '😀']) {
    const text = letter.repeat(123 / Buffer.byteLength(letter))
    const { reason: cut } = fromUpstream(4401, reason(text))
    const bytes = Buffer.byteLength(cut)
    t.ok(bytes <= 123 && bytes > 123 - 4, `${bytes} bytes`)
    t.ok(`4401 ${text}`.startsWith(cut) && cut.isWellFormed(), 'no character is cut in two')
  }
})

await test('fromBrowser maps 1006 to 1001, and passes every other code on', async (t) => {
  t.same(fromBrowser(1000, reason('bye')), { code: 1000, reason: 'bye' })
  t.same(fromBrowser(4401, reason('')), { code: 4401, reason: '' })
  t.equal(fromBrowser(1005, reason('')), WITHOUT_CODE)
  t.same(fromBrowser(1006, reason('')), { code: 1001, reason: '' })
})

await test('the close codes of 3000 and above have five labels', async (t) => {
  const labels = new Set<string>()
  for (let code = 1000; code < 5000; code++) labels.add(codeLabel({ code, reason: '' }))
  t.ok(labels.has('4401') && labels.has('3xxx') && labels.has('4xxx'))
  t.equal([...labels].filter((label) => Number(label) >= 3000).length, 5)
  t.equal(codeLabel(WITHOUT_CODE), '1005')
})

const CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999]

await test('close codes and reasons pass both ways', async (t) => {
  const world = await startWorld(t, RELAY)
  const long = 'é'.repeat(61)
  for (const [index, code] of CODES.entries()) {
    const reason = ['', 'why', long][index % 3] ?? ''
    const fromUpstream = await world.joined(PUBLIC)
    fromUpstream.peer.close(code, reason)
    t.same(await fromUpstream.client.closed, { code, reason }, `${code} of upstream`)

    const fromBrowser = await world.joined(PUBLIC)
    const closed = nextEvent(fromBrowser.peer, 'close')
    fromBrowser.client.socket.close(code, reason)
    const [seen, why] = (await closed) as [number, Buffer]
    t.same({ code: seen, reason: why.toString() }, { code, reason }, `${code} of the browser`)
    t.equal((await fromBrowser.client.closed).code, code)
  }
  await world.quiet()
})

await test('close codes of upstream that have a meaning of ours, or none, are mapped', async (t) => {
  const world = await startWorld(t, RELAY)
  for (const code of [4400, 4401, 4408, 4429, 4499]) {
    const { client, peer } = await world.joined(PUBLIC)
    peer.close(code, 'session_expired')
    t.same(await client.closed, { code: 4000, reason: `${code} session_expired` }, `${code} has a meaning of ours`)
  }
  const { client: cut, peer: wordy } = await world.joined(PUBLIC)
  wordy.close(4401, '€'.repeat(41))
  t.same(await cut.closed, { code: 4000, reason: `4401 ${'€'.repeat(39)}` })

  const { client: silent, peer: closesWithoutCode } = await world.joined(PUBLIC)
  closesWithoutCode.close()
  t.same(await silent.closed, { code: 1005, reason: '' }, 'a close without a code stays one')

  const { client: lost, peer: dies } = await world.joined(PUBLIC)
  dies.terminate()
  t.same(await lost.closed, { code: 1013, reason: 'upstream_lost' })

  const { client: closing, peer: closedPeer } = await world.joined(PUBLIC)
  const withoutCode = nextEvent(closedPeer, 'close')
  closing.socket.close()
  t.equal((await withoutCode)[0], 1005)

  const { client: vanishing, peer: lostPeer } = await world.joined(PUBLIC)
  const goingAway = nextEvent(lostPeer, 'close')
  vanishing.socket.terminate()
  t.equal((await goingAway)[0], 1001)
  // Peers cannot make the number of labels grow.
  t.ok((await world.metric('bff_relay_endings_total')).size < 15)
  await world.quiet()
})

await test('a close frame ends the relay at once, although its sender keeps the connection open', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted' })
  const { upstream, server } = world
  const ours: Duplex[] = []
  const bye = frame({
    opcode: CLOSE,
    payload: Buffer.concat([Buffer.from([0x0f, 0xa0]), Buffer.from('bye')]),
  })
  upstream.onUpgrade = (request, socket) => {
    ours.push(socket.on('error', () => undefined))
    switchProtocols(request, socket)
  }
  for (const message of ['', '{"buy":1}']) {
    const client = await world.socket(PUBLIC).opened()
    ours.at(-1)?.write(bye)
    // A message that the browser sends meanwhile is not delivered.
    if (message !== '') client.socket.send(message)
    // The browser does not wait for the end of the connection to upstream.
    t.same(await client.closed, { code: 4000, reason: 'bye' })
    t.notOk(ours.at(-1)?.destroyed, 'upstream has not closed its connection')
  }

  upstream.onUpgrade = undefined
  const browser = connect(server.port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => browser.destroy())
  browser.write(
    `GET ${PUBLIC} HTTP/1.1\r\nHost: localhost\r\nOrigin: ${server.url}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  )
  const peer = await upstream.socket()
  const closed = nextEvent(peer, 'close')
  browser.write(frame({ opcode: CLOSE, payload: Buffer.from([0x0b, 0xb8]), masked: true }))
  t.equal((await closed)[0], 3000, 'the close of the browser reaches upstream')
  t.equal(
    [...(await world.metric('bff_relays')).values()].reduce((sum, count) => sum + count, 0),
    0,
  )
})
