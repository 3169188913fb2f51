import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { readConfig } from '../../src/config/config.ts'
import { Guard } from '../../src/http/guard.ts'
import { createServer } from '../../src/http/server.ts'
import { loggerOptions } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { apiWorld, sendTo } from '../support/api-world.ts'
import { BrowserSocket as BrowserLine } from '../support/browser-socket.ts'
import { relayWorld, TRADING } from '../support/relay-world.ts'
import { ALONE } from '../support/settings.ts'
import { failureCount as toldOf } from '../support/failure-count.ts'
import { logIn, testWorld, type TestServer } from '../support/world.ts'

const ACCOUNTS = '/api/trading/v1/options/accounts'
const LOAD_MS = 2300
const SECOND_MS = 1000

type Line = Record<string, unknown>

/** Failures one after the other, for as long as a second is seen to begin twice. @returns how many there were */
async function failures(fail: () => Promise<unknown>): Promise<number> {
  const until = performance.now() + LOAD_MS
  let made = 0
  const one = async (): Promise<void> => {
    for (; performance.now() < until; await delay(10)) {
      made++
      await fail()
    }
  }
  await Promise.all([one(), one(), one()])
  return made
}

/**
 * The server has said of so many failures what they were: at level 40, without a stack, in a line a second at most for
 * each cause, and of every one of them.
 */
async function toldInFewLines(t: Test, server: TestServer, msg: string, made: number): Promise<Line[]> {
  await server.close()
  const { log } = server
  t.equal(log.filter(({ level }) => Number(level) >= 50).length, 0, 'none of it is a fault of ours')
  const lines = log.filter((line) => line.msg === msg) as Line[]
  t.equal(toldOf(log, msg), made, 'every failure is counted in a line, the last ones too')
  t.ok(made > 20, `there were many: ${made}`)
  t.notMatch(JSON.stringify(lines), /"stack"|\.ts:/)
  const byCause = Map.groupBy(lines, (line) => identity(line))
  for (const [cause, told] of byCause) {
    const times = told.map(({ time }) => Date.parse(String(time)))
    // The last one may be the rest, told when the server has closed.
    for (const [index, time] of times.slice(0, -1).entries()) {
      const previous = times[index - 1]
      if (previous !== undefined) t.ok(time - previous >= SECOND_MS - 50, `${cause}: a second later`)
    }
    t.ok(told.length >= 3, `${cause}: told again while it lasts`)
  }
  return lines
}

function identity({ msg, code, status, why, cause }: Line): string {
  return JSON.stringify([msg, code, status, why, cause])
}

await test('an upstream that is not there: a line a second, at level 40, and the line of each request', async (t) => {
  const { call, world } = await apiWorld(t, { settings: { API_URL: `http://127.0.0.1:${await freePort()}` } })
  const { server } = world
  const made = await failures(() => call('GET', ACCOUNTS))
  const lines = await toldInFewLines(t, server, 'request failed', made)
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
    'a request of the kind can be found',
  )
})

await test('an upstream that fails: by status, in the log and in the metrics, whoever is still there', async (t) => {
  const { call, send, upstream, world } = await apiWorld(t)
  let asked = 0
  upstream.answer = (_request, socket) =>
    void socket.write(`HTTP/1.1 ${asked++ % 2 === 0 ? 500 : 503} Oh\r\nContent-Length: 0\r\n\r\n`)
  const made = await failures(() => call('POST', ACCOUNTS, { body: '{}' }))
  await send('GET', '/api/v1/health', { headers: { 'x-csrf': '1' } })
  const metrics = await (await fetch(`${world.server.opsUrl}/metrics`)).text()
  const counted = (route: string): number =>
    Number(
      new RegExp(`^bff_upstream_requests_total{route="${route}",outcome="server_error"} (\\d+)$`, 'm').exec(
        metrics,
      )?.[1],
    )
  t.equal(counted('/trading/v1/options/accounts'), made)
  t.equal(counted('/v1/health'), 1)
  const lines = await toldInFewLines(t, world.server, 'request failed', made + 1)
  t.same(new Set(lines.map(({ status }) => status)), new Set([500, 503]))
  for (const line of lines) t.match(line, { code: 'upstream_error', level: 40 })
})

