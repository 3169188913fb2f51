import { jitter } from '../core/base/backoff.ts'
import { notify, type SocketError } from '../core/base/errors.ts'
import type { TicksHistoryAnswer } from '../core/generated/messages.ts'
import type {
  Gap,
  Series,
  SeriesOptions,
  SeriesPoints,
  SeriesSocket,
  SeriesState,
} from '../core/sockets/series-shape.ts'
import { Ahead } from './ahead.ts'
import { bridge, candles, prices, type Kind } from './kinds.ts'

export type * from '../core/sockets/series-shape.ts'

/** A history that ends before the stream begins is asked for again after this time, then after twice as long, and so on. */
const BEHIND_MS = 150
const MAX_TIMES_BEHIND = 4
/** A refused stream is asked for again after this time, and at random up to five times as late. */
const AGAIN_MS = 60_000
/** How many points that are ahead of their time are kept. */
const MAX_AHEAD = 100
/** Refusals that do not pass. */
const FINAL = /^(InvalidSymbol|InputValidationFailed|MarketNotFound|ended|closed)$/

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
  const seconds = style === 'ticks' ? 0 : granularity
  return new LiveSeries(socket, kind as unknown as Kind<SeriesPoints[S]>, request, count, seconds)
}

/** A series: it asks for a history whenever its stream begins, and joins the two. */
class LiveSeries<P extends { readonly epoch: number }> implements Series<P> {
  readonly #socket: SeriesSocket
  readonly #kind: Kind<P>
  readonly #request: object
  readonly #count: number
  readonly #own = new AbortController()
  readonly #listeners = new Set<() => void>()
  readonly #ahead: Ahead
  #unsubscribe: () => void = () => undefined
  readonly #stopStatus: (() => void) | undefined
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
  /** Asks for a refused stream again. */
  #again: ReturnType<typeof setTimeout> | undefined
  /** The points that are shown, and those that are ahead of their time; looks at these when it has come. */
  #all: readonly P[] = []
  #look: ReturnType<typeof setTimeout> | undefined

  constructor(socket: SeriesSocket, kind: Kind<P>, request: object, count: number, seconds: number) {
    this.#socket = socket
    this.#kind = kind
    this.#request = request
    this.#count = count
    this.#ahead = new Ahead(socket, seconds, this.#own.signal, () => this.#lookAgain())
    this.#stopStatus = socket.onStatus?.(() => {
      if (socket.status?.().state === 'ended') this.#end()
    })
    try {
      this.#subscribe()
    } catch (error) {
      this.#end()
      throw error
    }
  }

  #subscribe(): void {
    this.#unsubscribe = this.#socket.subscribe(
      this.#kind.stream as never,
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
    this.#end()
    this.#unsubscribe()
  }

  /** Nothing comes any more, and nothing is asked for. */
  #end(): void {
    this.#own.abort()
    this.#stopStatus?.()
    for (const timer of [this.#timer, this.#again, this.#look]) clearTimeout(timer)
  }

  /** Without a stream, as while the market is closed, there is still a history to show: of what came since the last point, too. */
  #refused(error: SocketError): void {
    const isFirst = this.#refusal === undefined
    this.#refusal = error
    this.#fail(error)
    if (/^(ended|closed)$/.test(error.code)) this.#end()
    if (FINAL.test(error.code)) return
    this.#again ??= setTimeout(() => this.#askStreamAgain(), AGAIN_MS * (1 + 4 * Math.random()))
    // Some refusals come again and again, and the first of them has asked.
    if (isFirst) this.#begin([])
  }

  #askStreamAgain(): void {
    this.#again = undefined
    this.#unsubscribe()
    try {
      this.#subscribe()
    } catch (error) {
      // The page has closed the socket.
      this.#fail(error as SocketError)
    }
  }

  #take(message: TicksHistoryAnswer): void {
    this.#refusal = undefined
    clearTimeout(this.#again)
    this.#again = undefined
    const points = this.#kind.read(message)
    this.#ahead.note(points)
    if (message.req_id !== this.#stream) {
      this.#stream = message.req_id
      this.#begin(points)
    } else if (this.#live === undefined) {
      this.#set(points.reduce(this.#kind.append, this.#all), this.#state.gap)
      this.#certain = this.#state
    } else {
      this.#live = points.reduce(this.#kind.append, this.#live)
      this.#join()
    }
  }

  /** A stream has begun with these points, or cannot begin. */
  #begin(points: readonly P[]): void {
    this.#before = this.#certain
    this.#live = points
    this.#histories = 0
    void this.#ask()
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
      this.#ahead.note(this.#history)
      this.#known = this.#live?.length ?? 0
      this.#histories++
      this.#join()
    } catch (error) {
      if (this.#own.signal.aborted || stream !== this.#stream) return
      const { code, reply } = error as SocketError
      const isFinal = FINAL.test(code)
      if (isFinal || reply) this.#fail(error as SocketError)
      // If the connection was lost, the stream usually begins again before this, and asks by itself.
      if (!isFinal) this.#askAfter(1000 + jitter(failures), failures + 1)
    }
  }

  #askAfter(ms: number, failures: number): void {
    this.#timer ??= setTimeout(() => void this.#ask(failures), ms)
  }

  #join(): void {
    if (this.#history === undefined || this.#live === undefined) return
    const [history, later] = this.#ahead.split(this.#history)
    const [live, stillLater] = this.#ahead.split(this.#live)
    const { points, gap, isBehind, isSettled } = this.#kind.join(history, live, this.#known)
    const isFull = this.#history.length >= this.#count
    const joined = bridge(this.#before.points, points, isFull)
    const all = [...later, ...stillLater].reduce(this.#kind.append, joined.points)
    this.#set(all, gap ?? joined.gap ?? this.#before.gap)
    if (isBehind && this.#histories <= MAX_TIMES_BEHIND) {
      // Nothing is certain yet after the history. If the stream begins again, it is asked for from there.
      const past = bridge(this.#before.points, history, isFull)
      this.#certain = { ...past, gap: past.gap ?? this.#before.gap }
      return this.#askAfter(BEHIND_MS * 2 ** this.#histories, 0)
    }
    this.#certain = this.#state
    if (isBehind || isSettled) this.#live = undefined
  }

  #set(all: readonly P[], gap: Gap | undefined): void {
    const [shown, later] = this.#ahead.split(all)
    const points = shown.slice(-this.#count)
    this.#all = [...points, ...later.slice(-MAX_AHEAD)]
    clearTimeout(this.#look)
    if (later[0]) this.#look = setTimeout(() => this.#lookAgain(), this.#ahead.waitMs(later[0]))
    // A gap is of interest as long as there are points on both sides of it.
    const isVisible = gap !== undefined && (points[0]?.epoch ?? Number.POSITIVE_INFINITY) <= gap.from
    const error = this.#refusal
    this.#show({ points, ...(isVisible && { gap }), ...(error && { error }) })
  }

  /** Shows the points whose time has come, and no longer those that have turned out to be ahead of it. */
  #lookAgain(): void {
    const [shown] = this.#ahead.split(this.#all)
    if (shown.at(-1) === this.#state.points.at(-1)) return
    if (this.#live !== undefined) return this.#join()
    this.#set(this.#all, this.#state.gap)
    this.#certain = this.#state
  }

  #fail(error: SocketError): void {
    this.#show({ ...this.#state, error })
  }

  #show(state: SeriesState<P>): void {
    this.#state = state
    notify(this.#listeners, (listener) => listener())
  }
}
