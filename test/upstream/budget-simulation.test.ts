import { test } from 'tap'
import type { BudgetConfig } from '../../src/config/upstream-budget.ts'
import type { Run, Schedule } from '../support/budget/schedule.ts'
import { simulate } from '../support/budget/simulation.ts'
import { mostWithin } from '../support/budget/most-within.ts'
import { seededRandom } from '../support/time/seeded-random.ts'

/** 10,000 with SCHEDULES=10000. */
const SCHEDULES = Number(process.env['SCHEDULES'] ?? 60)

/** A random schedule: usually more calls than the budget has, and up to a few faults of each kind. */
function randomSchedule(random: () => number): Schedule {
  const upTo = (most: number): number => Math.max(0, (random() - 0.3) * most)
  const short = { calls: 10 + Math.floor(random() * 20), windowMs: 2000 + Math.floor(random() * 7000) }
  const long = { calls: Math.floor(short.calls * (1.2 + random() * 2)), windowMs: short.windowMs * 3 }
  const instances = 2 + Math.floor(random() * 2)
  const config: BudgetConfig = {
    name: 'default',
    windows: random() < 0.5 ? [short] : [short, long],
    shares: { orders: 1, otps: 0.8, reads: 0.5 },
    alone: random() < 0.7 ? 0 : 0.25,
    instances,
  }
  // What only a holder knows that dies, or sleeps, together with Redis, is lost for good (docs/operating/limits-and-budget.md).
  const isForgetful = random() < 0.3
  const rate = (short.calls / short.windowMs) * 1000
  return {
    config,
    random,
    instances,
    lengthMs: 60_000,
    waveMs: 1000 + random() * 12_000,
    ...(random() < 0.5 && { limitedUser: 'subject0' }),
    load: { orders: random() * 2 * rate, otps: random() * rate, reads: random() * 2 * rate },
    faults: {
      crashes: isForgetful ? 0 : upTo(4),
      pauses: isForgetful ? 0 : upTo(4),
      clockSteps: upTo(3),
      redisSteps: upTo(2),
      outages: isForgetful ? 0 : upTo(2),
      failovers: isForgetful ? upTo(3) : 0,
      lostLedgers: isForgetful ? upTo(2) : 0,
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
  const { seed: first } = seededRandom()
  let calls = 0
  for (let seed = first; seed < first + SCHEDULES; seed++) {
    const schedule = randomSchedule(seededRandom(seed).random)
    const run = await simulate(schedule)
    calls += run.arrivals.length
    const faults = broken(run, schedule.config)
    if (faults.length > 0) {
      t.same(faults, [], `SEED=${seed} SCHEDULES=1`)
      return
    }
  }
  t.ok(calls > SCHEDULES * 20, `${calls} calls were made, SEED=${first}`)
})
