import { test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import type { JarBrowser } from '../support/browser/jar-browser.ts'
import { refusalWorld, type CallOptions, type RefusalWorld } from '../support/login/refusal-world.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'

const HOUR = 3600
const RENEWED = { status: 503, code: 'credential_renewed' }
const ENDED = { status: 401, code: 'session_expired' }

/** Upstream's statuses of GETs, and of POSTs and PATCHes. */
interface Statuses {
  get: number
  post: number
}

/** A user whose calls upstream answers as a test says. */
async function refusedUser(t: Parameters<typeof refusalWorld>[0]): Promise<
  RefusalWorld & {
    readonly browser: JarBrowser
    readonly statuses: Statuses
    /** How many POSTs and PATCHes upstream got. */
    readonly posts: () => number
    readonly post: (options?: CallOptions) => ReturnType<RefusalWorld['call']>
    readonly get: (options?: CallOptions) => ReturnType<RefusalWorld['call']>
  }
> {
  const world = await refusalWorld(t)
  const { upstream, call, user } = world
  const browser = await user('alice', HOUR)
  const statuses = { get: 200, post: 200 }
  let posts = 0
  upstream.onRest = (request, response) => {
    if (request.method === 'GET') return answerJson(response, statuses.get, {})
    posts++
    answerJson(response, statuses.post, {})
  }
  return {
    ...world,
    browser,
    statuses,
    posts: () => posts,
    post: (options) => call(browser, { ...options, method: 'POST' }),
    get: (options) => call(browser, options),
  }
}

await test('POSTs that upstream answers with 401 beside GETs that succeed: one refresh in half a minute, no session ends', async (t) => {
  const { post, get, statuses, refreshed, posts, server, other, renewal } = await refusedUser(t)
  statuses.post = 401
  t.match(await post(), { ...RENEWED, retryAfter: 0 })
  t.equal((await get()).status, 200)
  await until(async () => (await renewal()) === 'accepted', 'the other instance hears that upstream takes the token')
  for (let count = 0; count < 40; count++) {
    const headers = count % 2 === 0 ? {} : { 'idempotency-key': `key-${count}` }
    const answer = await post({ headers, server: count % 4 < 2 ? other : server })
    t.match(answer, RENEWED)
    t.ok(answer.retryAfter >= 1 && answer.retryAfter <= 30, `${answer.retryAfter}`)
    t.equal((await get()).status, 200)
  }
  t.equal(refreshed.length, 1)
  t.equal(posts(), 41)
  statuses.post = 200
  t.equal((await post({ headers: { 'idempotency-key': 'key-39' } })).status, 200, 'the key is free')
})

await test('PATCHes that upstream answers with 401 cause one refresh in half a minute, and are not sent again', async (t) => {
  const { post, get, statuses, refreshed, posts, browser, call, renewal } = await refusedUser(t)
  const patch = () => call(browser, { method: 'PATCH', path: '/api/payment-agents/v1/clients/me' })
  statuses.post = 401
  t.match(await patch(), { ...RENEWED, retryAfter: 0 })
  t.equal((await get()).status, 200)
  await until(async () => (await renewal()) === 'accepted')
  for (const again of [patch, post, patch]) {
    const answer = await again()
    t.match(answer, RENEWED)
    t.ok(answer.retryAfter >= 1 && answer.retryAfter <= 30, `${answer.retryAfter}`)
  }
  t.equal(refreshed.length, 1)
  t.equal(posts(), 4)
  statuses.post = 200
  t.equal((await patch()).status, 200)
})

await test('a second PATCH with 401 after nothing for the new token ends the session, without a refresh', async (t) => {
  const { statuses, refreshed, browser, call } = await refusedUser(t)
  const patch = () => call(browser, { method: 'PATCH', path: '/api/payment-agents/v1/clients/me' })
  statuses.post = 401
  t.match(await patch(), RENEWED)
  t.match(await patch(), ENDED)
  t.equal(refreshed.length, 1)
})

await test('after half a minute a 401 of upstream causes a refresh again', async (t) => {
  const { post, get, statuses, refreshed, renewal, forgetRenewals } = await refusedUser(t)
  statuses.post = 401
  for (let round = 1; round <= 3; round++) {
    t.match(await post(), { ...RENEWED, retryAfter: 0 })
    t.equal(refreshed.length, round)
    await get()
    await until(async () => (await renewal()) === 'accepted')
    await forgetRenewals()
  }
})

for (const [what, status, outcome] of [
  ['nothing', 0, ENDED],
  ['a 429', 429, ENDED],
  ['a 500', 500, ENDED],
  ['a 403', 403, RENEWED],
  ['a 304', 304, RENEWED],
] as const) {
  await test(`a second POST with 401 after ${what} for the new token: ${outcome.code}, without a refresh`, async (t) => {
    const { post, get, statuses, refreshed, renewal, server, other } = await refusedUser(t)
    statuses.post = 401
    t.match(await post(), RENEWED)
    statuses.get = status
    if (status !== 0) await get({ server: other })
    if (outcome === RENEWED) await until(async () => (await renewal()) === 'accepted')
    t.match(await post(), outcome)
    t.equal(refreshed.length, 1)
    const endings = [...server.log, ...other.log].filter(({ audit }) => audit === 'session_ended')
    t.same(
      endings.map(({ reason }) => reason),
      outcome === ENDED ? ['refused'] : [],
    )
  })
}

await test('a GET that upstream answers with 401 is repeated with the new token; where that is refused, the session ends', async (t) => {
  const { get, statuses, refreshed } = await refusedUser(t)
  statuses.get = 401
  t.match(await get(), ENDED)
  t.equal(refreshed.length, 1)
})

await test('a GET and a trading socket that upstream refuses a moment after it took the new token end no session', async (t) => {
  const { get, post, statuses, refreshed, renewal, upstream, browser, server } = await refusedUser(t)
  statuses.post = 401
  t.match(await post(), RENEWED)
  await get()
  await until(async () => (await renewal()) === 'accepted')
  statuses.get = 401
  t.match(await get(), RENEWED)
  upstream.onOtp = (_request, response) => answerJson(response, 401, {})
  const cookie = browser.cookieHeader(new URL(server.url), undefined)
  const url = `ws://127.0.0.1:${server.port}/ws/trading/VRTC100`
  const { closed } = new BrowserSocket(url, { cookie, origin: server.url })
  t.same(await closed, { code: 1013, reason: 'provider_unavailable' })
  t.equal(refreshed.length, 1)
})

await test('an instance that still has the old token takes the new one, and ends nothing', async (t) => {
  const { post, refreshed, server, other, upstream } = await refusedUser(t)
  const waiting: (() => void)[] = []
  upstream.onRest = (_request, response) => {
    waiting.push(() => answerJson(response, 401, {}))
    if (waiting.length === 2) for (const answer of waiting) answer()
  }
  const both = await Promise.all([server, other].map((there) => post({ server: there })))
  for (const answer of both) t.match(answer, RENEWED)
  t.equal(refreshed.length, 1)
  t.equal(waiting.length, 2)
})
