import { seededRandom } from '../../time/seeded-random.ts'
import { CanonicalJson, type Members } from './canonical-json.ts'
import { type Demand, demandOf, type Subject } from './demand.ts'

interface Price {
  readonly epoch: number
  readonly value: number
  /** As upstream writes it. */
  readonly text: string
}

/** The prices of these move. */
export const SYMBOLS = ['R_10', 'R_25', 'R_50', 'R_75', 'R_100', 'O_1'] as const
/** In each second of these several prices may be equal. */
export const EQUAL_SYMBOLS = ['E_0', 'E_1', 'E_2', 'E_3', 'E_4', 'E_5'] as const
const FIRST_EPOCH = 1_760_000_000
const FIRST_PRICES = 60
const DEFAULT_COUNT = 20
const ALL = new Set<string>([...SYMBOLS, ...EQUAL_SYMBOLS])
const ACTIVE = SYMBOLS.map((symbol) => `{"display_name":"Índice €","pip":0.010,"spot_age":null,"symbol":"${symbol}"}`)

/** What upstream answers to requests whose answers change only with time. */
const CONSTANTS: Readonly<Record<string, string>> = {
  active_symbols: `[${ACTIVE.join(',')}]`,
  contracts_for: '{"available":[{"barrier":1.10,"contract_type":"CALL"}],"hit_count":2}',
  contracts_list: '[{"contract_types":["CALL","PUT"]}]',
  trading_times: '{"markets":[{"name":"Derived"}]}',
}

/**
 * The prices, and what upstream says about them. A message is a function of the request and of `at`, a member of the message
 * that only tests read: the place of the newest price that it knows, so that a browser knows what it should have received.
 */
export class Market {
  readonly #prices = new Map<string, Price[]>()
  readonly #random: () => number
  #moves = 0

  constructor(seed: number) {
    this.#random = seededRandom(seed).random
    for (const symbol of ALL) {
      this.#prices.set(symbol, [])
      this.move(symbol, FIRST_PRICES)
    }
  }

  demandOf(text: string): Demand {
    return demandOf(text, ALL)
  }

  /** @param seconds between two prices. By default a second that is traded in has two prices */
  move(symbol: string, count: number, seconds?: number): void {
    const prices = this.#of(symbol)
    for (let index = 0; index < count; index++) {
      const place = prices.length
      const last = prices.at(-1)?.epoch ?? FIRST_EPOCH
      const isEqual = seconds !== undefined && this.#random() < 0.5
      const value = isEqual ? 1 + Math.floor(this.#random() * 3) : 800 + place
      const text = [`${value}.10`, `${value}`, `${value}.2500`, `${value}0e-1`][value % 4] ?? ''
      prices.push({ epoch: last + (seconds ?? 20 * ((place + 1) % 2)), value: Number(text), text })
      this.#moves++
    }
  }

  /** The `at` of the newest message about a symbol, or of one that is about none. */
  now(symbol?: string): number {
    return symbol === undefined ? this.#moves : this.#of(symbol).length - 1
  }

  /** The first answer to a request, or the only one. @param id of the subscription */
  first(demand: Demand, subject: Subject | undefined, at: number, id?: string): Members {
    const { operation = '', members, msgType } = demand
    const value = operation === 'time' ? `${FIRST_EPOCH + at}` : operation === 'ping' ? '"pong"' : CONSTANTS[operation]
    if (value !== undefined || subject === undefined) return body(msgType, `"${operation}":${value}`, at)
    if (operation !== 'ticks_history') return this.next(demand, subject, at, id)
    const count = Number(members.get('count') ?? DEFAULT_COUNT)
    const [start = NaN, end = NaN] = ['start', 'end'].map((name) => Number(members.get(name)))
    if (subject.type === 'candles') return body(msgType, `"candles":[${this.#candles(subject, at, count)}]`, at)
    const shown = this.#of(subject.symbol).slice(0, at + 1)
    const last = shown.filter(({ epoch }) => !(epoch < start) && !(epoch > end)).slice(-count)
    const [prices, times] = [last.map(({ text }) => text), last.map(({ epoch }) => epoch)]
    return body(msgType, `"history":{"prices":[${prices.join(',')}],"times":[${times.join(',')}]}`, at)
  }

  /** A later message of a stream. */
  next(demand: Demand, subject: Subject, at: number, id?: string): Members {
    const { symbol, type, granularity } = subject
    const { epoch = 0, text = '' } = this.#of(symbol)[at] ?? {}
    const identity = id === undefined ? '' : `"id":"${id}",`
    if (type === 'proposal') {
      const terms = `"ask_price":${demand.members.get('amount')},"longcode":"Gewinn ≥ 1 €"`
      return body('proposal', `"proposal":{${identity}${terms},"spot":${text}}`, at)
    }
    if (type === 'ticks') {
      return body('tick', `"tick":{${identity}"epoch":${epoch},"pip_size":2,"quote":${text},"symbol":"${symbol}"}`, at)
    }
    const { opened, ...prices } = this.#candle(symbol, granularity, at)
    const quoted = Object.entries(prices).map(([name, price]) => `"${name}":"${price}"`)
    return body('ohlc', `"ohlc":{${identity}"open_time":${opened},"epoch":${epoch},${quoted.join(',')}}`, at)
  }

  #of(symbol: string): Price[] {
    return this.#prices.get(symbol) ?? []
  }

  #candles({ symbol, granularity }: Subject, place: number, count: number): string {
    const texts: string[] = []
    for (let at = place; at >= 0 && texts.length < count;) {
      const { opened, ...prices } = this.#candle(symbol, granularity, at)
      const members = Object.entries(prices).map(([name, price]) => `"${name}":${price}`)
      texts.unshift(`{"epoch":${opened},${members.join(',')}}`)
      while (at >= 0 && (this.#of(symbol)[at]?.epoch ?? 0) >= opened) at--
    }
    return texts.join(',')
  }

  /** A candle as it was with the price at a place. */
  #candle(
    symbol: string,
    granularity: number,
    place: number,
  ): Record<'open' | 'high' | 'low' | 'close', string> & {
    opened: number
  } {
    const prices = this.#of(symbol)
    const { epoch = 0, text = '' } = prices[place] ?? {}
    const opened = epoch - (epoch % granularity)
    let [low, high, open] = [prices[place], prices[place], text]
    for (let at = place; at >= 0; at--) {
      const price = prices[at]
      if (price === undefined || price.epoch < opened) break
      if (low === undefined || price.value < low.value) low = price
      if (high === undefined || price.value > high.value) high = price
      open = price.text
    }
    return { opened, open, high: high?.text ?? '', low: low?.text ?? '', close: text }
  }
}

function body(msgType: string, member: string, at: number): Members {
  return CanonicalJson.members(CanonicalJson.of(`{"msg_type":"${msgType}",${member},"at":${at}}`))
}
