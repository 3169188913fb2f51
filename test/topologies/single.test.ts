import { test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { createClient } from '../support/redis/client.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { testRedis, testServer } from '../support/server/test-server.ts'
import { assertEndedSessionsAreNoticed } from './failover.ts'
import { startWorld } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'

const FROZEN_SECONDS = 10
/** Maximum time for which a server serves what it has read over a connection that has stopped replying. */
const MAX_STALE_MS = 4000

await test('On a single Redis, watchers of a session and requests notice that it has ended elsewhere', async (t) => {
  const redis = await testRedis(t)
  await assertEndedSessionsAreNoticed(t, { url: redis.url, nodes: [redis], masters: async () => [redis] })
})

interface Call {
  readonly startedAt: number
  readonly tookMs: number
  readonly status: number
}

const call = async (server: string, cookie: string): Promise<Call> => {
  const startedAt = performance.now()
  const response = await fetch(server + ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
  await response.arrayBuffer()
  return { startedAt, tookMs: performance.now() - startedAt, status: response.status }
}

await test('While Redis hangs for ten seconds, calls get 200 or 503 in time, and an ended session is not served for long', async (t) => {
  const redis = await testRedis(t, ['--enable-debug-command', 'yes'])
  const world = await startWorld(t, { settings: { REDIS_URL: redis.url, LOG_LEVEL: 'warn' } })
  const url = new URL(world.server.url)
  const servers = [world.server, await testServer(t, { ...world.settings, PUBLIC_URL: url.origin })]
  const [kept = '', ended = ''] = await Promise.all(
    [new JarBrowser(), new JarBrowser()].map(async (browser) => {
      await logIn(browser, url.origin)
      return browser.cookieHeader(url, url)
    }),
  )
  const over = new AbortController()
  const load = async (cookie: string, server: string): Promise<Call[]> => {
    const calls: Call[] = []
    while (!over.signal.aborted) {
      calls.push(await call(server, cookie))
      await new Promise((resolve) => void setTimeout(resolve, 10))
    }
    return calls
  }
  for (const server of servers)
    for (const cookie of [kept, ended]) t.equal((await call(server.url, cookie)).status, 200)
  const loads = [kept, ended].map((cookie) => Promise.all(servers.map((server) => load(cookie, server.url))))

  // One transaction ends the session and freezes Redis, so no server can have been notified.
  const operator = await createClient({ url: redis.url }).connect()
  t.teardown(() => operator.destroy())
  const frozenAt = performance.now()
  const key = sessionKey(/__Host-session=([^.;]+)/.exec(ended)?.[1] ?? '')
  const commands = [['MULTI'], ['DEL', key], ['DEBUG', 'SLEEP', String(FROZEN_SECONDS)], ['EXEC']]
  await Promise.all(commands.map((command) => operator.sendCommand(command)))
  const thawedAt = performance.now()
  for (const server of servers) await until(async () => (await call(server.url, kept)).status === 200)
  const backMs = performance.now() - thawedAt
  for (const server of servers) t.equal((await call(server.url, ended)).status, 401, 'the ended session is refused')
  over.abort()

  const [ofKept = [], ofEnded = []] = (await Promise.all(loads)).map((calls) => calls.flat())
  const all = [...ofKept, ...ofEnded]
  const slowest = Math.max(...all.map(({ tookMs }) => tookMs))
  const stale = ofEnded.filter(({ startedAt, status }) => status === 200 && startedAt > frozenAt)
  const lastStale = Math.max(0, ...stale.map(({ startedAt }) => startedAt - frozenAt))
  t.comment(
    `${all.length} responses, the slowest after ${slowest.toFixed(0)} ms; the ended session was last served after ` +
      `${lastStale.toFixed(0)} ms; the servers recovered after ${backMs.toFixed(0)} ms`,
  )
  t.same(new Set(ofKept.map(({ status }) => status)), new Set([200, 503]), 'no user is logged out')
  t.ok(slowest < 2500, `the slowest response took ${slowest.toFixed(0)} ms`)
  t.ok(lastStale < MAX_STALE_MS, 'the ended session is not served for longer than the limit')
})
