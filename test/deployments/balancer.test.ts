import { writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import type { Response } from 'undici'
import { startRedis } from '../../sandbox/redis-process.ts'
import { Problem, type ProblemCode } from '../../src/problem.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { connection } from '../support/proxies/connection.ts'
import { installCertificate, PUBLIC_URL } from '../support/deployment/deployed-balancer.ts'
import { deployment, hasServed } from '../support/deployment/deployed.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { PUBLIC, ACCOUNTS, TRANSFER } from '../support/user.ts'
import { nextEvent, untilSlow as until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'

const skip = enterNamespaces()

const PAGE = fileURLToPath(new URL('../../sandbox/page', import.meta.url))
const HEADERS = { 'x-csrf': '1' }

const CALLS_PER_SECOND = 60
const LOAD_MS = 8000
const KILL_AFTER_MS = 2000

/** One call. Times are those of performance.now(). */
interface Call {
  readonly id: string
  readonly startedAt: number
  endedAt: number
  /** The status, or the error if there was no response. */
  outcome: number | string
}

/** Starts calls at a steady pace without waiting for earlier ones; every other call is a POST. */
async function steadyLoad(browser: JarBrowser): Promise<Call[]> {
  const calls: Call[] = []
  const ended: Promise<void>[] = []
  const startedAt = performance.now()
  for (let count = 0; count < (LOAD_MS / 1000) * CALLS_PER_SECOND; count++) {
    await delay(Math.max(0, startedAt + (count * 1000) / CALLS_PER_SECOND - performance.now()))
    const call: Call = { id: `call-${count}`, startedAt: performance.now(), endedAt: 0, outcome: '' }
    calls.push(call)
    ended.push(make(browser, call, count % 2 === 1))
  }
  await Promise.all(ended)
  return calls
}

async function make(browser: JarBrowser, call: Call, isPost: boolean): Promise<void> {
  try {
    const response = await (isPost
      ? browser.fetch(TRANSFER, { method: 'POST', headers: HEADERS, body: call.id })
      : browser.fetch(`${ACCOUNTS}?${call.id}`, { headers: HEADERS }))
    await response.arrayBuffer()
    call.outcome = response.status
  } catch (error) {
    call.outcome = String((error as Error).cause ?? error)
  }
  call.endedAt = performance.now()
}

await test(
  'When an instance is killed under load, only its calls in flight are lost, and none is sent twice',
  { skip },
  async (t) => {
    const world = await deployment(t, {}, [{}, {}, {}])
    const browser = new JarBrowser()
    await logIn(browser, PUBLIC_URL)
    const load = steadyLoad(browser)
    await delay(KILL_AFTER_MS)
    const [victim = await world.start()] = world.instances
    t.ok(await hasServed(victim), 'calls reach the instance')
    const killedAt = performance.now()
    victim.child.kill('SIGKILL')
    await victim.exited
    const goneAt = performance.now()
    // A container runtime would restart it, too.
    await world.start()

    const calls = await load
    const lost = calls.filter(({ outcome }) => outcome !== 200)
    const inFlight = calls.filter(({ startedAt, endedAt }) => startedAt < goneAt && endedAt > killedAt)
    const slowest = Math.max(...calls.map(({ startedAt, endedAt }) => endedAt - startedAt))
    t.comment(
      `${calls.length} calls, ${lost.length} lost of ${inFlight.length} in flight, the slowest took ${slowest.toFixed()} ms`,
    )
    t.same(
      lost.filter((call) => !inFlight.includes(call) || call.outcome === 503),
      [],
      'only calls in flight are lost, and they do not get 503',
    )
    const executed = world.executed.filter((id) => id.startsWith('call-'))
    t.equal(new Set(executed).size, executed.length, 'no call is executed twice')
    t.same(
      calls.filter(({ id, outcome }) => outcome === 200 && !executed.includes(id)),
      [],
      'every call with status 200 was executed',
    )
  },
)

/** Opens a public socket and waits for a price. */
async function openPrices(t: Test, browser: JarBrowser): Promise<BrowserSocket> {
  const url = new URL(PUBLIC, PUBLIC_URL)
  const cookie = browser.cookieHeader(url, url)
  const line = new BrowserSocket(url.href.replace('https', 'wss'), { origin: PUBLIC_URL, cookie })
  t.teardown(() => line.socket.terminate())
  await line.count(1)
  return line
}

await test(
  'Without Redis, the balancer still serves everything that needs no session, and the rest gets 503',
  { skip },
  async (t) => {
    const settings = { READY_GRACE_SECONDS: '1', STATIC_DIR: PAGE }
    const world = await deployment(t, settings, [{}, {}, {}])
    const browser = new JarBrowser()
    await logIn(browser, PUBLIC_URL)
    const before = await openPrices(t, browser)
    const { length: begin } = await world.balancer.output()
    const untilLogged = async (message: RegExp): Promise<void> => {
      const { length } = await world.balancer.output()
      await until(async () => message.test((await world.balancer.output()).slice(length)))
    }
    world.redis.process.kill('SIGKILL')
    await untilLogged(/backend instances has no server available/)

    const page = await browser.navigate(PUBLIC_URL)
    t.match(page.response, { status: 200 })
    t.match(page.body, '<!doctype html>')
    t.equal((await browser.fetch('/api/v1/health', { headers: HEADERS })).status, 200)
    const after = await openPrices(t, browser)
    for (const line of [before, after]) await line.count(line.received.length + 1)
    for (const line of [before, after]) t.equal(line.socket.readyState, line.socket.OPEN)
    for (const path of [ACCOUNTS, '/auth/session']) {
      const response = await browser.fetch(path, { headers: HEADERS })
      t.equal(response.status, 503)
      t.match(await response.json(), { code: 'session_store_unavailable' })
    }
    t.match((await browser.navigate(`${PUBLIC_URL}/auth/login`)).url.search, 'auth_error=try_later')

    const redis = await startRedis([], world.redis.port)
    t.teardown(() => redis.close())
    await untilLogged(/Server instances\/\w+ is UP/)
    await logIn(browser, PUBLIC_URL)
    t.equal((await browser.fetch(ACCOUNTS, { headers: HEADERS })).status, 200)
    const served = [...(await world.balancer.output()).slice(begin).matchAll(/ (instances|unready)\/\S+ \S+ 200 /g)]
    t.same(
      served.map(([, backend]) => backend).filter((backend, index, all) => backend !== all[index - 1]),
      ['unready', 'instances'],
      'the backend of unready instances serves only while no instance is ready',
    )
  },
)

/** Asserts that a response of the balancer equals the problem of an instance. @returns the request id */
async function assertProblem(t: Test, response: Response, code: ProblemCode, outcome?: 'unknown'): Promise<string> {
  t.equal(response.headers.get('content-type'), 'application/problem+json')
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.match(response.headers.get('strict-transport-security'), /^max-age=/)
  const body = (await response.json()) as { detail: string; request_id: string }
  const { detail, request_id: id } = body
  t.same(body, JSON.parse(new Problem(code, { detail, ...(outcome && { outcome }) }).body(id)))
  t.equal(response.status, new Problem(code).status)
  t.equal(response.headers.get('x-request-id'), id)
  return id
}

await test(
  'When the last instance dies, the balancer responds 502 and 503 and makes no client repeat an order',
  { skip },
  async (t) => {
    const world = await deployment(t, {}, [{}])
    const browser = new JarBrowser()
    await logIn(browser, PUBLIC_URL)
    const order = { method: 'POST', body: '{}' }
    const [http2, http1, fresh] = [
      connection(t, browser, PUBLIC_URL, true),
      connection(t, browser, PUBLIC_URL),
      connection(t, browser, PUBLIC_URL),
    ]
    // haproxy handles the first request of a connection differently, so the orders are not the first.
    for (const send of [http2, http1]) t.equal((await send(TRANSFER, order)).status, 200)
    const arrived: string[] = []
    world.upstream.onRest = ({ method = '' }) => void arrived.push(method)
    const read = fresh(ACCOUNTS)
    const orders = [http2(TRANSFER, order), http1(TRANSFER, order)]
    await until(() => arrived.length === 3)
    world.instances[0]?.child.kill('SIGKILL')
    const ids = [await assertProblem(t, await read, 'upstream_lost')]
    for (const response of await Promise.all(orders))
      ids.push(await assertProblem(t, response, 'upstream_lost', 'unknown'))
    for (const init of [{}, order]) {
      const response = await http2(ACCOUNTS, init)
      t.equal(response.headers.get('retry-after'), '1')
      ids.push(await assertProblem(t, response, 'shutting_down'))
    }
    const log = await world.balancer.stop('SIGUSR1')
    for (const id of ids)
      t.equal(log.match(new RegExp(` 50[23] .* ${id}$`, 'gm'))?.length, 1, 'the balancer logs the request once')
  },
)

await test('The balancer responds with upstream_timeout when an instance never responds', { skip }, async (t) => {
  // The deployed timeout is too long for a test.
  const world = await deployment(t, {}, [{}], (text) => text.replace('timeout server 75s', 'timeout server 1s'))
  const browser = new JarBrowser()
  await logIn(browser, PUBLIC_URL)
  world.upstream.onRest = () => undefined
  const send = connection(t, browser, PUBLIC_URL)
  await assertProblem(t, await send(ACCOUNTS), 'upstream_timeout')
  await assertProblem(t, await send(TRANSFER, { method: 'POST', body: '{}' }), 'upstream_timeout', 'unknown')
})

async function certificate(): Promise<string> {
  const socket = connect({ port: 8443, rejectUnauthorized: false })
  await nextEvent(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

await test(
  'The balancer takes a new certificate at a reload, and goes on without an unusable one',
  { skip },
  async (t) => {
    const { balancer, executed } = await deployment(t, {}, [{}, {}])
    const browser = new JarBrowser()
    await logIn(browser, PUBLIC_URL)
    const load = steadyLoad(browser)
    const old = await certificate()
    await installCertificate(t, `${t.testdirName}/renewed`)
    balancer.reload()
    await until(async () => (await certificate()) !== old)
    // The instances are down for the new process until its first checks. What it refuses then was not sent.
    const refused = (await load).filter(({ outcome }) => outcome === 503)
    t.notOk(refused.some(({ id }) => executed.includes(id)))
    t.equal(new Set(executed).size, executed.length, 'no call is executed twice')
    const renewed = await certificate()
    await writeFile('/run/secrets/certificate', 'unusable')
    balancer.reload()
    await until(async () => /fail/i.test(await balancer.output()))
    t.equal(await certificate(), renewed)
    t.equal((await browser.fetch(ACCOUNTS, { headers: HEADERS })).status, 200)
  },
)
