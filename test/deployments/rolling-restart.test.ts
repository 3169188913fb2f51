import { test } from 'tap'
import { PUBLIC_URL } from '../support/deployment/deployed-balancer.ts'
import { deployment, hasServed } from '../support/deployment/deployed.ts'
import { Caller, FORGED, Lines, SOCKETS } from '../support/deployment/load.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { logIn } from '../support/parts.ts'
import { untilSlow as until } from '../support/time/until.ts'

const skip = enterNamespaces()

const USERS = 6
const CALLERS_PER_USER = 2
/** Longer than the two health checks after which the balancer stops using an instance. */
const DRAIN_WAIT_SECONDS = '3'
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
