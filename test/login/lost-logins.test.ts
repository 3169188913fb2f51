import { test } from 'tap'
import { IDENTIFIED, operate } from '../support/login/identity.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until, within } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const enters = (sent: string): boolean => sent.includes('bff:1:subject:')
const saves = (sent: string): boolean => sent.startsWith('SET bff:1:session:')

/** What a login sends after it has saved its session: whether that may live, and the outcome. */
function afterSaving(meant: string): (sent: string) => boolean {
  let isSaved = false
  return (sent) => {
    const is = isSaved && sent.includes(meant)
    isSaved ||= saves(sent)
    return is
  }
}

for (const [what, meant] of [
  ['its entry in the index of its subject', enters],
  ['its session', saves],
  ['whether its session may live', afterSaving('bff:1:subject:')],
  ['its outcome', afterSaving('bff:1:login:')],
] as const) {
  await test(`GET /auth/callback: when Redis goes away with the reply to ${what}, nothing of the login is left once it is back`, async (t) => {
    const redis = await testRedis(t)
    const proxy = await CommandProxy.start(t, redis)
    const settings = { ...IDENTIFIED.settings, REDIS_URL: proxy.url }
    const world = await startWorld(t, { ...IDENTIFIED, settings })
    const { server, user } = world
    const store = await storeClient(t, { redis })
    const lost = proxy.suffer('gets no reply', meant).then(() => (proxy.isDown = true))
    const failed = user('ada')
    await within(lost, 'the reply is lost')
    t.match((await failed).arrival, { url: /auth_error=try_later/ })
    proxy.isDown = false
    const left = async () => [...(await store.keys('bff:1:session:*')), ...(await store.keys('bff:1:subject:*'))]
    await until(async () => (await left()).length === 0, 'nothing is left')
    t.same(await (await operate(server, 'GET', { subject: 'ada' })).json(), { sessions: [] })
  })
}

await test('GET /auth/callback: when the reply to the end of the former session is lost, neither that one nor the new one is left', async (t) => {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const settings = { ...IDENTIFIED.settings, REDIS_URL: proxy.url }
  const { logIn, startLogin } = await startWorld(t, { ...IDENTIFIED, settings })
  const store = await storeClient(t, { redis })
  await logIn('ada')
  const login = await startLogin()
  const lost = proxy.suffer('gets no reply', (sent) => sent.includes(':tombstone'))
  t.match((await login.finish({ code: 'ada' })).url.search, 'auth_error=try_later')
  await within(lost, 'the reply is lost')
  await until(async () => (await store.keys('bff:1:session:*')).length === 0, 'nothing is left')
  t.equal((await logIn('ada')).url.search, '')
})

for (const [what, meant] of [
  ['its outcome', afterSaving('bff:1:login:')],
  ['the end of the former session', (sent: string) => sent.includes(':tombstone')],
] as const) {
  await test(`GET /auth/callback: when the reply to ${what} is lost, whoever repeats it is told that the login has failed`, async (t) => {
    const redis = await testRedis(t)
    const proxy = await CommandProxy.start(t, redis)
    const settings = { ...IDENTIFIED.settings, REDIS_URL: proxy.url }
    const { logIn, startLogin, server } = await startWorld(t, { ...IDENTIFIED, settings })
    await logIn('ada')
    const login = await startLogin()
    const lost = proxy.suffer('gets no reply', meant)
    t.match((await login.finish({ code: 'ada' })).url.search, 'auth_error=try_later')
    await within(lost, 'the reply is lost')
    // Until then, anybody is told so.
    await until(() => server.log.filter(({ msg }) => msg === 'the session store is connected').length > 1)
    const repeated = async () => (await login.finish({ code: 'ada' })).url.searchParams.get('auth_error')
    await until(async () => (await repeated()) === 'try_later', 'a repetition is told so')
  })
}
