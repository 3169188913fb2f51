import { test, type Test } from 'tap'
import { ORDER, OrderingBrowser, REMEMBERED } from '../support/client/ordering-browser.ts'
import { failure } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'

// In a process of its own: it gives the whole process a browser's storage.

/** A browser with an order whose answer was lost in an earlier session of the user, which has begun anew. */
async function lostBefore(t: Test): Promise<{ browser: OrderingBrowser; key: string; sent: () => unknown[] }> {
  const browser = await new OrderingBrowser().start(t)
  const key = await browser.lose(t)
  browser.session = { session: 'second', subject: 'user-1' }
  const before = browser.sent.length
  return { browser, key, sent: () => browser.sent.slice(before) }
}

await test('remember: an order of another session is asked about again if the page goes before it has an answer', async (t) => {
  const { browser, key, sent } = await lostBefore(t)
  for (let reloads = 0; reloads < 2; reloads++) {
    const word = await new Promise((resolve) => {
      const isMade = (): Promise<boolean> => {
        resolve('asked')
        return new Promise(() => undefined)
      }
      void browser.order(ORDER, { ...REMEMBERED, isMade }).then(resolve)
    })
    t.equal(word, 'asked')
  }
  t.same(sent(), [])
  t.equal(await browser.order(ORDER, { ...REMEMBERED, isMade: () => true }), undefined)
  t.same(sent(), [], 'it was made in the session before')
  t.equal(browser.tab.items.size, 0)
  await browser.order()
  t.not(browser.keys.at(-1), key)
})

await test('remember: an order that isMade is being asked about is not sent for another user who logs in meanwhile', async (t) => {
  for (const session of [
    'none',
    { session: 'third', subject: 'user-2' },
    { session: 'third', subject: 'user-1' },
  ] as const) {
    const { browser, sent } = await lostBefore(t)
    const isMade = (): boolean => {
      browser.session = session
      return false
    }
    t.match(await failure(browser.order(ORDER, { ...REMEMBERED, isMade })), { outcome: 'unknown' })
    t.same(sent(), [])
  }
})

await test('remember: two equal orders that isMade is asked about at once make one', async (t) => {
  const { browser, sent } = await lostBefore(t)
  const answers: ((isMade: boolean) => void)[] = []
  const isMade = (): Promise<boolean> => new Promise((resolve) => answers.push(resolve))
  const order = () => browser.order(ORDER, { ...REMEMBERED, isMade })
  const both = [order(), order()]
  await until(() => answers.length === 2)
  answers[0]?.(false)
  t.match(await Promise.race(both), { status: 200 })
  answers[1]?.(false)
  t.match(await Promise.all(both), [{ status: 200 }, { status: 200 }])
  const keys = sent().map((each) => (each as readonly unknown[])[0])
  t.equal(new Set(keys).size, 1)
})
