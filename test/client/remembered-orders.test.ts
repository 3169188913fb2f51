import { test, type Test } from 'tap'
import { ApiError, createClient, once, type Client } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { failure } from '../support/client/page-client.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const REMEMBERED = { remember: 'transfer' }
const ORDER = { amount: 1234.56, to: 'CR100' }

/** What happens to a call: its response is lost, or it gets this problem, or with no code an empty 200. */
type Event = 'cut' | readonly [status: number, code: string]

/** The storage of a tab. */
class TabStorage {
  readonly items: Map<string, string>

  constructor(items: ReadonlyMap<string, string> = new Map()) {
    this.items = new Map(items)
  }

  getItem(name: string): string | null {
    return this.items.get(name) ?? null
  }

  setItem(name: string, value: string): void {
    this.items.set(name, value)
  }

  removeItem(name: string): void {
    this.items.delete(name)
  }
}

interface SessionIs {
  readonly session?: string
  readonly subject?: string
}

/** A server, a browser whose session changes when a test says so, and its tabs. */
class Browser {
  session: SessionIs | 'none' | 'down' = { session: 'first', subject: 'user-1' }
  script: Event[] = []
  /** The keys that have arrived, and the session in which they were sent. */
  readonly sent: [key: string, session: unknown][] = []
  #client: Client | undefined
  tab = new TabStorage()

  get keys(): string[] {
    return this.sent.map(([key]) => key)
  }

  async start(t: Test): Promise<this> {
    this.#client = await clientOf(t, ({ url, headers }, response) => {
      if (url === '/auth/session') {
        if (this.session === 'down') return void response.writeHead(503).end()
        const limits = { authenticated: true, now: 1, expires_at: 3601, idle_expires_at: 601, scope: 'trade' }
        const body = this.session === 'none' ? { authenticated: false, now: 1 } : { ...limits, ...this.session }
        return void response.end(JSON.stringify(body))
      }
      this.sent.push([String(headers['idempotency-key']), Object(this.session).session])
      const event = this.script.shift() ?? ([200, ''] as const)
      if (event === 'cut') return void response.destroy()
      const [status, code] = event
      response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify({ code, status }))
    })
    Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, get: () => this.tab })
    t.teardown(() => Reflect.deleteProperty(globalThis, 'sessionStorage'))
    return this
  }

  order(json: object = ORDER, options: Parameters<typeof once>[1] = REMEMBERED): Promise<unknown> {
    const { api } = this.#client as Client
    return once(
      (idempotencyKey) => api(TRANSFER, { method: 'POST', body: JSON.stringify(json), idempotencyKey }),
      options,
    )
  }

  /** Makes an order whose response is lost, twice, and reloads the page. @returns its key */
  async lose(t: Test, json: object = ORDER): Promise<string> {
    this.script = ['cut', 'cut']
    t.match(await failure(this.order(json)), { outcome: 'unknown' })
    // The page is reloaded.
    const { origin } = new URL(this.#client?.session.loginUrl('login', { returnTo: '/' }) ?? '')
    this.#client = createClient({ baseUrl: origin })
    return this.keys.at(-1) ?? ''
  }
}

const browserOf = (t: Test): Promise<Browser> => new Browser().start(t)
const OTHER_SESSION = { outcome: 'unknown', cause: { message: 'the key belongs to another session' } }

await test('once() without isMade: a call whose answer is lost is sent once more with the same key', async (t) => {
  const browser = await browserOf(t)
  browser.script = ['cut']
  t.match(await browser.order(ORDER, {}), { status: 200 })
  t.equal(new Set(browser.keys).size, 1)
  t.equal(browser.sent.length, 2)
  browser.script = ['cut', 'cut']
  t.match(await failure(browser.order(ORDER, {})), { status: 0, outcome: 'unknown' })
  t.equal(browser.sent.length, 4)
  browser.script = [[409, 'outcome_unknown']]
  t.match(await failure(browser.order(ORDER, {})), { problem: { code: 'outcome_unknown' } })
  t.equal(browser.sent.length, 5)
  t.equal(browser.tab.items.size, 0, 'it is not remembered')
})

await test('remember: after a reload in the same session the same order has the same key, until its outcome is known', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const kept = JSON.stringify([...browser.tab.items])
  t.match(kept, key)
  t.notMatch(kept, /1234|CR100|token|user-1/)
  browser.script = ['cut', 'cut']
  await failure(browser.order())
  t.match(await browser.order(), { status: 200 })
  t.same(new Set(browser.keys), new Set([key]))
  t.equal(browser.tab.items.size, 0)
  await browser.order()
  t.not(browser.keys.at(-1), key, 'the next order is another one')
})

await test('remember: an order that is made twice at the same moment, as by a double click, has one key', async (t) => {
  const browser = await browserOf(t)
  await Promise.all([browser.order(), browser.order()])
  t.equal(new Set(browser.keys).size, 1)
  t.equal(browser.tab.items.size, 0)
})

await test('remember: another order has another key, and each is remembered', async (t) => {
  const browser = await browserOf(t)
  const first = await browser.lose(t)
  const second = await browser.lose(t, { ...ORDER, amount: 1234.57 })
  t.not(second, first)
  await browser.order()
  t.equal(browser.keys.at(-1), first)
  await browser.order({ ...ORDER, amount: 1234.57 })
  t.equal(browser.keys.at(-1), second)
})

