import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { measuredServer, type MeasuredServer } from '../support/server/measured-server.ts'
import { rawBrowser } from '../support/browser/raw-browser.ts'
import { frame } from '../support/sockets/raw-frames.ts'
import { until } from '../support/time/until.ts'
import { PUBLIC } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

const CONTINUATION = 0
const TEXT = 1
const PING = 9
const MIB = 1_048_576
const MOST_BYTES = 10_000_000
const SOCKETS = 50

const masked = true
const times = (count: number, bytes: Buffer): Buffer[] => Array.from({ length: count }, () => bytes)
const begin = frame({ opcode: TEXT, payload: 'x', fin: false, masked })
const piece = frame({ opcode: CONTINUATION, payload: 'x', fin: false, masked })
const ping = frame({ opcode: PING, payload: Buffer.alloc(125), masked })
const whole = frame({ opcode: TEXT, payload: 'x'.repeat(65_536), masked })

/** Messages that an attacker sends on one socket and never completes. */
const ATTACKS: Record<string, (socket: Socket) => Promise<void>> = {
  async 'fragments of one byte'(socket) {
    await send(socket, Buffer.concat([begin, ...times(16_000, piece)]), 65_536)
  },
  async 'a frame byte by byte'(socket) {
    await send(socket, whole.subarray(0, 2000), 1)
  },
  async 'fragments between pings, each of which keeps a large piece of what was read'(socket) {
    const large = Buffer.concat([...times(490, ping), piece])
    await send(socket, begin, 65_536)
    for (let count = 0; count < 60; count++) await send(socket, large, large.length)
  },
  async 'all that may be half received at once'(socket) {
    await send(socket, Buffer.concat([begin, ...times(200, piece)]), piece.length)
    await send(socket, frame({ opcode: CONTINUATION, payload: 'x'.repeat(60_000), masked }).subarray(0, 40_000), 200)
  },
}

/** Writes pieces one after the other, so that the server reads each on its own. */
async function send(socket: Socket, bytes: Buffer, pieceBytes: number): Promise<void> {
  for (let at = 0; at < bytes.length && socket.writable; at += pieceBytes) {
    await new Promise<void>((resolve) => void socket.write(bytes.subarray(at, at + pieceBytes), () => resolve()))
    await delay(1)
  }
}

async function rawSocket(t: Test, { port, publicUrl }: Pick<MeasuredServer, 'port' | 'publicUrl'>): Promise<Socket> {
  const socket = await rawBrowser({ port, publicUrl, path: PUBLIC })
  t.teardown(() => socket.destroy())
  return socket.resume()
}

await test('messages that fifty sockets never complete cost less than 10 MB', async (t) => {
  for (const [what, attack] of Object.entries(ATTACKS)) {
    const server = await measuredServer(t)
    // Allocates what the first sockets of a process allocate once.
    for (let count = 0; count < SOCKETS; count++) (await rawSocket(t, server)).destroy()
    const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => rawSocket(t, server)))
    const before = await server.usedBytes()
    await Promise.all(sockets.map(attack))
    let more = Infinity
    // A connection that the server has cut off takes a moment to close.
    for (let tries = 0; tries < 10 && more > MOST_BYTES; tries++) {
      await delay(500)
      more = (await server.usedBytes()) - before
    }
    const open = sockets.filter((socket) => !socket.readableEnded && !socket.destroyed).length
    t.ok(more < MOST_BYTES, `${what}: ${(more / MIB).toFixed(1)} MiB more, ${open} sockets still open`)
    for (const socket of sockets) socket.destroy()
  }
})

await test('reasonable fragments and pings pass', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted' })
  const { port, url: publicUrl } = world.server
  const socket = await rawSocket(t, { port, publicUrl })
  const peer = await world.upstream.socket()
  const received: number[] = []
  peer.on('message', (message: Buffer) => received.push(message.length))
  const kilobyte = 'x'.repeat(1024)
  const first = frame({ opcode: TEXT, payload: kilobyte, fin: false, masked })
  const middle = frame({ opcode: CONTINUATION, payload: kilobyte, fin: false, masked })
  const last = frame({ opcode: CONTINUATION, payload: kilobyte, masked })
  const fragmented = Buffer.concat([first, ...times(62, middle), last])
  const pinged = Buffer.concat([first, ...times(62, Buffer.concat([middle, ping, ping])), last])
  const pings = Buffer.concat(times(2000, ping))
  await send(socket, fragmented, 500)
  await send(socket, pinged, 1300)
  await send(socket, pings, 7000)
  await send(socket, whole, 300)
  await send(socket, Buffer.concat([pings, fragmented, pings, whole, pings]), 60_000)
  // No ping is between messages, and all messages together have more pings inside than one message may have.
  const joined = Buffer.concat([first, ...times(300, ping), last])
  for (let count = 0; count < 5; count++) await send(socket, joined, 50_000)
  await until(() => received.length === 10)
  t.same(received, [...Array(5).fill(65_536), ...Array(5).fill(2048)])
  t.notOk(socket.readableEnded)
})
