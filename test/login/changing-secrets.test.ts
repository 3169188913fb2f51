import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { startProvider } from '../../sandbox/provider.ts'
import type { ClientRegistration } from '../../sandbox/provider/settings.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { SecretVolume } from '../support/config/secret-volume.ts'
import { newClientKey, type ClientKeyPair } from '../support/login/client-keys.ts'
import { isLoggedIn, logInThere, startLogin, scripted } from '../support/login/token-endpoint.ts'
import { ALONE } from '../support/server/settings.ts'
import { CLIENT_ID, SECRETS, testServer, type TestServer } from '../support/server/test-server.ts'
import { logIn } from '../support/parts.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const NEW = 'a-new-secret-of-thirty-two-bytes-at-least'

const taken = (server: TestServer, count: number): Promise<void> =>
  until(
    () => server.log.filter(({ msg }) => msg.startsWith('a secret has changed')).length === count,
    'a change is taken',
  )

/** A provider that can be registered anew with another credential, at the same address, and a server with a file of its own. */
async function confidentialWorld(
  t: Test,
  first: { registered: ClientRegistration; files: Record<string, string>; settings?: Record<string, string> },
) {
  const [port, providerPort] = [await freePort(), await freePort()]
  const publicUrl = `http://localhost:${port}`
  const redirectUris = [`${publicUrl}/auth/callback`]
  const start = (client: ClientRegistration) =>
    startProvider({ clientId: CLIENT_ID, redirectUris, port: providerPort, client })
  let provider = await start(first.registered)
  t.teardown(() => provider.close())
  const volume = new SecretVolume(t.testdir({}), first.files)
  const server = await testServer(t, {
    ...ALONE,
    CLIENT_ID,
    PUBLIC_URL: publicUrl,
    PORT: String(port),
    AUTH_URL: provider.url,
    ISSUER: provider.url,
    ...first.settings,
    ...volume.settings,
  })
  return {
    volume,
    server,
    async register(client: ClientRegistration): Promise<void> {
      await provider.close()
      provider = await start(client)
    },
    async canLogIn(): Promise<boolean> {
      const browser = new JarBrowser()
      await logIn(browser, publicUrl)
      return isLoggedIn(browser, publicUrl)
    },
  }
}

function withSecret(secret: string): ClientRegistration {
  return { token_endpoint_auth_method: 'client_secret_post', client_secret: secret }
}

await test('GET /auth/callback: a login works with a new CLIENT_SECRET as soon as its file has it', async (t) => {
  const [old, next] = ['the-old-client-secret', 'the-new-client-secret']
  const world = await confidentialWorld(t, { registered: withSecret(old), files: { CLIENT_SECRET: old } })
  t.ok(await world.canLogIn())
  await world.register(withSecret(next))
  t.notOk(await world.canLogIn(), 'while the file has the old one')
  world.volume.change({ CLIENT_SECRET: next })
  await taken(world.server, 1)
  t.ok(await world.canLogIn())
})

function withKeys(...keys: readonly ClientKeyPair[]): ClientRegistration {
  return { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: keys.map((key) => key.publicJwk) } }
}

await test('GET /auth/callback: a login works with a new CLIENT_KEY as soon as its file has it', async (t) => {
  const [old, next] = [newClientKey('P-256'), newClientKey('Ed25519')]
  const world = await confidentialWorld(t, {
    registered: withKeys(old, next),
    files: { CLIENT_KEY: old.pem },
    settings: { CLIENT_AUTH: 'private_key_jwt' },
  })
  t.ok(await world.canLogIn())
  world.volume.change({ CLIENT_KEY: old.pem + next.pem })
  await taken(world.server, 1)
  world.volume.change({ CLIENT_KEY: next.pem + old.pem })
  await taken(world.server, 2)
  await world.register(withKeys(next))
  t.ok(await world.canLogIn(), 'the provider knows the new key alone')
})

await test('GET /auth/session: cookies of the old SESSION_SECRETS stay valid until the secret is removed, then at once not', async (t) => {
  const { settings } = await startWorld(t, { provider: scripted })
  const volume = new SecretVolume(t.testdir({}), { SESSION_SECRETS: SECRETS })
  const server = await testServer(t, { ...settings, PUBLIC_URL: settings['PUBLIC_URL'] ?? '', ...volume.settings })
  const [early, started, late] = [new JarBrowser(), new JarBrowser(), new JarBrowser()]
  await logInThere({ browser: early, server })
  t.ok(await isLoggedIn(early, server.url))
  const login = await startLogin({ browser: started, server })
  volume.change({ SESSION_SECRETS: `${SECRETS},${NEW}` })
  await taken(server, 1)
  volume.change({ SESSION_SECRETS: `${NEW},${SECRETS}` })
  await taken(server, 2)
  await login.finish()
  await logInThere({ browser: late, server })
  for (const browser of [early, started, late]) t.ok(await isLoggedIn(browser, server.url))
  volume.change({ SESSION_SECRETS: NEW })
  await taken(server, 3)
  t.notOk(await isLoggedIn(early, server.url), 'although its session was in the cache a moment ago')
  for (const browser of [started, late]) t.ok(await isLoggedIn(browser, server.url), 'logged in under the new secret')
})
