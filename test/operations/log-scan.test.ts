import { test, type Test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { serverProcess } from '../support/server/server-process.ts'
import { logIn } from '../support/parts.ts'
import { testServer } from '../support/server/test-server.ts'
import { type World, startWorld } from '../support/world.ts'

/** A fake test. `failures` runs its teardown and returns the failures. */
function dummyTest(): { t: Test; failures: () => Promise<string[]> } {
  const teardowns: (() => unknown)[] = []
  const failures: string[] = []
  const t = {
    teardown: (teardown: () => unknown) => void teardowns.unshift(teardown),
    fail: (message: string) => void failures.push(message),
  } as unknown as Test
  return {
    t,
    async failures() {
      for (const teardown of teardowns) await teardown()
      return failures
    },
  }
}

/** A secret of each kind that a login and a trading socket create. */
async function secretsOf({ browser, server, provider, upstream }: World): Promise<Record<string, string>> {
  const accounts = await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
  const [account] = ((await accounts.json()) as { data: { account_id: string }[] }).data
  const page = new URL(server.url)
  const line = new BrowserSocket(`ws://127.0.0.1:${server.port}/ws/trading/${account?.account_id}`, {
    cookie: browser.cookieHeader(page, page),
    origin: server.url,
  })
  await line.opened()
  line.socket.terminate()
  const [code = '', token = ''] = provider.issued
  const [verifier = ''] = provider.verifiers
  const [password = '', url = ''] = upstream.issued
  const cookie = browser.named('__Host-session')[0]?.value ?? ''
  const [id = ''] = cookie.split('.')
  const login = browser.named('__Host-login')[0]?.value ?? ''
  return { code, token, verifier, password, url, cookie, id, login }
}

await test('A test fails if its server logs a secret of any kind, plain or in base64', async (t) => {
  const world = await startWorld(t)
  await logIn(world.browser, world.server.url)
  for (const [kind, secret] of Object.entries(await secretsOf(world))) {
    t.ok(secret.length >= 16, `the ${kind} is long enough to be searched for`)
    for (const text of [`Bearer ${secret}`, Buffer.from(secret).toString('base64')]) {
      const { t: leaky, failures } = dummyTest()
      const server = await testServer(leaky, world.settings)
      server.app.server.log.info({ text }, 'planted')
      t.same(await failures(), ['a secret is in the log'], kind)
    }
  }
})

await test('A test fails if its server process prints a secret', async (t) => {
  const world = await startWorld(t)
  await logIn(world.browser, world.server.url)
  const { token = '' } = await secretsOf(world)
  const { t: leaky, failures } = dummyTest()
  // The server prints the address on which it cannot listen, which here is the token.
  const server = await serverProcess(leaky, { ...world.settings, CLIENT_ID: 'client', HOST: token })
  await server.exited
  t.same(await failures(), ['a secret is in the log'])
})

await test('A test fails if its server writes an audit line that is not documented', async (t) => {
  const world = await startWorld(t)
  for (const line of [
    { audit: 'login', flow: 'login', session: 'abcdefghij', client: '::1' },
    { audit: 'news' },
    { audit: 'token_refreshed', session: 'abcdefghij', subject: 7 },
  ]) {
    const { t: careless, failures } = dummyTest()
    const server = await testServer(careless, world.settings)
    server.app.server.log.info(line, 'planted')
    t.same(await failures(), ['an audit line does not fit docs/audit.schema.json'], line.audit)
  }
})

await test('A test passes if the log of its server holds no secret', async (t) => {
  const world = await startWorld(t)
  await logIn(world.browser, world.server.url)
  const { t: clean, failures } = dummyTest()
  const server = await testServer(clean, world.settings)
  server.app.server.log.info({ text: 'nothing to see' }, 'planted')
  server.app.server.log.info({ audit: 'token_refreshed', session: 'abcdefghij' }, 'planted')
  t.same(await failures(), [])
  t.ok(server.log.length > 0, 'the scanned log is not empty')
})
