import { test } from 'tap'
import { createClient } from 'redis'
import { sessionKey } from '../../src/store/keys.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { relayWorld, TRADING } from '../support/relay-world.ts'
import { logIn, SECRETS, testServer } from '../support/world.ts'
import { until } from '../support/until.ts'

await test('a fault of ours is called one, costs upstream nothing, and leaves nothing behind', async (t) => {
  const world = await relayWorld(t, { redis: true, settings: { MAX_RELAYS: '1' } })
  const { browser, server, settings } = world
  // Another instance, which does not hold the session near.
  const other = await testServer(t, { ...settings, PUBLIC_URL: server.url })
  const [cookie] = browser.named('__Host-session')
  const id = cookie?.value.split('.')[0] ?? ''
  const key = sessionKey(id)
  const store = await createClient({ url: world.redis?.url ?? '' }).connect()
  t.teardown(() => store.close())
  // Sealed as only a server can, and yet nothing that one would write.
  const envelope = new Envelope([SECRETS])
  const record = envelope.open(key, id, (await store.get(key)) ?? '') ?? '{}'
  const broken = { ...(JSON.parse(record) as object), tokenExpiresAt: 1, refreshToken: 5 }
  await store.set(key, envelope.seal(key, id, JSON.stringify(broken)), { KEEPTTL: true })
  t.same(await world.line(TRADING, { port: other.port }).closed, { code: 1011, reason: 'internal_error' })
  t.equal(world.upstream.otpRequests.length, 0)
  t.ok(other.log.some(({ level, msg }) => level === 50 && msg === 'a relay could not be opened'))

  await logIn(browser, server.url)
  const line = await world.line(TRADING, { port: other.port }).opened()
  await world.upstream.socket()
  t.equal(line.socket.readyState, 1, 'its place was given back')
})

await test('a token that cannot be renewed just now is no reason to log in again', async (t) => {
  const world = await relayWorld(t, { provider: { refreshTokens: true, accessTokenSeconds: 2 } })
  const open = await world.line(TRADING).opened()
  await world.provider.close()
  const refused = { code: 1013, reason: 'provider_unavailable' }
  await until(async () => {
    const line = world.line(TRADING)
    await Promise.race([line.closed, world.upstream.socket()])
    line.socket.terminate()
    const { code, reason } = await line.closed
    return code === refused.code && reason === refused.reason
  })
  t.equal(open.socket.readyState, 1, 'the open one stays')
})
