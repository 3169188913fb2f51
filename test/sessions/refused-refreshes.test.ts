import { test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { AT_ONCE, LASTING, NEVER } from '../support/login/refusal-codes.ts'
import { refusalWorld, type RefusalWorld } from '../support/login/refusal-world.ts'
import { isLoggedIn, json } from '../support/login/token-endpoint.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'

const DOWN = { status: 503, code: 'provider_unavailable' }
const ENDED = { status: 401, code: 'session_expired' }
/** A little longer than the time from a refusal to the next try. */
const NEXT_TRY = 30_100

/** The provider grants a user something, and all instances can know. */
async function grantAnother({ user, call, told }: RefusalWorld): Promise<void> {
  const healthy = await user(`healthy-${crypto.randomUUID()}`)
  const tells = await told()
  if ((await call(healthy)).status !== 200) throw new Error('a healthy user is not refreshed')
  await tells()
}

async function manyRefused(opsUrl: string): Promise<number | undefined> {
  return (await samplesOf(opsUrl, 'bff_provider_refuses_many_total')).get('code="access_denied"')
}

await test('where the provider grants others, refusals of each code end a session at once, when they last, or never', async (t) => {
  const world = await refusalWorld(t)
  const { user, call, refuses, pass, refreshed, server } = world
  const codes = [...AT_ONCE, ...LASTING, ...NEVER]
  const browsers = new Map<string, Awaited<ReturnType<typeof user>>>()
  for (const code of codes) {
    browsers.set(code, await user(code))
    refuses.set(code, json({ error: code }, 400))
  }
  const callAll = async (expected: (code: string) => object): Promise<void> => {
    for (const [code, browser] of browsers) {
      const answer = await call(browser)
      t.match(answer, expected(code), code)
      if (answer.status === 401) browsers.delete(code)
    }
  }
  await grantAnother(world)
  // What was granted before proves nothing.
  await callAll(() => DOWN)
  await grantAnother(world)
  await pass(NEXT_TRY)
  await callAll((code) => (AT_ONCE.includes(code) ? ENDED : DOWN))
  await pass(NEXT_TRY)
  await callAll((code) => (LASTING.includes(code) ? ENDED : DOWN))
  for (let times = 0; times < 3; times++) {
    await pass(NEXT_TRY)
    await callAll(() => DOWN)
  }
  t.same([...browsers.keys()], NEVER)
  t.equal(refreshed.filter((name) => name === 'access_denied').length, 2)
  const ended = server.log.filter(({ audit }) => audit === 'session_ended')
  t.equal(ended.length, AT_ONCE.length + LASTING.length)
  t.ok(ended.every(({ reason }) => reason === 'refused'))
})

await test('another session of the refused user is no other user; a login is proof enough', async (t) => {
  const { user, call, refuses, pass, told } = await refusalWorld(t)
  const [one, two] = [await user('alice'), await user('alice')]
  refuses.set('alice', json({ error: 'login_required' }, 400))
  t.match(await call(one), DOWN)
  refuses.delete('alice')
  const tells = await told()
  t.equal((await call(two)).status, 200)
  await tells()
  refuses.set('alice', json({ error: 'login_required' }, 400))
  await pass(NEXT_TRY)
  t.match(await call(one), DOWN)
  const tellsAgain = await told()
  await user('alice')
  await tellsAgain()
  await pass(NEXT_TRY)
  t.match(await call(one), ENDED)
})

await test('a refusal holds for all instances, and survives their restart; a grant forgets it', async (t) => {
  const { user, call, refuses, pass, refreshed, other, server, instance, records } = await refusalWorld(t)
  const browser = await user('alice')
  refuses.set('alice', json({ error: 'login_required' }, 400))
  t.match(await call(browser), DOWN)
  const restarted = await instance()
  for (const there of [server, other, restarted, other]) {
    const answer = await call(browser, { server: there })
    t.match(answer, DOWN)
    t.ok(answer.retryAfter > 20 && answer.retryAfter <= 30, `${answer.retryAfter}`)
  }
  t.equal(refreshed.length, 1)
  await pass(NEXT_TRY)
  refuses.delete('alice')
  t.equal((await call(browser, { server: restarted })).status, 200)
  t.same(await records(), [])
})

await test('the calls of a refused session go on until its token has expired; then it is tried again at once', async (t) => {
  const setAhead = timeAhead(t)
  const world = await refusalWorld(t)
  const { user, call, refuses, refreshed, pass } = world
  const browser = await user('alice', 600)
  refuses.set('alice', json({ error: 'login_required' }, 400))
  setAhead(590_000)
  t.equal((await call(browser)).status, 200)
  await until(() => refreshed.length === 1)
  t.equal((await call(browser, { method: 'POST' })).status, 200)
  t.equal(refreshed.length, 1)
  await grantAnother(world)
  refreshed.length = 0
  setAhead(10_000)
  await pass(10_000)
  t.match(await call(browser), ENDED)
  t.same(refreshed, ['alice'])
})

await test('an open trading socket closes once the provider has refused its user and granted another, without a call', async (t) => {
  const world = await refusalWorld(t)
  const { user, call, refuses, server, other, refreshed, upstream } = world
  refuses.set('refused', json({ error: 'access_denied' }, 400))
  const browser = await user('refused', 5)
  const cookie = browser.cookieHeader(new URL(server.url), undefined)
  const url = `ws://127.0.0.1:${server.port}/ws/trading/VRTC100`
  const { socket, closed } = await new BrowserSocket(url, { cookie, origin: server.url }).opened()
  t.teardown(() => socket.terminate())
  const { onRest } = upstream
  upstream.onRest = (_request, response) => answerJson(response, 401, {})
  t.match(await call(browser, { server: other }), DOWN)
  upstream.onRest = onRest
  await grantAnother(world)
  t.same(await closed, { code: 4401, reason: 'session_expired' })
  t.same(refreshed.filter((name) => name === 'refused').length, 2, 'it was tried when its token expired')
})

await test('three users who are refused alike are an error that names the code, and a metric', async (t) => {
  const { user, call, refuses, server, other } = await refusalWorld(t)
  const browsers = [
    await user('alice'),
    await user('alice'),
    await user('alice'),
    await user('bob'),
    await user('carol'),
  ]
  for (const name of ['alice', 'bob', 'carol']) refuses.set(name, json({ error: 'access_denied' }, 400))
  for (const browser of browsers.slice(0, 4)) await call(browser)
  t.equal(await manyRefused(server.opsUrl), undefined, 'three sessions of one user, and another user, are two')
  for (const browser of browsers.slice(4)) await call(browser, { server: other })
  t.equal(await manyRefused(other.opsUrl), 1)
  const line = other.log.find(({ msg }) => msg === 'the provider refuses several users, and grants nobody')
  t.match(line, { level: 50, code: 'access_denied' })
})

await test('429s to three users pause the refreshes of all, but for one try a second; 5xx do not end that, a grant does', async (t) => {
  const { user, call, refuses, refreshed, pass, server } = await refusalWorld(t)
  const healthy = await Promise.all(['dave', 'eve', 'frank'].map((name) => user(name)))
  const [dave, eve, frank] = healthy as [(typeof healthy)[0], (typeof healthy)[0], (typeof healthy)[0]]
  for (const name of ['alice', 'bob', 'carol']) refuses.set(name, json('', 429, { 'retry-after': '40' }))
  for (const name of ['alice', 'alice', 'bob', 'carol']) {
    const answer = await call(await user(name))
    t.match(answer, DOWN)
    t.ok(answer.retryAfter >= 39)
  }
  // Their logins were before, so nothing has lifted the pause since.
  refuses.set('dave', json('', 503))
  t.match(await call(dave), DOWN)
  t.match(await call(eve), { ...DOWN, retryAfter: 1 })
  t.same(refreshed, ['alice', 'alice', 'bob', 'carol', 'dave'])
  await pass(1000)
  t.match(await call(eve), { status: 200 }, 'one may try')
  t.equal((await call(frank)).status, 200, 'and a grant lifts the pause')
  t.ok(await isLoggedIn(dave, server.url))
})
