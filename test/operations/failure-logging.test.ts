import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { readConfig } from '../../src/config/config.ts'
import { Guard } from '../../src/http/guard.ts'
import { createServer } from '../../src/http/server.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { ALONE } from '../support/server/settings.ts'
import { failureCount, logInto, type Line } from '../support/telemetry/lines.ts'
import { until } from '../support/time/until.ts'
import type { TestServer } from '../support/server/test-server.ts'
import { TRADING, sendTo, ACCOUNTS } from '../support/user.ts'
import { startWorld, API, RELAY } from '../support/world.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

/** How often each cause is logged: at once, and in the second and the third second. */
const LINES = 3
const SECOND_MS = 1000

/** No cause of a test is that rare, on a loaded machine either. */
const ENOUGH_MS = 20_000

/** Fails again and again in three parallel loops until each cause has its lines. @returns the number of failures */
async function failRepeatedly(server: TestServer, msg: string, fail: () => Promise<unknown>): Promise<number> {
  const isEnough = (): boolean => {
    const counts = [...byCause(linesOf(server, msg)).values()].map(({ length }) => length)
    return counts.length > 0 && counts.every((count) => count >= LINES)
  }
  const endAt = performance.now() + ENOUGH_MS
  let made = 0
  const run = async (): Promise<void> => {
    for (; !isEnough() && performance.now() < endAt; await delay(30)) {
      made++
      await fail()
    }
  }
  await Promise.all([run(), run(), run()])
  return made
}

/**
 * Closes the server and asserts that its log accounts for this many failures: at level 40, without a stack, in at most
 * one line a second for each cause. @returns the lines
 */
async function assertFewLines(t: Test, server: TestServer, msg: string, made: number): Promise<Line[]> {
  await server.close()
  const { log } = server
  t.equal(log.filter(({ level }) => Number(level) >= 50).length, 0, 'no failure is logged as our own error')
  const lines = linesOf(server, msg)
  t.equal(failureCount(log, msg), made, 'the lines count every failure, including the last ones')
  t.ok(made > lines.length, `${lines.length} lines for ${made} failures`)
  t.notMatch(JSON.stringify(lines), /"stack"|\.ts:/)
  for (const [cause, ofCause] of byCause(lines)) {
    const times = ofCause.map(({ time }) => Date.parse(String(time)))
    // The last line may be early: the server logs the remaining failures when it closes.
    for (const [index, time] of times.slice(0, -1).entries()) {
      const previous = times[index - 1]
      if (previous !== undefined)
        t.ok(time - previous >= SECOND_MS - 50, `${cause}: the next line follows a second later`)
    }
    t.ok(ofCause.length >= LINES, `${cause}: a line every second`)
  }
  return lines
}

function linesOf({ log }: TestServer, msg: string): Line[] {
  return log.filter((line) => line.msg === msg)
}

function byCause(lines: Line[]): Map<string, Line[]> {
  return Map.groupBy(lines, (line) => identity(line))
}

function identity({ msg, code, status, why, cause }: Line): string {
  return JSON.stringify([msg, code, status, why, cause])
}

