import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { html, json, tokens, type Behaviour, scripted, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import type { TestServer } from '../support/server/test-server.ts'
import { startWorld, type World } from '../support/world.ts'

const MEGABYTE = 'x'.repeat(2 ** 20)

/** A response that never ends and sends one byte at a time. */
const endless: Behaviour = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  const drip = setInterval(() => response.write(' '), 50)
  response.on('close', () => clearInterval(drip))
}

const silent: Behaviour = () => undefined

const flood: Behaviour = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write('{"access_token":"the-access-token","token_type":"Bearer","padding":"')
  for (let count = 0; count < 10; count++) response.write(MEGABYTE)
  response.end('"}')
}

const challenge = { 'www-authenticate': 'Basic realm="provider"' }

/** Responses of the token endpoint, and the `auth_error` that each leads to. */
const outcomes: readonly (readonly [response: string, Behaviour, error: string])[] = [
  ['invalid_grant with 400', json({ error: 'invalid_grant' }, 400), 'invalid_grant'],
  ['invalid_client with 400', json({ error: 'invalid_client' }, 400), 'invalid_client'],
  ['invalid_client with 401 and a challenge', json({ error: 'invalid_client' }, 401, challenge), 'invalid_client'],
  ['invalid_client with 401 and no challenge', json({ error: 'invalid_client' }, 401), 'invalid_client'],
  ['401 with a challenge and no body', (_q, s) => s.writeHead(401, challenge).end(), 'invalid_client'],
  ['401 with a challenge and another text', json({ message: 'x' }, 401, challenge), 'invalid_client'],
  ['401 with HTML and no challenge', html(401), 'provider_unavailable'],
  ['401 with JSON that names no error, and no challenge', json({ message: 'x' }, 401), 'login_failed'],
  ['invalid_grant with 401', json({ error: 'invalid_grant' }, 401), 'invalid_grant'],
  ['unauthorized_client', json({ error: 'unauthorized_client' }, 400), 'invalid_client'],
  ['unauthorized_client with 403', json({ error: 'unauthorized_client' }, 403), 'invalid_client'],
  ['invalid_request', json({ error: 'invalid_request' }, 400), 'login_failed'],
  ['access_denied, which the user did not cause here', json({ error: 'access_denied' }, 403), 'login_failed'],
  ['access_denied with 400', json({ error: 'access_denied' }, 400), 'login_failed'],
  ['server_error', json({ error: 'server_error' }, 400), 'provider_unavailable'],
  ['temporarily_unavailable', json({ error: 'temporarily_unavailable' }, 400), 'provider_unavailable'],
  ['429 with JSON', json({ error: 'slow_down' }, 429), 'try_later'],
  ['429 with HTML', html(429), 'try_later'],
  ['an unknown error', json({ error: 'a\nforged "line' }, 400), 'login_failed'],
  ['an error that is not a string', json({ error: { code: 7 } }, 400), 'login_failed'],
  ['500 with JSON', json({ error: 'invalid_grant' }, 500), 'provider_unavailable'],
  ['503 with HTML', html(503), 'provider_unavailable'],
  ['HTML', html(), 'provider_unavailable'],
  ['HTML with 400', html(400), 'provider_unavailable'],
  ['an empty body', json(''), 'provider_unavailable'],
  ['broken JSON', json('{"access_token":"the-access-token","expires_in":36'), 'provider_unavailable'],
  ['JSON that is not an object', json('["the-access-token"]'), 'provider_unavailable'],
  ['a redirect', (_q, s) => s.writeHead(302, { location: '/elsewhere' }).end(), 'provider_unavailable'],
  [
    'a redirect that repeats the form',
    (_q, s) => s.writeHead(307, { location: '/oauth2/token' }).end(),
    'provider_unavailable',
  ],
  ['a connection reset', (request) => request.socket.resetAndDestroy(), 'provider_unavailable'],
  [
    'a connection reset mid-response',
    (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
      response.write('{"access_token":"the-acc', () => request.socket.resetAndDestroy())
    },
    'provider_unavailable',
  ],
  ['a response that is not HTTP', (request) => request.socket.end('220 smtp\r\n'), 'provider_unavailable'],
  ['no access_token', json({ token_type: 'Bearer', expires_in: 3600 }), 'login_failed'],
  ['an empty access_token', tokens({ access_token: '' }), 'login_failed'],
  ['an access_token that cannot be sent in a header', tokens({ access_token: 'a\r\nb' }), 'login_failed'],
  ['an access_token that is not a string', tokens({ access_token: 7 }), 'login_failed'],
  ['no token_type', tokens({ token_type: undefined }), 'login_failed'],
  ['another token_type', tokens({ token_type: 'mac' }), 'login_failed'],
  ['a token that is bound to a key', tokens({ token_type: 'DPoP' }), 'login_failed'],
  ['token_type DPoP', tokens({ token_type: 'DPoP' }), 'login_failed'],
  ['a token_type that is not a string', tokens({ token_type: ['Bearer'] }), 'login_failed'],
  ['status 202', json({ access_token: 'x', token_type: 'Bearer' }, 202), 'login_failed'],
]

