import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { quantile } from '../rounds.ts'
import { clock, holds } from './waiting.ts'
import { acceptSockets, frameOf, openSocket } from './web-socket.ts'

/**
 * A process that is one end of many WebSockets. To use little CPU time, it writes prepared frames and only counts the
 * bytes that arrive. The bench starts one for all browsers and one for upstream, and controls them by messages.
 */

/** A message to a pump, which replies with a count when it has finished. */
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
  /** Like `pump`, with single frames that say when they were sent. Only upstream does this. */
  | { readonly do: 'pump-timed'; readonly framesPerSecond: number; readonly seconds: number }
  /** The count is this quantile of the delays, in ms, of all timed frames since the sockets were opened. */
  | { readonly do: 'delay'; readonly share: number }
  /** Wait until this many frames have arrived since the last such order, or a timeout. The count is the number of frames. */
  | { readonly do: 'receive'; readonly frames: number }
  | { readonly do: 'close' }
  /** Wait until exactly this many sockets are open. */
  | { readonly do: 'await'; readonly sockets: number }

const HANDSHAKES_AT_ONCE = 50
const TICK_MS = 2
const LAST_FRAMES_MS = 3000
const SETTLE_MS = 10_000
/** The size of a tick. */
const PAYLOAD_BYTES = 290

const sockets = new Set<Duplex>()
const toBrowser = frameOf(
  payload('{"tick":{"ask":1234.567,"bid":1234.561,"quote":1234.564,"symbol":"R_100"},"msg_type":"tick"'),
  false,
)
const toUpstream = frameOf(
  payload('{"proposal":1,"amount":10,"basis":"stake","contract_type":"CALL","currency":"USD"'),
  true,
)
/** What a timed frame begins with, before the time. */
const TIMED = '{"sentAt":'
/** Where that is in a frame of this size. */
const TIMED_FROM = 4
const TIMED_TO = TIMED_FROM + TIMED.length
let isUpstream = false
let receivedBytes = 0
let delays: number[] = []

process.on('message', (order: Order) => {
  void execute(order).then((count) => process.send?.(count))
})

async function execute(order: Order): Promise<number> {
  switch (order.do) {
    case 'listen':
      isUpstream = true
      return acceptSockets(keep)
    case 'open':
      return openAll(order.port, order.requests)
    case 'pump':
      return pump(order, framesOf(order.framesPerWrite))
    case 'pump-timed':
      return pump({ ...order, framesPerWrite: 1 }, timedFrame)
    case 'delay':
      return quantile(delays, order.share)
    case 'receive':
      return receive(order.frames)
    case 'close':
      for (const socket of sockets) socket.destroy()
      return 0
    case 'await':
      if (!(await holds(() => sockets.size === order.sockets, SETTLE_MS, 5)))
        throw new Error(`${sockets.size} sockets are open, not ${order.sockets}`)
      return sockets.size
  }
}

function payload(start: string): string {
  return `${`${start},"x":"`.padEnd(PAYLOAD_BYTES - 2, 'x')}"}`
}

async function openAll(port: number, requests: readonly string[]): Promise<number> {
  delays = []
  for (let at = 0; at < requests.length; at += HANDSHAKES_AT_ONCE) {
    await Promise.all(requests.slice(at, at + HANDSHAKES_AT_ONCE).map((request) => open(port, request)))
  }
  return sockets.size
}

async function open(port: number, request: string): Promise<void> {
  const opened = await openSocket(port, request)
  if (opened === undefined) throw new Error('a relay was refused')
  keep(opened.socket)
}

function keep(socket: Duplex): void {
  sockets.add(socket)
  socket.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length
    if (chunk.toString('latin1', TIMED_FROM, TIMED_TO) !== TIMED) return
    delays.push(clock() - parseFloat(chunk.toString('latin1', TIMED_TO)))
  })
  socket.on('close', () => sockets.delete(socket))
}

/** Writes several frames at a time, which are prepared. */
function framesOf(count: number): () => Buffer {
  const frame = isUpstream ? toBrowser : toUpstream
  const bytes = Buffer.concat(Array.from({ length: count }, () => frame))
  return () => bytes
}

function timedFrame(): Buffer {
  return frameOf(payload(`${TIMED}${clock().toFixed(3)}`), false)
}

/** @param bytes makes those of the next write */
async function pump(
  { framesPerWrite, framesPerSecond, seconds }: Omit<Order & { do: 'pump' }, 'do'>,
  bytes: () => Buffer,
): Promise<number> {
  const all = [...sockets]
  const total = framesPerSecond * seconds
  const startedAt = performance.now()
  let sent = 0
  let next = 0
  while (sent < total) {
    const due = ((performance.now() - startedAt) / 1000) * framesPerSecond
    for (; sent < due && sent < total; sent += framesPerWrite) {
      all[next]?.write(bytes())
      next = (next + 1) % all.length
    }
    await pause(TICK_MS)
  }
  return sent
}

async function receive(wanted: number): Promise<number> {
  // A few bytes of heartbeats may be included, but a frame is much larger.
  const frameBytes = isUpstream ? toUpstream.length : toBrowser.length
  const received = (): number => Math.floor(receivedBytes / frameBytes)
  await holds(() => received() >= wanted, LAST_FRAMES_MS)
  const count = received()
  receivedBytes = 0
  return count
}
