import { test, type Test } from 'tap'
import type { PublicSocket } from '../../client/dist/client.js'
import { PUBLIC_URL } from '../support/deployment/deployed-balancer.ts'
import { deployment, hasServed } from '../support/deployment/deployed.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { pageClient } from '../support/client/page-client.ts'
import { logIn } from '../support/parts.ts'
import { untilSlow as until } from '../support/time/until.ts'

const skip = enterNamespaces()

const USERS = 6
const CALLERS_PER_USER = 2
/** The sockets of each user, each in a tab of its own: four of an account, and two public ones. */
const SOCKETS = ['trading', 'trading', 'trading', 'trading', 'public', 'public'] as const
/** Longer than the two health checks after which the balancer stops using an instance. */
const DRAIN_WAIT_SECONDS = '3'
/** A client address in X-Forwarded-For that the balancer must not trust. */
const FORGED = '203.0.113.9'

/** Makes one call after the other, each with its own id, until it is stopped. */
class Caller {
  /** The status of each call, or the error if there was no response. */
  readonly results: { id: string; status: number | string }[] = []
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
      const result = await (
        count % 2 === 0
          ? browser.fetch(`/api/trading/v1/options/accounts?${id}`, { headers })
          : browser.fetch('/api/payment-agents/v1/transfer', { method: 'POST', headers, body: id })
      ).catch((error: unknown) => String(error))
      this.results.push({ id, status: typeof result === 'string' ? result : result.status })
      if (typeof result !== 'string') await result.arrayBuffer()
    }
  }
}

/** The sockets of a user's tabs, kept connected by the browser package. */
class Lines {
  /** Close codes. */
  readonly closed: number[] = []
  /** The number of messages that each socket has received. */
  readonly received: number[] = SOCKETS.map(() => 0)
  readonly #sockets: readonly PublicSocket[]

  constructor(t: Test, browser: JarBrowser) {
    this.#sockets = SOCKETS.map((kind, index) => {
      const client = pageClient(t, browser, PUBLIC_URL, PUBLIC_URL, (code) => this.closed.push(code))
      const socket = kind === 'public' ? client.publicSocket() : client.tradingSocket('VRTC100')
      socket.listen(() => (this.received[index] = (this.received[index] ?? 0) + 1))
      return socket
    })
  }

  /** Close codes after which a socket does not reconnect. */
  get ended(): (number | undefined)[] {
    return this.#sockets.flatMap((socket) => (socket.status().state === 'ended' ? [socket.status().code] : []))
  }

  /** Resolves when every socket has received another message. */
  async untilAllReceive(): Promise<void> {
    const before = [...this.received]
    await until(() => this.received.every((count, index) => count > (before[index] ?? 0)))
  }

  stop(): void {
    for (const socket of this.#sockets) socket.close()
  }
}

await test(
  'Replacing the instances one by one under load loses no call and only reconnects the sockets',
  { skip },
  async (t) => {
    // The last instance has two workers.
    const settings = [{}, {}, { WORKERS: '2' }]
    const world = await deployment(t, { DRAIN_WAIT_SECONDS }, settings)
    const browsers = await Promise.all(
      Array.from({ length: USERS }, async (_, index) => {
        const browser = new JarBrowser()
        await logIn(browser, PUBLIC_URL, `user${index}@example.test`)
        return browser
      }),
    )
    const lines = browsers.map((browser) => new Lines(t, browser))
    await Promise.all(lines.map((each) => each.untilAllReceive()))
    const callers = browsers.flatMap((browser, user) =>
      Array.from({ length: CALLERS_PER_USER }, (_, index) => new Caller(`${user}-${index}`, browser)),
    )

    for (const [index, instance] of world.instances.entries()) {
      const fresh = await world.start(settings[index])
      await until(() => hasServed(fresh))
      instance.child.kill('SIGTERM')
      t.equal(await instance.exited, 0, `instance ${index} has drained`)
    }
    await Promise.all(lines.map((each) => each.untilAllReceive()))
    await Promise.all(callers.map((caller) => caller.stop()))

    const results = callers.flatMap((caller) => caller.results)
    const failed = results.filter(({ status }) => status !== 200)
    t.same(failed, [], `all ${results.length} calls succeed`)
    t.same(world.executed.toSorted(), results.map(({ id }) => id).toSorted(), 'every call is executed once')

    const closed = lines.flatMap((each) => each.closed)
    t.same(new Set(closed), new Set([1012]), `all ${closed.length} sockets close with 1012`)
    t.ok(closed.length >= USERS * SOCKETS.length, 'every socket has lost its instance')
    t.same(
      lines.flatMap((each) => each.ended),
      [],
      'every socket has reconnected',
    )
    for (const browser of browsers) {
      t.match(await (await browser.fetch('/auth/session')).json(), { authenticated: true })
    }
    for (const each of lines) each.stop()

    const logs = world.instances.map((each) => each.output().stdout).join('')
    t.match(logs, /"route":"\/api\/[^\n]*"client":"127.0.0.1"/)
    t.notMatch(logs, FORGED, 'the forged address is not logged')
    t.notMatch(
      await world.balancer.stop('SIGUSR1'),
      /code=|state=/,
      'the balancer does not log the parameters of a callback',
    )
  },
)
