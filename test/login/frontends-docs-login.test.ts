import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { JarBrowser } from '../support/jar-browser.ts'
import { isLoggedIn, json, loginWorld, logInThere, startLogin } from '../support/token-endpoint.ts'
import { until } from '../support/until.ts'

interface Session {
  readonly authenticated: boolean
}

/** The functions that the examples of docs/frontends.md define. */
interface Examples {
  loginUrl(flow?: string): string
  takeAuthError(): { code: string; flow: string; againUrl: string; loginUrl: string } | undefined
  readSession(): Promise<Session>
  watchSession(show: (session: Session) => void): Promise<void>
  logOut(): Promise<void>
}

/** Runs the examples in a page of this browser. */
function examplesIn(browser: JarBrowser): {
  page: Examples
  listeners: Map<string, (event: object) => void>
} {
  const text = readFileSync(new URL('../../docs/frontends.md', import.meta.url), 'utf8')
  const loginPart = text.slice(0, text.indexOf('\n## Calling the API') >>> 0)
  const source = [...loginPart.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code).join('\n')
  const listeners = new Map<string, (event: object) => void>()
  const addEventListener = (name: string, listener: (event: object) => void) => listeners.set(name, listener)
  const world = {
    fetch: (path: string, init?: { method: string; headers: Record<string, string> }) => browser.fetch(path, init),
    location: browser.page,
    history: {
      replaceState: (_state: null, _title: string, path: string) => (browser.page = new URL(path, browser.page)),
    },
    document: { addEventListener, visibilityState: 'visible' },
    addEventListener,
    setTimeout: () => undefined,
  }
  const names = ['loginUrl', 'takeAuthError', 'readSession', 'watchSession', 'logOut']
  // oxlint-disable-next-line typescript/no-implied-eval -- the test runs the code of the documentation
  const run = new Function(...Object.keys(world), `${source}\nreturn { ${names.join(', ')} }`) as (
    ...values: unknown[]
  ) => Examples
  return { page: run(...Object.values(world)), listeners }
}

await test('The examples of docs/frontends.md log in, watch the session, log out and report a failed login', async (t) => {
  const world = await loginWorld(t)
  const { browser, server, endpoint } = world
  browser.page = new URL('/chart?symbol=R_100#top', server.url)
  const path = examplesIn(browser).page.loginUrl()
  t.equal((await (await startLogin(world, path)).finish()).url.href, `${server.url}/chart?symbol=R_100#top`)

  const seen: boolean[] = []
  const { page, listeners } = examplesIn(browser)
  await page.watchSession(({ authenticated }) => seen.push(authenticated))
  t.same(seen, [true])
  t.match(await page.readSession(), { authenticated: true })
  await page.logOut()
  t.notOk(await isLoggedIn(browser, server.url))
  const shown = new Promise<void>((resolve) => {
    void page.watchSession(({ authenticated }) => {
      seen.push(authenticated)
      if (seen.length === 3) resolve()
    })
  })
  await until(() => seen.length >= 2)
  listeners.get('pageshow')?.({ persisted: true })
  await shown
  t.same(seen, [true, false, false])

  endpoint.behaviour = json({ error: 'invalid_grant' }, 400)
  await (await startLogin(world, '/auth/signup?return_to=/welcome')).finish()
  const failed = examplesIn(browser).page.takeAuthError()
  t.same(failed, {
    code: 'invalid_grant',
    flow: 'signup',
    againUrl: '/auth/signup?return_to=%2Fwelcome',
    loginUrl: '/auth/login?return_to=%2Fwelcome',
  })
  t.equal(browser.page?.href, `${server.url}/`)
  t.equal(examplesIn(browser).page.takeAuthError(), undefined)
})

await test('The examples of docs/frontends.md reject when /auth/logout or /auth/session responds 503', async (t) => {
  const world = await loginWorld(t, { redis: true })
  await logInThere(world)
  world.browser.page = new URL(world.server.url)
  const { page } = examplesIn(world.browser)
  await world.redis?.close()
  await t.rejects(page.logOut(), /logout: 503/)
  await t.rejects(page.readSession(), /session: 503/)
})

await test('docs/frontends.md lists every auth_error code', async (t) => {
  const text = readFileSync(new URL('../../docs/frontends.md', import.meta.url), 'utf8')
  const documented = new Set([...text.matchAll(/^\| `(\w+)` \| .* \| .* \|$/gm)].map(([, code]) => code))
  for (const code of [
    'access_denied',
    'state_mismatch',
    'invalid_grant',
    'invalid_client',
    'provider_unavailable',
    'try_later',
    'login_failed',
  ]) {
    t.ok(documented.has(code), code)
  }
})
