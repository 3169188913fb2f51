import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { silentServer } from '../support/peers/silent-server.ts'
import { serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

for (const waitSeconds of ['0', '2']) {
  await test(`a start that waits for tokens ends at once on SIGTERM, with DRAIN_WAIT_SECONDS=${waitSeconds}`, async (t) => {
    const { url } = await testRedis(t)
    const settings = { REDIS_URL: url, UPSTREAM_BUDGET: '300/60', DRAIN_SECONDS: '40', DRAIN_WAIT_SECONDS: waitSeconds }
    const server = await serverProcess(t, { ...ALONE, ...settings })
    const isAlive = () =>
      fetch(`http://127.0.0.1:${server.opsPort}/livez`).then(
        ({ ok }) => ok,
        () => false,
      )
    await until(isAlive, 'the server is alive', 30_000)
    // A new ledger grants nothing for 15 seconds.
    await delay(1000)
    const signalledAt = performance.now()
    server.child.kill('SIGTERM')
    t.equal(await server.exited, 0)
    const seconds = (performance.now() - signalledAt) / 1000
    t.ok(seconds < 20, `after ${seconds.toFixed(1)} seconds`)
    t.notMatch(server.output().stdout, 'cannot listen')
  })
}

await test('a start that waits for its store opens no port for browsers after SIGTERM', async (t) => {
  const store = await silentServer(t)
  let isWaiting = false
  store.server.once('connection', () => (isWaiting = true))
  const said = `import { Server } from 'node:net'
    const { listen } = Server.prototype
    Server.prototype.listen = function (...address) {
      process.stderr.write('opens a port\\n')
      return Reflect.apply(listen, this, address)
    }`
  const nodeOptions = ['--import', `data:text/javascript,${encodeURIComponent(said)}`]
  const server = await serverProcess(t, { ...ALONE, REDIS_URL: `redis://127.0.0.1:${store.port}` }, { nodeOptions })
  const opened = () => server.output().stderr.split('opens a port').length - 1
  await until(() => opened() === 1 && isWaiting, 'it has a port for operators, and waits', 30_000)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  t.equal(opened(), 1)
})
