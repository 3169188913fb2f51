import { test, type Test } from 'tap'
import { fate } from '../../client/dist/client/orders.js'
import type { Handling, LossyAccount, Offer } from '../support/client/lossy-account.ts'
import { losing, RISE } from '../support/client/lost-orders.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const FALL: Offer = { ...RISE, contract_type: 'PUT' }
const LOST: Handling = { executes: 'never', answer: 'cut' }
const MADE: Handling = { executes: 'at once', answer: 'cut' }

/** Sets the clock of the user back. That of the trading service, which is the same one in this process, goes on. */
function setBack(t: Test, ms: number, account: LossyAccount): void {
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() - ms })
  account.aheadMs += ms
}

for (const setBackMs of [10_000, 600_000, -600_000]) {
  await test(`fate: the clock of the user is moved by ${-setBackMs} ms after the order was sent`, async (t) => {
    const { lose, find, account } = await losing(t)
    const error = await lose(MADE)
    setBack(t, setBackMs, account)
    t.match(await find(error), { is: 'made', contract: { contract_id: account.truth.get(1) } })
  })
}

await test('fate: an older purchase that could be that of the order only because the clock has moved makes it ambiguous', async (t) => {
  const { lose, find, account } = await losing(t)
  const older = account.buyElsewhere(RISE, 240)
  const error = await lose(LOST)
  setBack(t, -600_000, account)
  t.match(await find(error), { is: 'ambiguous', candidates: [{ contract_id: older.contract_id }] })
})

await test('fate: a machine that sleeps, whose other clock stands still, hides no purchase and finds no wrong one', async (t) => {
  const { lose, find, account } = await losing(t)
  const error = await lose(MADE)
  const missed = await lose(LOST, FALL)
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() + 600_000 })
  t.match(await find(error), { is: 'made', contract: { contract_id: account.truth.get(1) } })
  account.buyElsewhere(FALL, 300)
  t.match(await find(missed), { is: 'ambiguous' }, 'bought elsewhere while it slept')
})

await test('fate: is ambiguous if the clock was set between two equal orders', async (t) => {
  const { lose, find, account } = await losing(t)
  await lose({ executes: 'late', answer: 'cut' })
  setBack(t, -600_000, account)
  const error = await lose(LOST)
  account.executeLate()
  t.match(await find(error), { is: 'ambiguous' })
})

await test('fate: an equal contract that was bought 5 seconds before the order was sent is not that of the order', async (t) => {
  const { lose, find, account } = await losing(t)
  account.buyElsewhere(RISE, 5)
  t.match(await find(await lose(LOST)), { is: 'not_seen' })
})

await test('fate: a read of the account that is not answered is given up after 10 seconds, and the last read decides', async (t) => {
  const { lose, account, watch } = await losing(t)
  const error = await lose(MADE)
  const answers = new HeldTimers(t, 'setTimeout', 10_000)
  account.reads = 0
  account.ignores = (operation) => operation === 'portfolio'
  const found = fate(error)
  await until(() => account.reads === 2 && answers.size === 1)
  answers.run()
  await until(() => watch.size > 0)
  watch.run()
  t.match(await found, { is: 'made', contract: { contract_id: account.truth.get(1) } })
  t.equal(account.reads, 3)
})
