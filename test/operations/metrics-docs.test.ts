import { openSync, readFileSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { createBudgetMetrics } from '../../src/telemetry/budget-metrics.ts'
import { createFeedMetrics } from '../../src/telemetry/feed-metrics.ts'
import { createIdentityMetrics } from '../../src/telemetry/identity-metrics.ts'
import { createMetrics, createSupervisorMetrics } from '../../src/telemetry/metrics.ts'
import { valueOf } from '../support/metrics.ts'
import { NO_BUDGET } from '../support/no-budget.ts'
import { ready, serverProcess } from '../support/server-process.ts'
import { ALONE, COMPILED, nodeCommand } from '../support/settings.ts'
import { until } from '../support/until.ts'
import { SECRETS, testRedis } from '../support/world.ts'

const GUIDE = readFileSync(new URL('../../docs/operating/metrics-and-logs.md', import.meta.url), 'utf8')
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
/** A device that refuses every write, as a full disk does. */
const FULL_DISK = '/dev/full'

/** The metrics of the table in metrics-and-logs.md, and their labels. */
const documented = new Map(
  [...GUIDE.matchAll(/^\| `(bff_\w+)` \|([^|]*)\| \S.* \|$/gm)].map(([, name = '', labels = '']) => [
    name,
    new Set([...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label)),
  ]),
)

await test('metrics-and-logs.md lists exactly the metrics of GET /metrics', async (t) => {
  const redis = await testRedis(t)
  const settings = {
    ...ALONE,
    REDIS_URL: redis.url,
    SESSION_SECRETS: SECRETS,
    WORKERS: '2',
    PUBLIC_FEED: 'shared',
    UPSTREAM_BUDGET: '9/20',
    IDENTITY_PATH: '/account/v1/me',
    IDENTITY_POINTER: '/id',
  }
  const server = await serverProcess(t, settings)
  t.ok(await ready(server))
  const text = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text()
  const exposed = [...text.matchAll(/^# TYPE (bff_\w+)/gm)].map(([, name]) => name)
  t.same(new Set(documented.keys()), new Set(exposed))
})

await test('metrics-and-logs.md lists exactly the labels of each metric', (t) => {
  const { registry } = createMetrics()
  createFeedMetrics(registry)
  createIdentityMetrics(registry)
  createBudgetMetrics(registry, NO_BUDGET)
  const registries = [registry, createSupervisorMetrics().registry]
  for (const metric of registries.flatMap((registry) => registry.getMetricsAsArray())) {
    const { name, labelNames = [] } = metric as unknown as { name: string; labelNames?: string[] }
    if (name.startsWith('bff_')) t.same(documented.get(name), new Set(labelNames), name)
  }
  t.end()
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
