import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { reachableSettings, resultsOf, runProgram as run } from '../support/server/check-run.ts'
import { httpServer, takenPort } from '../support/server/http-server.ts'
import { ALONE } from '../support/server/settings.ts'
import { rawUpstream } from '../support/upstream/raw-upstream.ts'

await test('--check: exit code 69 names every unreachable address and a remedy', async (t) => {
  const closedPort = await freePort()
  const check = await run({
    ...ALONE,
    AUTH_URL: 'http://nowhere.invalid',
    API_URL: `http://127.0.0.1:${closedPort}`,
    WS_URL: `wss://127.0.0.1:${await takenPort(t)}`,
    REDIS_URL: `redis://127.0.0.1:${closedPort}`,
  })
  t.equal(check.exitCode, 69)
  t.match(resultsOf(check, 'AUTH_URL'), [
    /^failed: http:\/\/nowhere\.invalid cannot be reached \((ENOTFOUND|EAI_AGAIN)\)$/,
  ])
  t.match(resultsOf(check, 'API_URL'), [/^failed: .*\(ECONNREFUSED\)$/])
  t.match(
    resultsOf(check, 'WS_URL'),
    [/^failed: .*\(TIMEOUT\)$/],
    'the server accepts the connection and never speaks TLS',
  )
  t.match(resultsOf(check, 'REDIS_URL'), [/^failed: .*\(ECONNREFUSED\)$/])
  t.match(check.stdout, /^ +Nothing listens there/m)
})

await test('--check: exit code 69 for an address where another service listens', async (t) => {
  const settings = await reachableSettings(t)
  const { url } = await rawUpstream(t)
  const always200 = { AUTH_URL: url, API_URL: `${url}/elsewhere`, WS_URL: url.replace('http', 'ws') }
  const elsewhere = await httpServer(t, (_request, response) => response.writeHead(404).end('<h1>Not found</h1>'))

  for (const address of [always200, { ...always200, AUTH_URL: elsewhere, WS_URL: elsewhere.replace('http', 'ws') }]) {
    const check = await run({ ...settings, ...address })
    t.equal(check.exitCode, 69)
    t.match(resultsOf(check, 'AUTH_URL'), [/^failed: http:\S+ is not a token endpoint: /])
    t.match(resultsOf(check, 'WS_URL'), [/^failed: ws:\S+ refuses sockets \(status (200|404)\)$/])
    t.match(check.stdout, /^ +Check AUTH_URL: the token endpoint is AUTH_URL \+ \/oauth2\/token/m)
  }
  const unknownClient = await run({ ...settings, CLIENT_ID: 'another-client' })
  t.equal(unknownClient.exitCode, 69)
  t.match(resultsOf(unknownClient, 'AUTH_URL'), [
    /^failed: http:\S+ refuses this client \(invalid_client: client authentication failed\)$/,
    /^failed: http:\S+ refuses the authorization requests of this client, .* \(status 400\)$/,
  ])
})

await test('--check: exit code 78 for invalid settings as at a start, and 64 for unknown arguments', async (t) => {
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

await test('--check: names a port to which fetch does not connect, whatever listens there', async (t) => {
  const check = await run({ ...ALONE, AUTH_URL: 'http://127.0.0.1:6000' })
  t.match(resultsOf(check, 'AUTH_URL'), [/^failed: http:\S+ cannot be reached \(bad port\)$/])
  t.match(check.stdout, 'use another one')
})
