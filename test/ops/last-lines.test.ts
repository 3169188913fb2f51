import { test } from 'tap'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { linesOf } from '../support/server/unread-log.ts'
import { until } from '../support/time/until.ts'

await test('a second SIGTERM: events that are only counted so far are in the log before the exit', async (t) => {
  const server = await serverProcess(t, { ...ALONE, DRAIN_SECONDS: '120', DRAIN_WAIT_SECONDS: '60' })
  t.ok(await ready(server))
  // Five lines at once, and then one in ten seconds.
  for (let calls = 0; calls < 8; calls++) {
    await fetch(`http://127.0.0.1:${server.port}/auth/callback?state=x`, { redirect: 'manual' })
  }
  server.child.kill('SIGTERM')
  await until(() => server.output().stdout.includes('"draining"'), 'it drains')
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 143)
  const counts = linesOf(server.output().stdout).map(({ audit, count = 1 }) => (audit === 'login_failed' ? count : 0))
  t.equal(
    counts.reduce((sum: number, count) => sum + Number(count), 0),
    8,
  )
})
