import { jitter } from '../core/base/backoff.ts'
import { notify, type SocketError } from '../core/base/errors.ts'
import type { Ohlc, TicksHistoryAnswer } from '../core/base/messages.ts'
import type {
  CandlePoint,
  Gap,
  Point,
  Series,
  SeriesOptions,
  SeriesPoints,
  SeriesSocket,
  SeriesState,
} from '../core/sockets/series-shape.ts'
import { bridge, joinCandles, joinPrices, withCandle, type Joined } from './series-join.ts'

export type * from '../core/sockets/series-shape.ts'

/** A history that ends before the stream begins is asked for again after this time, then after twice as long, and so on. */
const BEHIND_MS = 150
const MAX_TIMES_BEHIND = 4
/** Refusals that do not pass. */
const FINAL = /^(InvalidSymbol|InputValidationFailed|MarketNotFound|ended|closed)$/

/** What differs between the styles. */
interface Kind<P> {
  /** The request for the stream that brings new points. */
  readonly stream: object
  /** The points that a message of the stream brings. */
  read(message: TicksHistoryAnswer): readonly P[]
  /** The points of a history. */
  past(answer: TicksHistoryAnswer): readonly P[]
  join(history: readonly P[], live: readonly P[], known: number): Joined<P>
  append(points: readonly P[], point: P): readonly P[]
}

/**
 * The newest prices or candles of a symbol, kept up to date. After a reconnect it asks for what came after its last point, not for
 * everything again.
 * ```ts
 * const chart = series(client.publicSocket(), { symbol: 'R_100', style: 'ticks', count: 500 })
 * chart.subscribe(() => draw(chart.get().points))
 * ```
 */
export function series<S extends keyof SeriesPoints>(
  socket: SeriesSocket,
  options: SeriesOptions<S>,
): Series<SeriesPoints[S]> {
  const { symbol, style, granularity = 60, count = 100 } = options
  const kind = style === 'ticks' ? prices(symbol) : candles(symbol, granularity)
  const history = { ticks_history: symbol, style, end: 'latest', count, adjust_start_time: 1 } as const
  const request = style === 'ticks' ? history : { ...history, granularity }
  return new Follower(socket, kind as unknown as Kind<SeriesPoints[S]>, request, count)
}

function prices(symbol: string): Kind<Point> {
  return {
    stream: { ticks: symbol },
    read: ({ tick }) => (tick ? [{ epoch: tick.epoch, quote: tick.quote }] : []),
    past: ({ history }) => history?.times.map((epoch, index) => ({ epoch, quote: history.prices[index] ?? 0 })) ?? [],
    join: joinPrices,
    append: (points, point) => [...points, point],
  }
}

function candles(symbol: string, granularity: number): Kind<CandlePoint> {
  return {
    // Its first answer has the open candle and the one before it, which may have closed since the history.
    stream: { ticks_history: symbol, style: 'candles', granularity, end: 'latest', count: 2 },
    read: (message) => (message.ohlc ? [candleOf(message.ohlc.open_time, message.ohlc)] : candlesOf(message)),
    past: candlesOf,
    join: joinCandles,
    append: withCandle,
  }
}

function candlesOf({ candles = [] }: TicksHistoryAnswer): CandlePoint[] {
  return candles.map((candle) => candleOf(candle.epoch, candle))
}

function candleOf(
  epoch: number,
  { open, high, low, close }: Pick<Ohlc, 'open' | 'high' | 'low' | 'close'>,
): CandlePoint {
  return { epoch, open: Number(open), high: Number(high), low: Number(low), close: Number(close) }
}

