import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { startProvider } from '../../sandbox/provider.ts'
import { startRedis } from '../../sandbox/redis-process.ts'
import { startUpstream } from '../../sandbox/upstream.ts'
import { fillRedis } from '../support/full-redis.ts'
import { rawUpstream } from '../support/raw-upstream.ts'
import { testRedis } from '../support/world.ts'
import { ALONE, COMPILED } from '../support/settings.ts'
import { until } from '../support/until.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const TEST_DIR = fileURLToPath(new URL('.', import.meta.url))

interface Verdict {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  /** The verdict on each setting, and the rest of its line. */
  readonly lines: readonly (readonly [is: string, setting: string, says: string])[]
}

/** Runs the server's program with these arguments to its end. */
async function run(
  settings: Record<string, string>,
  args: readonly string[] = ['--check'],
): Promise<Verdict> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...COMPILED, ...settings },
    cwd: TEST_DIR,
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [exitCode] = (await once(child, 'close')) as [number | null]
  const lines = [...stdout.matchAll(/^(ok|warning|failed) +(\S+) +(.*)$/gm)].map(
    ([, is = '', setting = '', says = '']) => [is, setting, says] as const,
  )
  return { exitCode, stdout, stderr, lines }
}

/** Settings whose provider and upstream are there. */
async function reachable(t: Test): Promise<Record<string, string>> {
  const { CLIENT_ID, PUBLIC_URL } = ALONE
  const provider = await startProvider({ clientId: CLIENT_ID, redirectUris: [`${PUBLIC_URL}/auth/callback`] })
  t.teardown(() => provider.close())
  const upstream = await startUpstream({ provider })
  t.teardown(() => upstream.close())
  return {
    ...ALONE,
    AUTH_URL: provider.url,
    API_URL: upstream.url,
    WS_URL: upstream.wsUrl,
    REVOCATION_URL: `${provider.url}/oauth2/revoke`,
  }
}

const on = ({ lines }: Verdict, setting: string): string[] =>
  lines.filter(([, name]) => name === setting).map(([is, , says]) => `${is}: ${says}`)

await test('where everything is as the settings say, the verdict is good and the code 0', async (t) => {
  const redis = await testRedis(t)
  const verdict = await run({ ...(await reachable(t)), REDIS_URL: redis.url })
  t.equal(verdict.exitCode, 0)
  t.equal(verdict.stderr, '')
  t.match(on(verdict, 'settings'), [/^ok: valid, for development/, /^warning: SESSION_SECRETS/])
  t.match(on(verdict, 'REDIS_URL'), [/^ok: 127\.0\.0\.1:\d+ is Redis .* a master that takes writes$/])
  t.match(on(verdict, 'AUTH_URL'), [/^ok: http:\S+ is a token endpoint that knows this client$/])
  t.match(on(verdict, 'API_URL'), [/^ok: http:\S+ is healthy \(200\)$/])
  t.match(on(verdict, 'WS_URL'), [/^ok: ws:\S+ accepts sockets$/])
  t.match(on(verdict, 'REVOCATION_URL'), [/^ok: .* accepts connections$/])
})

await test('what cannot be reached is named, with what to do, and the code is 69', async (t) => {
  const closed = await freePort()
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const address = silent.address() as { port: number }
  const verdict = await run({
    ...ALONE,
    AUTH_URL: 'http://nowhere.invalid',
    API_URL: `http://127.0.0.1:${closed}`,
    WS_URL: `wss://127.0.0.1:${address.port}`,
    REDIS_URL: `redis://127.0.0.1:${closed}`,
  })
  t.equal(verdict.exitCode, 69)
  t.match(on(verdict, 'AUTH_URL'), [
    /^failed: http:\/\/nowhere\.invalid cannot be reached \((ENOTFOUND|EAI_AGAIN)\)$/,
  ])
  t.match(on(verdict, 'API_URL'), [/^failed: .*\(ECONNREFUSED\)$/])
  t.match(
    on(verdict, 'WS_URL'),
    [/^failed: .*\(TIMEOUT\)$/],
    'it takes the connection, and then speaks no TLS',
  )
  t.match(on(verdict, 'REDIS_URL'), [/^failed: .*\(ECONNREFUSED\)$/])
  t.match(verdict.stdout, /^ +Nothing listens there/m)
})

await test('what answers, but is something else, is told apart', async (t) => {
  const settings = await reachable(t)
  const { url } = await rawUpstream(t)
  const anything = { AUTH_URL: url, API_URL: `${url}/elsewhere`, WS_URL: url.replace('http', 'ws') }
  const web = createHttpServer((_request, response) => void response.writeHead(404).end('<h1>Not found</h1>'))
  await once(web.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => web.close())
  const elsewhere = `http://127.0.0.1:${(web.address() as { port: number }).port}`

  for (const address of [
    anything,
    { ...anything, AUTH_URL: elsewhere, WS_URL: elsewhere.replace('http', 'ws') },
  ]) {
    const verdict = await run({ ...settings, ...address })
    t.equal(verdict.exitCode, 69)
    t.match(on(verdict, 'AUTH_URL'), [/^failed: http:\S+ is not a token endpoint: /])
    t.match(on(verdict, 'WS_URL'), [/^failed: ws:\S+ refuses sockets \(status (200|404)\)$/])
    t.match(verdict.stdout, /^ +Check AUTH_URL: the token endpoint is AUTH_URL \+ \/oauth2\/token/m)
  }
  const unhealthy = await run({ ...settings, API_URL: elsewhere })
  t.equal(unhealthy.exitCode, 0)
  t.match(on(unhealthy, 'API_URL'), [/^warning: http:\S+ responds, but is not healthy \(404\)$/])

  const stranger = await run({ ...settings, CLIENT_ID: 'another-client' })
  t.equal(stranger.exitCode, 69)
  t.match(on(stranger, 'AUTH_URL'), [/^failed: http:\S+ refuses this client \(invalid_client\)$/])
})

