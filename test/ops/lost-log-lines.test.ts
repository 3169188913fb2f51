import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { exitOf, hang, linesOf, opsUrlOf } from '../support/server/unread-log.ts'
import { until } from '../support/time/until.ts'

const FAULTS = `--import=${fileURLToPath(new URL('../support/server/fault.ts', import.meta.url))}`

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
