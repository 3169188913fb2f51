import type { Socket } from 'node:net'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { failureCount } from '../support/telemetry/lines.ts'
import { feedWorld, type FeedBrowser, type FeedWorld } from '../support/feed/world.ts'
import { rawBrowser } from '../support/browser/raw-browser.ts'
import { closeCode, frame } from '../support/sockets/raw-frames.ts'
import { PUBLIC } from '../support/user.ts'
import { nextEvent, until } from '../support/time/until.ts'

const TEXT = 1
const PING = 9
const BROKEN = 'upstream broke the WebSocket protocol'

/** A reserved bit is set, which nobody has agreed on (RFC 6455 §5.2). */
const INVALID = frame({ opcode: TEXT, payload: 'x', rsv: 0x20 })

/** A browser with an own socket, and upstream's end of that. */
async function withOwn({ join, market }: FeedWorld): Promise<{ browser: FeedBrowser; own: WebSocket }> {
  const browser = await join()
  browser.send('{"proposal":1}')
  const { socket: own } = await market.next('proposal')
  return { browser, own }
}

/** Writes bytes to this server that need not be valid frames. */
function writeRaw(own: WebSocket, bytes: Buffer): void {
  const { _socket: wire } = own as WebSocket & { readonly _socket: Socket }
  wire.write(bytes)
}

async function ownSockets({ metric }: FeedWorld): Promise<number | undefined> {
  return (await metric('bff_feed_own_sockets')).get('')
}

/** Messages that browsers were sent. */
async function sent({ metric }: FeedWorld): Promise<number | undefined> {
  return (await metric('bff_relay_messages_total')).get('direction="to_browser"')
}

await test('a browser whose own socket upstream refuses is closed as by a relay', async (t) => {
  const world = await feedWorld(t)
  const { upstream, server, join } = world
  for (const [response, closed] of [
    ['HTTP/1.1 403 Forbidden\r\n\r\n', { code: 4403, reason: 'upstream_error' }],
    ['HTTP/1.1 404 Not Found\r\n\r\n', { code: 4404, reason: 'not_found' }],
    ['HTTP/1.1 429 Wait\r\nRetry-After: 7\r\n\r\n', { code: 4429, reason: 'rate_limited;retry_after=7' }],
    ['HTTP/1.1 500 Fault\r\n\r\n', { code: 1013, reason: 'upstream_error' }],
    ['', { code: 1013, reason: 'upstream_unreachable' }],
  ] as const) {
    upstream.onUpgrade = (_request, socket) => void socket.end(response)
    const browser = await join()
    browser.send('{"proposal":1}')
    t.same(await browser.client.closed, closed)
  }
  t.equal(failureCount(server.log, 'upstream refused a socket'), 5)
  t.equal(await ownSockets(world), 0)
})

await test('a message of an own socket above MAX_UPSTREAM_MESSAGE_BYTES closes both ends with 1009', async (t) => {
  const world = await feedWorld(t, { MAX_UPSTREAM_MESSAGE_BYTES: '1000' })
  const { browser, own } = await withOwn(world)
  const closed = nextEvent(own, 'close')
  own.send('x'.repeat(1000))
  own.send('x'.repeat(1001))
  t.equal((await browser.nextText()).length, 1000)
  t.same(await browser.client.closed, { code: 1009, reason: 'message_too_big' })
  t.equal((await closed)[0], 1009)
  t.equal(failureCount(world.server.log, BROKEN), 1)
  t.equal(await ownSockets(world), 0)
})

const TOO_MANY_PINGS = Buffer.concat([
  frame({ opcode: TEXT, payload: 'x', fin: false }),
  ...Array<Buffer>(600).fill(frame({ opcode: PING, payload: Buffer.alloc(125) })),
])
for (const [what, bytes, code] of [
  ['whose upstream violates RFC 6455', INVALID, 1002],
  ['with too many pings inside a message', TOO_MANY_PINGS, 1008],
] as const) {
  await test(`an own socket ${what} ends with ${code}, and its browser with 1013`, async (t) => {
    const world = await feedWorld(t)
    const { browser, own } = await withOwn(world)
    const closed = nextEvent(own, 'close')
    writeRaw(own, bytes)
    t.same(await browser.client.closed, { code: 1013, reason: 'upstream_lost' })
    t.equal((await closed)[0], code)
    t.equal(failureCount(world.server.log, BROKEN), 1)
    t.equal(await ownSockets(world), 0, 'it has ended once')
  })
}

await test('what arrives on the own socket of a browser that is gone is neither sent nor logged', async (t) => {
  const world = await feedWorld(t)
  const { browser, own } = await withOwn(world)
  own.send('{"proposal":{}}')
  await browser.nextText()
  const before = await sent(world)
  // So that it does not see the end of the browser yet.
  own.pause()
  browser.client.socket.close()
  await until(async () => (await ownSockets(world)) === 0, 'the browser is gone')
  own.send('{"proposal":{}}')
  writeRaw(own, INVALID)
  const closed = nextEvent(own, 'close')
  own.resume()
  await closed
  t.equal(await sent(world), before)
  t.equal(failureCount(world.server.log, BROKEN), 0)
})

await test('a browser of the feed that violates RFC 6455 or MAX_MESSAGE_BYTES is closed with the code of that', async (t) => {
  const { server, metric, market } = await feedWorld(t, { MAX_MESSAGE_BYTES: '1000' })
  for (const [code, bytes] of [
    [1002, frame({ opcode: TEXT, payload: 'x', rsv: 0x20, masked: true })],
    [1007, frame({ opcode: TEXT, payload: Buffer.from([0xc3, 0x28]), masked: true })],
    [1009, frame({ opcode: TEXT, payload: 'x'.repeat(1001), masked: true })],
  ] as const) {
    const browser = await rawBrowser({ port: server.port, publicUrl: server.url, path: PUBLIC })
    const response = nextEvent(browser, 'data')
    browser.write(bytes)
    t.equal(closeCode((await response)[0] as Buffer), code)
    browser.destroy()
    const endings = () => metric('bff_relay_endings_total')
    await until(async () => (await endings()).get(`kind="public",code="${code}"`) === 1, `${code} is counted`)
  }
  t.same(market.requests, [])
})