await sideBySide({
  'An unreachable upstream: one warning a second for all failures, and one request line for each': async (t) => {
    const world = await startWorld(t, { ...API, settings: { API_URL: `http://127.0.0.1:${await freePort()}` } })
    const { call } = world
    const { server } = world
    const made = await failRepeatedly(server, 'request failed', () => call('GET', ACCOUNTS))
    const lines = await assertFewLines(t, server, 'request failed', made)
    t.match(lines[0], {
      level: 40,
      code: 'upstream_unreachable',
      cause: { code: 'ECONNREFUSED', message: /127\.0\.0\.1/ },
      count: 1,
    })
    const requests = server.log.filter(({ msg, route }) => msg === 'request' && route === ACCOUNTS)
    t.equal(requests.length, made)
    t.same(new Set(requests.map(({ status }) => status)), new Set([502]))
    t.ok(
      requests.some(({ reqId }) => reqId === lines[0]?.['reqId']),
      'the warning names a request that was logged',
    )
  },

  'An upstream that responds 500 or 503: warnings by status, and a metric by route': async (t) => {
    const { call, send, upstream, server } = await startWorld(t, API)
    let requests = 0
    upstream.answer = (_request, socket) =>
      void socket.write(`HTTP/1.1 ${requests++ % 2 === 0 ? 500 : 503} Oh\r\nContent-Length: 0\r\n\r\n`)
    const made = await failRepeatedly(server, 'request failed', () => call('POST', ACCOUNTS, { body: '{}' }))
    await send('GET', '/api/v1/health', { headers: { 'x-csrf': '1' } })
    const metrics = await (await fetch(`${server.opsUrl}/metrics`)).text()
    const counted = (call: string): number => {
      const series = `bff_upstream_requests_total{${call},outcome="server_error"}`
      return Number(new RegExp(`^${series} (\\d+)$`, 'm').exec(metrics)?.[1])
    }
    t.equal(counted('method="POST",route="/trading/v1/options/accounts"'), made)
    t.equal(counted('method="GET",route="/v1/health"'), 1)
    const lines = await assertFewLines(t, server, 'request failed', made + 1)
    t.same(new Set(lines.map(({ status }) => status)), new Set([500, 503]))
    for (const line of lines) t.match(line, { code: 'upstream_error', level: 40 })
  },

  'A session store that is down: one warning a second': async (t) => {
    const { server, browser, redis } = await startWorld(t, { user: 'demo', redis: true })
    const url = new URL(server.url)
    const cookie = browser.cookieHeader(url, url)
    await redis?.close()
    const call = () => sendTo(server.port, 'GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
    await until(async () => (await call()).status === 503, 'a call responds 503')
    const before = server.log.filter(({ msg, status }) => msg === 'request' && status === 503).length
    const made = await failRepeatedly(server, 'request failed', call)
    const lines = await assertFewLines(t, server, 'request failed', before + made)
    t.match(lines[0], { code: 'session_store_unavailable' })
  },

  'A provider that is down when tokens expire: one warning a second': async (t) => {
    const { server, browser, provider } = await startWorld(t, {
      user: 'demo',
      provider: { refreshTokens: true, accessTokenSeconds: 1 },
    })
    const url = new URL(server.url)
    const cookie = browser.cookieHeader(url, url)
    await provider.close()
    const call = () => sendTo(server.port, 'GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
    await until(async () => (await call()).status === 503, 'a call responds 503')
    const made = await failRepeatedly(server, 'request failed', call)
    const refused = server.log.filter(({ msg, status }) => msg === 'request' && status === 503).length
    const lines = await assertFewLines(t, server, 'request failed', refused)
    t.ok(refused >= made)
    t.match(lines[0], { code: 'provider_unavailable', cause: { cause: { code: 'ECONNREFUSED' } } })
    const renewals = server.log.filter(({ msg }) => msg === 'the provider was unavailable for a refresh')
    t.ok(renewals.length > 0 && renewals.length <= lines.length + 1, String(renewals.length))
    t.notMatch(JSON.stringify(renewals), /"stack"/)
  },

  ...Object.fromEntries(
    (
      [
        ['/ws/public', 'WS_URL', 'upstream refused a socket'],
        [TRADING, 'API_URL', 'no one-time URL for a relay'],
      ] as const
    ).map(([path, setting, msg]) => [
      `Sockets that upstream does not open: one warning a second (${msg})`,
      async (t: Test) => {
        const address = `${setting === 'WS_URL' ? 'ws' : 'http'}://127.0.0.1:${await freePort()}`
        const { server, browser } = await startWorld(t, {
          ...RELAY,
          settings: { [setting]: address, PUBLIC_HANDSHAKES_PER_MINUTE: '0' },
        })
        const url = new URL(server.url)
        const headers = { origin: server.url, cookie: browser.cookieHeader(url, url) }
        const open = () => new BrowserSocket(`ws://127.0.0.1:${server.port}${path}`, headers).closed
        const lines = await assertFewLines(t, server, msg, await failRepeatedly(server, msg, open))
        t.match(lines[0], { level: 40, why: /ECONNREFUSED/ })
      },
    ]),
  ),
})

await test('An exception in a route: 500, and an error line with the stack for each', async (t) => {
  const lines: Line[] = []
  const log = logInto(lines)
  const { http } = readConfig(ALONE)
  const metrics = createMetrics()
  const server = createServer(http, log, metrics, new Guard(http, log, metrics))
  t.teardown(() => server.close())
  server.get('/boom', () => {
    throw new TypeError('a planted error')
  })
  for (let times = 0; times < 3; times++) {
    t.equal((await server.inject({ url: '/boom', headers: { host: 'h' } })).statusCode, 500)
  }
  const failed = lines.filter(({ msg }) => msg === 'request failed')
  t.equal(failed.length, 3)
  for (const line of failed) {
    t.match(line, { level: 50, code: 'internal_error', err: { type: 'TypeError', stack: /failure-logging/ } })
  }
})
