import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { JarBrowser, type Arrival } from '../browser/jar-browser.ts'
import type { Product } from './provider-product.ts'
import { rawUpstream } from '../upstream/raw-upstream.ts'
import { runProgram } from '../server/check-run.ts'
import { ready, serverProcess, type ServerProcess } from '../server/server-process.ts'
import { isLoggedIn } from '../login/token-endpoint.ts'
import { tokenGate } from './token-gate.ts'
import { until } from '../time/until.ts'
import { SECRETS, testRedis } from '../server/test-server.ts'

const CALL = '/api/trading/v1/options/accounts'
const CSRF = { 'x-csrf': '1' }
/** Renewals pause after a failure, at first for a second. */
const PAUSE_MS = 30_000

/** Runs everything against a product that two instances of this server need of a provider. */
export async function checkProduct(t: Test, product: Product): Promise<void> {
  const [port, providerPort] = [await freePort(), await freePort()]
  const publicUrl = `http://localhost:${port}`
  const address = { port: providerPort, redirectUri: `${publicUrl}/auth/callback`, folder: t.testdir({}) }
  const gate = await tokenGate(t, providerPort)
  const [upstream, redis] = await Promise.all([rawUpstream(t), testRedis(t)])
  const settings: Record<string, string> = {
    PUBLIC_URL: publicUrl,
    AUTH_URL: `http://127.0.0.1:${providerPort}`,
    API_URL: upstream.url,
    WS_URL: upstream.url.replace('http', 'ws'),
    REDIS_URL: redis.url,
    SESSION_SECRETS: SECRETS,
    CLIENT_ID: 'test-client',
    ...product.settings(`http://127.0.0.1:${providerPort}`, gate.url),
  }
  const isDiscovered = settings['DISCOVERY'] === 'true'
  const servers = await Promise.all([serverProcess(t, { ...settings, PORT: String(port) }), serverProcess(t, settings)])
  const [server, other] = servers

  await t.test('The provider is away at the start: the server waits for its metadata, or starts', async (t) => {
    if (isDiscovered) await until(() => isWaiting(server), 'the server waits', 30_000)
    else t.ok(await ready(server))
  })
  let provider = await product.start(t, address)
  t.same(await Promise.all(servers.map((each) => ready(each))), [true, true])

  const start = async (browser: JarBrowser): Promise<Arrival> => browser.navigate(`${publicUrl}/auth/login`)
  const logIn = async (browser: JarBrowser, expiresIn: number): Promise<Arrival> => {
    gate.expiresIn = expiresIn
    const arrival = await product.logIn(browser, await start(browser))
    gate.expiresIn = 3600
    return arrival
  }
  const restart = () => product.start(t, address)
  const browser = new JarBrowser()

  await t.test('A login succeeds', async (t) => {
    const arrival = await logIn(browser, 0.001)
    t.equal(arrival.url.href, `${publicUrl}/`, server.output().stdout.split('\n').slice(-4).join('\n'))
    t.ok(await isLoggedIn(browser, publicUrl))
  })
  await t.test('Two instances that need a new token at once send one refresh', async (t) => {
    const answers = await Promise.all([call(browser, server), call(browser, other)])
    t.same(
      answers.map(({ status }) => status),
      [200, 200],
    )
    t.same(
      gate.refreshes.map(({ status }) => status),
      [200],
    )
  })
  const { denial = 'access_denied' } = product
  await t.test(`A denied consent returns ${denial}`, async (t) => {
    if (product.deny === undefined) return t.comment('its pages have no way to deny')
    const denying = new JarBrowser()
    const { url } = await product.deny(denying, () => start(denying))
    t.equal(url.searchParams.get('auth_error'), denial, url.href)
    t.notOk(await isLoggedIn(denying, publicUrl))
  })
  await t.test('A logout revokes the refresh token first, and it is refused from then on', async (t) => {
    t.equal((await browser.fetch('/auth/logout', { method: 'POST', headers: CSRF })).status, 204)
    if (product.revocation === 'missing') return
    await until(() => gate.revocations.length === 2, 'both tokens are posted')
    const hints = gate.revocations.map(({ form, status }) => [form.get('token_type_hint'), status])
    t.same(hints, [
      ['refresh_token', 200],
      ['access_token', 200],
    ])
    const [refresh] = gate.refreshes
    const [revoked] = gate.revocations
    if (product.revocation === 'is accepted') return
    if (refresh !== undefined && revoked !== undefined && !refresh.form.has('client_assertion')) {
      const status = await gate.replay(refresh, revoked.form.get('token') ?? '')
      t.ok(status >= 400 && status < 500, `a refresh with it has status ${status}`)
    }
  })
  await t.test('The provider goes away and comes back: calls get 503, and the session lives', async (t) => {
    const late = new JarBrowser()
    await logIn(late, 0.001)
    await provider.stop()
    const failed = await call(late, server)
    t.equal(failed.status, 503)
    t.equal(((await failed.json()) as { code: string }).code, 'provider_unavailable')
    t.ok(await isLoggedIn(late, publicUrl))
    provider = await restart()
    const isOver = async (): Promise<boolean> => (await call(late, server)).status !== 503
    await until(isOver, 'the token is renewed or refused', PAUSE_MS)
    t.equal((await call(late, server)).status, product.isPersistent ? 200 : 401)
    t.equal((await logIn(new JarBrowser(), 3600)).url.href, `${publicUrl}/`)
  })
  await t.test('--check accepts these settings, and refuses another client', async (t) => {
    const right = await check(settings)
    t.comment(right)
    if (product.isRecognised ?? true) t.notMatch(right, /^failed/m)
    const wrong = await check({ ...settings, ...product.wrongClient })
    t.comment(wrong)
    t.match(wrong, /refuses this client|is not a token endpoint|warning/)
  })
  await t.test('Another client is refused at the token endpoint, as an alarm', async (t) => {
    server.child.kill('SIGTERM')
    await server.exited
    const wrong = await serverProcess(t, { ...settings, ...product.wrongClient, PORT: String(port) })
    t.ok(await ready(wrong))
    const arrival = await logIn(new JarBrowser(), 3600).catch(() => undefined)
    if (arrival?.url.origin !== publicUrl) return t.comment('the provider shows its own page for it')
    t.equal(arrival.url.searchParams.get('auth_error'), 'invalid_client')
    const alarm = /"level":50[^\n]*"error":"invalid_client"/
    await until(() => alarm.test(wrong.output().stdout), 'the alarm is logged')
  })
  for (const each of servers) t.notMatch(each.output().stdout, /"revocation_failed"|"level":[56]0/)
}

/** Calls the API on one of the instances, as a page that it serves would. */
function call(browser: JarBrowser, { port }: ServerProcess): Promise<Response> {
  const tab = browser.clone()
  tab.page = new URL(`http://localhost:${port}`)
  return tab.fetch(CALL, { headers: CSRF })
}

async function isWaiting({ opsPort }: ServerProcess): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => undefined)
  return (await response?.text())?.includes('metadata of the provider') === true
}

/** Runs `--check`. @returns its lines about the provider */
async function check(settings: Record<string, string>): Promise<string> {
  const { stdout } = await runProgram(settings)
  const ofProvider = / (AUTH_URL|TOKEN_URL|PAR_URL|ISSUER|DISCOVERY|CLIENT_AUTH) /
  return stdout
    .split('\n')
    .filter((line) => ofProvider.test(line))
    .join('\n')
}
