import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ready, serverProcess } from './support/server/server-process.ts'
import { freePort } from '../sandbox/listening.ts'
import { startRedis } from '../sandbox/redis-process.ts'
import { ALONE } from './support/server/settings.ts'
import { until } from './support/time/until.ts'

/** What only a setting asks for: rooms and files of src. */
const OPTIONAL_PARTS = [
  'sockets/feed/',
  'store/ledger/',
  'upstream/budget/',
  'ops/discover-or-exit.ts',
  'ops/supervisor.ts',
  'limits/minute-limit.ts',
  'sessions/device.ts',
  'sessions/identity.ts',
  'sessions/live-sessions.ts',
  'sessions/own-sessions.ts',
  'sessions/subject-index.ts',
  'sessions/subjects.ts',
  'store/index-commands.ts',
  'store/session-index.ts',
  'store/shared-document.ts',
  'telemetry/budget-metrics.ts',
  'telemetry/feed-metrics.ts',
  'telemetry/identity-metrics.ts',
]

await test('A start reads a secret from a file and warns about insecure settings in development', async (t) => {
  const file = join(t.testdir({}), 'secret')
  writeFileSync(file, 'a-secret-from-a-file-of-thirty-two-bytes\n')
  const server = await serverProcess(t, { ...ALONE, SESSION_SECRETS_FILE: file })
  t.ok(await ready(server))
  server.child.kill('SIGTERM')
  await server.exited
  const { stdout } = server.output()
  t.match(stdout, /REDIS_URL is not set/)
  t.match(stdout, /"msg":"draining"/, 'the last line before the exit is written')
  t.notMatch(stdout, /SESSION_SECRETS is not set/)
})

await test('SIGTERM and SIGINT: exit code 0', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const server = await serverProcess(t, ALONE)
    t.ok(await ready(server))
    server.child.kill(signal)
    t.equal(await server.exited, 0)
  }
})

await test('A start loads no optional part that no setting asks for', async (t) => {
  const hook = `import { registerHooks } from 'node:module'
    registerHooks({ load: (url, context, next) => (process.stderr.write(url + '\\n'), next(url, context)) })`
  const nodeOptions = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`]
  const server = await serverProcess(t, ALONE, { nodeOptions })
  t.ok(await ready(server))
  const { stderr } = server.output()
  t.match(stderr, /src\/app\.ts/)
  for (const part of OPTIONAL_PARTS) {
    t.ok(existsSync(new URL(`../src/${part}`, import.meta.url)), `${part} exists`)
    t.notOk(stderr.includes(`/src/${part}`), `${part} is not loaded`)
  }
})

await test('Until a server has reached its store for the first time, GET /livez is 200 and GET /readyz is 503, whatever READY_GRACE_SECONDS is', async (t) => {
  const storePort = await freePort()
  const server = await serverProcess(t, {
    ...ALONE,
    REDIS_URL: `redis://127.0.0.1:${storePort}`,
    READY_GRACE_SECONDS: '3600',
  })
  let live: Response | undefined
  await until(async () => {
    live = await fetch(`http://127.0.0.1:${server.opsPort}/livez`).catch(() => undefined)
    return live !== undefined
  })
  t.equal(live?.status, 200)
  const readiness = async (): Promise<{ status: number; reasons: string[] }> => {
    const response = await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)
    return { status: response.status, reasons: ((await response.json()) as { reasons: string[] }).reasons }
  }
  const unavailable = /^session store unavailable(: ECONNREFUSED\. .*)?$/
  t.match(await readiness(), { status: 503, reasons: ['starting', unavailable] })
  await until(async () => !(await readiness()).reasons.includes('starting'))
  t.match(await readiness(), { status: 503, reasons: [unavailable] })
  t.notMatch(server.output().stdout, '"msg":"ready"')
  const session = await fetch(`http://127.0.0.1:${server.port}/auth/session`).catch(() => undefined)
  t.equal(session?.status, 200, 'an anonymous browser needs no store')

  const redis = await startRedis([], storePort)
  t.teardown(() => redis.close())
  await until(async () => (await readiness()).status === 200)
  await until(() => server.output().stdout.includes('"msg":"ready"'), 'the log says so too')
  await redis.close()
  const isUp = async (): Promise<boolean> =>
    /^bff_session_store_up 1$/m.test(await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text())
  await until(async () => !(await isUp()))
  t.same(await readiness(), { status: 200, reasons: [] }, 'an outage that came later counts only after the grace')
})
