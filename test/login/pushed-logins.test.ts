import { test, type Test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import {
  held,
  html,
  isLoggedIn,
  json,
  startLogin,
  tokenEndpoint,
  tokens,
  type TokenEndpoint,
  scripted,
} from '../support/login/token-endpoint.ts'
import { startWorld, type World } from '../support/world.ts'

const REQUEST_URI = 'urn:ietf:params:oauth:request_uri:abc'
const PUSHED = json({ request_uri: REQUEST_URI, expires_in: 60 }, 201)

interface PushedWorld extends World<'none', TokenEndpoint> {
  /** The endpoint that requests are pushed to. */
  readonly par: TokenEndpoint
}

async function pushedWorld(t: Test, settings: Record<string, string> = {}): Promise<PushedWorld> {
  const par = await tokenEndpoint(t)
  par.behaviour = PUSHED
  const all = { PAR_URL: `${par.url}/par`, AUTH_STARTS_PER_MINUTE: '0', ...settings }
  return { ...(await startWorld(t, { provider: scripted, redis: true, settings: all })), par }
}

await test('PAR_URL: the whole request is pushed, and the browser carries only its URI', async (t) => {
  const world = await pushedWorld(t, { AUTHORIZATION_PARAMS: 'audience=api&prompt=consent', CLIENT_SECRET: 'secret' })
  const { par, server } = world
  const { arrival } = await world.startLogin()
  t.same(Object.fromEntries(arrival.url.searchParams), { client_id: 'test-client', request_uri: REQUEST_URI })
  const [form] = par.forms
  t.match(Object.fromEntries(form ?? []), {
    response_type: 'code',
    client_id: 'test-client',
    client_secret: 'secret',
    redirect_uri: `${server.url}/auth/callback`,
    scope: 'trade account_manage',
    state: /^[\w-]{43}$/,
    code_challenge: /^[\w-]{43}$/,
    code_challenge_method: 'S256',
    audience: 'api',
    prompt: 'consent',
  })
  const state = form?.get('state') ?? ''
  await world.browser.navigate(`${server.url}/auth/callback?code=x&state=${state}`, { from: arrival.url })
  t.ok(await isLoggedIn(world.browser, server.url))

  await world.startLogin('/auth/signup?sidc=9d8b3a44-0d2c-4c55-9f0e-2f6a7a1f2b3c')
  const signUp = par.forms.at(-1)
  t.same(signUp?.getAll('prompt'), ['registration'], 'a sign-up has its own prompt')
  t.equal(signUp?.get('audience'), 'api')
  t.ok(signUp?.has('sidc'))
})

await test('PAR_URL: a push that fails returns the browser with the reason, and leaves nothing behind', async (t) => {
  const world = await pushedWorld(t)
  const { browser, par, server } = world
  await logInFirst(world)
  const store = await world.storeClient()
  const keys = async (): Promise<string[]> => (await store.keys('bff:1:[ls]*')).toSorted()
  const before = await keys()
  const cookies = browser.named('__Host-login-').length
  for (const [behaviour, error] of [
    [json({ error: 'invalid_client' }, 401), 'invalid_client'],
    [json({ error: 'unauthorized_client' }, 400), 'invalid_client'],
    [json({ error: 'invalid_request' }, 400), 'login_failed'],
    [json({ error: 'access_denied' }, 403), 'login_failed'],
    [json({ error: 'slow_down' }, 429), 'try_later'],
    [json({}, 503), 'provider_unavailable'],
    [html(), 'provider_unavailable'],
    [json({ expires_in: 60 }, 201), 'provider_unavailable'],
    [json({ request_uri: 'x'.repeat(2000) }, 201), 'provider_unavailable'],
    [json({ request_uri: 'a\r\nset-cookie: x' }, 201), 'provider_unavailable'],
    [json({ request_uri: ['a'] }, 201), 'provider_unavailable'],
  ] as const) {
    par.behaviour = behaviour
    const { arrival } = await world.startLogin('/auth/login?return_to=/here')
    t.equal(arrival.url.href, `${server.url}/?auth_error=${error}&flow=login&return_to=%2Fhere`)
  }
  par.behaviour = (_request, response) => response.destroy()
  t.match((await world.startLogin()).arrival.url.search, /auth_error=provider_unavailable/)
  t.same(await keys(), before, 'no transaction stays in the store')
  t.equal(browser.named('__Host-login-').length, cookies, 'no cookie is set')
  t.ok(await isLoggedIn(browser, server.url), 'the session before lives')
  const counts = await samplesOf(server.opsUrl, 'bff_logins_total')
  t.equal(counts.get('flow="login",outcome="invalid_client"'), 2)
  t.equal((await samplesOf(server.opsUrl, 'bff_provider_requests_total')).get('request="push",outcome="busy"'), 1)
  const alarms = server.log.filter(({ level, audit }) => Number(level) === 50 && audit === 'login_not_started')
  t.equal(alarms.length, 2, 'a refused client is an alarm')
})

/** Logs in, so that there is something to lose. */
async function logInFirst(world: PushedWorld): Promise<void> {
  const { arrival } = await world.startLogin()
  const state = world.par.forms.at(-1)?.get('state') ?? ''
  await world.browser.navigate(`${world.server.url}/auth/callback?code=x&state=${state}`, { from: arrival.url })
}

await test('PAR_URL: at most 64 requests are pushed at the same time, and a login beyond them is told to try later', async (t) => {
  const world = await pushedWorld(t)
  const { par, server } = world
  const waiting = held(PUSHED)
  par.behaviour = waiting.behaviour
  const starts = Array.from({ length: 65 }, () => startLogin({ browser: new JarBrowser(), server }))
  const refused = await Promise.race(starts)
  t.match(refused.arrival.url.search, /auth_error=try_later/)
  waiting.release()
  const addresses = (await Promise.all(starts)).map(({ arrival }) => arrival.url.searchParams)
  t.equal(addresses.filter((each) => each.get('request_uri') === REQUEST_URI).length, 64)
  t.equal(par.forms.length, 64)
  t.equal((await world.startLogin()).arrival.url.searchParams.get('request_uri'), REQUEST_URI, 'there is room again')
})

await test('PAR_URL: a 200 is as good as a 201', async (t) => {
  const world = await pushedWorld(t)
  world.par.behaviour = json({ request_uri: REQUEST_URI })
  t.equal((await world.startLogin()).arrival.url.searchParams.get('request_uri'), REQUEST_URI)
})

await test('AUTHORIZATION_URL and TOKEN_URL keep their query (RFC 6749 §3.1), also when the request is pushed', async (t) => {
  const provider = await tokenEndpoint(t)
  const exchanges: (string | undefined)[] = []
  provider.behaviour = (request, response, form) => {
    exchanges.push(request.url)
    return tokens()(request, response, form)
  }
  const settings = {
    AUTHORIZATION_URL: `${provider.url}/authorize?p=b2c_1_sign%20in&flag`,
    TOKEN_URL: `${provider.url}/token?p=b2c_1_sign%20in`,
    AUTHORIZATION_PARAMS: 'audience=api',
  }
  const world = await startWorld(t, { provider: scripted, settings })
  const login = await world.startLogin()
  t.match(login.authorize.href, `${provider.url}/authorize?p=b2c_1_sign+in&flag=&response_type=code&client_id=`)
  t.equal(login.authorize.searchParams.get('audience'), 'api')
  t.equal((await login.finish()).url.href, `${world.server.url}/`)
  t.same(exchanges, ['/token?p=b2c_1_sign%20in'])

  const pushed = await startLogin(await pushedWorld(t, settings))
  t.match(pushed.arrival.url.href, `${provider.url}/authorize?p=b2c_1_sign+in&flag=&request_uri=urn`)
})

await test('AUTHORIZATION_PARAMS are added in their order; prompt is left out of sign-ups', async (t) => {
  const params = 'audience=a%26b&resource=urn:1&resource=urn:2&prompt=consent'
  const world = await startWorld(t, { provider: scripted, settings: { AUTHORIZATION_PARAMS: params } })
  const own = 11
  const login = await world.startLogin()
  const added = [...login.authorize.searchParams].slice(7, own)
  t.same(added, [
    ['audience', 'a&b'],
    ['resource', 'urn:1'],
    ['resource', 'urn:2'],
    ['prompt', 'consent'],
  ])
  t.equal([...login.authorize.searchParams].length, own)
  const signUp = await world.startLogin('/auth/signup')
  t.same(signUp.authorize.searchParams.getAll('prompt'), ['registration'])
  t.equal(signUp.authorize.searchParams.get('audience'), 'a&b')
  t.equal((await world.logIn()).url.search, '')
})