await test('a Redis that is there but not fit is told apart', async (t) => {
  const settings = await reachable(t)
  const evicting = await testRedis(t, ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'])
  const warned = await run({ ...settings, REDIS_URL: evicting.url })
  t.equal(warned.exitCode, 0)
  t.match(on(warned, 'REDIS_URL'), [/^warning: .*may drop sessions \(allkeys-lru\)$/])

  const port = new URL(evicting.url).port
  const replica = await startRedis(['--replicaof', `127.0.0.1 ${port}`])
  t.teardown(() => replica.close())
  const refused = await run({ ...settings, REDIS_URL: replica.url })
  t.equal(refused.exitCode, 69)
  t.match(on(refused, 'REDIS_URL'), [/^failed: .*a replica, which takes no writes$/])
})

await test('a Redis that is full, or soon will be, is named with what helps', async (t) => {
  const settings = await reachable(t)
  const redis = await testRedis(t)
  const full = await fillRedis(t, redis.url)
  let verdict = await run({ ...settings, REDIS_URL: redis.url })
  // What Redis keeps for its connections comes and goes, so that there may be room for a moment.
  await until(async () => {
    await full.fillUp()
    verdict = await run({ ...settings, REDIS_URL: redis.url })
    return on(verdict, 'REDIS_URL').some((line) => line.includes('(OOM)'))
  }, '--check is refused its write')
  t.equal(verdict.exitCode, 0, 'who is logged in goes on')
  const [refused, nearly, ...more] = on(verdict, 'REDIS_URL')
  t.match(refused, /^warning: .* refuses writes \(OOM\)$/)
  t.match(nearly, /^warning: .* \d{2,3} % of its maxmemory$/)
  t.same(more, [])
  t.match(verdict.stdout, /^ +Redis is full, so nobody can log in.*Raise maxmemory/m)
  t.notMatch(verdict.stdout, /TLS \(rediss/)

  const client = await createClient({ url: redis.url }).connect()
  t.teardown(() => client.close())
  const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
  for (const [share, says] of [
    [0.94, /^warning: .* uses 9\d % of its maxmemory$/],
    [0.5, /^ok: .* a master that takes writes$/],
  ] as const) {
    await client.configSet('maxmemory', String(Math.round(used / share)))
    t.match(on(await run({ ...settings, REDIS_URL: redis.url }), 'REDIS_URL'), [says])
  }
})

await test('a Redis that takes no write at all is told with what helps', async (t) => {
  const settings = await reachable(t)
  const redis = await testRedis(t, ['--min-replicas-to-write', '1'])
  const verdict = await run({ ...settings, REDIS_URL: redis.url })
  t.equal(verdict.exitCode, 69)
  t.match(on(verdict, 'REDIS_URL'), [/^failed: .* refuses writes \(NOREPLICAS\)$/])
  t.match(verdict.stdout, /^ +Too few replicas/m)
})

await test('a policy that evicts is warned of, be there a limit yet or not', async (t) => {
  const settings = await reachable(t)
  for (const maxmemory of ['0', '100mb']) {
    const redis = await testRedis(t, ['--maxmemory', maxmemory, '--maxmemory-policy', 'volatile-ttl'])
    const verdict = await run({ ...settings, REDIS_URL: redis.url })
    t.equal(verdict.exitCode, 0)
    t.match(on(verdict, 'REDIS_URL'), [/^warning: .*may drop sessions \(volatile-ttl\)$/])
  }
})

await test('no secret is printed, whether it fits or not', async (t) => {
  const redis = await testRedis(t, ['--requirepass', 'right-password'])
  const { port } = new URL(redis.url)
  const secrets = {
    SESSION_SECRETS: 'never-print-this-session-secret-of-32-bytes',
    CLIENT_SECRET: 'never-print-this-client-secret',
  }
  const settings = { ...(await reachable(t)), ...secrets }
  for (const [user, code, says] of [
    [':right-password', 0, /^ok: /],
    [':never-print-this-password', 69, /^failed: .*\(WRONGPASS\)$/],
  ] as const) {
    const verdict = await run({ ...settings, REDIS_URL: `redis://${user}@127.0.0.1:${port}` })
    t.equal(verdict.exitCode, code)
    t.match(on(verdict, 'REDIS_URL'), [says])
    t.notMatch(verdict.stdout + verdict.stderr, /never-print|right-password/)
  }
  const sentinel = 'redis+sentinel://:never-print-this-password@127.0.0.1:1/mymaster'
  const verdict = await run({ ...settings, REDIS_URL: sentinel })
  t.match(on(verdict, 'REDIS_URL'), ['failed: no Sentinel of 127.0.0.1:1 names a master "mymaster"'])
  t.notMatch(verdict.stdout + verdict.stderr, /never-print/)
})

await test('wrong settings are 78 as at a start, and unknown arguments 64', async (t) => {
  const wrong = await run({ ...ALONE, PORT: 'x' })
  t.equal(wrong.exitCode, 78)
  t.equal(wrong.stdout, '')
  t.match(wrong.stderr, /PORT must be/)
  for (const args of [['--chekc'], ['--check', 'x'], ['start']]) {
    const { exitCode, stderr } = await run(ALONE, args)
    t.equal(exitCode, 64)
    t.match(stderr, /^Usage: /)
  }
})
