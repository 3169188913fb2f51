import { byClass, type BudgetConfig } from '../../../src/config/upstream-budget.ts'
import type { LedgerReply, LedgerReport } from '../../../src/store/ledger/ledger.ts'
import { budgetTerms } from '../../../src/upstream/budget/terms.ts'
import { UpstreamBudget } from '../../../src/upstream/budget/upstream-budget.ts'
import type { UpstreamRefusals } from '../../../src/upstream/budget/upstream-refusals.ts'

type Settled = Extract<LedgerReply, { is: 'settled' }>

/** Whatever has begun goes on. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

/** What an admission is, at once: `waiting` for a promise. */
export function outcome(admission: ReturnType<UpstreamBudget['admit']>): string {
  return admission instanceof Promise ? 'waiting' : admission.is
}

/** Upstream's refusals, as a test says. */
class FakeRefusals {
  isCalm = true
  held: { limited: 'user' | 'all'; leftMs: number } | undefined
  canProbe = false
  /** Whether a call that asks to be the probe is. */
  isTaken = true
  isClosed = false
  readonly notes: unknown[] = []
  usersHeldBack = byClass(() => 0)
  hold = () => this.held
  named = <Caller>(caller: Caller): Caller => caller
  mayProbe = (): boolean => this.canProbe
  takeProbe = () => ({ probe: 'the probe', taken: Promise.resolve(this.isTaken) })
  isHeldBack = (budgetClass: string): boolean => budgetClass === 'otps'
  note = (...args: unknown[]): void => void this.notes.push(...args)
  close = (): void => void (this.isClosed = true)
}

/** A budget of 100 calls a minute whose ledger replies as a test says, and when; its clock stands still until the test moves it. */
export class ScriptedBudget {
  readonly budget: UpstreamBudget
  readonly refusals = new FakeRefusals()
  now = 1000
  /** The reports that wait for a reply. */
  readonly #reports: { readonly report: LedgerReport; readonly settle: (reply: LedgerReply | Error) => void }[] = []
  #timers: { readonly at: number; readonly ms: number; readonly call: () => void }[] = []

  constructor(config: Partial<BudgetConfig> = {}) {
    const terms = budgetTerms({
      name: 'default',
      windows: [{ calls: 100, windowMs: 60_000 }],
      shares: { orders: 1, otps: 0.8, reads: 0.5 },
      alone: 0,
      instances: 1,
      ...config,
    })
    const clock = {
      now: () => this.now,
      timeOfDay: () => 1.7e12 + this.now,
      after: (ms: number, call: () => void) => {
        const timer = { at: this.now + ms, ms, call }
        this.#timers.push(timer)
        return () => void (this.#timers = this.#timers.filter((each) => each !== timer))
      },
    }
    const settle = (report: LedgerReport) =>
      new Promise<LedgerReply>((resolve, reject) => {
        const settle = (reply: LedgerReply | Error) => (reply instanceof Error ? reject(reply) : resolve(reply))
        this.#reports.push({ report, settle })
      })
    this.budget = new UpstreamBudget(terms, { settle }, clock, this.refusals as unknown as UpstreamRefusals)
  }

  /** One whose ledger has granted these tokens. */
  static async with(
    reply: Parameters<ScriptedBudget['reply']>[0],
    config: Partial<BudgetConfig> = {},
  ): Promise<ScriptedBudget> {
    const world = new ScriptedBudget(config)
    void world.budget.opened()
    await world.reply(reply)
    return world
  }

  /** How many reports wait for a reply. */
  get reports(): number {
    return this.#reports.length
  }

  /** The delays of the timers that are set. */
  get delays(): number[] {
    return this.#timers.map(({ ms }) => ms)
  }

  /** Replies to the oldest report. @param changes what is not as usual; nothing: the ledger cannot be reached */
  async reply(
    changes?: Partial<Omit<Settled, 'granted' | 'waitMs'>> & { granted?: object; waitMs?: object },
  ): Promise<void> {
    const { settle } = this.#reports.shift() ?? { settle: () => undefined }
    const none = byClass(() => 0)
    settle(
      changes === undefined
        ? new Error('the ledger is away')
        : {
            is: 'settled',
            ledger: 'the ledger',
            at: this.now,
            quietMs: 0,
            used: [0],
            ...changes,
            granted: { ...none, ...changes.granted },
            waitMs: { ...none, ...changes.waitMs },
          },
    )
    await turns()
  }

  /** Runs the timers that are due now. */
  async run(): Promise<void> {
    const due = this.#timers.filter(({ at }) => at <= this.now)
    this.#timers = this.#timers.filter(({ at }) => at > this.now)
    for (const { call } of due) call()
    await turns()
  }
}
