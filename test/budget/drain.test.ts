import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { formats } from '../../src/config/setting-formats.ts'
import type { BudgetWindow } from '../../src/config/upstream-budget.ts'
import { mostWithin } from '../support/budget/most-within.ts'
import { PageCrowd, type PageChange } from '../support/budget/page-crowd.ts'
import { StallingProxy } from '../support/client/stalling-proxy.ts'
import { answerJson, ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { ALONE } from '../support/server/settings.ts'
import { TradingService } from '../support/client/trading-service.ts'
import { until } from '../support/time/until.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'

const RELAYS = Number(process.env['DRAIN_RELAYS'] ?? 1000)
const BUDGET = process.env['DRAIN_BUDGET'] ?? '3000/60'
const PROCESSES = 4
/** A tenth of what each window allows, and so less than the fifth that is for orders alone. */
const ORDERS_PER_SECOND = Math.min(...budgetWindows().map(({ calls, windowMs }) => (calls / windowMs) * 100))
/** How long everything may take to come back. */
const MAX_MS = Number(process.env['DRAIN_MAX_SECONDS'] ?? 240) * 1000

function budgetWindows(): readonly BudgetWindow[] {
  return formats.budget.parse(BUDGET) ?? []
}

/** An upstream that notes when each call arrives. */
async function notingUpstream(t: Test) {
  const upstream = await ScriptedUpstream.start(t)
  const arrivals: { readonly at: number; readonly isOtp: boolean }[] = []
  const { onOtp } = upstream
  upstream.onOtp = (request, response) => {
    arrivals.push({ at: performance.now(), isOtp: true })
    onOtp(request, response)
  }
  upstream.onRest = (_request, response) => {
    arrivals.push({ at: performance.now(), isOtp: false })
    answerJson(response, 200, { data: [] })
  }
  // Its constructor makes the upstream respond to pings.
  void new TradingService(upstream)
  return { upstream, arrivals }
}

/** Sends orders in a steady stream, and counts their statuses. */
function sendOrders(t: Test, balancer: StallingProxy, cookie: string): Map<number, number> {
  const statuses = new Map<number, number>()
  const order = async (): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${balancer.port}/api/trading/v1/options/accounts`, {
      method: 'POST',
      headers: { cookie, 'x-csrf': '1', 'content-type': 'application/json' },
      body: '{}',
    }).catch(() => undefined)
    await response?.arrayBuffer().catch(() => undefined)
    const status = response?.status ?? 0
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  const timer = setInterval(() => void order(), 1000 / ORDERS_PER_SECOND)
  t.teardown(() => clearInterval(timer))
  return statuses
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1)

/** How long each page was without a socket (ms), shortest first. */
function gaps(changes: readonly PageChange[], since: number): number[] {
  const closedAt = new Map<string, number>()
  const found: number[] = []
  for (const { page, state, code, at } of changes) {
    if (at < since) continue
    if (code === 1012 && !closedAt.has(page)) closedAt.set(page, at)
    else if (state === 'open') found.push(at - (closedAt.get(page) ?? since))
  }
  return found.sort((one, other) => one - other)
}

await test(`${RELAYS} trading sockets of an instance that drains come back within the budget, and no order is refused`, async (t) => {
  const { upstream, arrivals } = await notingUpstream(t)
  const redis = await testRedis(t)
  // All new connections go to one instance.
  let target = 0
  const balancer = await StallingProxy.start(t, () => target)
  const settings = {
    ...ALONE,
    PUBLIC_URL: `http://127.0.0.1:${balancer.port}`,
    API_URL: `http://${upstream.host}`,
    WS_URL: `ws://${upstream.host}`,
    REDIS_URL: redis.url,
    SESSION_SECRETS: SECRETS,
    TRUST_PROXY: 'none',
    UPSTREAM_BUDGET: BUDGET,
    LOG_LEVEL: 'warn',
    DRAIN_SECONDS: '20',
  }
  const [first, second] = await Promise.all([serverProcess(t, settings), serverProcess(t, settings)])
  for (const server of [first, second]) t.ok(await ready(server))
  target = first.port
  const instance = await sessionInstance(t, redis.url)
  const cookies: string[] = []
  for (let count = 0; count <= RELAYS; count++) cookies.push(instance.cookie(await newSession(instance)))
  const [trader = '', ...pages] = cookies

  const crowd = PageCrowd.start(t, { pageUrl: settings.PUBLIC_URL, cookies: pages }, PROCESSES)
  await until(() => crowd.open === RELAYS, 'all pages are connected', MAX_MS)
  const otps = () => arrivals.filter(({ isOtp }) => isOtp)
  const opened = otps().length
  target = second.port
  const statuses = sendOrders(t, balancer, trader)
  // The window that the opening has filled shall not be part of what is measured.
  await delay(budgetWindows()[0]?.windowMs ?? 0)

  const drainedAt = Date.now()
  const drainedAtMs = performance.now()
  first.child.kill('SIGTERM')
  t.equal(await first.exited, 0, 'the instance drains')
  const exitMs = Date.now() - drainedAt
  await until(() => crowd.open === RELAYS, 'all pages are back', MAX_MS)
  const times = otps().filter(({ at }) => at >= drainedAtMs)
  const lastMs = (times.at(-1)?.at ?? 0) - drainedAtMs
  const found = gaps(crowd.changes, drainedAt)
  t.comment(`the instance exited after ${seconds(exitMs)} s; the last page was back after ${seconds(lastMs)} s`)
  t.comment(
    `a page was away for ${seconds(found[found.length >> 1] ?? 0)} s in the middle, ${seconds(found.at(-1) ?? 0)} s at most`,
  )
  t.comment(
    `${times.length} one-time URLs for ${RELAYS} pages (${opened} before); orders: ${JSON.stringify([...statuses])}`,
  )

  const refused = crowd.changes.filter(({ at, reason }) => at >= drainedAt && reason === 'upstream_budget').length
  t.comment(`${refused} refusals by the budget while they came back`)
  for (const { calls, windowMs } of budgetWindows()) {
    const [ofAll, ofOtps] = [mostWithin(windowMs, arrivals), mostWithin(windowMs, otps())]
    const ceiling = Math.floor(calls * 0.9 * 0.8)
    t.comment(`in ${windowMs / 1000} s at most ${ofAll} calls of ${calls}, ${ofOtps} one-time URLs of ${ceiling}`)
    t.comment(`the least at that pace: ${seconds(((RELAYS - 1) / ceiling) * windowMs)} s`)
    t.ok(ofAll <= calls)
    t.ok(ofOtps <= ceiling)
  }
  t.ok(exitMs < 20_000, 'within DRAIN_SECONDS')
  t.same([...statuses.keys()], [200], 'no order was refused')
  t.equal(times.length, RELAYS, 'each page cost one one-time URL')
})