await test('a session store that is gone', async (t) => {
  const { server, browser, redis } = await testWorld(t, { redis: true })
  await logIn(browser, server.url)
  const url = new URL(server.url)
  const cookie = browser.cookieHeader(url, url)
  await redis?.close()
  const call = () => sendTo(server.port, 'GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
  while ((await call()).status !== 503) await delay(10)
  const before = server.log.filter(({ msg, status }) => msg === 'request' && status === 503).length
  const made = await failures(call)
  const lines = await toldInFewLines(t, server, 'request failed', before + made)
  t.match(lines[0], { code: 'session_store_unavailable' })
})

await test('a provider that is gone, when tokens are to be renewed', async (t) => {
  const { server, browser, provider } = await testWorld(t, {
    provider: { refreshTokens: true, accessTokenSeconds: 1 },
  })
  await logIn(browser, server.url)
  const url = new URL(server.url)
  const cookie = browser.cookieHeader(url, url)
  await provider.close()
  await delay(SECOND_MS)
  const call = () => sendTo(server.port, 'GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
  while ((await call()).status !== 503) await delay(10)
  const made = await failures(call)
  const refused = server.log.filter(({ msg, status }) => msg === 'request' && status === 503).length
  const lines = await toldInFewLines(t, server, 'request failed', refused)
  t.ok(refused >= made)
  t.match(lines[0], { code: 'provider_unavailable', cause: { cause: { code: 'ECONNREFUSED' } } })
  const renewals = server.log.filter(({ msg }) => msg === 'the provider could not be asked for a refresh')
  t.ok(renewals.length > 0 && renewals.length <= lines.length + 1, String(renewals.length))
  t.notMatch(JSON.stringify(renewals), /"stack"/)
})

for (const [path, setting, msg] of [
  ['/ws/public', 'WS_URL', 'upstream refused a socket'],
  [TRADING, 'API_URL', 'no one-time URL for a relay'],
] as const) {
  await test(`sockets that upstream does not open: ${msg}`, async (t) => {
    const address = `${setting === 'WS_URL' ? 'ws' : 'http'}://127.0.0.1:${await freePort()}`
    const { server, browser } = await relayWorld(t, {
      settings: { [setting]: address, PUBLIC_HANDSHAKES_PER_MINUTE: '0' },
    })
    const url = new URL(server.url)
    const headers = { origin: server.url, cookie: browser.cookieHeader(url, url) }
    const open = () => new BrowserLine(`ws://127.0.0.1:${server.port}${path}`, headers).closed
    const lines = await toldInFewLines(t, server, msg, await failures(open))
    t.match(lines[0], { level: 40, why: /ECONNREFUSED/ })
  })
}

await test('a fault of ours: level 50, its stack, and a line for each', async (t) => {
  const lines: Line[] = []
  const log = pino(loggerOptions('info'), {
    write: (line: string) => void lines.push(JSON.parse(line) as Line),
  })
  const { http } = readConfig(ALONE)
  const server = createServer(http, log, createMetrics(), new Guard(http, log))
  t.teardown(() => server.close())
  server.get('/boom', () => {
    throw new TypeError('a planted error')
  })
  for (let times = 0; times < 3; times++) {
    t.equal((await server.inject({ url: '/boom', headers: { host: 'h' } })).statusCode, 500)
  }
  const told = lines.filter(({ msg }) => msg === 'request failed')
  t.equal(told.length, 3)
  for (const line of told) {
    t.match(line, { level: 50, code: 'internal_error', err: { type: 'TypeError', stack: /failure-lines/ } })
  }
})
