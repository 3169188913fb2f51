import { test, type Test } from 'tap'
import { once, type OnceOptions } from '../../client/dist/client.js'
import { HeldTimers } from '../support/time/held-timers.ts'
import { clientOf } from '../support/client/client-of.ts'
import { timeAhead, wrongClock } from '../support/time/clock-ahead.ts'
import { replace } from '../support/time/replace.ts'

const TRANSFER = '/payment-agents/v1/transfer'

/** An order whose first answer is lost when the machine has slept for so long. @returns how often it is sent, and what it ends with */
async function lostInSleep(t: Test, sleptMs: number, options: OnceOptions, timeoutMs?: number, isStream = false) {
  const now = Date.now()
  replace(t, Date, 'now', () => now)
  const sleep = timeAhead(t)
  let sent = 0
  const client = await clientOf(t, ({ url }, response) => {
    if (url === '/auth/session') {
      const times = { now: 1, expires_at: 3601, idle_expires_at: 601 }
      return void response.end(JSON.stringify({ authenticated: true, session: 's', scope: 'trade', ...times }))
    }
    if (sent++ > 0) return void response.end('{}')
    sleep(sleptMs)
    response.destroy()
  })
  const order = once((idempotencyKey) => {
    const body = isStream ? { body: new Blob(['{}']).stream(), duplex: 'half' as const } : { body: '{}' }
    return client.api(TRANSFER, { method: 'POST', ...body, idempotencyKey, timeoutMs })
  }, options)
  const error = await order.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return { sent, error }
}

await test('once() does not repeat an order by itself if the machine slept before its answer was lost', async (t) => {
  for (const [sleptMs, timeoutMs, sent] of [
    [80_000, undefined, 2],
    [80_001, undefined, 1],
    [-85_000, undefined, 1],
    [35_000, 10_000, 1],
  ] as const) {
    const late = await lostInSleep(t, sleptMs, {}, timeoutMs)
    t.equal(late.sent, sent, `${sleptMs} ms`)
    if (sent === 1) t.match(late.error, { outcome: 'unknown' })
  }
})

await test('once() does not make an order again whose body is a stream, either', async (t) => {
  for (const [sleptMs, sent] of [
    [75_000, 2],
    [3_600_000, 1],
  ] as const) {
    let asked = 0
    const isMade = (): boolean => ++asked < 1
    t.equal((await lostInSleep(t, sleptMs, { isMade }, undefined, true)).sent, sent, `${sleptMs} ms`)
    t.equal(asked, 1)
  }
})

await test('once() asks once whether such an order was made, and does not repeat it, whatever it hears', async (t) => {
  for (const isMade of [true, false]) {
    let asked = 0
    const look = (): boolean => {
      asked++
      return isMade
    }
    const late = await lostInSleep(t, 3_600_000, { isMade: look })
    t.match(late.error, isMade ? undefined : { outcome: 'unknown' })
    t.same([late.sent, asked], [1, 1])
  }
})

for (const isStream of [false, true]) {
  for (const [steps, sent] of [
    [[20_000], 2],
    [[20_001], 1],
    [[-20_001], 1],
    [[1_200_000, 1000], 1],
    [[1000, 1_200_000], 1],
    [[15_000, 15_000, 15_000], 2],
  ] as const) {
    const how = `${steps.join(', ')} ms${isStream ? ', with a stream' : ''}`
    await test(`once() repeats no order if the machine slept while it looked whether the order was made: ${how}`, async (t) => {
      const ticks = new HeldTimers(t, 'setInterval', 1000)
      let asked = 0
      /** The first question takes this long. The clock ticks between the steps. */
      const isMade = async (): Promise<boolean> => {
        await Promise.resolve()
        if (asked++ > 0) return false
        const pass = wrongClock(t)
        for (const [at, step] of steps.entries()) {
          if (at > 0) ticks.run()
          pass(step)
        }
        return false
      }
      const late = await lostInSleep(t, 0, { isMade }, undefined, isStream)
      t.match(late, { sent, error: sent === 1 ? { outcome: 'unknown' } : undefined })
      t.equal(ticks.size, 0)
    })
  }
}

await test('once() waits for a user whom it asks, however long, unless the machine sleeps', async (t) => {
  /** As `confirm()` does: no timer runs meanwhile. */
  const confirm = (): boolean => {
    wrongClock(t)(600_000)
    return false
  }
  t.match(await lostInSleep(t, 0, { isMade: confirm }), { sent: 2, error: undefined })
  t.match(await lostInSleep(t, 0, { isMade: async () => confirm() }), { sent: 2, error: undefined })
})