/** A world in which logins start without limit. */
async function unlimitedWorld(t: Test): Promise<World<'none', TokenEndpoint>> {
  return startWorld(t, { provider: scripted, settings: { AUTH_STARTS_PER_MINUTE: '0' } })
}

/** A stranger can write the address of a callback, so nothing in it may alert the operator. */
async function assertNoAlarm(t: Test, { log, opsUrl }: TestServer): Promise<void> {
  t.notOk(
    log.some(({ level }) => Number(level) >= 50),
    'nothing is logged as an error',
  )
  t.notMatch(await (await fetch(`${opsUrl}/metrics`)).text(), /bff_logins_total\{[^}]*invalid_client[^}]*\} [1-9]/)
}

await test('GET /auth/callback: 303 with the auth_error that each response of the token endpoint leads to', async (t) => {
  const world = await unlimitedWorld(t)
  const { browser, provider, server } = world
  for (const [response, behaviour, error] of outcomes) {
    provider.behaviour = behaviour
    const requests = provider.forms.length
    const login = await world.startLogin('/auth/login?return_to=/chart')
    const arrival = await login.finish()
    t.equal(arrival.hops[0]?.status, 303, response)
    t.equal(arrival.url.href, `${server.url}/?auth_error=${error}&flow=login&return_to=%2Fchart`, response)
    t.equal(provider.forms.length, requests + 1, `${response}: one request`)
    t.same(browser.named('__Host-session'), [], response)
    const line = server.log.findLast(({ audit }) => audit === 'login_failed')
    t.match(line, { error, level: error === 'invalid_client' ? 50 : 40 }, response)
  }
  t.notMatch(JSON.stringify(server.log), /the-acc/, 'the log holds no token')
})

await test('GET /auth/callback: provider_unavailable when the response of the token endpoint hangs, drips or floods', async (t) => {
  await Promise.all(
    [silent, endless, flood].map(async (behaviour) => {
      const world = await unlimitedWorld(t)
      world.provider.behaviour = behaviour
      const arrival = await (await world.startLogin()).finish()
      t.equal(arrival.url.searchParams.get('auth_error'), 'provider_unavailable')
      t.equal(world.provider.forms.length, 1)
    }),
  )
})

await test('GET /auth/callback: provider_unavailable when nothing listens at the token endpoint', async (t) => {
  const port = await freePort()
  for (const authUrl of [`http://127.0.0.1:${port}`, 'http://nowhere.invalid']) {
    const { browser, server } = await startWorld(t, { provider: scripted, settings: { AUTH_URL: authUrl } })
    // The provider's page is down too, so the test reads the redirect and does not follow it.
    const start = await fetch(`${server.url}/auth/login`, { redirect: 'manual' })
    const state = new URL(start.headers.get('location') ?? '').searchParams.get('state')
    const cookie = start.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
    const back = await fetch(`${server.url}/auth/callback?state=${state}&code=x`, {
      redirect: 'manual',
      headers: { cookie },
    })
    t.match(back.headers.get('location'), /auth_error=provider_unavailable&flow=login/)
    t.same(browser.named('__Host-session'), [])
  }
})

