import { createClient } from 'redis'
import { test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { logIn, testRedis, testServer, testWorld } from '../support/world.ts'
import { hearsEndings } from './failover.ts'

const FROZEN_SECONDS = 10
/** From the last word of a link to the moment at which nothing is served any more that was read over it. */
const DOUBT_MS = 4000
const ACCOUNTS = '/api/trading/v1/options/accounts'

await test('who holds a session hears that it ended elsewhere', async (t) => {
  const redis = await testRedis(t)
  await hearsEndings(t, { url: redis.url, nodes: [redis], masters: async () => [redis] })
})

interface Seen {
  readonly askedAt: number
  readonly tookMs: number
  readonly status: number
}

const ask = async (server: string, cookie: string): Promise<Seen> => {
  const askedAt = performance.now()
  const answer = await fetch(server + ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
  await answer.arrayBuffer()
  return { askedAt, tookMs: performance.now() - askedAt, status: answer.status }
}

await test('a Redis that hangs for ten seconds under load', async (t) => {
  const redis = await testRedis(t, ['--enable-debug-command', 'yes'])
  const world = await testWorld(t, { settings: { REDIS_URL: redis.url, LOG_LEVEL: 'warn' } })
  const url = new URL(world.server.url)
  const servers = [world.server, await testServer(t, { ...world.settings, PUBLIC_URL: url.origin })]
  const [kept = '', ended = ''] = await Promise.all(
    [new JarBrowser(), new JarBrowser()].map(async (browser) => {
      await logIn(browser, url.origin)
      return browser.cookieHeader(url, url)
    }),
  )
  const stage = { isOver: false }
  const load = async (cookie: string, server: string): Promise<Seen[]> => {
    const seen: Seen[] = []
    while (!stage.isOver) {
      seen.push(await ask(server, cookie))
      await new Promise((resolve) => void setTimeout(resolve, 10))
    }
    return seen
  }
  for (const server of servers)
    for (const cookie of [kept, ended]) t.equal((await ask(server.url, cookie)).status, 200)
  const loads = [kept, ended].map((cookie) => Promise.all(servers.map((server) => load(cookie, server.url))))

  // Ended and frozen in one step, so that nobody can have been told of it.
  const operator = await createClient({ url: redis.url }).connect()
  t.teardown(() => operator.destroy())
  const frozenAt = performance.now()
  const key = sessionKey(/__Host-session=([^.;]+)/.exec(ended)?.[1] ?? '')
  const commands = [['MULTI'], ['DEL', key], ['DEBUG', 'SLEEP', String(FROZEN_SECONDS)], ['EXEC']]
  await Promise.all(commands.map((command) => operator.sendCommand(command)))
  const thawedAt = performance.now()
  for (const server of servers)
    while ((await ask(server.url, kept)).status !== 200)
      await new Promise((resolve) => void setTimeout(resolve, 20))
  const backMs = performance.now() - thawedAt
  for (const server of servers) t.equal((await ask(server.url, ended)).status, 401, 'and is over')
  stage.isOver = true

  const [ofKept = [], ofEnded = []] = (await Promise.all(loads)).map((seen) => seen.flat())
  const all = [...ofKept, ...ofEnded]
  const slowest = Math.max(...all.map(({ tookMs }) => tookMs))
  const stale = ofEnded.filter(({ askedAt, status }) => status === 200 && askedAt > frozenAt)
  const lastStale = Math.max(0, ...stale.map(({ askedAt }) => askedAt - frozenAt))
  t.comment(
    `${all.length} answers, the slowest after ${slowest.toFixed(0)} ms, ` +
      `the ended session last served after ${lastStale.toFixed(0)} ms, back after ${backMs.toFixed(0)} ms`,
  )
  t.same(new Set(ofKept.map(({ status }) => status)), new Set([200, 503]), 'nobody is logged out')
  t.ok(slowest < 2500, 'answers stay bounded')
  t.ok(lastStale < DOUBT_MS, 'what may be stale is not served')
})
