import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { checkCounted, exitOf, hang, linesOf, LOST, opsUrlOf, requestsOf } from '../support/server/unread-log.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'

const FAULTS = `--import=${fileURLToPath(new URL('../support/server/fault.ts', import.meta.url))}`

await test('The reader of the log hangs: SIGTERM ends with 74 at once, and a line on stderr counts what is lost', async (t) => {
  const server = await serverProcess(t, ALONE)
  t.ok(await ready(server))
  // A write that has begun counts as a whole chunk.
  await until(async () => ((await valueOf(opsUrlOf(server), 'bff_log_waiting_bytes')) ?? Infinity) < 20_000)
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
  await hang(server, 500_000)
  const { stdout } = server.child
  const waiting = async (): Promise<number> => (await valueOf(opsUrlOf(server), 'bff_log_waiting_bytes')) ?? NaN
  const before = await waiting()
  // It reads until a chunk is written, so that the time in which the lines came does not count as its silence, however long that was.
  await until(async () => {
    const read = new Promise<void>((resolve) => void stdout?.once('data', () => resolve(void stdout.pause())))
    stdout?.resume()
    await read
    return (await waiting()) < before
  }, 'a chunk is written')
  t.ok((await waiting()) > 65_536, 'another chunk is being written, and more wait')
  server.child.kill('SIGTERM')
  setTimeout(() => stdout?.resume(), 500)
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

await test('A stop does not wait for the file of a secret that is not read to its end', async (t) => {
  const dir = t.testdir({ file: 'a-secret' })
  const [file, pipe] = [join(dir, 'file'), join(dir, 'pipe')]
  const server = await serverProcess(t, { ...ALONE, CLIENT_SECRET_FILE: file })
  t.ok(await ready(server))
  execFileSync('mkfifo', [pipe])
  symlinkSync('pipe', join(dir, 'link'))
  renameSync(join(dir, 'link'), file)
  const { O_WRONLY, O_NONBLOCK } = constants
  let opened = -1
  // It can be opened once somebody reads it, who then waits until it is closed.
  const isRead = (): boolean => {
    try {
      return (opened = openSync(pipe, O_WRONLY | O_NONBLOCK)) > 0
    } catch {
      return false
    }
  }
  await until(isRead, 'the file is read')
  server.child.kill('SIGTERM')
  try {
    t.equal(await server.exited, 0)
  } finally {
    closeSync(opened)
  }
})
