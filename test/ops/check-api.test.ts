import type { RequestListener } from 'node:http'
import { test, type Test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { check } from '../../src/ops/check.ts'
import { forgetfulProvider } from '../support/login/forgetful-provider.ts'
import { httpServer } from '../support/server/http-server.ts'
import { ALONE } from '../support/server/settings.ts'

const IDENTITY = { IDENTITY_PATH: '/account/v1/me', IDENTITY_POINTER: '/data/id', SERVICE_APP_ID: 'the-app' }

/** What `--check` prints about these settings when the API answers like this, and its exit code. */
async function checked(t: Test, answer: RequestListener, settings: Record<string, string> = {}) {
  const API_URL = await httpServer(t, answer)
  const lines: string[] = []
  const exitCode = await check(readConfig({ ...ALONE, ...settings, API_URL }), (line) => void lines.push(line))
  const about = (setting: string): string => {
    const index = lines.findIndex((line) => new RegExp(`^\\w+ +${setting} `).test(line))
    const [line = '', advice = ''] = index === -1 ? [] : lines.slice(index, index + 2)
    return [line, ...(advice.startsWith(' ') ? [advice] : [])].join('\n').replaceAll(/ +/g, ' ')
  }
  return { exitCode, about }
}

await test('--check: only a 2xx of GET /v1/health is a healthy API; any other status fails, with advice that fits', async (t) => {
  for (const [status, expected] of [
    [200, /^ok API_URL http:\S+ is healthy \(200\)$/],
    [204, /^ok API_URL .*\(204\)$/],
    [301, /^failed API_URL .* not healthy \(301\)\n Set API_URL to where it redirects: no redirect is followed/],
    [401, /^failed API_URL .*\(401\)\n Check API_URL: .* without a token/],
    [403, /^failed API_URL .*\(403\)\n Check API_URL: .* without a token/],
    [404, /^failed API_URL .*\(404\)\n Check API_URL: the health request goes to API_URL \+ \/v1\/health\.$/],
    [429, /^failed API_URL .*\(429\)\n It limits the calls of this address/],
    [500, /^failed API_URL .*\(500\)\n It, or a proxy before it, fails/],
    [503, /^failed API_URL .*\(503\)\n It, or a proxy before it, fails/],
  ] as const) {
    const paths: (string | undefined)[] = []
    const { about } = await checked(t, ({ url }, response) => {
      paths.push(url)
      response.writeHead(status, { location: '/elsewhere' }).end()
    })
    t.match(about('API_URL'), expected)
    t.same(paths, ['/v1/health'], 'no redirect is followed')
  }
})

await test('--check: IDENTITY_PATH is asked without a token, and a path that does not exist fails', async (t) => {
  for (const [status, expected] of [
    [401, /^ok IDENTITY_PATH http:\S+ has this path and asks for a token \(401\)$/],
    [403, /^ok IDENTITY_PATH /],
    [
      404,
      /^failed IDENTITY_PATH .* has no such path for GET \(404\)\n Check IDENTITY_PATH: .* API_URL \+ IDENTITY_PATH/,
    ],
    [405, /^failed IDENTITY_PATH .*\(405\)\n/],
    [410, /^failed IDENTITY_PATH .*\(410\)\n/],
    [200, /^warning IDENTITY_PATH .* answers without a token \(200\), so for nobody\n/],
    [302, /^warning IDENTITY_PATH .* does not tell whether it has this path \(302\)\n/],
    [500, /^warning IDENTITY_PATH .*\(500\)\n/],
  ] as const) {
    const { about } = await checked(
      t,
      ({ url, headers }, response) => {
        if (url === IDENTITY.IDENTITY_PATH) {
          t.equal(headers.authorization, undefined)
          t.equal(headers['service-app-id'], 'the-app')
        }
        response.writeHead(url === IDENTITY.IDENTITY_PATH ? status : 200).end()
      },
      IDENTITY,
    )
    t.match(about('IDENTITY_PATH'), expected)
    t.match(about('API_URL'), /^ok /)
  }
  const { about } = await checked(t, (_request, response) => void response.end())
  t.equal(about('IDENTITY_PATH'), '', 'it is not asked when it is not set')
})

await test('--check: an API that accepts the connection and never responds cannot be reached', async (t) => {
  const { about, exitCode } = await checked(t, ({ socket }) => void t.teardown(() => socket.destroy()))
  t.match(about('API_URL'), /^failed API_URL http:\S+ cannot be reached \(TIMEOUT\)\n It does not respond/)
  t.equal(exitCode, 69)
})

await test('--check: the API and the collector are asked by HTTP/1.1, as the server does it, even if they speak HTTP/2', async (t) => {
  const peer = await forgetfulProvider(t, true)
  peer.responses['/v1/health'] = '{}'
  peer.responses['/v1/traces'] = '{}'
  const settings = { ...ALONE, API_URL: peer.url, OTEL_EXPORTER_OTLP_ENDPOINT: peer.url }
  const lines: string[] = []
  await check(readConfig(settings), (line) => void lines.push(line))
  for (const setting of ['API_URL', 'OTEL_EXPORTER'])
    t.match(
      lines.find((line) => line.includes(setting)),
      /^ok/,
    )
  t.same(
    new Set(peer.requests.map(({ path, version }) => `${path} ${version}`)),
    new Set(['/v1/health 1.1', '/v1/traces 1.1']),
  )
})
