import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { ready, serverProcess } from './support/server/server-process.ts'
import { ALONE, COMPILED } from './support/server/settings.ts'

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
      env: COMPILED,
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
  const { stderr } = spawnSync(process.execPath, [main], { cwd, env: COMPILED, encoding: 'utf8' })
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
  const { status, stderr } = spawnSync(process.execPath, [main], { cwd: t.testdir({ '.env': {} }), env: COMPILED })
  t.equal(status, 78)
  t.equal(stderr.toString(), '.env must be a file that can be read, or must not exist.\n')
  t.end()
})

await test('A start exits with 71 and names the port that is taken', async (t) => {
  const first = await serverProcess(t, ALONE)
  t.ok(await ready(first))
  const second = await serverProcess(t, { ...ALONE, PORT: String(first.port) })
  t.equal(await second.exited, 71)
  t.match(second.output().stderr, new RegExp(`Cannot listen on 127.0.0.1, port ${first.port}`))
})
