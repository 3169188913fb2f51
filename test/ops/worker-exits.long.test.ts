import { renameSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { IDENTITY, operate } from '../support/login/identity.ts'
import { createClient } from '../support/redis/client.ts'
import { ok, rawUpstream } from '../support/upstream/raw-upstream.ts'
import { takenPort } from '../support/server/http-server.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { said, status, twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { ALONE } from '../support/server/settings.ts'
import { until, within } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

const FAULT = `--import=${fileURLToPath(new URL('../support/server/fault.ts', import.meta.url))}`

await test('Workers that exit at their start are restarted after growing pauses', async (t) => {
  const server = await serverProcess(t, {
    ...ALONE,
    WORKERS: '2',
    REDIS_URL: 'redis://127.0.0.1:1',
    NODE_OPTIONS: FAULT,
    WORKER_EXITS_WITH: '1',
  })
  // Each of the two counts its own pauses, so that one can be ahead of the other.
  const pauses = () => said(server, 'a worker died').map(({ restartMs }) => Number(restartMs))
  const firstFour = () => pauses().filter((ms) => ms <= 400)
  await until(() => firstFour().length >= 4)
  t.same(
    firstFour().toSorted((one, other) => one - other),
    [200, 200, 400, 400],
  )
  const unready = await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)
  t.equal(unready.status, 503)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
})

await test('The supervisor exits with 78 when a worker exits with 78 at its start', async (t) => {
  const server = await serverProcess(t, {
    ...ALONE,
    WORKERS: '2',
    REDIS_URL: 'redis://127.0.0.1:1',
    NODE_OPTIONS: FAULT,
    WORKER_EXITS_WITH: '78',
  })
  t.equal(await server.exited, 78)
})

await test('A replacement worker that exits with 78 is restarted, and the other workers keep serving', async (t) => {
  const folder = t.testdir({ pages: {} })
  const server = await twoWorkers(t, { STATIC_DIR: `${folder}/pages` })
  renameSync(`${folder}/pages`, `${folder}/away`)
  process.kill(workerPids(server)[0] ?? 0, 'SIGKILL')
  // The second restart fails too, as early as half a second later.
  await until(() => said(server, 'a worker died').length >= 2 || server.child.exitCode !== null)
  t.match(said(server, 'a worker died')[1], { worker: 3, code: 78 })
  t.equal(await status(server.port, '/auth/session'), 200)
  renameSync(`${folder}/away`, `${folder}/pages`)
  await until(() => said(server, 'ready').length === 3 || server.child.exitCode !== null)
  t.equal(server.child.exitCode, null)
})

await test('The supervisor exits with 71 when PORT or OPS_PORT is taken', async (t) => {
  const port = await takenPort(t)
  for (const name of ['PORT', 'OPS_PORT']) {
    const taken = { WORKERS: '2', REDIS_URL: 'redis://127.0.0.1:1', [name]: String(port) }
    const server = await serverProcess(t, { ...ALONE, ...taken })
    t.equal(await server.exited, 71)
    t.match(server.output().stderr, `port ${port}`)
  }
})

/** Two workers, one of which has a request in flight to an upstream that does not respond. */
async function busyWorkers(t: Test, settings: Record<string, string>) {
  const upstream = await rawUpstream(t)
  const server = await twoWorkers(t, { API_URL: upstream.url, ...settings })
  upstream.answer = () => undefined
  const arrived = upstream.next()
  const responseStatus = status(server.port, '/api/v1/health', { 'x-csrf': '1' })
  await arrived
  return { server, upstream, responseStatus }
}

