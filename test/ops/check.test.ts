import { test } from 'tap'
import { reachableSettings, resultsOf, runProgram as run, type CheckRun } from '../support/server/check-run.ts'
import { testRedis } from '../support/server/test-server.ts'
import { Collector } from '../support/telemetry/collector.ts'

await test('--check: exit code 0 and ok for every setting when everything is reachable', async (t) => {
  const redis = await testRedis(t)
  const check = await run({ ...(await reachableSettings(t)), REDIS_URL: redis.url })
  t.equal(check.exitCode, 0)
  t.equal(check.stderr, '')
  t.match(resultsOf(check, 'settings'), [/^ok: valid, for development/, /^warning: SESSION_SECRETS/])
  t.match(resultsOf(check, 'REDIS_URL'), [/^ok: 127\.0\.0\.1:\d+ is Redis .* a master that takes writes$/])
  t.match(resultsOf(check, 'AUTH_URL'), [
    /^ok: http:\S+ is a token endpoint that knows this client$/,
    /^ok: http:\S+ accepts the authorization requests of this client$/,
  ])
  t.match(resultsOf(check, 'clock'), [/^ok: http:\S+ has the time of this machine/])
  t.match(check.stdout, /^ +No check can see .* \(DPoP, mutual TLS\)/m)
  t.match(resultsOf(check, 'API_URL'), [/^ok: http:\S+ is healthy \(200\)$/])
  t.match(resultsOf(check, 'WS_URL'), [/^ok: ws:\S+ accepts sockets$/])
  t.match(resultsOf(check, 'REVOCATION_URL'), [/^ok: .* accepts connections$/])
})

await test('--check sends the collector of traces a request without spans; one that fails is a warning', async (t) => {
  const collector = await Collector.start(t)
  const settings = { ...(await reachableSettings(t)), OTEL_EXPORTER_OTLP_HEADERS: 'x-key=not-to-print' }
  const check = (OTEL_EXPORTER_OTLP_ENDPOINT: string): Promise<CheckRun> =>
    run({ ...settings, OTEL_EXPORTER_OTLP_ENDPOINT })
  const good = await check(collector.url)
  t.match(resultsOf(good, 'OTEL_EXPORTER_OTLP_ENDPOINT'), [/^ok: http:\S+ takes traces \(200\)$/])
  t.match(collector.requests, [{ url: '/v1/traces', headers: { 'x-key': 'not-to-print' } }])
  collector.respond = (response) => void response.writeHead(401).end()
  const refused = await check(collector.url)
  t.match(resultsOf(refused, 'OTEL_EXPORTER_OTLP_ENDPOINT'), [/^warning: .* does not take traces \(401\)$/])
  const away = await check('http://127.0.0.1:9')
  t.match(resultsOf(away, 'OTEL_EXPORTER_OTLP_ENDPOINT'), [/^warning: .* cannot be reached/])
  for (const { exitCode, stdout } of [good, refused, away]) {
    t.equal(exitCode, 0)
    t.notMatch(stdout, /not-to-print/)
  }
})

await test('--check prints no secret, whether it is right or wrong', async (t) => {
  const redis = await testRedis(t, ['--requirepass', 'right-password'])
  const { port } = new URL(redis.url)
  const secrets = {
    SESSION_SECRETS: 'never-print-this-session-secret-of-32-bytes',
    CLIENT_SECRET: 'never-print-this-client-secret',
  }
  const settings = { ...(await reachableSettings(t)), ...secrets }
  for (const [user, code, expected] of [
    [':right-password', 0, /^ok: /],
    [':never-print-this-password', 69, /^failed: .*\(WRONGPASS\)$/],
  ] as const) {
    const check = await run({ ...settings, REDIS_URL: `redis://${user}@127.0.0.1:${port}` })
    t.equal(check.exitCode, code)
    t.match(resultsOf(check, 'REDIS_URL'), [expected])
    t.notMatch(check.stdout + check.stderr, /never-print|right-password/)
  }
  const sentinel = 'redis+sentinel://:never-print-this-password@127.0.0.1:1/mymaster'
  const check = await run({ ...settings, REDIS_URL: sentinel })
  t.match(resultsOf(check, 'REDIS_URL'), ['failed: no Sentinel of 127.0.0.1:1 names a master "mymaster"'])
  t.notMatch(check.stdout + check.stderr, /never-print/)
})
