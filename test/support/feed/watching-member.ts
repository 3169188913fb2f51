import { BrowserSocket, type Closed, type Received } from '../browser/browser-socket.ts'
import { until, within } from '../time/until.ts'

/** A stream of one symbol. Equal ones have equal requests. */
export interface Watched {
  /** Names the stream as upstream does: its type, symbol and granularity. */
  readonly subject: readonly (string | number)[]
  /** The request without `req_id`. */
  readonly request: Readonly<Record<string, unknown>>
}

const SYMBOLS = ['R_10', 'R_25', 'R_50', 'R_75', 'R_100'] as const

/** All streams that members choose from. */
export const WATCHED: readonly Watched[] = SYMBOLS.flatMap((symbol): Watched[] => {
  const history = { ticks_history: symbol, end: 'latest', count: 5, subscribe: 1 }
  return [
    { subject: ['ticks', symbol], request: { ticks: symbol, subscribe: 1 } },
    { subject: ['ticks', symbol], request: { ...history, style: 'ticks' } },
    { subject: ['candles', symbol, 60], request: { ...history, style: 'candles', granularity: 60 } },
  ]
})

/** The close code of a server that has lost upstream. */
const COME_BACK = 1013

/** A message as far as it tells which price it is about. */
interface PriceMessage {
  readonly req_id: number
  readonly error?: { readonly code: string }
  readonly tick?: { readonly quote: number }
  readonly ohlc?: { readonly close: string }
  readonly history?: { readonly prices: readonly number[] }
  readonly candles?: readonly { readonly close: number }[]
}

/** A browser that knows which price comes next on each of its streams: the n-th price of a symbol is 800 + n. */
export class WatchingMember {
  readonly watched: readonly Watched[]
  /** What was missing, came twice or was refused. */
  readonly faults: string[] = []
  readonly #socket: BrowserSocket
  /** The number of the latest price by `req_id`. */
  readonly #latest = new Map<number, number>()
  #end: Closed | undefined

  private constructor(url: string, origin: string, watched: readonly Watched[]) {
    this.watched = watched
    this.#socket = new BrowserSocket(url, { origin })
    this.#socket.socket.on('message', (data: Buffer) => this.#take(data.toString()))
    this.#socket.socket.on('close', (code: number, reason: Buffer) => (this.#end = { code, reason: reason.toString() }))
  }

  /** Joins, and resolves with the first answer to each request, or once the socket is closed. */
  static async join(url: string, origin: string, watched: readonly Watched[]): Promise<WatchingMember> {
    const member = new WatchingMember(url, origin, watched)
    await member.#socket.opened()
    for (const [index, { request }] of watched.entries())
      member.#socket.socket.send(JSON.stringify({ ...request, req_id: index }))
    const isServed = (): boolean => member.#latest.size + member.faults.length >= watched.length
    await until(() => isServed() || member.#end !== undefined, 'a member has its first answers', 30_000)
    return member
  }

  /** How its socket was closed; undefined while it is open. */
  get end(): Closed | undefined {
    return this.#end
  }

  /** Resolves once its socket is closed. */
  closed(): Promise<Closed> {
    return within(this.#socket.closed, 'a member is closed')
  }

  /**
   * Its streams that do not have the newest price, unless it was told to come back.
   * @param counts the number of prices by symbol
   */
  lateFor(counts: Readonly<Record<string, number>>): string[] {
    if (this.#end?.code === COME_BACK) return []
    const newest = ({ subject: [, symbol = ''] }: Watched): number => (counts[symbol] ?? 0) - 1
    return [...this.watched.entries()]
      .filter(([index, watched]) => this.#latest.get(index) !== newest(watched))
      .map(([index, watched]) => {
        const end = this.#end === undefined ? 'open' : `closed with ${this.#end.code} ${this.#end.reason}`
        return `${watched.subject.join(' ')}: ${this.#latest.get(index)} of ${newest(watched)}, ${end}`
      })
  }

  /** Leaves as a closed tab does. */
  leave(): void {
    this.#socket.socket.terminate()
  }

  #take(text: string): void {
    // All that is said about a message is in its text, so none is kept.
    this.#socket.received.splice(0) satisfies Received[]
    const message = JSON.parse(text) as PriceMessage
    const { req_id: id, error } = message
    if (error !== undefined) {
      this.faults.push(`${error.code}: ${text}`)
      return
    }
    for (const price of pricesOf(message)) this.#price(id, price % 100_000, text)
  }

  #price(id: number, price: number, text: string): void {
    const number = Math.floor(price) - 800
    const before = this.#latest.get(id)
    if (before !== undefined && number !== before + 1)
      this.faults.push(`price ${number} after price ${before}: ${text}`)
    this.#latest.set(id, number)
  }
}

/** The prices of a message in order. Of candles only the last price is known to be followed by the next. */
function pricesOf({ tick, ohlc, history, candles }: PriceMessage): readonly number[] {
  if (tick !== undefined) return [tick.quote]
  if (ohlc !== undefined) return [Number(ohlc.close)]
  return history?.prices ?? candles?.slice(-1).map(({ close }) => close) ?? []
}