await test('remember: a refused order is forgotten, unless it may have been made before the reload', async (t) => {
  const browser = await browserOf(t)
  browser.script = [[422, 'validation_failed']]
  t.match(await failure(browser.order()), { status: 422, outcome: undefined })
  t.equal(browser.tab.items.size, 0)
  const key = await browser.lose(t)
  browser.script = [[429, 'rate_limited']]
  t.match(await failure(browser.order()), { status: 429, outcome: 'unknown' })
  await browser.order()
  t.equal(browser.keys.at(-1), key)
})

await test('remember: in another session of the user the key is not sent, and the page is told', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  browser.session = { session: 'second', subject: 'user-1' }
  const before = browser.sent.length
  const error = await failure(browser.order())
  t.ok(error instanceof ApiError)
  t.match(error, { outcome: 'unknown', cause: OTHER_SESSION })
  t.equal(browser.sent.length, before, 'nothing was sent')
  await browser.order()
  t.notOk(browser.sent.slice(before).some(([sent]) => sent === key))
})

for (const isMade of [true, false]) {
  await test(`remember: in another session isMade is asked, and says ${isMade}`, async (t) => {
    const browser = await browserOf(t)
    const key = await browser.lose(t)
    browser.session = { session: 'second', subject: 'user-1' }
    const before = browser.sent.length
    const asked: unknown[] = []
    const answer = await browser.order(ORDER, { ...REMEMBERED, isMade: (error) => asked.push(error) > 0 && isMade })
    t.match(asked, [OTHER_SESSION])
    t.equal(answer === undefined, isMade)
    const sent = browser.keys.slice(before)
    t.equal(sent.length, isMade ? 0 : 1)
    t.notOk(sent.includes(key))
    t.equal(browser.tab.items.size, 0)
  })
}

await test('remember: with another subject, or an unknown one, the order is forgotten, and the next user learns nothing of it', async (t) => {
  for (const [first, next] of [
    ['user-1', 'user-2'],
    ['user-1', undefined],
    [undefined, 'user-1'],
    [undefined, undefined],
  ]) {
    const browser = await browserOf(t)
    browser.session = { session: 'first', ...(first && { subject: first }) }
    const key = await browser.lose(t)
    browser.session = { session: 'second', ...(next && { subject: next }) }
    t.match(await browser.order(ORDER, { ...REMEMBERED, isMade: () => t.fail('asked') }), { status: 200 })
    t.notOk(browser.keys.at(-1)?.startsWith(key))
  }
})

await test('remember: without a subject the session alone decides, and on a server without tags its end', async (t) => {
  for (const session of [{ session: 'first' }, {}]) {
    const browser = await browserOf(t)
    browser.session = session
    const key = await browser.lose(t)
    await browser.order()
    t.equal(browser.keys.at(-1), key)
  }
})

await test('remember: nothing is sent while the server cannot tell the session', async (t) => {
  const browser = await browserOf(t)
  browser.session = 'down'
  t.match(await failure(browser.order()), { code: 'not_sent', outcome: undefined })
  browser.session = { session: 'first' }
  const key = await browser.lose(t)
  browser.session = 'down'
  const before = browser.sent.length
  t.match(await failure(browser.order()), { status: 0, outcome: 'unknown' })
  t.equal(browser.sent.length, before)
  browser.session = 'none'
  browser.script = [[401, 'login_required']]
  t.match(await failure(browser.order()), { status: 401 })
  browser.session = { session: 'first' }
  await browser.order()
  t.equal(browser.keys.at(-1), key)
})

await test('remember: a key is not sent after an hour, when the server may have forgotten it', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() + 3_700_000 })
  const before = browser.sent.length
  t.match(await failure(browser.order()), { outcome: 'unknown' })
  t.equal(browser.sent.length, before)
  await browser.order()
  t.not(browser.keys.at(-1), key)
})

await test('remember: a duplicated tab sends the same keys, so that the server sends the order once', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const tabs = [browser.tab, new TabStorage(browser.tab.items)] as const
  /** Makes the order in both tabs. @returns the keys that they have sent */
  const inBoth = async (order: () => Promise<unknown>): Promise<(string | undefined)[]> => {
    const before = browser.sent.length
    for (browser.tab of tabs) await order()
    return browser.keys.slice(before)
  }
  browser.script = ['cut', 'cut', 'cut', 'cut']
  t.same(new Set(await inBoth(() => failure(browser.order()))), new Set([key]), 'after a reload')
  browser.session = { session: 'second', subject: 'user-1' }
  t.same(await inBoth(() => failure(browser.order())), [], 'in another session')
  const [first, second, ...others] = await inBoth(() => browser.order())
  t.same([second, others], [first, []], 'the order is made again in both, with one key')
  t.not(first, key)
})

await test('remember: an order whose outcome the server will never know can be made again, with one key in all tabs', async (t) => {
  const browser = await browserOf(t)
  const key = await browser.lose(t)
  const tabs = [browser.tab, new TabStorage(browser.tab.items)] as const
  for (browser.tab of tabs) {
    browser.script = [[409, 'outcome_unknown']]
    t.match(await failure(browser.order()), { problem: { code: 'outcome_unknown' } })
    t.equal(browser.keys.at(-1), key)
  }
  for (browser.tab of tabs) await browser.order()
  const [first, second] = browser.keys.slice(-2)
  t.equal(first, second)
  t.not(first, key)
})

await test('remember: a page that may not use the storage makes its orders all the same', async (t) => {
  const browser = await browserOf(t)
  Object.defineProperty(globalThis, 'sessionStorage', {
    configurable: true,
    get: () => {
      throw new Error('SecurityError')
    },
  })
  browser.script = ['cut']
  t.match(await browser.order(), { status: 200 })
  t.equal(new Set(browser.keys).size, 1)
})
