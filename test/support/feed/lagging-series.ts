import type { WebSocket } from 'ws'
import { reply, type Message, type UpstreamRequest } from './world.ts'

interface Tick {
  readonly epoch: number
  readonly quote: number
}

/** So many ticks at most does a connection not know yet. */
const MAX_LAG = 40
const DEFAULT_GRANULARITY = 60

/**
 * The prices of a symbol, and connections that each know a part of them: a history may overtake the stream or be overtaken. Each
 * message says in `place` which tick is its last one, which only tests read.
 */
export class LaggingSeries {
  readonly symbol: string
  readonly #ticks: Tick[] = []
  readonly #random: () => number
  /** How many ticks a connection knows. */
  readonly #known = new Map<WebSocket, number>()
  readonly #unanswered: UpstreamRequest[] = []
  readonly #streams = new Map<string, UpstreamRequest>()
  #ids = 0
  /** How many ticks there were when each stream began. None of their histories ends earlier. */
  readonly #begun = new Map<string, number>()

  constructor(symbol: string, random: () => number) {
    this.symbol = symbol
    this.#random = random
    this.move(30, 1)
  }

  get length(): number {
    return this.#ticks.length
  }

  /** Takes a request of the feed; a history is answered later. */
  take(request: UpstreamRequest): void {
    const { message, socket } = request
    this.#knownTo(socket)
    if (!('forget' in message)) this.#unanswered.push(request)
    else reply(request, { forget: Number(this.#streams.delete(String(message['forget']))), msg_type: 'forget' })
  }

  /** Whether a stream has this id. */
  has(id: unknown): boolean {
    return this.#streams.has(String(id))
  }

  /** New ticks, each as many seconds after the last one. */
  move(count: number, seconds: number): void {
    for (let index = 0; index < count; index++) {
      const { epoch } = this.#ticks.at(-1) ?? { epoch: 1000 }
      // Equal prices come often, and so do those that are new.
      const quote = this.#random() < 0.5 ? 1 + Math.floor(this.#random() * 3) : this.#ticks.length
      this.#ticks.push({ epoch: epoch + seconds, quote })
    }
    for (const [socket, known] of this.#known) this.#tell(socket, this.length - MAX_LAG - known)
  }

  /** One of the connections, or all, learn of some more ticks. */
  tell(count: number, all = false): void {
    const sockets = [...this.#known.keys()].filter((socket) => socket.readyState === socket.OPEN)
    const chosen = all ? sockets : sockets.filter(() => this.#random() < 0.5)
    for (const socket of chosen) this.#tell(socket, count)
  }

  /** Answers the requests that have waited longest. */
  answer(count: number): void {
    for (const request of this.#unanswered.splice(0, count)) this.#answer(request)
  }

  /** Whether these ticks are a part of the series that ends before a place. */
  endsWith({ times = [], prices = [] }: { times?: number[]; prices?: number[] }, place: number): boolean {
    const from = place - times.length
    return times.every((epoch, index) => {
      const tick = this.#ticks[from + index]
      return tick?.epoch === epoch && tick.quote === prices[index]
    })
  }

  /** A candle as it was with the tick at a place. */
  candleAt(place: number, granularity = DEFAULT_GRANULARITY): Message {
    const { epoch = 0 } = this.#ticks[place] ?? {}
    const opened = epoch - (epoch % granularity)
    const first = this.#ticks.findIndex((tick) => tick.epoch >= opened)
    const quotes = this.#ticks.slice(first, place + 1).map(({ quote }) => quote)
    const [open] = quotes
    return { epoch: opened, open, high: Math.max(...quotes), low: Math.min(...quotes), close: quotes.at(-1) }
  }

  #knownTo(socket: WebSocket): number {
    const known = this.#known.get(socket) ?? this.length - Math.floor(this.#random() * 10)
    this.#known.set(socket, known)
    return known
  }

  #tell(socket: WebSocket, count: number): void {
    const known = this.#knownTo(socket)
    const next = Math.min(known + count, this.length)
    for (let place = known; place < next; place++) {
      this.#known.set(socket, place + 1)
      for (const [id, request] of this.#streams) {
        if (request.socket === socket) reply(request, { ...this.#streamed(request, place), subscription: { id } })
      }
    }
  }

  #answer(request: UpstreamRequest): void {
    const { message, socket } = request
    const name = JSON.stringify([message['style'] === 'candles', message['granularity'] ?? DEFAULT_GRANULARITY])
    if (!('subscribe' in message)) {
      this.#tell(socket, (this.#begun.get(name) ?? 0) - this.#knownTo(socket))
      return reply(request, this.#history(message, this.#knownTo(socket)))
    }
    const id = `${this.symbol}-${++this.#ids}`
    this.#begun.set(name, this.#knownTo(socket))
    reply(request, { ...this.#history(message, this.#knownTo(socket)), subscription: { id } })
    this.#streams.set(id, request)
  }

  #history({ style, granularity, count }: Message, length: number): Message {
    if (style !== 'candles') {
      const ticks = this.#ticks.slice(Math.max(0, length - Number(count)), length)
      const history = { times: ticks.map(({ epoch }) => epoch), prices: ticks.map(({ quote }) => quote) }
      return { msg_type: 'history', history, place: length - 1 }
    }
    const candles = [this.candleAt(length - 1, granularity as number | undefined)]
    return { msg_type: 'candles', candles, place: length - 1 }
  }

  #streamed({ message: { style, granularity } }: UpstreamRequest, place: number): Message {
    if (style !== 'candles') return { msg_type: 'tick', tick: this.#ticks[place], place }
    const { epoch, open, high, low, close } = this.candleAt(place, granularity as number | undefined)
    return { msg_type: 'ohlc', ohlc: { open_time: epoch, open, high, low, close }, place }
  }
}
