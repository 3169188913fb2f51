import { text } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { startProvider } from '../../sandbox/provider.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { answerJson, LineUpstream } from '../support/line-upstream.ts'
import { keepOutOfLogs } from '../support/log-scan.ts'
import { documentedOpenLine } from '../support/open-line.ts'
import { PUBLIC, TRADING } from '../support/relay-world.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server-process.ts'
import { tlsBalancer, type TlsBalancer } from '../support/tls-balancer.ts'
import { CLIENT_ID, logIn, SECRETS, testRedis } from '../support/world.ts'
import { until } from '../support/until.ts'

const USERS = 6
const CALLERS_PER_USER = 2
/** Of each user: four on an account, and two for prices. */
const SOCKETS = [TRADING, TRADING, TRADING, TRADING, PUBLIC, PUBLIC]
/** Longer than the two checks after which the balancer takes an instance out. */
const DRAIN_WAIT_SECONDS = '3'
/** What a client says of itself, and nobody believes. */
const FORGED = '203.0.113.9'

/** An upstream that takes its time, writes down what it executes, and sends prices for ever. */
async function slowUpstream(t: Test): Promise<{ upstream: LineUpstream; executed: string[] }> {
  const upstream = await LineUpstream.start(t)
  const executed: string[] = []
  upstream.onRest = (request, response) => {
    void text(request).then((body) => {
      executed.push(body === '' ? (request.url ?? '').replace(/.*\?/, '') : body)
      setTimeout(() => answerJson(response, 200, { data: [] }), Math.random() * 150)
    })
  }
  upstream.onSocket = (socket) => {
    const ticks = setInterval(() => socket.send('{"tick":1}'), 100)
    socket.on('close', () => clearInterval(ticks))
  }
  return { upstream, executed }
}

/** Calls one after the other, every one with an id of its own, until it is told to stop. */
class Caller {
  /** A status, or why there was none. */
  readonly answers: { id: string; status: number | string }[] = []
  readonly #done: Promise<void>
  #isStopped = false

  constructor(name: string, browser: JarBrowser) {
    this.#done = this.#run(name, browser)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#done
  }

  async #run(name: string, browser: JarBrowser): Promise<void> {
    for (let count = 0; !this.#isStopped; count++) {
      const id = `${name}-${count}`
      const headers = { 'x-csrf': '1', 'x-forwarded-for': FORGED }
      const answer = await (
        count % 2 === 0
          ? browser.fetch(`/api/trading/v1/options/accounts?${id}`, { headers })
          : browser.fetch('/api/payment-agents/v1/transfer', { method: 'POST', headers, body: id })
      ).catch((error: unknown) => String(error))
      this.answers.push({ id, status: typeof answer === 'string' ? answer : answer.status })
      if (typeof answer !== 'string') await answer.arrayBuffer()
    }
  }
}

/** Sockets of a user's page, as the documentation tells frontends to keep them. */
class Lines {
  readonly closed: number[] = []
  /** Messages that each has got. */
  readonly received: number[] = SOCKETS.map(() => 0)
  readonly ended: number[] = []
  readonly #stops: (() => void)[]

  constructor(browser: JarBrowser, publicUrl: string) {
    const openLine = documentedOpenLine(browser, publicUrl, (code) => this.closed.push(code))
    this.#stops = SOCKETS.map((path, index) => {
      const { stop } = openLine(path, {
        subscribe: () => undefined,
        receive: () => (this.received[index] = (this.received[index] ?? 0) + 1),
        ended: (code) => this.ended.push(code),
      })
      return stop
    })
  }

  /** Resolves when every socket has got a message from now on. */
  async alive(): Promise<void> {
    const before = [...this.received]
    await until(() => this.received.every((count, index) => count > (before[index] ?? 0)))
  }

  stop(): void {
    for (const stop of this.#stops) stop()
  }
}

async function hasServed({ opsPort }: ServerProcess): Promise<boolean> {
  const metrics = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text()
  return /bff_http_request_duration_seconds_count\{[^}]*route="\/api\/[^}]*\} [1-9]/.test(metrics)
}

