import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { nextEvent, until } from './support/time/until.ts'

const PROGRAM = fileURLToPath(new URL('support/server/ends-with.ts', import.meta.url))

/** Whether a process runs: one that has ended has no command line, until its parent hears of it. */
function runs(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''
  } catch {
    return false
  }
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGALRM', 'SIGKILL'] as const) {
  await test(`${signal}: what a process has started ends with it`, async (t) => {
    const program = spawn(process.execPath, [PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => program.kill('SIGKILL'))
    const [printed] = await nextEvent(program.stdout, 'data')
    const pid = Number(String(printed))
    t.teardown(() => runs(pid) && process.kill(pid, 'SIGKILL'))
    t.ok(runs(pid))
    const exited = once(program, 'exit')
    program.kill(signal)
    t.same(await exited, [null, signal])
    await until(() => !runs(pid), 'the command ends')
  })
}
