import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { said, twoWorkers } from '../support/server/two-workers.ts'
import { until } from '../support/time/until.ts'

/** `npm_lifecycle_event` is what npm sets for what it runs. */
const DRAINS = { ...ALONE, npm_lifecycle_event: 'start', DRAIN_SECONDS: '120' }

/** A server that drains for a minute after SIGTERM. */
async function draining(t: Test): Promise<ServerProcess> {
  const server = await serverProcess(t, { ...DRAINS, DRAIN_WAIT_SECONDS: '60' })
  t.ok(await ready(server))
  server.child.kill('SIGTERM')
  await until(() => said(server, 'draining').length > 0, 'it drains')
  return server
}

await test('under npm, a signal that the whole group gets, and npm passes on, counts once: the server drains', async (t) => {
  const one = await serverProcess(t, { ...DRAINS, DRAIN_WAIT_SECONDS: '1' })
  t.ok(await ready(one))
  for (const server of [one, await twoWorkers(t, { ...DRAINS, DRAIN_WAIT_SECONDS: '1' })]) {
    server.child.kill('SIGTERM')
    await until(() => said(server, 'draining').length > 0, 'it drains')
    server.child.kill('SIGTERM')
    t.equal(await server.exited, 0)
    t.same(said(server, 'exiting now'), [])
  }
})

await test('under npm, another signal, or the same one later, still ends the server at once', async (t) => {
  const other = await draining(t)
  other.child.kill('SIGINT')
  t.equal(await other.exited, 130)
  const later = await draining(t)
  await delay(2000)
  later.child.kill('SIGTERM')
  t.equal(await later.exited, 143)
})
