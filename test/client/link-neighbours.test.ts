import { test } from 'tap'
import { shown } from '../support/client/shown-page.ts'
import { becomePage } from '../support/client/walked-page.ts'

// In a process of its own: the page that it walks through is that of the whole process.

becomePage()

/** How long a second is left to chance: half of it. */
const HALF_MS = 500

await test('a connection that never works keeps none that has worked until now from coming back soon', async (t) => {
  const { page, pass, step, waitsMs } = shown(t)
  const connection = (path: string) => [...page.sockets].find((socket) => socket.path === path)
  /** The connection to this path opens, and says something if it works. */
  const open = (path: string, works: boolean): void => {
    connection(path)?.open()
    if (works) connection(path)?.pong()
  }
  await step({ is: 'time', ms: 0 })
  open('/ws/public', true)
  const account = page.client.tradingSocket('A')
  t.teardown(() => account.close())
  await step({ is: 'time', ms: 0 })
  for (let times = 0; times < 8; times++) {
    open('/ws/trading/A', false)
    connection('/ws/trading/A')?.end(1013, 'upstream_unreachable')
    await step({ is: 'time', ms: 0 })
    const waitMs = Number(account.status().retryAt) - Date.now()
    t.equal(waitMs, HALF_MS * Math.min(2 ** times, 30), `after ${times + 1} failures`)
    for (let left = waitMs; left > 0; left -= 1000) {
      if (times === 7 && left < waitMs) break
      connection('/ws/public')?.say({ msg_type: 'tick' })
      await pass(Math.min(left, 1000))
    }
  }
  for (const growth of [1, 2, 4]) {
    connection('/ws/public')?.end(1012, 'shutting_down')
    await step({ is: 'time', ms: 0 })
    t.equal(waitsMs(), growth * HALF_MS)
    await pass(waitsMs())
  }
})
