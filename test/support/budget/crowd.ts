import type { BudgetClass } from '../../../src/config/upstream-budget.ts'
import type { SimulatedUser } from './schedule.ts'
import { simulate } from './simulation.ts'
import { seededRandom } from '../time/seeded-random.ts'

/** Always the same run, so that no result is due to chance. */
const SEED = 11
const NO_LOAD = { orders: 0, otps: 0, reads: 0 }
const NO_FAULTS = { pauses: 0, clockSteps: 0, redisSteps: 0, outages: 0, failovers: 0, lostLedgers: 0 }
const MINUTE = 60_000

/** Users, and the instances that they share. */
interface Crowd {
  readonly users: readonly SimulatedUser[]
  readonly budget?: readonly (readonly [calls: number, windowMs: number])[]
  readonly instances?: number
  readonly minutes?: number
  /** What is counted begins then (ms). */
  readonly fromMs?: number
  readonly seed?: number
  /** How many instances crash, on average. */
  readonly crashes?: number
}

/** What became of the calls of each subject, and of all. */
export async function outcome({
  users,
  budget = [[600, MINUTE]],
  instances = 3,
  minutes = 8,
  fromMs = 2 * MINUTE,
  seed = SEED,
  crashes = 0,
}: Crowd) {
  const { arrivals, refusals, reports } = await simulate({
    config: {
      name: 'default',
      windows: budget.map(([calls, windowMs]) => ({ calls, windowMs })),
      shares: { orders: 1, otps: 0.8, reads: 0.5 },
      alone: 0.1,
      instances,
    },
    random: seededRandom(seed).random,
    instances,
    lengthMs: minutes * MINUTE,
    load: NO_LOAD,
    ...(crashes > 0 && { faults: { ...NO_FAULTS, crashes } }),
    users,
  })
  const of = (pattern: RegExp) => {
    const count = (all: typeof arrivals): number =>
      all.filter(({ at, subject }) => at > fromMs && pattern.test(subject)).length
    const [sent, refused] = [count(arrivals), count(refusals)]
    return { sent, refused, aMinute: sent / (minutes - fromMs / MINUTE), part: refused / Math.max(1, sent + refused) }
  }
  const all = of(/./)
  return { of, all, reportsPerCall: reports.filter((at) => at > fromMs).length / all.sent }
}

/** The orders of the users named `other` that were sent and refused in runs with these seeds, from their start. */
export async function ordersOfOthers(
  crowd: Crowd,
  seeds: number,
): Promise<{ sent: number; refused: number; part: number }> {
  const orders = { sent: 0, refused: 0 }
  for (let seed = 1; seed <= seeds; seed++) {
    const { sent, refused } = (await outcome({ ...crowd, fromMs: 0, seed })).of(/other/)
    orders.sent += sent
    orders.refused += refused
  }
  return { ...orders, part: orders.refused / (orders.sent + orders.refused) }
}

/** So many users, each with a call every ten seconds, unless said otherwise. */
export function others(count: number, budgetClass: BudgetClass = 'orders', everyMs = 10_000): SimulatedUser[] {
  return Array.from({ length: count }, (_value, at) => ({ subject: `other ${at}`, budgetClass, everyMs }))
}

/** Who asks for far more than there is. */
export function flood(user: Partial<SimulatedUser> = {}): SimulatedUser {
  return { subject: 'flood', budgetClass: 'orders', everyMs: 500, burst: 50, fromMs: MINUTE, ...user }
}
