import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { until } from '../support/time/until.ts'

const FAULTS = `--import=${fileURLToPath(new URL('../support/server/fault.ts', import.meta.url))}`

type Line = Record<string, unknown> & { msg: string }

const LOST = 'lines of the log were lost at the exit: nothing reads it, or it cannot be written'
const opsUrlOf = ({ opsPort }: ServerProcess): string => `http://127.0.0.1:${opsPort}`
const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)

/** Asks for a page that does not exist, so often. Each request has a line in the log. */
async function ask(port: number, times: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 })
  const path = `/${'x'.repeat(64)}`
  const one = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port, path, agent }, (response) => response.resume().on('end', resolve))
        .on('error', reject)
        .end()
    })
  await Promise.all(Array.from({ length: times }, one))
  agent.destroy()
}

/** Stops to read the log of a server, and has it write more than the pipe and this process hold. */
async function hang(server: ServerProcess): Promise<void> {
  server.child.stdout?.pause()
  await until(async () => {
    await ask(server.port, 500)
    return ((await valueOf(opsUrlOf(server), 'bff_log_waiting_bytes')) ?? 0) > 100_000
  }, 'lines wait')
}

/** Waits for the exit, and then reads what was left in the pipe. */
async function exitOf(server: ServerProcess): Promise<{ code: number | null; signal: string | null; ms: number }> {
  const since = performance.now()
  const [code, signal] = (await once(server.child, 'exit')) as [number | null, string | null]
  const ms = performance.now() - since
  server.child.stdout?.resume()
  await server.exited
  return { code, signal, ms }
}

/** Every line of the log is there or was counted. A part of the first chunk that was lost may have been read. */
function checkCounted(t: Test, server: ServerProcess, requests: number): void {
  const { stdout, stderr } = server.output()
  const read = stdout.split('\n').filter((line) => line.includes('"msg":"request"')).length
  const lost = linesOf(stderr).reduce((sum, { lines }) => sum + Number(lines), 0)
  t.ok(read + lost >= requests, `${read} read and ${lost} lost of ${requests}`)
  t.ok(read + lost < requests + 200, `${read} read and ${lost} lost of ${requests}`)
}

const requestsOf = async (server: ServerProcess): Promise<number> => {
  const text = await (await fetch(`${opsUrlOf(server)}/metrics`)).text()
  const counts = [...text.matchAll(/^bff_http_request_duration_seconds_count\{.*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

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

await test('With WORKERS the supervisor ends with 74 when only a worker has lost lines', async (t) => {
  const settings = { DRAIN_SECONDS: '10', DRAIN_WAIT_SECONDS: '3', NODE_OPTIONS: FAULTS, FAULT: 'logLost' }
  const server = await twoWorkers(t, settings)
  server.child.kill('SIGTERM')
  await until(() => linesOf(server.output().stdout).filter(({ msg }) => msg === 'draining').length === 3)
  process.kill(workerPids(server)[0] ?? 0, 'SIGUSR2')
  t.equal(await server.exited, 74)
})

await test('A worker that has to be killed counts as one that has lost lines', async (t) => {
  const server = await twoWorkers(t, { DRAIN_SECONDS: '1', DRAIN_WAIT_SECONDS: '0' })
  process.kill(workerPids(server)[0] ?? 0, 'SIGSTOP')
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 74)
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
  for (const [signals, insteadOf] of [
    [['SIGTERM', 'SIGINT'], 130],
    [['SIGUSR2'], 1],
  ] as const) {
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