await test('GET /auth/callback: 303 with the auth_error that the parameters of the provider lead to', async (t) => {
  const world = await unlimitedWorld(t)
  const { provider, server } = world
  const searchAfter = async (parameters: Record<string, string>): Promise<string> =>
    (await (await world.startLogin()).finish(parameters)).url.search
  const ofLogin = '&flow=login&return_to=%2F'
  for (const [error, code] of [
    ['access_denied', 'access_denied'],
    ['request_denied', 'access_denied'],
    ['request_forbidden', 'login_failed'],
    ['login_required', 'login_failed'],
    ['server_error', 'provider_unavailable'],
    ['temporarily_unavailable', 'provider_unavailable'],
    ['invalid_client', 'login_failed'],
    ['unauthorized_client', 'login_failed'],
    ['constructor', 'login_failed'],
    ['x'.repeat(5000), 'login_failed'],
  ] as const) {
    t.equal(await searchAfter({ error }), `?auth_error=${code}${ofLogin}`, error.slice(0, 30))
  }
  t.equal(await searchAfter({}), `?auth_error=login_failed${ofLogin}`, 'neither code nor error')
  t.equal(await searchAfter({ code: '' }), `?auth_error=login_failed${ofLogin}`, 'an empty code is none')
  t.equal(await searchAfter({ code: 'x', error: 'access_denied' }), `?auth_error=access_denied${ofLogin}`, 'both')
  t.equal(await searchAfter({ code: 'x', iss: 'https://other.example' }), `?auth_error=login_failed${ofLogin}`, 'iss')
  t.equal(await searchAfter({ code: 'x', id_token: 'y' }), `?auth_error=login_failed${ofLogin}`, 'an id_token')
  t.equal(await searchAfter({ code: 'x', response: 'y' }), `?auth_error=login_failed${ofLogin}`, 'JARM')
  t.equal(provider.forms.length, 0, 'no code was exchanged')
  await assertNoAlarm(t, server)
  t.equal(await searchAfter({ code: 'x', iss: provider.url }), '', 'the iss of the provider')
  t.equal(await searchAfter({ code: 'x', iss: `${provider.url}/` }), '', 'iss with a trailing slash')

  for (const repeated of ['code=a&code=b', 'error=access_denied&error=x', 'code=a&iss=a&iss=b']) {
    const { state } = await world.startLogin()
    const arrival = await world.browser.navigate(`${server.url}/auth/callback?${repeated}&state=${state}`)
    t.equal(arrival.url.search, `?auth_error=login_failed${ofLogin}`, repeated)
  }
  t.equal(provider.forms.length, 2)
})

await test('GET /auth/callback: state_mismatch when the callback belongs to no login of this browser', async (t) => {
  const world = await unlimitedWorld(t)
  const { browser, provider, server } = world
  const searchAfter = async (query: string): Promise<string> =>
    (await browser.navigate(`${server.url}/auth/callback?${query}`)).url.search
  const mismatch = '?auth_error=state_mismatch'
  const { state } = await world.startLogin()
  t.equal(await searchAfter(''), mismatch, 'an empty query')
  t.equal(await searchAfter('code=x'), mismatch, 'no state')
  t.equal(await searchAfter('code=x&state='), mismatch, 'an empty state')
  t.equal(await searchAfter('code=x&state=unknown'), mismatch)
  t.equal(await searchAfter(`code=x&state=${state}&state=${state}`), mismatch, 'repeated')
  t.equal(await searchAfter(`code=x&state=${state}&state=`), mismatch, 'repeated')
  t.equal(await searchAfter(`code=x&state=__proto__&__proto__[state]=${state}`), mismatch)
  t.equal(await searchAfter(`code=x&state[]=${state}`), mismatch)
  t.equal(await searchAfter(`error=access_denied&state=unknown`), mismatch)
  t.equal(await searchAfter(`code=x&state=${'s'.repeat(10_000)}`), mismatch)

  t.equal(await searchAfter('error=access_denied'), '?auth_error=access_denied', 'an error without a state is reported')
  t.equal(
    await searchAfter('error=invalid_client'),
    '?auth_error=login_failed',
    'any site can write such a link, so it is not an operational error',
  )
  t.equal(await searchAfter('error=server_error'), '?auth_error=provider_unavailable')
  t.equal(await searchAfter('error=__proto__'), '?auth_error=login_failed')
  t.equal(await searchAfter('error=access_denied&error=invalid_grant'), '?auth_error=login_failed')
  await assertNoAlarm(t, server)

  t.equal(provider.forms.length, 0)
  const arrival = await browser.navigate(`${server.url}/auth/callback?code=x&state=${state}`)
  t.equal(arrival.url.href, `${server.url}/`, 'no attempt used up the login')
})
