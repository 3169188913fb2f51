import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { said, status, twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { until, untilSlow } from '../support/time/until.ts'

const SIGNING = 's'.repeat(40)
/** No program can be started with a variable of more than 128 KiB: that fails at once, as it does with too little memory. */
const HUGE = 'x'.repeat(131_072)
const CHANGED = 'a secret has changed: the new value of its file is in use'

await test('While the system starts no worker in place of a dead one, the others serve on', async (t) => {
  const dir = t.testdir({ secrets: SIGNING })
  const file = join(dir, 'secrets')
  const server = await twoWorkers(t, { SESSION_SECRETS: '', SESSION_SECRETS_FILE: file })
  writeFileSync(file, `${SIGNING},${HUGE}`)
  await untilSlow(() => said(server, CHANGED).length === 1)

  const [victim = 0] = workerPids(server)
  process.kill(victim, 'SIGKILL')
  await until(() => said(server, 'a worker could not be started').length > 1, 'it is tried again')
  t.equal(await status(server.port, '/auth/session'), 200)
  t.equal(await status(server.opsPort, '/readyz'), 200)
  const metrics = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text()
  t.match(metrics, /^bff_worker_restarts_total (?:[2-9]|\d\d)/m, 'an alert learns of it')

  writeFileSync(file, SIGNING)
  await untilSlow(() => said(server, 'ready').length === 3)
})
