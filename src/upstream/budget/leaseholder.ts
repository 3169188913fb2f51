import { randomUUID } from 'node:crypto'
import { byClass, type BudgetClass, type ByClass } from '../../config/upstream-budget.ts'
import type { Ledger, LedgerReply } from '../../store/ledger/ledger.ts'
import { AlonePart } from './alone.ts'
import type { Clock } from './clock.ts'
import { Lease, type Token } from './lease.ts'
import type { BudgetTerms } from './terms.ts'

/** While the ledger cannot be reached, it is tried again after this time. */
const RETRY_MS = 500
/** A ledger that has not replied for this long counts as away, so that no call waits longer for it. */
const SILENT_MS = 900

/** The tokens that a report to the ledger asks for. */
export interface Wanted {
  /** Free tokens to keep at most, of those at hand. */
  readonly most: ByClass
  /** Free tokens to have afterwards. A class that the ledger has refused for now asks for none. */
  readonly target: ByClass
}

type Settled = Extract<LedgerReply, { is: 'settled' }>

/**
 * The tokens of this process: its lease, the part of the budget that is set aside for it without Redis, and what the ledger
 * said last. It reports to the ledger which tokens were spent, and renews the lease. One report at a time.
 */
export class Leaseholder {
  readonly lease: Lease
  /** For each window the calls that counted when the ledger replied last. */
  used: readonly number[]
  /** Whether other processes had spent tokens when the ledger replied first. */
  wereInUse = false
  /** Whether the ledger replied to the last report; undefined before the first. */
  hasReplied: boolean | undefined
  /** When the ledger replied last. */
  repliedAt = -Infinity
  /** Until when the ledger is not asked again, because it could not be reached. */
  awayUntil = -Infinity
  /** Whether the report under way has had no reply for {@link SILENT_MS}. */
  #isSilent = false
  readonly #alone: AlonePart
  readonly #ledger: Ledger
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #readyOfAll: number
  readonly #id = randomUUID()
  #sequence = 0
  #ledgerId = ''
  #heardAt = 0
  #sentAt = 0
  /** Of the tokens spent, those that the ledger has confirmed. */
  #confirmed = 0
  /** Until when the ledger grants nothing, because it may have forgotten something. */
  #quietUntil = -Infinity

  constructor(ledger: Ledger, clock: Clock, terms: BudgetTerms) {
    this.#ledger = ledger
    this.#clock = clock
    this.#leaseMs = terms.leaseMs
    this.#readyOfAll = terms.readyOrders * terms.instances
    this.used = terms.windows.map(() => 0)
    this.#alone = new AlonePart(clock, terms)
    this.lease = new Lease(clock, terms)
  }

  /** The calls of {@link used}, unless the ledger replied longer ago than a lease. */
  get recentlyUsed(): readonly number[] | undefined {
    return this.#clock.now() < this.repliedAt + this.#leaseMs ? this.used : undefined
  }

  get isAway(): boolean {
    return this.#isSilent || this.awayUntil > this.#clock.now()
  }

  /** Whether the ledger cannot be reached or grants nothing, so that this process has no more than the tokens at hand. */
  get isCutOff(): boolean {
    return this.isAway || this.#quietUntil > this.#clock.now()
  }

  /** The tokens at hand for a class. */
  free(budgetClass: BudgetClass): number {
    return this.lease.free(budgetClass) + (this.isCutOff ? this.#alone.free(budgetClass) : 0)
  }

  /** Takes a token for a call of this class: of the lease, or else of the part set aside. */
  take(budgetClass: BudgetClass): Token | undefined {
    return this.lease.take(budgetClass) ?? (this.isCutOff ? this.#alone.take(budgetClass) : undefined)
  }

  /**
   * Reports, and takes the tokens that the ledger grants. Never rejects.
   * @param onSilence called when the ledger counts as away while this waits for its reply
   * @returns for each class how long the ledger has no more (ms); undefined if it cannot be reached
   */
  async settle(wanted: Wanted, onSilence?: () => void): Promise<ByClass | undefined> {
    const heard = this.#clock.after(SILENT_MS, () => {
      this.hasReplied = false
      this.#isSilent = true
      onSilence?.()
    })
    const reply = await this.#exchange(wanted)
    heard()
    this.#isSilent = false
    const now = this.#clock.now()
    this.hasReplied = reply !== undefined
    this.awayUntil = reply === undefined ? now + RETRY_MS : -Infinity
    if (reply === undefined) return undefined
    this.#quietUntil = now + reply.quietMs
    // Other new processes hold no more than the tokens that are always ready for orders.
    if (this.repliedAt === -Infinity) this.wereInUse = (reply.used[0] ?? 0) > this.#readyOfAll
    this.used = reply.used
    this.repliedAt = now
    return reply.waitMs
  }

  /** Returns all tokens that are not taken. Never rejects. */
  async leave(): Promise<void> {
    await this.settle({ most: byClass(() => 0), target: byClass(() => 0) })
  }

  async #exchange(wanted: Wanted): Promise<Settled | undefined> {
    try {
      const first = await this.#report(wanted, this.#ledgerId === '')
      // The ledger is another one, or has forgotten some of what this process has spent.
      const reply = first.is === 'unknown' ? await this.#report(wanted, true) : first
      return reply.is === 'settled' ? reply : undefined
    } catch {
      // StoreUnavailable, which the store logs.
      return undefined
    }
  }

  async #report({ most, target }: Wanted, isWhole: boolean): Promise<LedgerReply> {
    const { lease } = this
    const held = lease.keep(most)
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
      wanted: byClass((each) => Math.max(0, target[each] - lease.free(each))),
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
