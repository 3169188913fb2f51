import { decodeJwt } from 'jose'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import { gated } from '../support/login/gated-provider.ts'
import { startParts } from '../support/world.ts'
import { OIDC_PATH } from '../support/login/metadata-server.ts'
import { epoch, oidcWorld } from '../support/login/oidc-world.ts'
import { isLoggedIn } from '../support/login/token-endpoint.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { CLIENT_ID, SECRETS } from '../support/server/test-server.ts'
import { logIn } from '../support/parts.ts'
import { wrongBy } from '../support/server/wrong-clock.ts'
import { until } from '../support/time/until.ts'
import { ACCOUNTS } from '../support/user.ts'

const MINUTE = 60

for (const minutes of [40, 70]) {
  await test(`logins, sessions, keys and logouts work on two instances, one ${minutes} minutes behind Redis and one ahead`, async (t) => {
    const idle = { SESSION_IDLE_SECONDS: '600' }
    const parts = await startParts(t, { provider: gated(), upstream: 'sandbox', redis: true, settings: idle })
    const { provider: gate, port, publicUrl, settings } = parts
    const start = (seconds: number, more = {}) =>
      serverProcess(t, { ...settings, ...more }, { nodeOptions: wrongBy(seconds) })
    const [behind, ahead] = await Promise.all([
      start(-minutes * MINUTE, { PORT: String(port) }),
      start(minutes * MINUTE),
    ])
    t.same(await Promise.all([ready(behind), ready(ahead)]), [true, true])
    const browser = new JarBrowser()
    const arrival = await logIn(browser, publicUrl)
    t.equal(arrival.url.href, `${publicUrl}/`, 'the login returns without an error')
    const cookie = browser.cookieHeader(new URL(publicUrl), new URL(publicUrl))
    const ask = (server: ServerProcess, path: string, { method = 'GET', headers = {}, body = '' } = {}) =>
      fetch(`http://localhost:${server.port}${path}`, {
        method,
        headers: { cookie, 'x-csrf': '1', ...headers },
        ...(body !== '' && { body }),
      })
    for (const server of [behind, ahead]) {
      const state = (await (await ask(server, '/auth/session')).json()) as Record<string, unknown>
      t.equal(state['authenticated'], true)
      t.ok(Math.abs(Number(state['now']) - epoch()) <= 2, 'the page hears the time of Redis')
      t.ok(Number(state['expires_at']) > epoch(3600))
      t.ok(Math.abs(Number(state['idle_expires_at']) - epoch(600)) <= 65)
      t.equal((await ask(server, ACCOUNTS)).status, 200)
    }
    t.equal(gate.refreshes.length, 0, 'no token counts as expired')
    const headers = { 'idempotency-key': 'one', 'content-type': 'application/json' }
    const keyed = { method: 'POST', headers, body: '{}' }
    const [first, second] = [await ask(behind, ACCOUNTS, keyed), await ask(ahead, ACCOUNTS, keyed)]
    t.same([first.status, first.headers.get('idempotency-replayed')], [second.status, null])
    t.equal(second.headers.get('idempotency-replayed'), 'true', 'the other instance sends nothing again')
    const { warnings } = (await (await fetch(`http://127.0.0.1:${behind.opsPort}/readyz`)).json()) as {
      warnings: string[]
    }
    t.match(
      warnings.find((warning) => warning.includes('clock')),
      new RegExp(`^the clock of this machine is ${minutes * MINUTE} s behind that of Redis`),
    )
    const metrics = await (await fetch(`http://127.0.0.1:${ahead.opsPort}/metrics`)).text()
    const [, seconds] = /^bff_session_store_clock_difference_seconds (\S+)$/m.exec(metrics) ?? []
    t.equal(Math.round(Number(seconds)), minutes * MINUTE)
    t.equal((await ask(ahead, '/auth/logout', { method: 'POST' })).status, 204)
    await until(() => gate.revoked.length === 2, 'both tokens are revoked')
    await until(async () => !(await isLoggedIn(browser, publicUrl)), 'the other instance hears of it')
  })
}

for (const minutes of [-10, 10]) {
  await test(`OpenID Connect with private_key_jwt works on an instance that is ${minutes} minutes wrong`, async (t) => {
    const port = await freePort()
    const key = newClientKey('P-256')
    const settings = {
      PUBLIC_URL: `http://localhost:${port}`,
      AUTHORIZATION_PARAMS: 'max_age=60',
    }
    const world = await oidcWorld(t, { settings, redis: true })
    const { keys, provider: endpoint } = world
    const iss = keys.url
    keys.responses[OIDC_PATH] = keys.metadata({
      authorization_endpoint: `${endpoint.url}/oauth2/auth`,
      token_endpoint: `${endpoint.url}/oauth2/token`,
      jwks_uri: `${iss}/jwks`,
    })
    const { behaviour } = endpoint
    // How many seconds ago each assertion was made, and how long it was still valid, when it arrived.
    const ages: { age: number; left: number }[] = []
    endpoint.behaviour = (request, response, form) => {
      const assertion = form.get('client_assertion')
      const { iat = 0, exp = 0 } = assertion === null ? {} : decodeJwt(assertion)
      ages.push({ age: epoch() - iat, left: exp - epoch() })
      return behaviour(request, response, form)
    }
    const options = { nodeOptions: wrongBy(minutes * MINUTE) }
    const wrong = await serverProcess(
      t,
      {
        ...world.settings,
        ...{ PORT: String(port), CLIENT_ID, SESSION_SECRETS: SECRETS },
        ...{ CLIENT_AUTH: 'private_key_jwt', CLIENT_KEY: key.pem, ISSUER: world.keys.url },
      },
      options,
    )
    t.ok(await ready(wrong))
    const server = { ...world.server, url: settings.PUBLIC_URL }
    const { browser, arrival } = await world.user('ada', { iss, auth_time: epoch(-30), exp: epoch(20) }, server)
    t.equal(arrival.url.search, '')
    t.equal(await isLoggedIn(browser, server.url), true)
    t.equal(ages.length, 1)
    t.ok(
      ages.every(({ age, left }) => Math.abs(age) <= 2 && left > 0),
      'the assertion is of now',
    )
    const late = await world.user('ada', { iss, exp: epoch(-40), auth_time: epoch(-30) }, server)
    t.match(late.arrival.url.search, 'auth_error=login_failed', 'a token of the past is none')
    const post = async (claims: Record<string, unknown>): Promise<number> =>
      (await world.postLogout(await world.logoutToken({ iss, sub: 'ada', ...claims }), server)).status
    t.equal(await post({ iat: epoch(-400) }), 400)
    t.equal(await post({ iat: epoch() }), 200)
    await until(async () => !(await isLoggedIn(browser, server.url)))
  })
}
