import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { said, status, twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { until, within } from '../support/time/until.ts'

const FAULT = {
  NODE_OPTIONS: `--import=${fileURLToPath(new URL('../support/server/fault.ts', import.meta.url))}`,
  FAULT: 'reject',
}
const METRIC = 'bff_unhandled_rejections_total'
const REQUESTS = 20

await test('a promise of a request that rejects, and that nothing awaits, is logged and counted, and ends nothing', async (t) => {
  const server = await serverProcess(t, { ...ALONE, ...FAULT })
  t.ok(await ready(server))
  const opsUrl = `http://127.0.0.1:${server.opsPort}`
  t.equal(await valueOf(opsUrl, METRIC), 0)
  server.child.kill('SIGUSR2')
  await until(() => server.output().stderr === 'rejecting\n')
  for (let count = 0; count < REQUESTS; count++) {
    t.equal((await fetch(`http://127.0.0.1:${server.port}/auth/session`)).status, 200)
  }
  t.ok(Number(await valueOf(opsUrl, METRIC)) >= REQUESTS, 'each of them')
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  const lines = said(server, 'a rejection that nobody handles')
  t.match(lines[0], { level: 50, count: 1, err: { message: 'a planted rejection', stack: String } })
  t.ok(lines.length < REQUESTS / 2, 'one line a second')
  t.same(said(server, 'an unexpected error'), [])
})

await test('a promise that rejects with no error, or with an error without a message, ends nothing either', async (t) => {
  const server = await serverProcess(t, { ...ALONE, ...FAULT, FAULT: 'rejectOddly' })
  t.ok(await ready(server))
  server.child.kill('SIGUSR2')
  await until(() => said(server, 'a rejection that nobody handles').length === 2)
  t.equal(await valueOf(`http://127.0.0.1:${server.opsPort}`, METRIC), 2)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
})

await test('WORKERS: a worker goes on as well, and the supervisor reports what all of them count', async (t) => {
  const server = await twoWorkers(t, FAULT)
  for (const pid of workerPids(server)) process.kill(pid, 'SIGUSR2')
  await until(() => server.output().stderr === 'rejecting\n'.repeat(2))
  const counted = async () => Number(await valueOf(`http://127.0.0.1:${server.opsPort}`, METRIC))
  const requests = Array.from({ length: REQUESTS }, () => status(server.port, '/auth/session'))
  t.same(new Set(await within(Promise.all(requests), 'all are answered', 5000)), new Set([200]))
  await until(async () => (await counted()) === REQUESTS)
  t.equal(said(server, 'a worker starts').length, 2, 'none has died')
})
