import { test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { refusalWorld } from '../support/login/refusal-world.ts'
import { json } from '../support/login/token-endpoint.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'

const EIGHT = Array.from({ length: 8 }, (_, index) => `refused-${index}`)

await test('eight users whose refreshes are refused keep no other user from being refreshed', async (t) => {
  const { user, call, refuses, refreshed } = await refusalWorld(t)
  const healthy = await user('healthy')
  const answers = [
    json({ error: 'interaction_required' }, 400),
    json({ error: 'token_inactive' }, 401),
    json({ error: 'interaction_required' }, 200),
  ]
  const refused = await Promise.all(
    EIGHT.map(async (name, index) => {
      refuses.set(name, answers[index % answers.length] ?? json({}))
      return user(name)
    }),
  )
  for (const browser of refused) t.match(await call(browser), { status: 503, code: 'provider_unavailable' })
  t.equal((await call(healthy)).status, 200)
  t.same(refreshed.at(-1), 'healthy')
})

await test('an open trading socket closes once the provider has refused its user and granted another', async (t) => {
  const world = await refusalWorld(t)
  const { user, call, refuses, server, other, refreshed, upstream } = world
  refuses.set('refused', json({ error: 'access_denied' }, 400))
  const healthy = await user('healthy')
  const browser = await user('refused', 4)
  const cookie = browser.cookieHeader(new URL(server.url), undefined)
  const origin = server.url
  const url = `ws://127.0.0.1:${server.port}/ws/trading/VRTC100`
  const { socket, closed } = await new BrowserSocket(url, { cookie, origin }).opened()
  t.teardown(() => socket.terminate())
  const { onRest } = upstream
  upstream.onRest = (_request, response) => answerJson(response, 401, {})
  t.match(await call(browser, { server: other }), { status: 503, code: 'provider_unavailable' })
  upstream.onRest = onRest
  t.equal((await call(healthy)).status, 200)
  t.same(await closed, { code: 4401, reason: 'session_expired' })
  t.same(refreshed, ['refused', 'healthy', 'refused'], 'the token was renewed without a call when it expired')
})

await test('200 POSTs that upstream answers with 401 cost one refresh', async (t) => {
  const { user, call, upstream, refreshed } = await refusalWorld(t)
  const browser = await user('alice', 3600)
  const { onRest } = upstream
  upstream.onRest = (request, response) =>
    request.method === 'POST' ? answerJson(response, 401, {}) : onRest(request, response)
  for (let count = 0; count < 20; count++) {
    await call(browser)
    await call(browser, { method: 'POST', headers: count % 2 === 0 ? {} : { 'idempotency-key': `key-${count}` } })
  }
  t.equal(refreshed.length, 1)
})
