import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { checkCounted, exitOf, hang, linesOf, LOST, opsUrlOf, requestsOf } from '../support/server/unread-log.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'

const FAULTS = `--import=${fileURLToPath(new URL('../support/server/fault.ts', import.meta.url))}`

await test('The reader of the log hangs: SIGTERM ends with 74 at once, and a line on stderr counts what is lost', async (t) => {
  const server = await serverProcess(t, ALONE)
  t.ok(await ready(server))
  t.ok(((await valueOf(opsUrlOf(server), 'bff_log_waiting_bytes')) ?? Infinity) < 20_000, 'nothing waits at first')
  await hang(server)
  const requests = await requestsOf(server)
  await new Promise((resolve) => void setTimeout(resolve, 2000))
  server.child.kill('SIGTERM')
  const { code, ms } = await exitOf(server)
  t.equal(code, 74)
  t.ok(ms < 1500, `${ms} ms: a reader that has read nothing for seconds gets no more of them`)
  const [last, ...more] = linesOf(server.output().stderr)
  t.same(more, [])
  t.match(last, { level: 50, msg: LOST, insteadOf: 0 })
  const [first] = linesOf(server.output().stdout)
  t.same([last?.['instance'], last?.['version']], [first?.['instance'], first?.['version']])
  checkCounted(t, server, requests)
})

await test('The reader of the log is slow: the exit waits for it, and the exit code is 0', async (t) => {
  const server = await serverProcess(t, ALONE)
  t.ok(await ready(server))
  await hang(server)
  server.child.kill('SIGTERM')
  setTimeout(() => server.child.stdout?.resume(), 500)
  t.equal(await server.exited, 0)
  t.equal(server.output().stderr, '')
  t.match(linesOf(server.output().stdout).at(-1), { msg: 'draining' })
})

await test('A stop does not wait for a name that no server answers', async (t) => {
  const server = await serverProcess(t, { ...ALONE, NODE_OPTIONS: FAULTS, FAULT: 'lookup' })
  t.ok(await ready(server))
  server.child.kill('SIGUSR2')
  await until(() => server.output().stderr.includes('looking up'))
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
})

await test('A second signal, and a crash, end with 74 as well when lines are lost', async (t) => {
  const settings = { ...ALONE, DRAIN_SECONDS: '60', DRAIN_WAIT_SECONDS: '30', FAULT: 'throw' }
  const end = async (signals: readonly NodeJS.Signals[], insteadOf: number): Promise<void> => {
    const server = await serverProcess(t, { ...settings, NODE_OPTIONS: FAULTS })
    t.ok(await ready(server))
    await hang(server)
    for (const signal of signals) {
      server.child.kill(signal)
      await until(async () => (await fetch(`${opsUrlOf(server)}/readyz`).catch(() => undefined))?.ok !== true)
    }
    t.equal((await exitOf(server)).code, 74)
    t.match(linesOf(server.output().stderr).at(-1), { insteadOf })
  }
  await Promise.all([end(['SIGTERM', 'SIGINT'], 130), end(['SIGUSR2'], 1)])
})

await test('A signal during the start ends it, also when the pipe of the log is full from the first line on', async (t) => {
  const server = await serverProcess(t, { ...ALONE, REDIS_URL: 'redis://127.0.0.1:1' }, { log: fullPipe(t) })
  await until(async () => (await fetch(`${opsUrlOf(server)}/livez`).catch(() => undefined))?.ok === true)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 74)
  t.ok(Number(linesOf(server.output().stderr)[0]?.['lines']) > 0)
})

/** A pipe that nobody reads, with no room left. */
function fullPipe(t: Test): string {
  const path = `${t.testdir({})}/pipe`
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(() => closeSync(fd))
  t.throws(
    () => {
      for (;;) writeSync(fd, Buffer.alloc(4096))
    },
    { code: 'EAGAIN' },
  )
  return path
}
