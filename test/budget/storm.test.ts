import { test } from 'tap'
import type { Happening } from '../support/budget/schedule.ts'
import { simulate } from '../support/budget/simulation.ts'
import { seededRandom } from '../support/time/seeded-random.ts'

const MINUTES = 15
/** Always the same runs, and so many that no single burst of refusals decides. */
const SEEDS = Array.from({ length: 200 }, (_, index) => index + 1)

/** Orders sent and refused in runs of 15 minutes, at a load of twice the budget, in which so much happens of each kind. */
async function orders(
  faults: { crashes: number; pauses: number; outages: number; failovers: number },
  limitedUser?: string,
) {
  const count = { sent: 0, refused: 0, toLimited: 0, wrongly: 0 }
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
      ...(limitedUser !== undefined && { limitedUser }),
      faults: {
        clockSteps: 0,
        redisSteps: 0,
        lostLedgers: 0,
        longestPauseMs: 5000,
        longestOutageMs: 5000,
        ...faults,
      },
    })
    const ofOthers = ({ budgetClass, subject }: Happening): boolean =>
      budgetClass === 'orders' && subject !== limitedUser
    count.sent += arrivals.filter(ofOthers).length
    count.refused += refusals.filter(ofOthers).length
    count.toLimited += arrivals.filter(({ subject }) => subject === limitedUser).length
    count.wrongly += refusals.filter(({ limited, subject }) => limited === 'user' && subject !== limitedUser).length
  }
  return count
}

const STORMS = [
  { name: 'kills and pauses', faults: { crashes: 22, pauses: 22, outages: 0, failovers: 0 }, most: 0.004 },
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

await test('all of them, while upstream refuses one user all the time: hardly an order of others is refused', async (t) => {
  const { sent, refused, toLimited, wrongly } = await orders(
    { crashes: 22, pauses: 22, outages: 8, failovers: 2 },
    'subject0',
  )
  t.comment(`${refused} of ${sent + refused} orders of others refused; ${toLimited} calls of the user were sent`)
  t.ok(sent > SEEDS.length * 80, 'orders are sent')
  t.ok(refused <= (sent + refused) * 0.005)
  t.equal(wrongly, 0, 'nobody else is held back')
  // One call of each class in 20 seconds, and a few on instances that have not heard of it yet.
  t.ok(toLimited > 0 && toLimited <= SEEDS.length * MINUTES * 3 * 3 * 2, `${toLimited} calls`)
})
