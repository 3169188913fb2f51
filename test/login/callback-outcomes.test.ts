import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { test, type Test } from 'tap'
import {
  html,
  json,
  loginWorld,
  startLogin,
  tokens,
  type Behaviour,
  type LoginWorld,
} from '../support/token-endpoint.ts'

const MEGABYTE = 'x'.repeat(2 ** 20)

/** An answer that begins, and goes on in single bytes for ever. */
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

/** What the token endpoint does, and what the frontend is told. */
const outcomes: readonly (readonly [what: string, Behaviour, error: string])[] = [
  ['invalid_grant with 400', json({ error: 'invalid_grant' }, 400), 'invalid_grant'],
  ['invalid_client with 400', json({ error: 'invalid_client' }, 400), 'invalid_client'],
  [
    'invalid_client with 401 and a challenge',
    json({ error: 'invalid_client' }, 401, challenge),
    'invalid_client',
  ],
  ['invalid_client with 401 and none', json({ error: 'invalid_client' }, 401), 'invalid_client'],
  ['401, a challenge and nothing else', (_q, s) => s.writeHead(401, challenge).end(), 'invalid_client'],
  ['invalid_grant with 401', json({ error: 'invalid_grant' }, 401), 'invalid_grant'],
  ['unauthorized_client', json({ error: 'unauthorized_client' }, 400), 'invalid_client'],
  ['invalid_request', json({ error: 'invalid_request' }, 400), 'login_failed'],
  ['access_denied, which here is not the user', json({ error: 'access_denied' }, 403), 'login_failed'],
  ['server_error', json({ error: 'server_error' }, 400), 'provider_unavailable'],
  ['temporarily_unavailable', json({ error: 'temporarily_unavailable' }, 400), 'provider_unavailable'],
  ['429 with JSON', json({ error: 'slow_down' }, 429), 'try_later'],
  ['429 with HTML', html(429), 'try_later'],
  ['an error of its own', json({ error: 'a\nforged "line' }, 400), 'login_failed'],
  ['an error that is no text', json({ error: { code: 7 } }, 400), 'login_failed'],
  ['500 with JSON', json({ error: 'invalid_grant' }, 500), 'provider_unavailable'],
  ['503 with HTML', html(503), 'provider_unavailable'],
  ['HTML', html(), 'provider_unavailable'],
  ['HTML with 400', html(400), 'provider_unavailable'],
  ['an empty answer', json(''), 'provider_unavailable'],
  ['broken JSON', json('{"access_token":"the-access-token","expires_in":36'), 'provider_unavailable'],
  ['JSON that is no object', json('["the-access-token"]'), 'provider_unavailable'],
  ['a redirect', (_q, s) => s.writeHead(302, { location: '/elsewhere' }).end(), 'provider_unavailable'],
  [
    'a redirect that keeps the form',
    (_q, s) => s.writeHead(307, { location: '/oauth2/token' }).end(),
    'provider_unavailable',
  ],
  ['a reset', (request) => request.socket.resetAndDestroy(), 'provider_unavailable'],
  [
    'a reset in the middle of the answer',
    (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
      response.write('{"access_token":"the-acc', () => request.socket.resetAndDestroy())
    },
    'provider_unavailable',
  ],
  ['no HTTP', (request) => request.socket.end('220 smtp\r\n'), 'provider_unavailable'],
  ['no token', json({ token_type: 'Bearer', expires_in: 3600 }), 'login_failed'],
  ['an empty token', tokens({ access_token: '' }), 'login_failed'],
  ['a token that fits into no header', tokens({ access_token: 'a\r\nb' }), 'login_failed'],
  ['a token that is no text', tokens({ access_token: 7 }), 'login_failed'],
  ['no token_type', tokens({ token_type: undefined }), 'login_failed'],
  ['another token_type', tokens({ token_type: 'mac' }), 'login_failed'],
  ['DPoP', tokens({ token_type: 'DPoP' }), 'login_failed'],
  ['a token_type that is no text', tokens({ token_type: ['Bearer'] }), 'login_failed'],
  ['status 202', json({ access_token: 'x', token_type: 'Bearer' }, 202), 'login_failed'],
]

/** A world for many outcomes. */
async function worldOf(t: Test): Promise<LoginWorld> {
  return loginWorld(t, { settings: { AUTH_STARTS_PER_MINUTE: '0' } })
}

await test('what the token endpoint answers', async (t) => {
  const world = await worldOf(t)
  const { browser, endpoint, server } = world
  for (const [what, behaviour, error] of outcomes) {
    endpoint.behaviour = behaviour
    const requests = endpoint.forms.length
    const login = await startLogin(world, '/auth/login?return_to=/chart')
    const arrival = await login.finish()
    t.equal(arrival.hops[0]?.status, 303, what)
    t.equal(arrival.url.href, `${server.url}/?auth_error=${error}&flow=login&return_to=%2Fchart`, what)
    t.equal(endpoint.forms.length, requests + 1, `${what}: asked once`)
    t.same(browser.named('__Host-session'), [], what)
    const line = server.log.findLast(({ audit }) => audit === 'login_failed')
    t.match(line, { error, level: error === 'invalid_client' ? 50 : 40 }, what)
  }
  t.notMatch(JSON.stringify(server.log), /the-acc/, 'no token in the log')
})

