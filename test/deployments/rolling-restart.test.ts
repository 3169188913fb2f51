import { test } from 'tap'
import { PUBLIC_URL } from '../support/deployed-balancer.ts'
import { deployment, hasServed } from '../support/deployment.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { documentedSocket as documentedOpenLine } from '../support/documented-socket.ts'
import { PUBLIC, TRADING } from '../support/relay-world.ts'
import { logIn } from '../support/world.ts'
import { untilSlow as until } from '../support/until.ts'

const skip = enterNamespaces()

const USERS = 6
const CALLERS_PER_USER = 2
/** Of each user: four on an account, and two for prices. */
const SOCKETS = [TRADING, TRADING, TRADING, TRADING, PUBLIC, PUBLIC]
/** Longer than the two checks after which the balancer takes an instance out. */
const DRAIN_WAIT_SECONDS = '3'
/** What a client says of itself, and nobody believes. */
const FORGED = '203.0.113.9'

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

  constructor(browser: JarBrowser) {
    const openLine = documentedOpenLine(browser, PUBLIC_URL, (code) => this.closed.push(code))
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

await test(
  'instances are replaced one by one under load, and nobody notices more than a reconnect',
  { skip },
  async (t) => {
    // The last is of two processes.
    const settings = [{}, {}, { WORKERS: '2' }]
    const world = await deployment(t, { DRAIN_WAIT_SECONDS }, settings)
    const browsers = await Promise.all(
      Array.from({ length: USERS }, async (_, index) => {
        const browser = new JarBrowser()
        await logIn(browser, PUBLIC_URL, `user${index}@example.test`)
        return browser
      }),
    )
    const lines = browsers.map((browser) => new Lines(browser))
    await Promise.all(lines.map((each) => each.alive()))
    const callers = browsers.flatMap((browser, user) =>
      Array.from({ length: CALLERS_PER_USER }, (_, index) => new Caller(`${user}-${index}`, browser)),
    )

    for (const [index, instance] of world.instances.entries()) {
      const fresh = await world.start(settings[index])
      await until(() => hasServed(fresh))
      instance.child.kill('SIGTERM')
      t.equal(await instance.exited, 0, `instance ${index} has drained`)
    }
    await Promise.all(lines.map((each) => each.alive()))
    await Promise.all(callers.map((caller) => caller.stop()))

    const answers = callers.flatMap((caller) => caller.answers)
    const failed = answers.filter(({ status }) => status !== 200)
    t.same(failed, [], `${answers.length} calls, all answered`)
    t.same(
      world.executed.toSorted(),
      answers.map(({ id }) => id).toSorted(),
      'each executed once, and nothing else',
    )

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

    const logs = world.instances.map((each) => each.output().stdout).join('')
    t.match(logs, /"route":"\/api\/[^\n]*"client":"127.0.0.1"/)
    t.notMatch(logs, FORGED, 'nobody believes what a client says of its address')
    t.notMatch(
      await world.balancer.stop('SIGUSR1'),
      /code=|state=/,
      'nor does the balancer log what a callback carries',
    )
  },
)
