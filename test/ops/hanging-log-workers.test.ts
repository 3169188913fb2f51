import { test } from 'tap'
import { said, twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { until } from '../support/time/until.ts'
import { checkCounted, exitOf, hang, linesOf, LOST, requestsOf } from '../support/server/unread-log.ts'

await test('With WORKERS the supervisor ends with 74 as well, and each process counts what it has lost', async (t) => {
  const server = await twoWorkers(t, { DRAIN_WAIT_SECONDS: '0' })
  const pids = new Set([server.child.pid, ...workerPids(server)])
  await hang(server)
  const requests = await requestsOf(server)
  server.child.kill('SIGTERM')
  t.equal((await exitOf(server)).code, 74)
  const counts = linesOf(server.output().stderr)
  t.ok(counts.length >= 2, 'both workers')
  for (const { msg, instance } of counts) {
    t.equal(msg, LOST)
    t.ok(pids.has(Number(String(instance).split('/')[1])), String(instance))
  }
  checkCounted(t, server, requests)
})

await test('A worker that has to be killed counts as one that has lost lines', async (t) => {
  const server = await twoWorkers(t, { DRAIN_SECONDS: '1', DRAIN_WAIT_SECONDS: '0' })
  process.kill(workerPids(server)[0] ?? 0, 'SIGSTOP')
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 74)
})

await test('A worker that something else kills while the server drains counts as well, and the log says so', async (t) => {
  const server = await twoWorkers(t, { DRAIN_SECONDS: '10', DRAIN_WAIT_SECONDS: '3' })
  server.child.kill('SIGTERM')
  await until(() => said(server, 'draining').length > 0)
  process.kill(workerPids(server)[0] ?? 0, 'SIGKILL')
  t.equal(await server.exited, 74)
  t.match(said(server, 'a worker died'), [{ level: 50, code: null, signal: 'SIGKILL' }])
})