await test('a token endpoint that does not come to an end', async (t) => {
  await Promise.all(
    [silent, endless, flood].map(async (behaviour) => {
      const world = await worldOf(t)
      world.endpoint.behaviour = behaviour
      const arrival = await (await startLogin(world)).finish()
      t.equal(arrival.url.searchParams.get('auth_error'), 'provider_unavailable')
      t.equal(world.endpoint.forms.length, 1)
    }),
  )
})

await test('a token endpoint that is not there', async (t) => {
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  closed.close()
  for (const authUrl of [`http://127.0.0.1:${port}`, 'http://nowhere.invalid']) {
    const { browser, server } = await loginWorld(t, { settings: { AUTH_URL: authUrl } })
    // Its page cannot be opened either: only the redirect there is wanted.
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

await test('what the provider says in the callback', async (t) => {
  const world = await worldOf(t)
  const { endpoint, server } = world
  const told = async (parameters: Record<string, string>): Promise<string> =>
    (await (await startLogin(world)).finish(parameters)).url.search
  const known = '&flow=login&return_to=%2F'
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
    t.equal(await told({ error }), `?auth_error=${code}${known}`, error.slice(0, 30))
  }
  t.equal(await told({}), `?auth_error=login_failed${known}`, 'neither code nor error')
  t.equal(await told({ code: '' }), `?auth_error=login_failed${known}`, 'an empty code')
  t.equal(await told({ code: 'x', error: 'access_denied' }), `?auth_error=access_denied${known}`, 'both')
  t.equal(await told({ code: 'x', iss: 'https://other.example' }), `?auth_error=login_failed${known}`, 'iss')
  t.equal(await told({ code: 'x', id_token: 'y' }), `?auth_error=login_failed${known}`, 'another flow')
  t.equal(await told({ code: 'x', response: 'y' }), `?auth_error=login_failed${known}`, 'JARM')
  t.equal(endpoint.forms.length, 0, 'nothing was exchanged')
  t.notOk(
    server.log.some(({ level }) => Number(level) >= 50),
    'and nobody is woken up',
  )
  t.notMatch(
    await (await fetch(`${server.opsUrl}/metrics`)).text(),
    /bff_logins_total\{[^}]*invalid_client[^}]*\} [1-9]/,
  )
  t.equal(await told({ code: 'x', iss: endpoint.url }), '', 'iss that fits')
  t.equal(await told({ code: 'x', iss: `${endpoint.url}/` }), '', 'iss with a slash at its end')

  for (const repeated of ['code=a&code=b', 'error=access_denied&error=x', 'code=a&iss=a&iss=b']) {
    const { state } = await startLogin(world)
    const arrival = await world.browser.navigate(`${server.url}/auth/callback?${repeated}&state=${state}`)
    t.equal(arrival.url.search, `?auth_error=login_failed${known}`, repeated)
  }
  t.equal(endpoint.forms.length, 2)
})

await test('a callback that belongs to no login of this browser', async (t) => {
  const world = await worldOf(t)
  const { browser, endpoint, server } = world
  const told = async (query: string): Promise<string> =>
    (await browser.navigate(`${server.url}/auth/callback?${query}`)).url.search
  const mismatch = '?auth_error=state_mismatch'
  const { state } = await startLogin(world)
  t.equal(await told(''), mismatch, 'nothing at all')
  t.equal(await told('code=x'), mismatch, 'no state')
  t.equal(await told('code=x&state='), mismatch, 'an empty state')
  t.equal(await told('code=x&state=unknown'), mismatch)
  t.equal(await told(`code=x&state=${state}&state=${state}`), mismatch, 'repeated')
  t.equal(await told(`code=x&state=${state}&state=`), mismatch, 'repeated')
  t.equal(await told(`code=x&state=__proto__&__proto__[state]=${state}`), mismatch)
  t.equal(await told(`code=x&state[]=${state}`), mismatch)
  t.equal(await told(`error=access_denied&state=unknown`), mismatch)
  t.equal(await told(`code=x&state=${'s'.repeat(10_000)}`), mismatch)

  t.equal(await told('error=access_denied'), '?auth_error=access_denied', 'an error without a state')
  t.equal(await told('error=invalid_client'), '?auth_error=login_failed', 'anybody can write such a link')
  t.equal(await told('error=server_error'), '?auth_error=provider_unavailable')
  t.equal(await told('error=__proto__'), '?auth_error=login_failed')
  t.equal(await told('error=access_denied&error=invalid_grant'), '?auth_error=login_failed')
  t.notMatch(
    await (await fetch(`${server.opsUrl}/metrics`)).text(),
    /bff_logins_total\{[^}]*invalid_client[^}]*\} [1-9]/,
  )
  t.notOk(
    server.log.some(({ level }) => Number(level) >= 50),
    'no alarm',
  )

  t.equal(endpoint.forms.length, 0)
  const arrival = await browser.navigate(`${server.url}/auth/callback?code=x&state=${state}`)
  t.equal(arrival.url.href, `${server.url}/`, 'none of it used up the login')
})
