import type { Test } from 'tap'
import type { JarBrowser } from '../browser/jar-browser.ts'
import { followStoreClock } from '../../../src/time/store-time.ts'
import { type TestServer } from '../server/test-server.ts'
import { until } from '../time/until.ts'
import { clockAhead } from '../time/clock-ahead.ts'
import { IDENTITY, IDENTIFIED } from './identity.ts'
import { tokens, type Behaviour, type TokenEndpoint } from './token-endpoint.ts'
import { startWorld, type World } from '../world.ts'
import { ACCOUNTS } from '../user.ts'

/** A token lifetime that is over at once, in seconds. */
const OVER = 0.001
const HOUR = 3600
/** What all instances know of the provider's answers. */
const NEWS = 'bff:1:refreshes'
/** The times that instances share about refusals, in the store's texts. */
const TIME = /\b\d{13}\b/g

/** Two instances whose provider treats each user as a test says. The name of a user is also its refresh token. */
export interface RefusalWorld extends Omit<World<'scripted', TokenEndpoint>, 'call' | 'user'> {
  readonly other: TestServer
  /** What the provider answers to the refreshes of a user; those of all others are granted. */
  readonly refuses: Map<string, Behaviour>
  /** The users of the refreshes that the provider got. */
  readonly refreshed: string[]
  /** A user who has logged in with a token that lives for so many seconds. */
  readonly user: (name: string, expiresIn?: number) => Promise<JarBrowser>
  /** A GET, or another call, of a page. */
  readonly call: (browser: JarBrowser, options?: CallOptions) => Promise<Answer>
  /** Call this before a grant, and the result after it: it resolves once all instances can know of the grant. */
  readonly told: () => Promise<() => Promise<void>>
  /** The records of refused sessions. */
  readonly records: () => Promise<string[]>
  /** What the mark of the latest renewal after a 401 of upstream says. */
  readonly renewal: () => Promise<string | null>
  /** Ends the time for which a token is not renewed again. */
  readonly forgetRenewals: () => Promise<void>
  /** Lets the pauses of refused sessions pass by so much. */
  readonly pass: (ms: number) => Promise<void>
}

/** How a page calls. */
export interface CallOptions {
  readonly server?: TestServer
  readonly method?: string
  readonly path?: string
  readonly headers?: Record<string, string>
}

/** What a page gets. */
interface Answer {
  readonly status: number
  readonly code: string | undefined
  readonly retryAfter: number
}

/** Starts one that ends with the test. */
export async function refusalWorld(t: Test, settings: Record<string, string> = {}): Promise<RefusalWorld> {
  const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, ...settings }, redis: true })
  const other = await world.instance()
  const store = await world.storeClient()
  const setAhead = clockAhead(t)
  // The monotonic clock, by which that of the store runs, is set ahead.
  t.teardown(followStoreClock(() => Date.now()))
  const refuses = new Map<string, Behaviour>()
  const refreshed: string[] = []
  const lifetimes = new Map<string, number>()
  const grants = async (): Promise<string> => {
    const { granted } = JSON.parse((await store.get(NEWS)) ?? '{}') as { granted?: unknown }
    return JSON.stringify(granted ?? [])
  }
  world.provider.behaviour = (request, response, form) => {
    const name = form.get('refresh_token') ?? form.get('code') ?? ''
    const isRefresh = form.get('grant_type') === 'refresh_token'
    if (isRefresh) refreshed.push(name)
    const expiresIn = isRefresh ? HOUR : lifetimes.get(name)
    const grant = tokens({ access_token: `of-${name}`, refresh_token: name, expires_in: expiresIn })
    return ((isRefresh && refuses.get(name)) || grant)(request, response, form)
  }
  return {
    ...world,
    other,
    refuses,
    refreshed,
    async user(name, expiresIn = OVER) {
      lifetimes.set(name, expiresIn)
      return (await world.user(name)).browser
    },
    async call(browser, { server = world.server, method = 'GET', path = ACCOUNTS, headers = {} } = {}) {
      const page = browser.clone()
      // As behind a balancer: the page is the same on every instance.
      page.page = new URL(world.server.url)
      const init = { method, headers: { 'x-csrf': '1', ...headers }, ...(method !== 'GET' && { body: '{}' }) }
      const response = await page.fetch(`${server.url}${path}`, init)
      const { code } = JSON.parse((await response.text()) || '{}') as { code?: string }
      return { status: response.status, code, retryAfter: Number(response.headers.get('retry-after')) }
    },
    records: () => store.keys('*:refusal'),
    async renewal() {
      const [key = ''] = await store.keys('*:renewed')
      return store.get(key)
    },
    async forgetRenewals() {
      for (const key of await store.keys('*:renewed')) await store.del(key)
    },
    async told() {
      const before = await grants()
      return () => until(async () => (await grants()) !== before, 'the instances hear of a grant')
    },
    async pass(ms) {
      for (const key of [...(await store.keys('*:refusal')), NEWS]) {
        const text = await store.get(key)
        if (text !== null)
          await store.set(
            key,
            text.replaceAll(TIME, (at) => String(Number(at) - ms)),
            { KEEPTTL: true },
          )
      }
      setAhead(ms)
    },
  }
}
