import type { Message } from './world.ts'
import type { ChaosConnection, ChaosStream } from './chaos-connection.ts'

export const SYMBOLS = ['R_0', 'R_1', 'R_2', 'R_3', 'R_4', 'R_5']
/** More than the server may take. */
const TOO_BIG = 'x'.repeat(70_000)

/** Answers requests, and at random does so late, twice, never, or with an error. The prices of a symbol are 1001, 1002 and so on. */
export class ChaosMarket {
  /** From now on it does all that is promised in docs/upstream.md. */
  isCalm = false
  readonly price = new Map(SYMBOLS.map((symbol) => [symbol, 1000]))
  readonly #random: () => number
  /** Whether a symbol is taken once on a connection, for ticks and for their history. */
  readonly #isStrict: boolean
  /** Ids of streams that are over, which are given to others. */
  readonly #free: string[] = []
  #count = 0

  constructor(random: () => number) {
    this.#random = random
    this.#isStrict = random() < 0.5
  }

  protected chance(probability: number): boolean {
    return !this.isCalm && this.#random() < probability
  }

  protected pick<Value>(list: readonly [Value, ...Value[]]): Value {
    return list[Math.floor(this.#random() * list.length)] ?? list[0]
  }

  protected upTo(milliseconds: number): number {
    return this.#random() * milliseconds
  }

  protected end(stream: ChaosStream): void {
    if (!stream.isOver && this.#random() < 0.5) this.#free.push(stream.id)
    stream.isOver = true
  }

  /** Sends the newest price. */
  protected send(connection: ChaosConnection, stream: ChaosStream): void {
    const { id, request, symbol, kind, generation } = stream
    const price = this.price.get(symbol) ?? 0
    const body =
      kind === 'candles'
        ? { msg_type: 'ohlc', ohlc: { open_time: price * 60, open: price, high: price, low: price, close: price } }
        : { msg_type: 'tick', tick: { epoch: price, quote: price, symbol, id } }
    const message = { ...body, subscription: { id }, generation, echo_req: request, req_id: request['req_id'] }
    connection.send(JSON.stringify(message), this.chance(0.03))
  }

  /** Takes a request. */
  protected asked(connection: ChaosConnection, request: Message): void {
    if (this.chance(0.02)) connection.isOwing = true
    else if ('ping' in request) this.#reply(connection, request, { msg_type: 'ping', ping: 'pong' })
    else if ('forget' in request) this.#forget(connection, request)
    else {
      const answer = (): void => {
        if (!connection.isOpen) return
        if (request['subscribe'] === 1) this.#subscribe(connection, request)
        else this.#answer(connection, request)
      }
      if (this.chance(0.6)) setTimeout(answer, this.upTo(this.chance(0.2) ? 400 : 30))
      else answer()
    }
  }

  #reply(connection: ChaosConnection, request: Message, body: Message): void {
    const echo = this.chance(0.2) ? {} : { req_id: request['req_id'] }
    connection.send(JSON.stringify({ ...body, echo_req: request, ...echo }), this.chance(0.1))
  }

  #refuse(connection: ChaosConnection, request: Message, code: string): void {
    this.#reply(connection, request, { msg_type: 'error', error: { code, message: code } })
  }

  #forget(connection: ChaosConnection, request: Message): void {
    const stream = connection.running().find(({ id }) => id === request['forget'])
    if (this.chance(0.1)) return this.#refuse(connection, request, 'RateLimit')
    // Now and then it goes on all the same.
    if (stream !== undefined && !this.chance(0.1)) this.end(stream)
    if (this.chance(0.1)) return this.#refuse(connection, request, 'Odd')
    const forget = stream === undefined || this.chance(0.1) ? 0 : 1
    setTimeout(() => this.#reply(connection, request, { msg_type: 'forget', forget }), this.upTo(20))
  }

  #answer(connection: ChaosConnection, request: Message): void {
    if (this.chance(0.06)) return this.#refuse(connection, request, this.pick(['RateLimit', 'Odd']))
    const body = 'ticks_history' in request ? this.#history(request) : { msg_type: 'any', any: ++this.#count }
    this.#reply(connection, request, this.chance(0.01) ? { TOO_BIG } : body)
    if (this.chance(0.05)) setTimeout(() => this.#reply(connection, request, body), this.upTo(20))
  }

  #subscribe(connection: ChaosConnection, request: Message): void {
    const kind = 'ticks' in request ? 'ticks' : request['style'] === 'candles' ? 'candles' : 'history'
    const symbols = [request['ticks'] ?? request['ticks_history']].flat() as string[]
    const isEqual = (other: ChaosStream): boolean =>
      other.kind === kind || (this.#isStrict && other.kind !== 'candles' && kind !== 'candles')
    const isTaken = connection.running().some((each) => symbols.includes(each.symbol) && isEqual(each))
    if (isTaken || this.chance(0.02)) return this.#refuse(connection, request, 'AlreadySubscribed')
    if (this.chance(0.1)) return this.#refuse(connection, request, this.pick(['RateLimit', 'Odd']))
    for (const symbol of symbols) this.#start(connection, { request, symbol, kind })
  }

  #start(connection: ChaosConnection, begun: Pick<ChaosStream, 'request' | 'symbol' | 'kind'>): void {
    const { request, kind } = begun
    const generation = ++this.#count
    const id = (this.chance(0.5) ? this.#free.shift() : undefined) ?? `id-${generation}`
    const stream = { ...begun, id, generation, isOver: false }
    connection.streams.push(stream)
    if (kind === 'ticks') return this.chance(0.5) ? undefined : this.send(connection, stream)
    const history = { ...this.#history(request), subscription: { id } }
    // Some prices may come before it.
    if (this.chance(0.2)) setTimeout(() => this.#reply(connection, request, history), this.upTo(60))
    else this.#reply(connection, request, history)
  }

  #history(request: Message): Message {
    const price = this.price.get(String(request['ticks_history'])) ?? 0
    const last = [price - 3, price - 2, price - 1, price]
    if (request['style'] !== 'candles') return { msg_type: 'history', history: { times: last, prices: last } }
    const candles = last.map((open) => ({ epoch: open * 60, open, high: open, low: open, close: open }))
    return { msg_type: 'candles', candles }
  }
}
