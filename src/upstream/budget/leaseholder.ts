import { randomUUID } from 'node:crypto'
import type { BudgetClass, ByClass } from '../../config/upstream-budget.ts'
import type { Ledger, LedgerReply, LedgerTerms } from '../../store/ledger/ledger.ts'
import type { Clock } from './clock.ts'
import { Lease } from './lease.ts'

/** What a report to the ledger asks for. */
export interface Wanted {
  /** Free tokens to keep at most, of those at hand. */
  readonly most: ByClass
  /** Free tokens to have afterwards. A class that the ledger has refused for now asks for none. */
  readonly target: ByClass
}

/** The ledger's reply to a report. */
type Settled = Extract<LedgerReply, { is: 'settled' }>
/** The outcome of a report. */
type Settlement = Settled | { readonly is: 'away' }

/** The lease of this process: reports to the ledger which tokens were spent, and renews the lease. One report at a time. */
export class Leaseholder {
  readonly lease: Lease
  readonly #ledger: Ledger
  readonly #clock: Clock
  readonly #id = randomUUID()
  #sequence = 0
  #ledgerId = ''
  #heardAt = 0
  #sentAt = 0
  /** Of the tokens spent, those that the ledger has confirmed. */
  #confirmed = 0

  constructor(ledger: Ledger, clock: Clock, terms: LedgerTerms) {
    this.#ledger = ledger
    this.#clock = clock
    this.lease = new Lease(clock, terms)
  }

  /** Reports, and takes the tokens that the ledger grants. Never rejects. */
  async settle(wanted: Wanted): Promise<Settlement> {
    try {
      const first = await this.#report(wanted, this.#ledgerId === '')
      // The ledger is another one, or has forgotten some of what this holder has spent.
      const reply = first.is === 'unknown' ? await this.#report(wanted, true) : first
      return reply.is === 'settled' ? reply : { is: 'away' }
    } catch {
      // StoreUnavailable, which the store logs.
      return { is: 'away' }
    }
  }

  /** Returns all tokens that are not taken. Never rejects. */
  async leave(): Promise<void> {
    const none = { orders: 0, otps: 0, reads: 0 }
    await this.settle({ most: none, target: none })
  }

  async #report({ most, target }: Wanted, isWhole: boolean): Promise<LedgerReply> {
    const { lease } = this
    const held = lease.keep(most)
    const missing = (each: BudgetClass): number => Math.max(0, target[each] - lease.free(each))
    const { spent } = lease
    const sentAt = { now: this.#clock.now(), timeOfDay: this.#clock.timeOfDay() }
    const reply = await this.#ledger.settle({
      holder: this.#id,
      sequence: ++this.#sequence,
      ledger: this.#ledgerId,
      heardAt: this.#heardAt,
      sinceMs: Math.ceil(sentAt.now - this.#sentAt),
      spent,
      spends: lease.spends(isWhole ? Infinity : spent - this.#confirmed),
      isWhole,
      held,
      lapsed: lease.lapsed,
      wanted: { orders: missing('orders'), otps: missing('otps'), reads: missing('reads') },
    })
    if (reply.is !== 'settled') return reply
    this.#ledgerId = reply.ledger
    this.#heardAt = reply.at
    this.#sentAt = sentAt.now
    this.#confirmed = spent
    lease.renew(reply.granted, sentAt)
    return reply
  }
}
