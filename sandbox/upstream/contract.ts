import { type Account, cents, nowSeconds } from './accounts.ts'
import { Listeners } from './listeners.ts'
import type { Tick } from './market.ts'
import { expectedSeconds, type Terms } from './terms.ts'

const YEAR_SECONDS = 365 * 24 * 60 * 60
/** The share of the value that is paid for a contract that is sold early. */
const RESALE_SHARE = 0.95

export type ContractStatus = 'open' | 'won' | 'lost' | 'sold'

interface Ended {
  readonly status: Exclude<ContractStatus, 'open'>
  readonly tick: Tick
  readonly price: number
  readonly transactionId: number
}

/**
 * A contract that was bought. Its entry spot is the first tick after the purchase. It ends at the tick that its terms
 * define, or when it is sold.
 */
export class Contract {
  readonly id: number
  readonly account: Account
  readonly terms: Terms
  readonly purchaseTime = nowSeconds()
  readonly changes = new Listeners<Contract>()
  readonly buyTransactionId: number
  readonly #tickMs: number
  readonly #stopTicks: () => void
  #entry: Tick | undefined
  #ticksSeen = 0
  #ended: Ended | undefined

  constructor(id: number, account: Account, terms: Terms, tickMs: number) {
    this.id = id
    this.account = account
    this.terms = terms
    this.#tickMs = tickMs
    this.buyTransactionId = account.book('buy', -terms.stake, this.#label()).id
    this.#stopTicks = terms.instrument.ticks.add((tick) => this.#onTick(tick))
  }

  get status(): ContractStatus {
    return this.#ended?.status ?? 'open'
  }

  /** How it has ended; undefined while it is open. */
  get ended(): Ended | undefined {
    return this.#ended
  }

  /** Epoch seconds; an estimate if the duration is in ticks. */
  get expiryTime(): number {
    return this.purchaseTime + expectedSeconds(this.terms, this.#tickMs)
  }

  get shortcode(): string {
    const { type, instrument, payout, length } = this.terms
    const expiry = 'ticks' in length ? `${length.ticks}T` : String(this.expiryTime)
    return `${type}_${instrument.info.code}_${payout}_${this.purchaseTime}_${expiry}_S0P_0`
  }

  /** The price for which the contract can be sold: the probability of a win times the payout times RESALE_SHARE. */
  get bidPrice(): number {
    const { instrument, type, payout, length } = this.terms
    const { epoch, quote } = instrument.latest
    if (!this.#entry) return cents(this.terms.stake * RESALE_SHARE)
    const seconds =
      'ticks' in length
        ? ((length.ticks - this.#ticksSeen) * this.#tickMs) / 1000
        : this.purchaseTime + length.seconds - epoch
    const spread = instrument.info.volatility * Math.sqrt(Math.max(seconds, 1) / YEAR_SECONDS)
    const lead = (Math.log(quote / this.#entry.quote) / spread) * (type === 'CALL' ? 1 : -1)
    // A logistic curve approximates the normal distribution.
    return cents((payout * RESALE_SHARE) / (1 + Math.exp(-1.702 * lead)))
  }

  /** Ends an open contract early. */
  sell(): { price: number; transactionId: number } {
    const price = this.bidPrice
    return { price, transactionId: this.#end('sold', this.terms.instrument.latest, price) }
  }

  #onTick(tick: Tick): void {
    if (!this.#entry) {
      this.#entry = tick
      return this.changes.notify(this)
    }
    this.#ticksSeen += 1
    const { length, type, payout } = this.terms
    const isOver =
      'ticks' in length ? this.#ticksSeen >= length.ticks : tick.epoch >= this.purchaseTime + length.seconds
    if (!isOver) return this.changes.notify(this)
    const moved = tick.quote - this.#entry.quote
    const isWon = type === 'CALL' ? moved > 0 : moved < 0
    this.#end(isWon ? 'won' : 'lost', tick, isWon ? payout : 0)
  }

  #end(status: Exclude<ContractStatus, 'open'>, tick: Tick, price: number): number {
    this.#stopTicks()
    const { id } = this.account.book('sell', price, this.#label())
    this.#ended = { status, tick, price, transactionId: id }
    this.changes.notify(this)
    return id
  }

  #label(): { id: number; symbol: string; longcode: string } {
    return { id: this.id, symbol: this.terms.instrument.info.code, longcode: this.terms.longcode }
  }

  /** The contract in the format of `proposal_open_contract`. */
  view(): Record<string, unknown> {
    const { terms } = this
    const ended = this.#ended
    const spot = terms.instrument.latest
    const bid = ended?.price ?? this.bidPrice
    return {
      contract_id: this.id,
      contract_type: terms.type,
      underlying_symbol: terms.instrument.info.code,
      display_name: terms.instrument.info.name,
      currency: terms.currency,
      buy_price: terms.stake,
      payout: terms.payout,
      bid_price: bid,
      profit: cents(bid - terms.stake),
      profit_percentage: cents(((bid - terms.stake) / terms.stake) * 100),
      status: this.status,
      is_sold: ended ? 1 : 0,
      is_expired: ended && ended.status !== 'sold' ? 1 : 0,
      is_valid_to_sell: ended ? 0 : 1,
      current_spot: spot.quote,
      current_spot_time: spot.epoch,
      date_start: this.purchaseTime,
      date_expiry: this.expiryTime,
      purchase_time: this.purchaseTime,
      longcode: terms.longcode,
      shortcode: this.shortcode,
      ...('ticks' in terms.length && { tick_count: terms.length.ticks, tick_passed: this.#ticksSeen }),
      ...(this.#entry && { entry_spot: this.#entry.quote, entry_spot_time: this.#entry.epoch }),
      ...(ended && {
        exit_spot: ended.tick.quote,
        exit_spot_time: ended.tick.epoch,
        sell_price: ended.price,
      }),
      transaction_ids: { buy: this.buyTransactionId, ...(ended && { sell: ended.transactionId }) },
    }
  }
}

/** A purchase in the format of `buy`. It includes the current balance, so call this right after the purchase. */
export function purchaseView(contract: Contract): Record<string, unknown> {
  const { account, terms, purchaseTime } = contract
  return {
    contract_id: contract.id,
    transaction_id: contract.buyTransactionId,
    balance_after: account.balance,
    buy_price: terms.stake,
    payout: terms.payout,
    longcode: terms.longcode,
    shortcode: contract.shortcode,
    purchase_time: purchaseTime,
    start_time: purchaseTime,
  }
}
