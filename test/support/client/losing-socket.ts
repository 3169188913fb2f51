import { mock } from 'node:test'
import type { Message, PublicSocket, SocketError } from '../../../client/dist/client.js'
import type { CandlePoint, Point } from '../../../client/dist/client/series.js'

/** What happens to a series. */
export type Step =
  | { readonly does: 'tick' | 'reply' }
  | { readonly does: 'lose'; readonly misses: number }
  | { readonly does: 'refuse' | 'accept'; readonly misses: number }
  | { readonly does: 'lag'; readonly by: number }
  | { readonly does: 'wait'; readonly ms: number }

/** The candles of so many seconds that these prices make. */
export function candlesOf(prices: readonly Point[], seconds: number): CandlePoint[] {
  return [...Map.groupBy(prices, ({ epoch }) => epoch - (epoch % seconds))].map(([epoch, inPeriod]) => {
    const quotes = inPeriod.map(({ quote }) => quote)
    return {
      epoch,
      open: quotes[0] ?? 0,
      high: Math.max(...quotes),
      low: Math.min(...quotes),
      close: quotes.at(-1) ?? 0,
    }
  })
}

/** A public socket of a market whose connection is lost at any moment. */
export class LosingSocket {
  readonly requests: Message[] = []
  /** How many prices there have been. */
  now = 1
  /** How far the histories are behind the stream, in prices. */
  lag = 0
  /** The oldest price that upstream still has. */
  oldest = 0
  /** Why upstream refuses the stream. */
  refusal: Partial<SocketError> | undefined
  readonly #all: readonly Point[]
  readonly #isCandles: boolean
  readonly #seconds: number
  #id = 0
  #listener: ((message: Message) => void) | undefined
  #onError: ((error: Partial<SocketError>) => void) | undefined
  #pending: { readonly reply: () => void; readonly lose: () => void }[] = []

  /** @param seconds the length of a candle; 0 for prices */
  constructor(all: readonly Point[], seconds = 0) {
    this.#all = all
    this.#isCandles = seconds > 0
    this.#seconds = Math.max(seconds, 1)
  }

  get socket(): PublicSocket {
    const partial = {
      subscribe: (_message: object, listener: (message: never) => void, onError: (error: SocketError) => void) => {
        this.#listener = listener as (message: Message) => void
        this.#onError = onError as (error: Partial<SocketError>) => void
        this.begin()
        return () => (this.#listener = undefined)
      },
      request: (message: Message) =>
        new Promise<Message>((resolve, reject) => {
          this.requests.push(message)
          const { start = 0, count } = message as { start?: number; count: number }
          const has = this.#all.slice(this.oldest, Math.max(this.now - this.lag, 1))
          const points = has.filter(({ epoch }) => epoch >= start).slice(-count)
          const history = { times: points.map(({ epoch }) => epoch), prices: points.map(({ quote }) => quote) }
          const candles = candlesOf(has, this.#seconds).filter(({ epoch }) => epoch >= start)
          this.#pending.push({
            reply: () => resolve(this.#isCandles ? { candles: candles.slice(-count) } : { history }),
            lose: () => reject(Object.assign(new Error('lost'), { code: 'connection_lost' } as Partial<SocketError>)),
          })
        }),
    }
    return partial as unknown as PublicSocket
  }

  /** The stream begins, with the newest price, unless it is refused. */
  begin(): void {
    this.#id++
    if (this.refusal) return this.#onError?.(this.refusal)
    if (this.#isCandles) this.#listener?.({ req_id: this.#id, candles: this.#candles().slice(-2) })
    else this.#send()
  }

  async take(step: Step): Promise<void> {
    switch (step.does) {
      case 'tick':
        if (this.#next() && !this.refusal) this.#send()
        break
      case 'reply':
        this.reply()
        break
      case 'lag':
        this.lag = step.by
        break
      case 'wait':
        mock.timers.tick(step.ms)
        break
      case 'refuse':
      case 'accept':
      case 'lose':
        if (step.does !== 'lose') this.refusal = step.does === 'refuse' ? { code: 'MarketIsClosed' } : undefined
        this.loseRequests()
        await settled()
        for (let missed = 0; missed < step.misses; missed++) this.#next()
        this.begin()
    }
    await settled()
  }

  loseRequests(): void {
    for (const { lose } of this.#pending.splice(0)) lose()
  }

  /** Answers the oldest request. */
  reply(): void {
    this.#pending.shift()?.reply()
  }

  /** @returns false if there are no more prices */
  #next(): boolean {
    if (this.now >= this.#all.length) return false
    this.now++
    return true
  }

  #send(): void {
    const { epoch, ...last } = this.#candles().at(-1) ?? { epoch: 0 }
    const point = this.#isCandles ? { ohlc: { ...last, open_time: epoch } } : { tick: this.#all[this.now - 1] }
    this.#listener?.({ req_id: this.#id, ...point })
  }

  #candles(): CandlePoint[] {
    return candlesOf(this.#all.slice(0, this.now), this.#seconds)
  }
}

/** Lets promises settle. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 8; turns++) await Promise.resolve()
}
