import type { Ledger, LedgerReply, LedgerReport } from '../../../src/store/ledger/ledger.ts'
import type { SharedDocument } from '../../../src/store/shared-document.ts'
import type { Clock } from '../../../src/upstream/budget/clock.ts'
import type { BudgetTerms } from '../../../src/upstream/budget/terms.ts'
import { UpstreamBudget } from '../../../src/upstream/budget/upstream-budget.ts'
import { UpstreamRefusals } from '../../../src/upstream/budget/upstream-refusals.ts'
import type { Schedule } from './schedule.ts'

/** What an instance needs of its world. */
interface SimulatedWorld {
  readonly now: number
  readonly plan: Schedule
  readonly terms: BudgetTerms
  readonly random: () => number
  schedule(at: number, instance: SimulatedInstance, run: () => void): void
  settle(report: LedgerReport, from: SimulatedInstance): Promise<LedgerReply>
  openText(from: SimulatedInstance, onChange: () => void): SharedDocument
}

/** A process with its clocks. What happens while it is paused happens when it goes on. */
export class SimulatedInstance {
  readonly clock: Clock
  readonly budget: UpstreamBudget
  isDead = false
  pausedUntil = 0
  stepMs = 0

  constructor(world: SimulatedWorld) {
    // Monotonic clocks start anywhere and differ in speed by up to 0.03 %, times of day by up to 30 s.
    const origin = world.random() * 1e6
    const speed = 1 + (world.random() - 0.5) * 0.0006
    this.stepMs = (world.random() - 0.5) * 60_000
    this.clock = {
      now: () => origin + world.now * speed,
      timeOfDay: () => Math.floor(1.7e12 + world.now + this.stepMs),
      after: (ms, call) => {
        const timer = { isOn: true }
        world.schedule(world.now + Math.max(0, ms) / speed, this, () => {
          if (timer.isOn) call()
        })
        return () => void (timer.isOn = false)
      },
    }
    const ledger: Ledger = {
      settle: (report) => world.settle(report, this),
    }
    const refusals = new UpstreamRefusals(this.clock, (user) => user)
    refusals.suspicions.share(world.openText(this, () => refusals.suspicions.reread()))
    this.budget = new UpstreamBudget(world.terms, ledger, this.clock, refusals)
  }
}
