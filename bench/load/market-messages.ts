/** A stream that a request starts. */
interface Stream {
  readonly symbol: string
  /** `echo_req` and `req_id` as text, which begin each of its messages. */
  readonly prefix: string
}

type Request = Readonly<Record<string, unknown>>

const PIP = 2
const FIRST_EPOCH = 1_760_000_000
/** 25 KB, as active_symbols of the real service. */
const ACTIVE_SYMBOLS = JSON.stringify(
  Array.from({ length: 80 }, (_, index) => ({
    underlying_symbol: `SYMBOL_${index}`,
    underlying_symbol_name: `A Volatility Index with the number ${index}`,
    underlying_symbol_type: 'stockindex',
    market: 'synthetic_index',
    submarket: 'random_index',
    subgroup: 'synthetics',
    exchange_is_open: 1,
    is_trading_suspended: 0,
    pip_size: 0.01,
    spot_age: '2',
    trade_count: 100 + index,
  })),
)
const CONTRACTS = JSON.stringify(
  Array.from({ length: 20 }, (_, index) => ({
    contract_type: index % 2 === 0 ? 'CALL' : 'PUT',
    contract_category: 'callput',
    min_contract_duration: `${index}t`,
    max_contract_duration: '1d',
    barriers: 0,
    start_type: 'spot',
  })),
)

/** Answers a request. @param tick the number of the latest tick */
export function answer(text: string, tick: number): { response: string; stream?: Stream } {
  const request = JSON.parse(text) as Request
  const { req_id: id, ticks, ticks_history: history, subscribe } = request
  const prefix = `"echo_req":${text}${id === undefined ? '' : `,"req_id":${JSON.stringify(id)}`}`
  const respond = (type: string, value: string, more = ''): string =>
    `{${prefix},"msg_type":"${type}","${type}":${value}${more}}`
  if (typeof ticks === 'string')
    return { response: `{${prefix},${tickBody(ticks, tick)}}`, stream: { symbol: ticks, prefix } }
  if (typeof history === 'string') {
    const more = `,"pip_size":${PIP}${subscribe === 1 ? `,${subscriptionOf(history)}` : ''}`
    const response = respond('history', historyOf(Number(request['count'])), more)
    return subscribe === 1 ? { response, stream: { symbol: history, prefix } } : { response }
  }
  if ('active_symbols' in request) return { response: respond('active_symbols', ACTIVE_SYMBOLS) }
  if ('contracts_for' in request)
    return { response: respond('contracts_for', `{"available":${CONTRACTS},"hit_count":20}`) }
  if ('ping' in request) return { response: respond('ping', '"pong"') }
  if ('forget' in request) return { response: respond('forget', '1') }
  return { response: `{${prefix},"msg_type":"error","error":{"code":"UnrecognisedRequest","message":"Unrecognised."}}` }
}

/** The members of a tick that are the same for all who have subscribed to it, 200 bytes. */
export function tickBody(symbol: string, number: number): string {
  const quote = `${800 + (number % 100)}.2810`
  const values = `"ask":${quote},"bid":${quote},"epoch":${FIRST_EPOCH + number},"pip_size":${PIP},"quote":${quote}`
  return `"msg_type":"tick",${subscriptionOf(symbol)},"tick":{${values},"id":"${idOf(symbol)}","symbol":"${symbol}"}`
}

function subscriptionOf(symbol: string): string {
  return `"subscription":{"id":"${idOf(symbol)}"}`
}

function idOf(symbol: string): string {
  return `c84a793b-8a87-7999-ce10-${symbol.padStart(12, '0')}`
}

function historyOf(count: number): string {
  const prices = Array.from({ length: count }, (_, index) => 800 + (index % 100))
  return JSON.stringify({ prices, times: prices.map((_, index) => FIRST_EPOCH - count + index) })
}
