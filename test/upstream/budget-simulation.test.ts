import { test } from 'tap'
import type { BudgetConfig } from '../../src/config/upstream-budget.ts'
import type { LedgerTerms } from '../../src/store/ledger/ledger.ts'
import { mostWithin, simulate, type Run, type Schedule } from '../support/budget-simulation.ts'
import { seededRandom } from '../support/seeded-random.ts'

/** 10,000 with SCHEDULES=10000. */
const SCHEDULES = Number(process.env['SCHEDULES'] ?? 60)

/** A random schedule: usually more calls than the budget has, and up to a few faults of each kind. */
function randomSchedule(random: () => number): Schedule {
  const upTo = (most: number): number => Math.max(0, (random() - 0.3) * most)
  const short = { calls: 10 + Math.floor(random() * 20), windowMs: 4000 + Math.floor(random() * 6000) }
  const long = { calls: Math.floor(short.calls * (1.2 + random() * 2)), windowMs: short.windowMs * 3 }
  const instances = 2 + Math.floor(random() * 2)
  const config: BudgetConfig = {
    name: 'default',
    windows: random() < 0.5 ? [short] : [short, long],
    shares: { orders: 1, otps: 0.8, reads: 0.5 },
    alone: random() < 0.7 ? 0 : 0.25,
    instances,
  }
  // Grants are forgotten for good if a holder dies, or sleeps, together with Redis.
  const isForgetful = random() < 0.2
  const rate = (short.calls / short.windowMs) * 1000
  return {
    config,
    random,
    instances,
    lengthMs: 60_000,
    waveMs: 1000 + random() * 12_000,
    load: { orders: random() * 2 * rate, otps: random() * rate, reads: random() * 2 * rate },
    faults: {
      crashes: isForgetful ? 0 : upTo(4),
      pauses: isForgetful ? 0 : upTo(4),
      clockSteps: upTo(3),
      redisSteps: upTo(2),
      outages: isForgetful ? 0 : upTo(2),
      failovers: isForgetful ? 0 : upTo(2),
      lostLedgers: isForgetful ? 1 + upTo(2) : 0,
    },
  }
}

/** What of the promise is broken; empty if nothing is. */
function broken({ arrivals }: Run, { windows }: BudgetConfig): string[] {
  return windows.flatMap(({ calls, windowMs }) => {
    const most = mostWithin(windowMs, arrivals)
    return most > calls ? [`${most} calls within ${windowMs} ms`] : []
  })
}

await test(`no window has more calls than the budget, in ${SCHEDULES} random schedules of crashes, pauses, clock steps and failovers`, async (t) => {
  const { random, seed } = seededRandom()
  let calls = 0
  for (let count = 0; count < SCHEDULES; count++) {
    const schedule = randomSchedule(random)
    const run = await simulate(schedule)
    calls += run.arrivals.length
    const faults = broken(run, schedule.config)
    if (faults.length > 0) {
      t.same(faults, [], `schedule ${count} of SEED=${seed}`)
      return
    }
  }
  t.ok(calls > SCHEDULES * 20, `${calls} calls were made, SEED=${seed}`)
})

await test('with the lease left out of the count, some schedule breaks the promise', async (t) => {
  const { random, seed } = seededRandom()
  for (let count = 0; count < 400; count++) {
    const { config, ...rest } = randomSchedule(random)
    const hard = { ...config, alone: 0, windows: config.windows.slice(0, 1) }
    const withoutLease = (terms: LedgerTerms): LedgerTerms => ({ ...terms, leaseMs: 0 })
    const faults = broken(await simulate({ ...rest, config: hard, ledgerTerms: withoutLease }), hard)
    if (faults.length > 0) return t.pass(`schedule ${count} of SEED=${seed}: ${faults}`)
  }
  t.fail(`no schedule of SEED=${seed} does`)
})
