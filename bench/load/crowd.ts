import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { clock, holds } from './waiting.ts'
import { CLOSE, FrameReader, frameOf, openSocket, PING, pongOf, TEXT } from './web-socket.ts'

/**
 * A process that is many browsers of the market data bench. It only counts the messages that arrive, and notes when the
 * last browser has each of them.
 */

/** A message to the process, which replies with a {@link CrowdReply} when it has finished. */
export type CrowdOrder =
  /**
   * Open a socket for each handshake, evenly within so many ms or as fast as possible, and send the messages on each. The
   * browsers that have an answer to each message are counted.
   */
  | {
      readonly do: 'open'
      readonly port: number
      readonly handshakes: readonly string[]
      readonly messages: readonly (readonly string[])[]
      readonly withinMs: number
    }
  /** Count from here on. */
  | { readonly do: 'reset' }
  /**
   * Wait until so many messages have arrived at all browsers together since the last reset, or a timeout. They are counted as
   * if each browser had as few as the one with the fewest.
   */
  | { readonly do: 'receive'; readonly messages: number }
  | { readonly do: 'close' }

/** The result of a {@link CrowdOrder}. */
export interface CrowdReply {
  readonly count: number
  /** For each round of messages to all browsers, when the last one arrived, in ms of the clock that all processes share. */
  readonly arrivedAt: readonly number[]
  /** From the first handshake to the last answer. */
  readonly ms: number
}

const AT_ONCE = 100
const PATIENCE_MS = 10_000

interface Browser {
  readonly socket: Socket
  received: number
}

const browsers = new Set<Browser>()
let received = 0
let arrivedAt: number[] = []

process.on('message', (order: CrowdOrder) => {
  const startedAt = clock()
  void execute(order).then((count) => {
    process.send?.({ count, arrivedAt, ms: clock() - startedAt } satisfies CrowdReply)
  })
})

async function execute(order: CrowdOrder): Promise<number> {
  switch (order.do) {
    case 'open':
      return openAll(order)
    case 'reset':
      received = 0
      arrivedAt = []
      for (const browser of browsers) browser.received = 0
      return 0
    case 'receive':
      await holds(() => received >= order.messages, PATIENCE_MS)
      return Math.min(...[...browsers].map((browser) => browser.received)) * browsers.size
    case 'close':
      for (const { socket } of browsers) socket.destroy()
      await holds(() => browsers.size === 0, PATIENCE_MS)
      return 0
  }
}

async function openAll({ port, handshakes, messages, withinMs }: CrowdOrder & { do: 'open' }): Promise<number> {
  const startedAt = performance.now()
  const opening = new Set<Promise<void>>()
  const opened: Browser[] = []
  for (const [index, handshake] of handshakes.entries()) {
    const wait = startedAt + (index / handshakes.length) * withinMs - performance.now()
    if (wait > 1) await pause(wait)
    if (withinMs === 0 && opening.size >= AT_ONCE) await Promise.race(opening)
    const frames = (messages[index % messages.length] ?? []).map((text) => frameOf(text, true))
    const attempt = open(port, handshake, Buffer.concat(frames)).then((browser) => {
      opening.delete(attempt)
      if (browser !== undefined) opened.push(browser)
    })
    opening.add(attempt)
  }
  await Promise.all(opening)
  const wanted = messages[0]?.length ?? 0
  const served = (): number => opened.filter((browser) => browser.received >= wanted && browsers.has(browser)).length
  await holds(() => served() === handshakes.length, PATIENCE_MS)
  return served()
}

/** Opens a socket. @returns undefined if the server refuses it */
async function open(port: number, handshake: string, first: Buffer): Promise<Browser | undefined> {
  const opened = await openSocket(port, handshake)
  if (opened === undefined) return undefined
  const { socket, rest } = opened
  const browser: Browser = { socket, received: 0 }
  browsers.add(browser)
  const reader = new FrameReader(false, (opcode, payload) => {
    if (opcode === TEXT) count(browser)
    else if (opcode === PING) socket.write(pongOf(payload, true))
    else if (opcode === CLOSE) socket.destroy()
  })
  socket.on('data', (data: Buffer) => reader.read(data))
  socket.on('close', () => browsers.delete(browser))
  reader.read(rest)
  socket.write(first)
  return browser
}

function count(browser: Browser): void {
  browser.received++
  received++
  if (received % browsers.size === 0) arrivedAt.push(clock())
}
