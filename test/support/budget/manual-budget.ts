import type { BudgetConfig } from '../../../src/config/upstream-budget.ts'
import type { LedgerReport } from '../../../src/store/ledger/ledger.ts'
import type { Admission } from '../../../src/upstream/budget/admission.ts'
import type { Clock } from '../../../src/upstream/budget/clock.ts'
import { budgetTerms } from '../../../src/upstream/budget/terms.ts'
import { UpstreamBudget } from '../../../src/upstream/budget/upstream-budget.ts'
import { LedgerModel } from './ledger-model.ts'

type Granted = Extract<Admission, { is: 'granted' }>['reservation']

/** A budget whose clock a test moves, on a ledger of its own that can be away. */
export class ManualBudget {
  readonly budget: UpstreamBudget
  readonly reports: LedgerReport[] = []
  isAway = false
  /** How long a new ledger grants nothing. */
  quietMs = 0
  /** Replies of the ledger wait for this. */
  replies: Promise<void> = Promise.resolve()
  #book: LedgerModel
  #now = 1000
  #asleepMs = 0
  readonly #timers = new Set<{ readonly at: number; readonly call: () => void }>()

  /** @param book the ledger, if several budgets share it */
  constructor(config: Partial<BudgetConfig>, book = new LedgerModel()) {
    this.#book = book
    const whole: BudgetConfig = {
      name: 'default',
      windows: [{ calls: 100, windowMs: 10_000 }],
      shares: { orders: 1, otps: 0.8, reads: 0.5 },
      alone: 0,
      instances: 1,
      ...config,
    }
    const terms = budgetTerms(whole)
    const clock: Clock = {
      now: () => this.#now,
      timeOfDay: () => 1.7e12 + this.#now + this.#asleepMs,
      after: (ms, call) => {
        if (ms < 0 || ms > 2 ** 31 - 1) throw new Error(`a timer of ${ms} ms`)
        const timer = { at: this.#now + ms, call }
        this.#timers.add(timer)
        return () => void this.#timers.delete(timer)
      },
    }
    const keeper = () => ({ timeOfDay: clock.timeOfDay(), run: '', quietMs: this.quietMs })
    const ledger = {
      settle: async (report: LedgerReport) => {
        if (this.isAway) throw new Error('the ledger is away')
        this.reports.push(report)
        const reply = this.#book.settle(terms, report, keeper())
        await this.replies
        return reply
      },
    }
    this.budget = new UpstreamBudget(terms, ledger, clock)
  }

  /** A budget that has had its first reply of the ledger. */
  static async opened(config: Partial<BudgetConfig> = {}): Promise<ManualBudget> {
    const world = new ManualBudget(config)
    await world.budget.opened()
    return world
  }

  /** Asks for a call and sends it. Returns whether it could. */
  async send(budgetClass: 'orders' | 'otps' | 'reads', subject = 'somebody'): Promise<boolean> {
    const reservation = await this.reserve(budgetClass, subject)
    if (reservation === undefined) return false
    const isSent = reservation.start() === undefined
    reservation.end()
    return isSent
  }

  /** Sends so many calls, one after the other. Returns how many could be sent. */
  async sendMany(count: number, ...call: Parameters<ManualBudget['send']>): Promise<number> {
    let sent = 0
    for (let each = 0; each < count; each++) if (await this.send(...call)) sent++
    return sent
  }

  /** Asks for a call of a user, who counts as nobody else if upstream refuses it. */
  admit(budgetClass: 'orders' | 'otps' | 'reads', subject: string): Admission | Promise<Admission> {
    return this.budget.admit(budgetClass, subject, () => subject)
  }

  /** Asks for a call, but does not send it yet. */
  async reserve(budgetClass: 'orders' | 'otps' | 'reads', subject = 'somebody'): Promise<Granted | undefined> {
    const admission = await this.admit(budgetClass, subject)
    return admission.is === 'granted' ? admission.reservation : undefined
  }

  /** The ledger forgets everything. */
  loseLedger(): void {
    this.#book = new LedgerModel()
  }

  /** Lets time pass, and calls the timers that are due. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms
    for (;;) {
      // Whatever has begun, goes on now.
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      const due = [...this.#timers].filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0]
      if (due === undefined) break
      this.#timers.delete(due)
      this.#now = Math.max(this.#now, due.at)
      due.call()
    }
    this.#now = until
  }

  /** Stops the process for a while: its timers are late. */
  stop(ms: number): void {
    this.#now += ms
  }

  /** The machine sleeps for a while: the monotonic clock stands still. */
  sleep(ms: number): void {
    this.#asleepMs += ms
  }
}
