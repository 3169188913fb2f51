import type { SentOrder } from '../core/base/order-shape.ts'
import type { Message } from '../core/sockets/socket-status.ts'
import { text, type FoundContract } from './contracts.ts'
import { isSameAmount, type Sameness } from './decimal.ts'

/** When an order can have been executed, in seconds of the clock of the trading service: infinite while that is not known. */
export interface Period {
  readonly from: number
  readonly to: number
  /** When it was executed, if it was and if the clock of the user has been disturbed once at most since. */
  readonly likely: readonly { readonly from: number; readonly to: number }[]
}

/** What an order would buy. */
interface Terms {
  readonly type: string | undefined
  readonly symbol: string | undefined
  /** What it may cost at most. The amounts are as they were given: numbers or texts. */
  readonly price: unknown
  /** What it costs, where that is fixed: one of these. */
  readonly stakes: readonly unknown[]
  readonly payout: unknown
  readonly longcode: string | undefined
}

/** What an order would buy, as far as the page has heard of it. */
export function termsOf({ message, before }: SentOrder): Terms {
  const answer = before.findLast(({ proposal }) => (proposal as Message | undefined)?.['id'] === message['buy'])
  const asked = (message['parameters'] ?? answer?.['echo_req'] ?? {}) as Message
  const offer = (answer?.['proposal'] ?? {}) as Message
  const { contract_type, underlying_symbol, amount, basis } = asked
  return {
    type: text(contract_type),
    symbol: text(underlying_symbol),
    price: message['price'],
    stakes: basis === 'stake' ? [amount, offer['ask_price']].filter((it) => it !== undefined) : [],
    payout: basis === 'payout' ? amount : undefined,
    longcode: text(offer['longcode']),
  }
}

/** Whether a contract has these terms, and was bought in this period: `maybe` where the messages do not say enough. */
export function fits(terms: Terms, contract: FoundContract, period: Period): Sameness {
  const { buy_price: price, purchase_time: time, sell_time: ended, payout } = contract
  const type = contract.contract_type ?? codedType(contract)
  const symbol = contract.underlying_symbol ?? codedSymbol(contract, terms)
  const paid = price === undefined ? 'maybe' : isPrice(terms, price)
  const pays = payout === undefined || terms.payout === undefined ? 'yes' : isSameAmount(payout, terms.payout)
  const differs =
    isOther(terms.type, type) ||
    isOther(terms.symbol, symbol) ||
    paid === 'no' ||
    pays === 'no' ||
    (time !== undefined && (time < period.from || time > period.to)) ||
    (ended !== undefined && ended < period.from)
  if (differs) return 'no'
  const isNamed = terms.type !== undefined && terms.type === type && terms.symbol === symbol
  const isWorded = terms.longcode !== undefined && contract.longcode === terms.longcode
  // While the clock of the trading service is not known, or if the time fits only because the user's clock may have moved, a
  // contract may be an old one.
  const isTimed = time !== undefined && period.likely.some(({ from, to }) => time >= from && time <= to)
  // The words say more than the type and the symbol, such as the length.
  const isDoubtful = isOther(terms.longcode, contract.longcode)
  return (isNamed || isWorded) && !isDoubtful && isTimed && paid === 'yes' && pays === 'yes' ? 'yes' : 'maybe'
}

/** The type of a contract by its shortcode, such as `CALL_R_100_20_1760000001_5T_S0P_0`. */
function codedType({ shortcode }: FoundContract): string | undefined {
  return shortcode?.split('_')[0]
}

/** The symbol of the terms, if it is the one in the shortcode of a contract. */
function codedSymbol({ shortcode }: FoundContract, { symbol }: Terms): string | undefined {
  const [, rest] = /^[^_]*_(.*)/.exec(shortcode ?? '') ?? []
  return rest?.toLowerCase().startsWith(`${symbol?.toLowerCase()}_`) ? symbol : undefined
}

/** Whether a contract that one order buys could be taken for that of the other. */
export function areAlike(terms: Terms, other: Terms): boolean {
  const price = other.stakes.at(-1) as number | string | undefined
  const contract = {
    contract_id: 0,
    ...(other.type !== undefined && { contract_type: other.type }),
    ...(other.symbol !== undefined && { underlying_symbol: other.symbol }),
    ...(price !== undefined && { buy_price: price }),
    ...(other.payout !== undefined && { payout: other.payout as number | string }),
  }
  return fits(terms, contract, { from: 0, to: 0, likely: [] }) !== 'no'
}

function isPrice({ stakes, price }: Terms, paid: number | string): Sameness {
  if (Number(paid) > Number(price) && isSameAmount(paid, price) === 'no') return 'no'
  const all = new Set(stakes.map((stake) => isSameAmount(stake, paid)))
  if (stakes.length === 0 || all.has('yes')) return 'yes'
  return all.has('maybe') ? 'maybe' : 'no'
}

function isOther(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other
}
