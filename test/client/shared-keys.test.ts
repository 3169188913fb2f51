import { test, type Test } from 'tap'
import { once } from '../../client/dist/client.js'
import { createFakeClient, type FakeClient } from '../../client/dist/testing.js'
import { TabStorage } from '../support/client/ordering-browser.ts'
import { failure } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'
import { PROBLEM, problemBody } from '../support/client/own-problem.ts'

// In a process of its own: it gives the whole process a browser's storage.

const TRANSFER = '/payment-agents/v1/transfer'

/** A call that has arrived, and its answer, which the test gives. */
interface Held {
  readonly key: string | null
  readonly answer: (response: Response) => void
}

/** A page whose calls are answered when the test says so, and the storage of its tab. */
class Desk {
  readonly held: Held[] = []
  readonly tab = new TabStorage()
  readonly #client: FakeClient

  constructor(t: Test) {
    const client = (this.#client = createFakeClient({ session: { subject: 'user-1' } }))
    client.server.respond(
      'POST',
      TRANSFER,
      ({ headers }) =>
        new Promise<Response>((answer) =>
          this.held.push({ key: headers.get('idempotency-key'), answer }),
        ) as Promise<never>,
    )
    Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, value: this.tab })
    t.teardown(() => {
      client.close()
      Reflect.deleteProperty(globalThis, 'sessionStorage')
    })
  }

  /** Clicks on the order. It is the same one after a reload. */
  click(): Promise<unknown> {
    return once((idempotencyKey) => this.#client.api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey }), {
      remember: 'transfer',
    })
  }

  /** Waits for so many calls. @returns the newest one */
  async call(count: number): Promise<Held> {
    await until(() => this.held.length === count)
    return this.held[count - 1] as Held
  }

  /** What is kept of the order. */
  get kept(): string {
    return [...this.tab.items.values()].join()
  }
}

const made = (): Response => Response.json({ data: {} })

await test('remember: the replay of a double click does not forget the next order', async (t) => {
  const desk = new Desk(t)
  const clicks = [desk.click(), desk.click()]
  const second = await desk.call(2)
  const [first] = desk.held
  t.equal(first?.key, second.key)
  first?.answer(made())
  await until(() => desk.tab.items.size === 0)

  // The user orders again, which is slow.
  const again = failure(desk.click())
  const slow = await desk.call(3)
  t.not(slow.key, second.key)
  second.answer(made())
  await Promise.all(clicks)
  t.match(desk.kept, String(slow.key))

  // After a reload, the server gets the same key again.
  slow.answer(Response.error())
  ;(await desk.call(4)).answer(Response.error())
  t.match(await again, { outcome: 'unknown' })
  const reloaded = desk.click()
  const last = await desk.call(5)
  t.equal(last.key, slow.key)
  last.answer(made())
  await reloaded
  t.equal(desk.tab.items.size, 0)
})

await test('remember: the second click of an answered order is repeated with its own key, and leaves that of the next order alone', async (t) => {
  const desk = new Desk(t)
  const clicks = [desk.click(), desk.click()]
  const second = await desk.call(2)
  desk.held[0]?.answer(made())
  await until(() => desk.tab.items.size === 0)
  const next = desk.click()
  const third = await desk.call(3)
  second.answer(Response.error())
  const repeated = await desk.call(4)
  t.equal(repeated.key, second.key)
  t.match(desk.kept, String(third.key))
  // The server will never know what became of it, so that its key is given up: but not that of the next order.
  const body = problemBody('outcome_unknown', { status: 409, outcome: 'unknown' })
  repeated.answer(new Response(body, { status: 409, headers: PROBLEM }))
  t.match(await failure(Promise.all(clicks)), { problem: { code: 'outcome_unknown' } })
  t.match(desk.kept, `"key":"${third.key}"`)
  third.answer(made())
  await next
  t.equal(desk.tab.items.size, 0)
})

await test('remember: another tab cannot take part in a key while it is read and replaced, and one that sleeps stops nobody', async (t) => {
  const desk = new Desk(t)
  const lost = failure(desk.click())
  ;(await desk.call(1)).answer(Response.error())
  ;(await desk.call(2)).answer(Response.error())
  await lost
  const [place = ''] = desk.tab.items.keys()
  const held = Promise.withResolvers<void>()
  const other = navigator.locks.request(place, () => held.promise)
  const order = desk.click()
  // It waits for the lock.
  await until(async () => ((await navigator.locks.query()).pending ?? []).some(({ name }) => name === place))
  t.equal(desk.held.length, 2)
  held.resolve()
  await other
  const third = await desk.call(3)
  t.equal(third.key, desk.held[0]?.key)
  // The tab that has the lock sleeps, and the answer arrives: after a second the order is forgotten all the same.
  const waits = t.capture(AbortSignal, 'timeout', AbortSignal.timeout.bind(AbortSignal))
  const asleep = Promise.withResolvers<void>()
  void navigator.locks.request(place, () => asleep.promise)
  third.answer(made())
  await until(() => desk.tab.items.size === 0)
  t.match(await order, { status: 200 })
  t.same(
    waits().map(({ args }) => args),
    [[1000]],
  )
  asleep.resolve()
})

await test('remember: while the storage is full, orders are made, and nothing of another order is removed', async (t) => {
  const desk = new Desk(t)
  const other = 'trading-bff:order:other:1'
  desk.tab.setItem(other, 'kept')
  desk.tab.setItem = () => {
    throw new DOMException('full', 'QuotaExceededError')
  }
  const order = desk.click()
  ;(await desk.call(1)).answer(Response.error())
  const second = await desk.call(2)
  t.equal(second.key, desk.held[0]?.key)
  second.answer(made())
  t.match(await order, { status: 200 })
  t.same([...desk.tab.items], [[other, 'kept']])
})