await test('Signals to every process: the supervisor drains all workers once, and the exit code is 0', async (t) => {
  const { server, upstream, responseStatus } = await busyWorkers(t, { DRAIN_WAIT_SECONDS: '3' })
  // A terminal and systemd signal every process, some of them twice.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    for (const pid of workerPids(server)) process.kill(pid, signal)
  }
  t.equal(await status(server.port, '/auth/session'), 200, 'a worker ignores signals')
  server.child.kill('SIGHUP')
  await until(() => said(server, 'draining').length === 3)
  const unready = await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)
  // Once it has asked, it warns of a Redis without an append-only file.
  t.match(await unready.json(), { ready: false, reasons: ['draining'] })
  t.equal(await status(server.port, '/auth/session'), 200, 'the workers still serve while the balancer finds out')
  for (const socket of upstream.open) socket.write(ok())
  t.equal(await responseStatus, 200)
  t.equal(await server.exited, 0)
  for (const message of ['not everything ended in time', 'a worker died']) t.same(said(server, message), [])
  t.ok(said(server, 'draining').some(({ signal }) => signal === 'SIGHUP'))
})

await test('A worker that hangs does not affect /readyz and is killed after DRAIN_SECONDS', async (t) => {
  const server = await twoWorkers(t, { DRAIN_SECONDS: '2', NODE_OPTIONS: FAULT, FAULT: 'hang' })
  const [first = 0] = workerPids(server)
  process.kill(first, 'SIGUSR2')
  t.ok(await ready(server))
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 74, 'lines that the killed worker had in memory may be lost')
  t.equal(said(server, 'not everything ended in time').length, 1)
})

await test('A second signal: the supervisor exits with 130 at once, and so do its workers', async (t) => {
  const server = await twoWorkers(t, { DRAIN_SECONDS: '120', DRAIN_WAIT_SECONDS: '60' })
  server.child.kill('SIGTERM')
  await until(() => said(server, 'draining').length === 3)
  server.child.kill('SIGINT')
  t.equal(await server.exited, 130)
  await t.rejects(status(server.port, '/auth/session'))
})

await test('Workers exit when their supervisor is killed', async (t) => {
  const server = await twoWorkers(t)
  server.child.kill('SIGKILL')
  // The output of the supervisor ends when no process has it open any more.
  await server.exited
  for (const pid of workerPids(server)) await until(() => isGone(pid), `worker ${pid} has exited`)
})

await test('Workers that are being asked when their supervisor is killed log no crash', async (t) => {
  const server = await twoWorkers(t)
  const workers = workerPids(server)
  for (const pid of workers) process.kill(pid, 'SIGSTOP')
  await Promise.all(
    Array.from({ length: 4 }, () => fetch(`http://127.0.0.1:${server.opsPort}/metrics`).catch(() => undefined)),
  )
  server.child.kill('SIGKILL')
  for (const pid of workers) process.kill(pid, 'SIGCONT')
  await server.exited
  t.same(said(server, 'an unexpected error'), [])
})

function isGone(pid: number): boolean {
  try {
    return !process.kill(pid, 0)
  } catch {
    return true
  }
}

await test('A worker that cannot finish within DRAIN_SECONDS logs this before it exits', async (t) => {
  const { server, responseStatus } = await busyWorkers(t, { DRAIN_SECONDS: '2' })
  const cutOff = t.rejects(responseStatus)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  await cutOff
  t.match(
    said(server, 'not everything ended in time').map(({ worker }) => worker),
    [Number],
    'only the worker with the request in flight logs it',
  )
})

await test('DELETE /sessions: the next worker carries it out at once when one dies over it', async (t) => {
  const { url } = await testRedis(t)
  const server = await twoWorkers(t, { ...IDENTITY, REDIS_URL: url })
  const redis = await createClient({ url }).connect()
  t.teardown(() => redis.close())
  await redis.sendCommand(['CLIENT', 'PAUSE', '60000', 'WRITE'])
  const order = operate({ opsUrl: `http://127.0.0.1:${server.opsPort}` }, 'DELETE', { subject: 'CR1' })
  const isUnderWay = async (): Promise<boolean> => (await redis.clientList()).some(({ flags }) => flags.includes('b'))
  await until(isUnderWay, 'a worker waits for Redis')
  process.kill(workerPids(server)[0] ?? 0, 'SIGKILL')
  await redis.sendCommand(['CLIENT', 'UNPAUSE'])
  const answer = await within(order, 'the operator gets a response')
  t.same(await answer.json(), { ended: 0 })
})
