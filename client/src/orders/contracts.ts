import type { Message } from '../core/sockets/socket-status.ts'
import { decimal } from './decimal.ts'

/** A contract on the account, as far as the trading service has described it. The names are those of its messages. */
export interface FoundContract {
  /** As it came: a text, if it is beyond 2^53 or no number. */
  readonly contract_id: number | string
  readonly contract_type?: string
  readonly underlying_symbol?: string
  /** A text if a number would be another amount. */
  readonly buy_price?: number | string
  readonly payout?: number | string
  /** In seconds since 1970, by the clock of the trading service. */
  readonly purchase_time?: number
  /** Set if it has ended, like `sell_price`. */
  readonly sell_time?: number
  readonly sell_price?: number | string
  readonly longcode?: string
  readonly shortcode?: string
}

/** The contracts that a message describes. */
export function contractsOf(message: Message): FoundContract[] {
  const { buy, transaction, proposal_open_contract, portfolio, profit_table, statement } = message as {
    readonly [name: string]: { contracts?: Message[]; transactions?: Message[] } | undefined
  }
  const items = [
    ...([buy, transaction, proposal_open_contract] as (Message | undefined)[]),
    ...(portfolio?.contracts ?? []),
    ...(profit_table?.transactions ?? []),
    ...(statement?.transactions ?? []),
  ]
  return items.flatMap((item) => (item ? (contractOf(item) ?? []) : []))
}

/** The ids of all contracts that a message names, as texts: no number is that of a neighbour, and words are ids, too. */
export function contractIdsIn(message: Message): string[] {
  const ids: string[] = []
  JSON.stringify(message, (name, value: unknown) => {
    if (name === 'contract_id') ids.push(String(value))
    return value
  })
  return ids
}

/** The contract that an object is about; undefined if that is a sale or a movement of money. */
function contractOf(item: Message): FoundContract | undefined {
  const action = item['action'] ?? item['action_type']
  const id = item['contract_id']
  const isId = (typeof id === 'number' || typeof id === 'string') && !/^0?$/.test(String(id))
  if (!isId || (action !== undefined && action !== 'buy')) return undefined
  // A transaction says what the account has paid.
  const paid = action === undefined ? undefined : amount(String(item['amount']).replace(/^-/, ''))
  const members = {
    contract_id: id,
    contract_type: text(item['contract_type']),
    underlying_symbol: text(item['underlying_symbol']),
    buy_price: amount(item['buy_price']) ?? paid,
    payout: amount(item['payout']),
    purchase_time: number(item['purchase_time'] ?? item['transaction_time']),
    sell_time: number(item['sell_time']),
    sell_price: amount(item['sell_price']),
    longcode: text(item['longcode']),
    shortcode: text(item['shortcode']),
  }
  const known = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known) as unknown as FoundContract
}

function number(value: unknown): number | undefined {
  const number = value === null || value === '' ? NaN : Number(value)
  return Number.isNaN(number) ? undefined : number
}

/** An amount of money: the text where a number would be another one, and undefined where it is none. */
function amount(value: unknown): number | string | undefined {
  const amount = number(value)
  return amount === undefined || decimal(amount) === decimal(value) ? amount : String(value)
}

/** The value if it is a text. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
