import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { frames } from './frames.ts'

/**
 * A process that is one end of many WebSockets. To use little CPU time, it writes prepared frames and only counts the
 * bytes that arrive. The bench starts one for all browsers and one for upstream, and controls them by messages.
 */

/** A message to a pump, which replies with a {@link Reply} when it has finished. */
export type Order =
  /** Act as upstream. The count is the port. */
  | { readonly do: 'listen' }
  /** Act as browsers and open a socket for each request. The count is the number of open sockets. */
  | { readonly do: 'open'; readonly port: number; readonly requests: readonly string[] }
  /** Send on all sockets in turn; the rate is that of all sockets together. The count is the number of frames sent. */
  | {
      readonly do: 'pump'
      readonly framesPerWrite: number
      readonly framesPerSecond: number
      readonly seconds: number
    }
  /** Wait until this many frames have arrived since the last such order, or a timeout. The count is the number of frames. */
  | { readonly do: 'receive'; readonly frames: number }
  | { readonly do: 'close' }
  /** Wait until exactly this many sockets are open. */
  | { readonly do: 'await'; readonly sockets: number }

/** The result of an {@link Order}. */
export interface Reply {
  readonly count: number
}

const HANDSHAKES_AT_ONCE = 50
const TICK_MS = 2
const LAST_FRAMES_MS = 3000
const SETTLE_MS = 10_000
/** RFC 6455 §1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

const sockets = new Set<Duplex>()
const { toBrowser, toUpstream } = frames()
let isUpstream = false
let receivedBytes = 0

process.on('message', (order: Order) => {
  void execute(order).then((count) => process.send?.({ count } satisfies Reply))
})

async function execute(order: Order): Promise<number> {
  switch (order.do) {
    case 'listen':
      return listen()
    case 'open':
      return openAll(order.port, order.requests)
    case 'pump':
      return pump(order)
    case 'receive':
      return receive(order.frames)
    case 'close':
      for (const socket of sockets) socket.destroy()
      return 0
    case 'await':
      return awaitSockets(order.sockets)
  }
}

async function listen(): Promise<number> {
  isUpstream = true
  const server = createServer()
  server.on('upgrade', (request, socket) => {
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${GUID}`).digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    keep(socket)
  })
  await once(server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }), 'listening')
  return (server.address() as AddressInfo).port
}

async function openAll(port: number, requests: readonly string[]): Promise<number> {
  for (let at = 0; at < requests.length; at += HANDSHAKES_AT_ONCE) {
    await Promise.all(requests.slice(at, at + HANDSHAKES_AT_ONCE).map((request) => open(port, request)))
  }
  return sockets.size
}

async function open(port: number, request: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay()
  socket.write(request)
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  const response = chunk.toString('latin1')
  if (!response.startsWith('HTTP/1.1 101 ')) throw new Error(response)
  keep(socket)
}

function keep(socket: Duplex | Socket): void {
  sockets.add(socket)
  socket.on('data', (chunk: Buffer) => (receivedBytes += chunk.length))
  socket.on('error', () => undefined)
  socket.on('close', () => sockets.delete(socket))
}

async function pump({ framesPerWrite, framesPerSecond, seconds }: Order & { do: 'pump' }): Promise<number> {
  const frame = isUpstream ? toBrowser : toUpstream
  const bytes = Buffer.concat(Array.from({ length: framesPerWrite }, () => frame))
  const all = [...sockets]
  const total = framesPerSecond * seconds
  const startedAt = performance.now()
  let sent = 0
  let next = 0
  while (sent < total) {
    const due = ((performance.now() - startedAt) / 1000) * framesPerSecond
    for (; sent < due && sent < total; sent += framesPerWrite) {
      all[next]?.write(bytes)
      next = (next + 1) % all.length
    }
    await new Promise((resolve) => void setTimeout(resolve, TICK_MS))
  }
  return sent
}

async function awaitSockets(count: number): Promise<number> {
  const giveUpAt = performance.now() + SETTLE_MS
  while (sockets.size !== count) {
    if (performance.now() > giveUpAt) throw new Error(`${sockets.size} sockets are open, not ${count}`)
    await new Promise((resolve) => void setTimeout(resolve, 5))
  }
  return count
}

async function receive(wanted: number): Promise<number> {
  // A few bytes of heartbeats may be included, but a frame is much larger.
  const frameBytes = isUpstream ? toUpstream.length : toBrowser.length
  const giveUpAt = performance.now() + LAST_FRAMES_MS
  const received = (): number => Math.floor(receivedBytes / frameBytes)
  while (received() < wanted && performance.now() < giveUpAt) {
    await new Promise((resolve) => void setTimeout(resolve, 1))
  }
  const count = received()
  receivedBytes = 0
  return count
}
