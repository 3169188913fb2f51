import { test } from 'tap'
import type { ByClass } from '../../src/config/upstream-budget.ts'
import { simulate } from '../support/budget/simulation.ts'
import { ManualBudget } from '../support/budget/manual-budget.ts'
import { mostWithin } from '../support/budget/most-within.ts'
import { seededRandom } from '../support/time/seeded-random.ts'

/** Windows in which the burst at the start fades, before any is measured. */
const FADING = 3
const ALONE = 0.1
const SHARED = 1 - ALONE
/** Always the same runs, so that no result is due to chance. */
const SEED = 7

/** What is asked for, as parts of the shared budget, and the highest ceiling of a class that asks for more than it gets. */
interface Load extends ByClass {
  readonly ceiling: number
}

/** The orders need less than what is theirs alone. */
const MIXED: Load = { orders: 0.14, otps: 0.96, reads: 0.9, ceiling: 0.8 }
const ORDERS: Load = { orders: 2, otps: 0, reads: 0, ceiling: 1 }
const READS: Load = { orders: 0, otps: 0, reads: 2, ceiling: 0.5 }
/** Less than any ceiling. */
const LIGHT: Load = { orders: 0.1, otps: 0.2, reads: 0.1, ceiling: 0.4 }

async function calm(calls: number, windowMs: number, instances: number, load: Load) {
  // So many that chance matters little.
  const measured = Math.max(8, Math.ceil(7200 / calls))
  const from = FADING * windowMs
  const rate = (calls / windowMs) * 1000 * SHARED
  const { arrivals, reports, refusals } = await simulate({
    config: {
      name: 'default',
      windows: [{ calls, windowMs }],
      shares: { orders: 1, otps: 0.8, reads: 0.5 },
      alone: ALONE,
      instances,
    },
    random: seededRandom(SEED).random,
    instances,
    lengthMs: from + measured * windowMs,
    load: { orders: load.orders * rate, otps: load.otps * rate, reads: load.reads * rate },
  })
  const arrived = arrivals.filter(({ at }) => at > from).length
  return {
    used: arrived / (calls * SHARED * measured * load.ceiling),
    reportsPerCall: reports.filter((at) => at > from).length / arrived,
    most: mostWithin(windowMs, arrivals),
    // A new ledger grants nothing at first.
    refusedOrders: refusals.filter(({ at, budgetClass }) => at > windowMs && budgetClass === 'orders').length,
  }
}

/** The least use of the highest ceiling, and the most reports for a call. */
const RUNS = [
  { calls: 300, seconds: 60, name: 'mixed, twice the budget', load: MIXED, used: 0.9, reportsPerCall: 0.25 },
  { calls: 300, seconds: 60, name: 'orders, twice the budget', load: ORDERS, used: 0.88, reportsPerCall: 0.25 },
  { calls: 300, seconds: 60, name: 'reads, twice the budget', load: READS, used: 0.88, reportsPerCall: 0.32 },
  { calls: 300, seconds: 60, name: 'two fifths of the budget', load: LIGHT, used: 0.9, reportsPerCall: 0.38 },
  { calls: 1000, seconds: 600, name: 'mixed, twice the budget', load: MIXED, used: 0.95, reportsPerCall: 0.55 },
  { calls: 3000, seconds: 60, name: 'mixed, twice the budget', load: MIXED, used: 0.9, reportsPerCall: 0.05 },
]

for (const { calls, seconds, name, load, ...goal } of RUNS) {
  await test(`${calls}/${seconds}, ${name}: nearly all that may be used is, with few reports, and orders are refused last`, async (t) => {
    for (const instances of [1, 2, 5]) {
      const { used, reportsPerCall, most, refusedOrders } = await calm(calls, seconds * 1000, instances, load)
      t.comment(`${instances} processes: ${used.toFixed(3)} used, ${reportsPerCall.toFixed(3)} reports a call`)
      t.ok(most <= calls * SHARED, `${most} calls at most`)
      t.ok(used >= goal.used, `at least ${goal.used} is used`)
      t.ok(reportsPerCall <= goal.reportsPerCall, `at most ${goal.reportsPerCall} reports a call`)
      if (load.orders < 1) t.equal(refusedOrders, 0, 'no order is refused')
    }
  })
}

await test('after a moment without tokens, a session with most of the calls has them at hand again, without a report for each', async (t) => {
  const world = new ManualBudget({ windows: [{ calls: 3000, windowMs: 60_000 }] })
  const send = async (seconds: number): Promise<number> => {
    let refused = 0
    for (let tenth = 0; tenth < seconds * 10; tenth++) {
      if (!(await world.send('orders', 'busy'))) refused++
      if (tenth % 10 === 0 && !(await world.send('orders', 'quiet'))) refused++
      await world.pass(100)
    }
    return refused
  }
  await world.budget.opened()
  await send(30)
  world.quietMs = 15_250
  world.loseLedger()
  t.ok((await send(20)) > 0, 'both go short while the ledger grants nothing')
  const before = world.reports.length
  t.ok((await send(30)) <= 30, 'then there is enough')
  t.ok(world.reports.length - before <= 30, `${world.reports.length - before} reports for 330 calls`)
})
