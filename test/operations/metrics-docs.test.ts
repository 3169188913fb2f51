import { openSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { SecretVolume } from '../support/config/secret-volume.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { METRICS_GUIDE, metricsTable } from '../support/telemetry/metrics-table.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE, COMPILED, nodeCommand } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
/** A device that refuses every write, as a full disk does. */
const FULL_DISK = '/dev/full'

/** A server with IDENTITY_PATH cannot have them: test/oidc reads these. */
const WITH_OIDC = ['bff_backchannel_logouts_total', 'bff_identity_claims_left_out_total']

await test('metrics-and-logs.md lists exactly the metrics of GET /metrics', async (t) => {
  const redis = await testRedis(t)
  const volume = new SecretVolume(t.testdir({}), { OPS_TOKEN: 'a-token-of-at-least-32-characters' })
  const settings = {
    ...ALONE,
    REDIS_URL: redis.url,
    SESSION_SECRETS: SECRETS,
    WORKERS: '2',
    PUBLIC_FEED: 'shared',
    UPSTREAM_BUDGET: '9/20',
    IDENTITY_PATH: '/account/v1/me',
    IDENTITY_POINTER: '/id',
    ...volume.settings,
  }
  const server = await serverProcess(t, settings)
  t.ok(await ready(server))
  const text = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text()
  const exposed = [...text.matchAll(/^# TYPE (bff_\w+)/gm)].map(([, name]) => name)
  const documented = [...METRICS_GUIDE.matchAll(/^\| `(bff_\w+)` \|/gm)].map(([, name]) => name)
  t.same(new Set(documented), new Set([...exposed, ...WITH_OIDC]))
})

await test('the table of metrics-and-logs.md is made from the names, labels and help texts of the code', async (t) => {
  t.ok(METRICS_GUIDE.includes(`${await metricsTable()}\n\n`), 'node test/support/telemetry/metrics-table.ts')
})

for (const workers of ['1', '2']) {
  await test(`bff_log_lines_dropped_total counts the lines that a full disk refused (WORKERS=${workers})`, async (t) => {
    const opsPort = await freePort()
    const redis = await testRedis(t)
    const [command, ...words] = nodeCommand()
    const child = spawn(command, [...words, MAIN], {
      env: {
        ...COMPILED,
        ...ALONE,
        REDIS_URL: redis.url,
        SESSION_SECRETS: SECRETS,
        WORKERS: workers,
        HOST: '127.0.0.1',
        PORT: String(await freePort()),
        OPS_PORT: String(opsPort),
      },
      stdio: ['ignore', openSync(FULL_DISK, 'w'), 'ignore'],
      // A directory without a .env file.
      cwd: t.testdir({}),
    })
    const exited = once(child, 'exit')
    t.teardown(async () => {
      child.kill('SIGKILL')
      await exited
    })
    const opsUrl = `http://127.0.0.1:${opsPort}`
    const isReady = async (): Promise<boolean> => (await fetch(`${opsUrl}/readyz`).catch(() => undefined))?.ok === true
    await until(async () => child.exitCode !== null || (await isReady()), 'the server is ready')
    t.equal(child.exitCode, null, 'it runs')
    // The supervisor logs `starting`. Each worker logs `ready` and that Redis is connected.
    const minimum = workers === '1' ? 2 : 5
    await until(
      async () => ((await valueOf(opsUrl, 'bff_log_lines_dropped_total')) ?? 0) >= minimum,
      `${minimum} lost lines`,
    )
  })
}
