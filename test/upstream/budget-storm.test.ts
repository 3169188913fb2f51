import { test } from 'tap'
import { simulate } from '../support/budget-simulation.ts'
import { seededRandom } from '../support/seeded-random.ts'

const MINUTES = 15
/** Always the same runs, so that no result is due to chance. */
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]

/** Orders sent and refused in runs of 15 minutes, at a load of twice the budget, in which so much happens of each kind. */
async function orders(faults: { crashes: number; pauses: number; outages: number; failovers: number }) {
  const count = { sent: 0, refused: 0 }
  for (const seed of SEEDS) {
    const { arrivals, refusals } = await simulate({
      config: {
        name: 'default',
        windows: [
          { calls: 300, windowMs: 60_000 },
          { calls: 1000, windowMs: 600_000 },
        ],
        shares: { orders: 1, otps: 0.8, reads: 0.5 },
        alone: 0.1,
        instances: 5,
      },
      random: seededRandom(seed).random,
      instances: 5,
      lengthMs: MINUTES * 60_000,
      load: { orders: 0.2, otps: 4, reads: 4 },
      faults: {
        clockSteps: 0,
        redisSteps: 0,
        lostLedgers: 0,
        longestPauseMs: 5000,
        longestOutageMs: 5000,
        ...faults,
      },
    })
    count.sent += arrivals.filter(({ budgetClass }) => budgetClass === 'orders').length
    count.refused += refusals.filter(({ budgetClass }) => budgetClass === 'orders').length
  }
  return count
}

const STORMS = [
  { name: 'kills and pauses', faults: { crashes: 22, pauses: 22, outages: 0, failovers: 0 }, most: 0.002 },
  { name: 'restarts and failovers of Redis', faults: { crashes: 0, pauses: 0, outages: 8, failovers: 2 }, most: 0.002 },
  { name: 'all of them', faults: { crashes: 22, pauses: 22, outages: 8, failovers: 2 }, most: 0.005 },
]

for (const { name, faults, most } of STORMS) {
  await test(`${name}: hardly an order is refused while most reads and one-time URLs are`, async (t) => {
    const { sent, refused } = await orders(faults)
    t.comment(`${refused} of ${sent + refused} orders refused`)
    t.ok(sent > SEEDS.length * 100, 'orders are sent')
    t.ok(refused <= (sent + refused) * most, `at most ${most} of them are refused`)
  })
}
