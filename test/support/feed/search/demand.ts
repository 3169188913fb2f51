import { CanonicalJson, type Members } from './canonical-json.ts'

/** What prices or terms a stream is about. A connection has each once. */
export interface Subject {
  readonly type: 'ticks' | 'candles' | 'proposal'
  readonly symbol: string
  /** Seconds of a candle. */
  readonly granularity: number
  readonly name: string
}

/** What a request asks for, as upstream and browsers read it. */
export interface Demand {
  readonly members: Members
  /** Undefined if upstream knows no operation that it names. */
  readonly operation: string | undefined
  /** Of the first answer. */
  readonly msgType: string
  readonly isStream: boolean
  readonly subjects: readonly Subject[]
  /** With which upstream refuses it, whoever asks. */
  readonly error?: string
}

const TEXT = /^"/
const INTEGER = /^-?\d+$/
const NUMBER = /^[-\d]/
const ONE = /^1$/
const SUBSCRIBE = /^[01]$/
const TYPE = '"(?:ticks|candles|proposal|proposal_open_contract|balance|transaction)"'
const TYPES = new RegExp(`^(?:${TYPE}|\\[(?:${TYPE},?)*\\])$`)

/** The operations with their members. A member without a question mark is required. */
const OPERATIONS: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  ticks: { ticks: /^(?:"[^"]*"|\[(?:"[^"]*",?)+\])$/, 'subscribe?': SUBSCRIBE },
  ticks_history: {
    ticks_history: TEXT,
    'subscribe?': SUBSCRIBE,
    'adjust_start_time?': ONE,
    'start?': INTEGER,
    'count?': /^[1-9]\d*$/,
    'style?': /^"(?:ticks|candles)"$/,
    'end?': /^(?:"latest"|-?\d+)$/,
    'granularity?': /^(?:60|120|180|300|600|900|1800|3600|7200|14400|28800|86400)$/,
  },
  active_symbols: { active_symbols: /^"(?:brief|full)"$/ },
  contracts_for: { contracts_for: TEXT, 'currency?': TEXT },
  contracts_list: { contracts_list: ONE },
  trading_times: { trading_times: TEXT },
  time: { time: ONE },
  ping: { ping: ONE },
  proposal: {
    proposal: ONE,
    'subscribe?': SUBSCRIBE,
    amount: NUMBER,
    basis: /^"(?:stake|payout)"$/,
    contract_type: /^"(?:CALL|PUT)"$/,
    currency: TEXT,
    underlying_symbol: TEXT,
    duration: INTEGER,
    duration_unit: /^"[tsm]"$/,
  },
  forget: { forget: TEXT },
  forget_all: { forget_all: TYPES },
}
const COMMON = { 'req_id?': INTEGER, 'passthrough?': /^\{/ }
const MSG_TYPES: Readonly<Record<string, string>> = { ticks: 'tick', ticks_history: 'history' }

/** Reads a request. @param symbols those that upstream has */
export function demandOf(text: string, symbols: ReadonlySet<string>): Demand {
  const members = membersOf(text)
  const operation = [...(members?.keys() ?? [])].find((key) => Object.hasOwn(OPERATIONS, key))
  const none = { members: members ?? new Map<string, string>(), operation, isStream: false, subjects: [] }
  const refused = (code: string, message: string): Demand => ({
    ...none,
    msgType: MSG_TYPES[operation ?? ''] ?? operation ?? 'error',
    error: `{"code":"${code}","message":"${message}"}`,
  })
  if (members === undefined) return refused('BadRequest', 'This is not a JSON object.')
  if (operation === undefined) return refused('UnrecognisedRequest', 'Unrecognised request.')
  const checks: Readonly<Record<string, RegExp>> = { ...OPERATIONS[operation], ...COMMON }
  const unknown = [...members.keys()].find((key) => !(key in checks) && !(`${key}?` in checks))
  if (unknown !== undefined) return refused('InputValidationFailed', `Property not allowed: ${unknown}.`)
  for (const [key, check] of Object.entries(checks)) {
    const value = members.get(key.replace('?', ''))
    if (value === undefined ? !key.endsWith('?') : !check.test(value)) return refused('InputValidationFailed', key)
  }
  const subjects = subjectsOf(operation, members)
  const named = [...subjects.map(({ symbol }) => symbol), ...strings(members.get('contracts_for'))]
  const missing = named.find((symbol) => !symbols.has(symbol))
  if (missing !== undefined) return refused('InvalidSymbol', `Symbol ${missing} is invalid.`)
  const isCandles = subjects[0]?.type === 'candles'
  const msgType = isCandles ? 'candles' : (MSG_TYPES[operation] ?? operation)
  return { members, operation, msgType, isStream: members.get('subscribe') === '1', subjects }
}

/** The members of a request in canonical form; undefined if it is no JSON object. Of a key that occurs twice the last one counts. */
function membersOf(text: string): Members | undefined {
  try {
    return CanonicalJson.members(CanonicalJson.of(text))
  } catch {
    return undefined
  }
}

function subjectsOf(operation: string, members: Members): Subject[] {
  const isCandles = members.get('style') === '"candles"'
  const type = operation === 'proposal' ? 'proposal' : isCandles ? 'candles' : 'ticks'
  const granularity = isCandles ? Number(members.get('granularity') ?? 60) : 0
  const symbols = ['ticks', 'ticks_history', 'underlying_symbol'].flatMap((key) => strings(members.get(key)))
  const name = (symbol: string): string => `${type} ${symbol}${isCandles ? ` ${granularity}` : ''}`
  return [...new Set(symbols)].map((symbol) => ({ type, symbol, granularity, name: name(symbol) }))
}

/** The strings in a value: itself, or those of a list. */
export function strings(value = '[]'): string[] {
  return [JSON.parse(value) as string | string[]].flat()
}
