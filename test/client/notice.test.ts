import { test } from 'tap'
import { ApiError, type Client } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { pageClient } from '../support/client/page-client.ts'
import { activeTabs, tabSession } from '../support/client/session-tabs.ts'
import { SessionServer } from '../support/client/session-server.ts'
import { controlsWorld, control, pause } from '../support/controls/controls-world.ts'
import { until } from '../support/time/until.ts'
import { PROBLEM, problemBody } from '../support/client/own-problem.ts'

const NOTICE = { message: 'Prices of R_100 are late.' }

function isPaused({ session }: Client): boolean {
  const state = session.get()
  return state.status === 'active' && state.ordersPaused !== undefined
}

await test('a notice of the session socket reaches all tabs, and goes when it is lifted', async (t) => {
  const { server, tabs } = await activeTabs(t, 2)
  t.equal(server.open, 1)
  server.push({ event: 'notice', notice: NOTICE })
  await until(() => tabs.every((tab) => tab.get().notice?.message === NOTICE.message))
  for (const tab of tabs) t.equal(tab.get().status, 'active')
  const state = tabs[0]?.get()
  server.push({ event: 'expiring', at: 1, why: 'idle', now: 0 })
  server.push({ event: 'notice', notice: NOTICE })
  await server.delivered()
  t.equal(tabs[0]?.get(), state, 'the state is the same object while nothing has changed')
  server.push({ event: 'notice', notice: null })
  await until(() => tabs.every((tab) => tab.get().notice === undefined))
})

await test('a notice that comes during a check does not spoil it', async (t) => {
  const { server, session } = await activeTabs(t)
  server.delayMs = 200
  server.isLoggedIn = false
  const confirmed = session.confirm()
  server.push({ event: 'notice', notice: NOTICE })
  t.equal(await confirmed, false)
  t.equal(session.get().status, 'anonymous')
})

await test('a page without a session has the notice of its check, and keeps it after a logout', async (t) => {
  const server = await SessionServer.start(t, { isLoggedIn: false, notice: NOTICE })
  const session = tabSession(t, server.url)
  session.subscribe(() => undefined)
  await until(() => session.get().status === 'anonymous')
  t.match(session.get(), { notice: NOTICE })
  server.notice = undefined
  await session.check()
  t.equal(session.get().notice, undefined)
  server.isLoggedIn = true
  server.notice = NOTICE
  await session.check()
  t.match(session.get(), { status: 'active', notice: NOTICE })
  session.end('logout')
  t.match(session.get(), { status: 'anonymous', reason: 'logout', notice: NOTICE })
})

await test('the package does not repeat an order that is refused because orders are paused', async (t) => {
  let calls = 0
  const client = await clientOf(t, ({ method }, response) => {
    if (method === 'POST') calls++
    response.writeHead(503, { ...PROBLEM, 'retry-after': '1' })
    response.end(problemBody('orders_paused', { detail: 'Wait.', status: 503 }))
  })
  for (const idempotencyKey of [undefined, 'one']) {
    const call = client.api('/payment-agents/v1/transfer', {
      method: 'POST',
      body: '{}',
      ...(idempotencyKey && { idempotencyKey }),
    })
    const error = await call.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    t.ok(error instanceof ApiError)
    t.match(error, { code: 'orders_paused', outcome: undefined, retryAfter: 1, problem: { detail: 'Wait.' } })
  }
  t.equal(calls, 2)
})

await test('with a real server: the notice and the pause reach a page through the package', async (t) => {
  const { server, user, upstream, orders } = await controlsWorld(t, { instances: 1, redis: false })
  const { browser } = await user('CR1')
  const client = pageClient(t, browser, server.url)
  client.session.subscribe(() => undefined)
  await until(() => client.session.get().status === 'active')
  await control(server, 'PUT', '/notice', NOTICE)
  await until(() => client.session.get().notice?.message === NOTICE.message)
  await control(server, 'DELETE', '/notice')
  await until(() => client.session.get().notice === undefined)
  await pause(server, { message: 'Not now.' })
  await until(() => isPaused(client))
  t.match(client.session.get(), { status: 'active', ordersPaused: { message: 'Not now.', closing: true } })
  const call = client.api('/payment-agents/v1/transfer', { method: 'POST', body: '{}', idempotencyKey: true })
  t.match(await call.catch((error: unknown) => error), { code: 'orders_paused', problem: { detail: 'Not now.' } })
  const socket = client.tradingSocket('VRTC100')
  upstream.onSocket = (peer) =>
    peer.on('message', (data: Buffer) => {
      const request = JSON.parse(data.toString()) as Record<string, unknown>
      peer.send(JSON.stringify({ msg_type: 'balance', balance: {}, req_id: request['req_id'], echo_req: request }))
    })
  t.match(await socket.request({ balance: 1 }), { msg_type: 'balance' })
  t.match(await socket.command({ buy: 'x', price: 1 }).catch((error: unknown) => error), {
    code: 'OrdersPaused',
    message: 'Not now.',
  })
  t.same(orders, [])
  await control(server, 'DELETE', '/orders')
  await until(() => !isPaused(client))
  t.equal(client.session.get().status, 'active')
})
