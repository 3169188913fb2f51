import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
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

await test('An older Node than package.json demands is told so at the start', (t) => {
  const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    readonly engines: { readonly node: string }
  }
  const needed = engines.node.replace('>=', '')
  const [major = 0, minor = 0] = needed.split('.').map(Number)
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
  for (const [version, isOld] of [
    [`${major - 1}.99.0`, true],
    [`${major}.${minor - 1}.0`, true],
    [`${major}.9.0`, true],
    [`${needed}.0`, false],
    [`${major + 1}.0.0`, false],
  ] as const) {
    const pretend = `Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`
    const { stderr } = spawnSync(process.execPath, [`--import=data:text/javascript,${pretend}`, main], {
      cwd: t.testdir({}),
      env: {},
      encoding: 'utf8',
    })
    const told = `Node ${needed} or newer is needed; this is ${version}.`
    t.equal(stderr.includes(told), isOld, `${version}: ${stderr}`)
  }
  t.end()
})

await test('A start tells of a setting that Node has cut at a # of .env, and of one that another reader would read differently', async (t) => {
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
  const cwd = t.testdir({ '.env': `SESSION_SECRETS=not-to-print#${'x'.repeat(40)}\nCLIENT_ID=client$word\n` })
  const { stderr } = spawnSync(process.execPath, [main], { cwd, env: {}, encoding: 'utf8' })
  t.match(stderr, /^SESSION_SECRETS ends before a # in \.env: /m)
  t.match(stderr, /^CLIENT_ID has a \$ before a name/m)
  t.notMatch(stderr, /not-to-print|xxxx|client\$/)
})

await test('A start exits with 78, names every wrong setting and prints no value', async (t) => {
  const wrong = {
    ...ALONE,
    PORT: '99999',
    SESSION_SECRETS: 'too-short-and-not-to-print',
    WORKERS: '2',
    REQUIRE_IDEMPOTENCY_KEY: '/wallet/v1/wallets',
  }
  const server = await serverProcess(t, wrong)
  t.equal(await server.exited, 78)
  const { stdout, stderr } = server.output()
  t.equal(stdout, '')
  const lines = stderr.trim().split('\n').slice(1)
  const named = new Set(lines.map((line) => line.trim().split(' ')[0]))
  t.same(named, new Set(['PORT', 'SESSION_SECRETS', 'WORKERS', 'REQUIRE_IDEMPOTENCY_KEY']))
  t.notMatch(stderr, /\b99999\b|not-to-print/)
})

await test('A start exits with 78 if REQUIRE_IDEMPOTENCY_KEY names a path that takes no key', async (t) => {
  const paths = '/payment-agents/v1/transfer,/wallet/v1/wallets,/payment-agents/v1/tranfser'
  const server = await serverProcess(t, { ...ALONE, REQUIRE_IDEMPOTENCY_KEY: paths })
  t.equal(await server.exited, 78)
  t.match(server.output().stderr, /^1 setting\(s\) are wrong:\n {2}REQUIRE_IDEMPOTENCY_KEY must .* items .*: 2, 3\n$/)
})

await test('A start exits with 78 if PARTNER_OVERVIEW_PATH is the path of another endpoint', async (t) => {
  for (const path of ['/v1/health', '/trading/v1/options/accounts']) {
    const server = await serverProcess(t, { ...ALONE, PARTNER_OVERVIEW_PATH: path })
    t.equal(await server.exited, 78)
    t.equal(
      server.output().stderr,
      '1 setting(s) are wrong:\n  PARTNER_OVERVIEW_PATH must not be the path of another endpoint\n',
    )
  }
})

await test('A start exits with 78 if .env is a folder', (t) => {
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, [main], { cwd: t.testdir({ '.env': {} }), env: {} })
  t.equal(status, 78)
  t.equal(stderr.toString(), '.env must be a file that can be read, or must not exist.\n')
  t.end()
})

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

await test('A start exits with 71 and names the port that is taken', async (t) => {
  const first = await serverProcess(t, ALONE)
  t.ok(await ready(first))
  const second = await serverProcess(t, { ...ALONE, PORT: String(first.port) })
  t.equal(await second.exited, 71)
  t.match(second.output().stderr, new RegExp(`Cannot listen on 127.0.0.1, port ${first.port}`))
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
