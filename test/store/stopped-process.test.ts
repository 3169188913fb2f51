import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { logInThere, tokenEndpoint } from '../support/login/token-endpoint.ts'
import { ALONE } from '../support/server/settings.ts'
import { testRedis } from '../support/server/test-server.ts'
import { freePort } from '../../sandbox/listening.ts'

/** Longer than the command timeout of Redis. */
const BLOCKED_MS = 2600

await test('a server that was stopped with SIGSTOP serves its users again, and new logins succeed', async (t) => {
  const redis = await testRedis(t)
  const endpoint = await tokenEndpoint(t)
  const port = await freePort()
  const url = `http://localhost:${port}`
  const server = await serverProcess(t, {
    ...ALONE,
    PUBLIC_URL: url,
    PORT: String(port),
    AUTH_URL: endpoint.url,
    REDIS_URL: redis.url,
    AUTH_STARTS_PER_MINUTE: '0',
    SESSION_SECRETS: 'a-secret-of-thirty-two-bytes-or-more',
  })
  t.ok(await ready(server))
  const login = async (): Promise<JarBrowser> => {
    const browser = new JarBrowser()
    await logInThere({ browser, server: { url } })
    return browser
  }
  const state = async (browser: JarBrowser): Promise<unknown> => (await browser.fetch(`${url}/auth/session`)).json()
  const browser = await login()
  t.match(await state(browser), { authenticated: true })
  for (let round = 0; round < 2; round++) {
    await delay(round * 460)
    server.child.kill('SIGSTOP')
    const asked = [state(browser), login()] as const
    await delay(BLOCKED_MS)
    server.child.kill('SIGCONT')
    const responses = [await asked[0], await state(browser), await state(await asked[1]), await state(await login())]
    for (const response of responses) t.match(response, { authenticated: true })
  }
  // On a busy machine, a start may be too slow for Redis.
  const [, sinceReady = ''] = server.output().stdout.split('"msg":"ready"')
  t.match(sinceReady, /logged in/)
  t.notMatch(sinceReady, /does not respond|session_store_unavailable|try_later/)
})
