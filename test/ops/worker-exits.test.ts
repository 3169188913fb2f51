import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { ok, rawUpstream } from '../support/raw-upstream.ts'
import { ready, serverProcess } from '../support/server-process.ts'
import { said, status, twoWorkers, workerPids } from '../support/two-workers.ts'
import { ALONE } from '../support/settings.ts'
import { until } from '../support/until.ts'

const FAULT = `--import=${fileURLToPath(new URL('../support/fault.ts', import.meta.url))}`

await test('workers that die of their start are restarted ever more seldom', async (t) => {
  const server = await serverProcess(t, {
    ...ALONE,
    ...{ WORKERS: '2', REDIS_URL: 'redis://127.0.0.1:1', NODE_OPTIONS: FAULT, WORKER_EXITS_WITH: '1' },
  })
  await until(() => said(server, 'a worker died').length >= 4)
  const pauses = said(server, 'a worker died').map(({ restartMs }) => Number(restartMs))
  t.same(pauses.slice(0, 4), [200, 200, 400, 400])
  const unready = await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)
  t.equal(unready.status, 503)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
})

await test('a worker that ends with 78 ends the whole', async (t) => {
  const server = await serverProcess(t, {
    ...ALONE,
    ...{ WORKERS: '2', REDIS_URL: 'redis://127.0.0.1:1', NODE_OPTIONS: FAULT, WORKER_EXITS_WITH: '78' },
  })
  t.equal(await server.exited, 78)
})

await test('a replacement that ends with 78 does not end those that serve, and is tried again', async (t) => {
  const folder = t.testdir({ pages: {} })
  const server = await twoWorkers(t, { STATIC_DIR: `${folder}/pages` })
  renameSync(`${folder}/pages`, `${folder}/away`)
  process.kill(workerPids(server)[0] ?? 0, 'SIGKILL')
  await until(() => said(server, 'a worker died').length === 2 || server.child.exitCode !== null)
  t.match(said(server, 'a worker died')[1], { worker: 3, code: 78 })
  t.equal(await status(server.port, '/auth/session'), 200)
  renameSync(`${folder}/away`, `${folder}/pages`)
  await until(() => said(server, 'ready').length === 3 || server.child.exitCode !== null)
  t.equal(server.child.exitCode, null)
})

await test('a port that is taken ends the whole, whichever of the two it is', async (t) => {
  const squatter = createServer().listen(0, '127.0.0.1')
  await once(squatter, 'listening')
  t.teardown(() => squatter.close())
  const { port } = squatter.address() as AddressInfo
  for (const name of ['PORT', 'OPS_PORT']) {
    const taken = { WORKERS: '2', REDIS_URL: 'redis://127.0.0.1:1', [name]: String(port) }
    const server = await serverProcess(t, { ...ALONE, ...taken })
    t.equal(await server.exited, 71)
    t.match(server.output().stderr, `port ${port}`)
  }
})

/** Two workers, one of which waits for upstream with a call. */
async function busyWorkers(t: Test, settings: Record<string, string>) {
  const upstream = await rawUpstream(t)
  const server = await twoWorkers(t, { API_URL: upstream.url, ...settings })
  upstream.answer = () => undefined
  const arrived = upstream.next()
  const answer = status(server.port, '/api/v1/health', { 'x-csrf': '1' })
  await arrived
  // Not awaited in here: nobody answers it yet.
  return { server, upstream, answer }
}

await test('a drain is told by the supervisor alone, and takes all workers along in order', async (t) => {
  const { server, upstream, answer } = await busyWorkers(t, { DRAIN_WAIT_SECONDS: '1' })
  // As a terminal and as systemd do it: everybody gets the signal, some twice.
  server.child.kill('SIGINT')
  for (const pid of workerPids(server)) process.kill(pid, 'SIGINT')
  for (const pid of workerPids(server)) process.kill(pid, 'SIGTERM')
  await until(() => said(server, 'draining').length === 3)
  const unready = await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)
  t.same(await unready.json(), { ready: false, reasons: ['draining'], warnings: [] })
  t.equal(await status(server.port, '/auth/session'), 200, 'while the balancer has not noticed')
  for (const socket of upstream.open) socket.write(ok())
  t.equal(await answer, 200)
  t.equal(await server.exited, 0)
  t.same(said(server, 'not everything ended in time'), [])
})

await test('a worker that hangs keeps nobody from being ready, and is killed at the deadline', async (t) => {
  const server = await twoWorkers(t, { DRAIN_SECONDS: '2', NODE_OPTIONS: FAULT, FAULT: 'hang' })
  const [first = 0] = workerPids(server)
  process.kill(first, 'SIGUSR2')
  t.ok(await ready(server))
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  t.equal(said(server, 'not everything ended in time').length, 1)
})

await test('a second signal ends the supervisor and its workers now', async (t) => {
  const server = await twoWorkers(t, { DRAIN_SECONDS: '120', DRAIN_WAIT_SECONDS: '60' })
  server.child.kill('SIGTERM')
  await until(() => said(server, 'draining').length === 3)
  server.child.kill('SIGINT')
  t.equal(await server.exited, 130)
  await t.rejects(status(server.port, '/auth/session'))
})

await test('workers do not outlive a supervisor that was killed', async (t) => {
  const server = await twoWorkers(t)
  server.child.kill('SIGKILL')
  // Its output ends when nobody holds it any more.
  await server.exited
  for (const pid of workerPids(server)) await until(() => isGone(pid))
  t.pass('they are gone')
})

function isGone(pid: number): boolean {
  try {
    return !process.kill(pid, 0)
  } catch {
    return true
  }
}

await test('a worker that cannot end in time still says so, and is not killed with its log unwritten', async (t) => {
  const { server, answer } = await busyWorkers(t, { DRAIN_SECONDS: '2' })
  const cutOff = t.rejects(answer)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  await cutOff
  t.match(
    said(server, 'not everything ended in time').map(({ worker }) => worker),
    [Number],
    'the one that had it, and nobody else',
  )
})