/** Three instances, one of them of two processes, on one Redis behind the balancer. */
async function deployment(t: Test): Promise<{
  publicUrl: string
  /** Ids of the calls that upstream has executed. */
  executed: string[]
  instances: ServerProcess[]
  /** Starts an instance that has ended, at its old place. */
  startAgain: (instance: number) => Promise<ServerProcess>
  balancer: TlsBalancer
}> {
  const port = await freePort()
  const publicUrl = `https://localhost:${port}`
  const provider = await startProvider({ clientId: CLIENT_ID, redirectUris: [`${publicUrl}/auth/callback`] })
  t.teardown(() => provider.close())
  for (const secrets of [provider.issued, provider.verifiers]) keepOutOfLogs(secrets)
  const { upstream, executed } = await slowUpstream(t)
  const redis = await testRedis(t)
  const start = async (workers: string | undefined, ports = {}): Promise<ServerProcess> => {
    const process = await serverProcess(t, {
      PUBLIC_URL: publicUrl,
      AUTH_URL: provider.url,
      API_URL: `http://${upstream.host}`,
      WS_URL: `ws://${upstream.host}`,
      REDIS_URL: redis.url,
      SESSION_SECRETS: SECRETS,
      CLIENT_ID,
      TRUST_PROXY: '1',
      DRAIN_WAIT_SECONDS,
      WORKERS: workers ?? '1',
      ...ports,
    })
    t.ok(await ready(process), 'an instance has started')
    return process
  }
  const workers = ['1', '1', '2']
  const instances = await Promise.all(workers.map((count) => start(count)))
  const balancer = await tlsBalancer(t, port, instances)
  const startAgain = (index: number): Promise<ServerProcess> => {
    const { port = 0, opsPort = 0 } = instances[index] ?? {}
    return start(workers[index], { PORT: String(port), OPS_PORT: String(opsPort) })
  }
  return { publicUrl, executed, instances, startAgain, balancer }
}

await test('instances restart one by one under load, and nobody notices more than a reconnect', async (t) => {
  const { publicUrl, executed, instances, startAgain, balancer } = await deployment(t)
  const browsers = await Promise.all(
    Array.from({ length: USERS }, async (_, index) => {
      const browser = new JarBrowser()
      await logIn(browser, publicUrl, `user${index}@example.test`)
      return browser
    }),
  )
  const lines = browsers.map((browser) => new Lines(browser, publicUrl))
  await Promise.all(lines.map((each) => each.alive()))
  const callers = browsers.flatMap((browser, user) =>
    Array.from({ length: CALLERS_PER_USER }, (_, index) => new Caller(`${user}-${index}`, browser)),
  )

  for (const [index, instance] of instances.entries()) {
    instance.child.kill('SIGTERM')
    t.equal(await instance.exited, 0, `instance ${index} has drained`)
    const fresh = await startAgain(index)
    await until(() => hasServed(fresh))
  }
  await Promise.all(lines.map((each) => each.alive()))
  await Promise.all(callers.map((caller) => caller.stop()))

  const answers = callers.flatMap((caller) => caller.answers)
  const failed = answers.filter(({ status }) => status !== 200)
  t.same(failed, [], `${answers.length} calls, all answered`)
  t.same(executed.toSorted(), answers.map(({ id }) => id).toSorted(), 'each executed once, and nothing else')

  const closed = lines.flatMap((each) => each.closed)
  t.same(new Set(closed), new Set([1012]), `${closed.length} closings, all with the word to come back`)
  t.ok(closed.length >= USERS * SOCKETS.length, 'every socket has lost its instance')
  t.same(
    lines.flatMap((each) => each.ended),
    [],
    'none has given up',
  )
  for (const browser of browsers) {
    t.match(await (await browser.fetch('/auth/session')).json(), { authenticated: true })
  }
  for (const each of lines) each.stop()

  const logs = instances.map((each) => each.output().stdout).join('')
  t.match(logs, /"route":"\/api\/[^\n]*"client":"127.0.0.1"/)
  t.notMatch(logs, FORGED, 'nobody believes what a client says of its address')
  t.notMatch(await balancer.stop(), /code=|state=/, 'nor does the balancer log what a callback carries')
})