/** A series: it asks for a history whenever its stream begins, and joins the two. */
class Follower<P extends { readonly epoch: number }> implements Series<P> {
  readonly #socket: SeriesSocket
  readonly #kind: Kind<P>
  readonly #request: object
  readonly #count: number
  readonly #own = new AbortController()
  readonly #listeners = new Set<() => void>()
  readonly #unsubscribe: () => void
  #state: SeriesState<P> = { points: [] }
  /** The `req_id` of the stream. With another one, it has begun again, and points may be missing. */
  #stream: unknown
  /** The points that follow each other for certain, but for the gap that they know of. */
  #certain: SeriesState<P> = this.#state
  /** Those when the stream began, the history that was asked for then, and what the stream has brought; until these are joined. */
  #before: SeriesState<P> = this.#state
  #history: readonly P[] | undefined
  #live: readonly P[] | undefined
  /** How many points the stream had brought when the history arrived. */
  #known = 0
  /** Why there is no stream at present. */
  #refusal: SocketError | undefined
  /** How many histories have arrived since the stream began. */
  #histories = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(socket: SeriesSocket, kind: Kind<P>, request: object, count: number) {
    this.#socket = socket
    this.#kind = kind
    this.#request = request
    this.#count = count
    this.#unsubscribe = socket.subscribe(
      kind.stream as never,
      (message: TicksHistoryAnswer) => this.#take(message),
      (error) => this.#refused(error),
    )
  }

  get(): SeriesState<P> {
    return this.#state
  }

  subscribe(listener: () => void): () => void {
    const own = (): void => listener()
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  stop(): void {
    this.#own.abort()
    clearTimeout(this.#timer)
    this.#unsubscribe()
  }

  /** Without a stream, as while the market is closed, there is still a history to show. */
  #refused(error: SocketError): void {
    this.#refusal = error
    this.#fail(error)
    // Some refusals come again and again; what has begun or been asked for is not asked for twice.
    if (this.#state.points.length > 0 || this.#live !== undefined || FINAL.test(error.code)) return
    this.#live = []
    void this.#ask()
  }

  #take(message: TicksHistoryAnswer): void {
    this.#refusal = undefined
    const points = this.#kind.read(message)
    if (message.req_id !== this.#stream) {
      this.#stream = message.req_id
      this.#before = this.#certain
      this.#live = points
      this.#histories = 0
      void this.#ask()
    } else if (this.#live === undefined) {
      const all = points.reduce((points, point) => this.#kind.append(points, point), this.#state.points)
      this.#set(all, this.#state.gap)
      this.#certain = this.#state
    } else {
      this.#live = [...this.#live, ...points]
      this.#join()
    }
  }

  async #ask(failures = 0): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#history = undefined
    const stream = this.#stream
    const start = this.#before.points.at(-1)?.epoch
    try {
      const message = start === undefined ? this.#request : { ...this.#request, start }
      const answer = await this.#socket.request(message as never, { signal: this.#own.signal })
      if (stream !== this.#stream) return
      this.#history = this.#kind.past(answer as TicksHistoryAnswer)
      this.#known = this.#live?.length ?? 0
      this.#histories++
      this.#join()
    } catch (error) {
      if (this.#own.signal.aborted || stream !== this.#stream) return
      const { code } = error as SocketError
      if (FINAL.test(code)) this.#fail(error as SocketError)
      // If the connection was lost, the stream usually begins again before this, and asks by itself.
      else this.#askAfter(1000 + jitter(failures), failures + 1)
    }
  }

  #askAfter(ms: number, failures: number): void {
    this.#timer ??= setTimeout(() => void this.#ask(failures), ms)
  }

  #join(): void {
    if (this.#history === undefined || this.#live === undefined) return
    const { points, gap, isBehind, isSettled } = this.#kind.join(this.#history, this.#live, this.#known)
    const isFull = this.#history.length >= this.#count
    const joined = bridge(this.#before.points, points, isFull)
    this.#set(joined.points, gap ?? joined.gap ?? this.#before.gap)
    if (isBehind && this.#histories <= MAX_TIMES_BEHIND) {
      // Nothing is certain yet after the history. If the stream begins again, it is asked for from there.
      const past = bridge(this.#before.points, this.#history, isFull)
      this.#certain = { ...past, gap: past.gap ?? this.#before.gap }
      return this.#askAfter(BEHIND_MS * 2 ** this.#histories, 0)
    }
    this.#certain = this.#state
    if (isBehind || isSettled) this.#live = undefined
  }

  #set(all: readonly P[], gap: Gap | undefined): void {
    const points = all.slice(-this.#count)
    // A gap is of interest as long as there are points on both sides of it.
    const isVisible = gap !== undefined && (points[0]?.epoch ?? Number.POSITIVE_INFINITY) <= gap.from
    const error = this.#refusal
    this.#show({ points, ...(isVisible && { gap }), ...(error && { error }) })
  }

  #fail(error: SocketError): void {
    this.#show({ ...this.#state, error })
  }

  #show(state: SeriesState<P>): void {
    this.#state = state
    notify(this.#listeners, (listener) => listener())
  }
}
