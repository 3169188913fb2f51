import { test } from 'tap'
import { IDENTITY_TIMEOUT_MS } from '../../src/sessions/index.ts'
import { controlsWorld, pause } from '../support/controls/controls-world.ts'
import { held, tokens } from '../support/login/token-endpoint.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'

await test('an order that waits for whose it is, and for the token that this needs, is refused after three seconds and never leaves', async (t) => {
  const { server, provider, upstream, user, trade, orders } = await controlsWorld(t, { instances: 1, redis: false })
  const { onIdentity: answer } = upstream
  upstream.onIdentity = (_request, response) => answerJson(response, 500, {})
  const mine = { access_token: 'of-CR2', refresh_token: 'r', expires_in: 3 }
  provider.behaviour = tokens(mine)
  const own = await user('CR2')
  const { browser, seen } = await trade(own, server)
  upstream.onIdentity = answer
  const refresh = held(tokens({ ...mine, expires_in: 3600 }))
  provider.behaviour = refresh.behaviour
  await refresh.asked
  await pause(server, { subject: 'CR1' })
  const limits = new HeldTimers(t, 'setTimeout', IDENTITY_TIMEOUT_MS)
  browser.socket.send('{"ping":1}')
  browser.socket.send('{"buy":"x","price":1}')
  await until(() => limits.size === 1, 'the order waits, and not for ever')
  const call = own.order()
  limits.run()
  refresh.release()
  t.match(JSON.parse((await browser.count(1))[0]?.data.toString() ?? ''), { error: { code: 'OrdersPaused' } })
  t.match(await call, { status: 503, json: { code: 'orders_paused' } })
  t.same([seen, orders], [['{"ping":1}'], []])
})
