import { test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { refusalWorld } from '../support/login/refusal-world.ts'
import { json } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'

await test('trading sockets of a refused user without any call are closed at the second refusal, half a minute later, on every instance', async (t) => {
  const { user, call, refuses, refreshed, server, other } = await refusalWorld(t)
  const healthy = await user('healthy')
  const browser = await user('refused', 3)
  refuses.set('refused', json({ error: 'login_required' }, 400))
  const cookie = browser.cookieHeader(new URL(server.url), undefined)
  const sockets = await Promise.all(
    [server, other].map(({ port }) =>
      new BrowserSocket(`ws://127.0.0.1:${port}/ws/trading/VRTC100`, { cookie, origin: server.url }).opened(),
    ),
  )
  t.teardown(() => sockets.forEach(({ socket }) => socket.terminate()))
  const refusals = (): number => refreshed.filter((name) => name === 'refused').length
  await until(() => refusals() === 1)
  t.equal((await call(healthy)).status, 200)
  for (const { socket } of sockets) t.equal(socket.readyState, socket.OPEN)
  await until(() => refusals() === 2, 'the token is tried again', 45_000)
  for (const { closed } of sockets) t.same(await closed, { code: 4401, reason: 'session_expired' })
  t.equal(refusals(), 2, 'by one instance for both')
})
