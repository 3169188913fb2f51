import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { linesOf } from '../support/server/unread-log.ts'
import { until } from '../support/time/until.ts'

const FAULTS = `--import=${fileURLToPath(new URL('../support/server/fault.ts', import.meta.url))}`

await test('With WORKERS the supervisor ends with 74 when only a worker has lost lines', async (t) => {
  const settings = { DRAIN_SECONDS: '10', DRAIN_WAIT_SECONDS: '3', NODE_OPTIONS: FAULTS, FAULT: 'logLost' }
  const server = await twoWorkers(t, settings)
  server.child.kill('SIGTERM')
  await until(() => linesOf(server.output().stdout).filter(({ msg }) => msg === 'draining').length === 3)
  process.kill(workerPids(server)[0] ?? 0, 'SIGUSR2')
  t.equal(await server.exited, 74)
})
