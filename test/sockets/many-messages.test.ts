import type { Socket } from 'node:net'
import { test, type Test } from 'tap'
import { WebSocket } from 'ws'
import { BROWSER, UPSTREAM, type Ending, type Side } from '../../src/sockets/close-codes.ts'
import { SocketEnd } from '../../src/sockets/socket-end.ts'
import { connection } from '../support/sockets/connection.ts'
import { frame } from '../support/sockets/raw-frames.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { TRADING } from '../support/user.ts'
import { RELAY, startWorld } from '../support/world.ts'

const MANY = 5000
/** So many are handled in one turn at most, and the same once more in the turn in which they are read. */
const A_TURN = 64

/** An end of a socket, and what of it comes in each turn of the event loop. */
async function turning(t: Test, side: Side) {
  const { socket, wire, client } = await connection(t)
  const { _socket: raw } = client as unknown as { readonly _socket: Socket }
  const texts: string[] = []
  const endings: Ending[] = []
  let pings = 0
  const end = new SocketEnd({ socket, wire }, side, {
    message: (data) => texts.push(data.toString()),
    ended: (ending) => endings.push(ending),
  })
  socket.on('ping', () => pings++)
  t.teardown(() => end.close())
  return { raw, texts, endings, most: mostInTurn(t, () => texts.length + pings), pings: () => pings }
}

/** @returns by how much a count has grown in one turn of the event loop, at most */
function mostInTurn(t: Test, count: () => number): () => number {
  let [before, most] = [0, 0]
  const look = (): void => {
    most = Math.max(most, count() - before)
    before = count()
    looks = setImmediate(look)
  }
  let looks = setImmediate(look)
  t.teardown(() => clearImmediate(looks))
  return () => most
}

const numbers = Array.from({ length: MANY }, (_, index) => String(index))
const FRAMES = numbers.map((payload) => frame({ opcode: 1, payload, masked: true }))
const PINGS = Buffer.concat(numbers.map(() => frame({ opcode: 9, masked: true })))

await test('messages that a browser has sent at once are handled some in each turn of the event loop, in order', async (t) => {
  const { raw, texts, most } = await turning(t, BROWSER)
  raw.write(Buffer.concat(FRAMES))
  await until(() => texts.length === MANY)
  t.same(texts, numbers)
  t.ok(most() <= 2 * A_TURN, `${most()} at most`)
})

await test('long messages are handled fewer in a turn, since each takes longer', async (t) => {
  const { raw, texts, most } = await turning(t, BROWSER)
  const long = frame({ opcode: 1, payload: 'x'.repeat(1024), masked: true })
  raw.write(Buffer.concat(Array<Buffer>(500).fill(long)))
  await until(() => texts.length === 500)
  t.ok(most() <= A_TURN / 4, `${most()} at most`)
})

await test('so are messages in many fragments, which may be empty', async (t) => {
  for (const payload of ['', 'x']) {
    const { raw, texts, most } = await turning(t, BROWSER)
    const rest = Array<Buffer>(31).fill(frame({ opcode: 0, payload, fin: false, masked: true }))
    const begin = frame({ opcode: 1, fin: false, masked: true })
    const message = Buffer.concat([begin, ...rest, frame({ opcode: 0, masked: true })])
    raw.write(Buffer.concat(Array<Buffer>(100).fill(message)))
    await until(() => texts.length === 100)
    t.ok(most() <= A_TURN / 8, `${most()} at most`)
  }
})

await test('so are its pings', async (t) => {
  const { raw, pings, most } = await turning(t, BROWSER)
  raw.write(PINGS)
  await until(() => pings() === MANY)
  t.ok(most() <= 2 * A_TURN, `${most()} at most`)
})

await test('so are those of a browser whose socket was refused', async (t) => {
  const { connection: connect, server } = await startWorld(t, RELAY)
  const close = Reflect.get(WebSocket.prototype, 'close') as (...why: unknown[]) => void
  let pings = 0
  t.intercept(WebSocket.prototype, 'close', {
    value(this: WebSocket, ...why: unknown[]) {
      if (why[0] === 4401) this.on('ping', () => pings++)
      Reflect.apply(close, this, why)
    },
  })
  const most = mostInTurn(t, () => pings)
  const raw = await connect()
  raw.write(
    `GET ${TRADING} HTTP/1.1\r\nHost: h\r\nOrigin: ${server.url}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n\r\n`,
  )
  await nextEvent(raw, 'data')
  raw.write(PINGS)
  await until(() => pings === MANY)
  t.ok(most() <= 2 * A_TURN, `${most()} at most`)
})

await test('a browser that ends its connection after them, without a close frame, is gone once all are handled', async (t) => {
  // Fewer are no reason for ws to pause the connection, so its end is read before they are handled.
  for (const many of [1000, MANY]) {
    const { raw, texts, endings } = await turning(t, BROWSER)
    raw.end(Buffer.concat(FRAMES.slice(0, many)))
    await until(() => endings.length > 0)
    t.same(texts, numbers.slice(0, many))
    t.match(endings, [{ own: { code: 1006 } }])
  }
})

await test('what upstream has sent at once is handled at once', async (t) => {
  const { raw, texts, most } = await turning(t, UPSTREAM)
  raw.write(Buffer.concat(FRAMES.slice(0, 500)))
  await until(() => texts.length === 500)
  t.ok(most() > 2 * A_TURN, `${most()} at most`)
})
