import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { answer, tickBody } from './market-messages.ts'
import { clock, holds } from './waiting.ts'
import { acceptSockets, FrameReader, frameOf, PING, pongOf, TEXT } from './web-socket.ts'

/**
 * A process that is the upstream of the market data bench. It answers requests like the real one, and writes ticks when it
 * is told to, with as little work as possible: a message is framed once for all sockets that asked in the same words.
 */

/** A message to the process, which replies with a {@link MarketReply} when it has finished. */
export type MarketOrder =
  /** Listen. The count is the port. */
  | { readonly do: 'listen' }
  /** Write ticks of so many symbols in turn: bursts of so many, in one write to each socket or in one for each tick. */
  | {
      readonly do: 'tick'
      readonly bursts: number
      readonly ticksPerBurst: number
      readonly isOneWrite: boolean
      readonly everyMs: number
      /** {@link SYMBOLS} by default. */
      readonly symbols?: number
    }
  /** Wait until exactly this many sockets are open. */
  | { readonly do: 'await'; readonly sockets: number }
  /** What has happened since the last such order. The count is the number of requests. */
  | { readonly do: 'count' }

/** The result of a {@link MarketOrder}. */
export interface MarketReply {
  readonly count: number
  /** Messages that were written since the last `count` order. */
  readonly written: number
  readonly sockets: number
  /** When the writing of each burst began, in ms of the clock that all processes share. */
  readonly sentAt: readonly number[]
}

export const SYMBOLS = ['R_10', 'R_25', 'R_50', 'R_75', 'R_100'] as const
/** The name of one of any number of symbols. */
export const symbolAt = (index: number): string => SYMBOLS[index] ?? `S_${index}`
const SETTLE_MS = 20_000

/** The streams of a connection: by symbol what its messages begin with. */
type Streams = Map<string, string>

interface Client {
  readonly socket: Duplex
  readonly streams: Streams
  /** Equal for clients whose streams are written alike; empty until the first tick. */
  signature: string
}

const clients = new Set<Client>()
/** The clients that have a stream, by its symbol. */
const bySymbol = new Map<string, Set<Client>>()
let requests = 0
let written = 0
let tick = 0

process.on('message', (order: MarketOrder) => {
  void execute(order).then(({ count, sentAt = [] }) => {
    process.send?.({ count, written, sockets: clients.size, sentAt } satisfies MarketReply)
    if (order.do === 'count') requests = written = 0
  })
})

async function execute(order: MarketOrder): Promise<{ count: number; sentAt?: number[] }> {
  switch (order.do) {
    case 'listen':
      return { count: await acceptSockets(serve) }
    case 'tick':
      return write(order)
    case 'await':
      if (!(await holds(() => clients.size === order.sockets, SETTLE_MS, 5)))
        throw new Error(`${clients.size} sockets are open, not ${order.sockets}`)
      return { count: clients.size }
    case 'count':
      return { count: requests }
  }
}

function serve(socket: Duplex): void {
  const client: Client = { socket, streams: new Map(), signature: '' }
  clients.add(client)
  const reader = new FrameReader(true, (opcode, payload) => {
    if (opcode === TEXT) receive(client, payload.toString())
    else if (opcode === PING) socket.write(pongOf(payload, false))
    else socket.destroy()
  })
  socket.on('data', (chunk: Buffer) => reader.read(chunk))
  socket.on('close', () => {
    clients.delete(client)
    for (const symbol of client.streams.keys()) bySymbol.get(symbol)?.delete(client)
  })
}

function receive(client: Client, text: string): void {
  requests++
  written++
  const { response, stream } = answer(text, tick)
  client.socket.write(frameOf(response, false))
  if (stream === undefined) return
  client.streams.set(stream.symbol, stream.prefix)
  client.signature = ''
  bySymbol.set(stream.symbol, (bySymbol.get(stream.symbol) ?? new Set()).add(client))
}

async function write({
  bursts,
  ticksPerBurst,
  isOneWrite,
  everyMs,
  symbols = SYMBOLS.length,
}: MarketOrder & { do: 'tick' }): Promise<{ count: number; sentAt: number[] }> {
  const sentAt: number[] = []
  const startedAt = performance.now()
  for (let burst = 0; burst < bursts; burst++) {
    const wait = startedAt + burst * everyMs - performance.now()
    if (wait > 0) await pause(wait)
    sentAt.push(clock())
    const ticks = Array.from({ length: ticksPerBurst }, () => ++tick)
    for (const some of isOneWrite ? [ticks] : ticks.map((one) => [one])) writeTicks(some, symbols)
  }
  return { count: bursts * ticksPerBurst, sentAt }
}

/** Writes ticks to all clients that have their symbols, in one write each. */
function writeTicks(ticks: readonly number[], symbols: number): void {
  const interested = new Set(ticks.flatMap((number) => [...(bySymbol.get(symbolAt(number % symbols)) ?? [])]))
  const framed = new Map<string, { bytes: Buffer; messages: number }>()
  for (const client of interested) {
    client.signature ||= JSON.stringify([...client.streams])
    let frames = framed.get(client.signature)
    if (frames === undefined) framed.set(client.signature, (frames = framesOf(ticks, client.streams, symbols)))
    written += frames.messages
    client.socket.write(frames.bytes)
  }
}

function framesOf(ticks: readonly number[], streams: Streams, symbols: number): { bytes: Buffer; messages: number } {
  const frames = ticks.flatMap((number) => {
    const symbol = symbolAt(number % symbols)
    const prefix = streams.get(symbol)
    return prefix === undefined ? [] : [frameOf(`{${prefix},${tickBody(symbol, number)}}`, false)]
  })
  return { bytes: Buffer.concat(frames), messages: frames.length }
}
