import { test } from 'tap'
import { Controls } from '../../src/controls/controls.ts'
import { control, controlsWorld, pause } from '../support/controls/controls-world.ts'
import type { BrowserSocket } from '../support/browser/browser-socket.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'

type Body = Record<string, unknown>

/** What GET /auth/session says of pauses. */
const pauseAt = async (port: number, cookie = ''): Promise<unknown> => {
  const response = await fetch(`http://127.0.0.1:${port}/auth/session`, { headers: { cookie } })
  return ((await response.json()) as Body)['orders_paused']
}

/** The pauses that a session socket has told of. */
const told = ({ texts }: BrowserSocket): unknown[] =>
  texts
    .map((text) => JSON.parse(text) as Body)
    .flatMap((body) => (body['event'] === 'session' ? [body['orders_paused']] : []))

await test('a pause of all is in the state of every session, on all instances, until it is lifted', async (t) => {
  const { servers, user } = await controlsWorld(t)
  const { cookie, socket: open } = await user('CR1')
  const sockets = servers.map((at) => open('/ws/session', { at }))
  for (const socket of sockets) await socket.count(1)
  const message = 'Prices of R_100 are wrong.'
  await pause(servers[1], { message })
  for (const [at, socket] of sockets.entries()) {
    await until(() => told(socket).length === 2)
    t.same(told(socket), [undefined, { message, closing: true }])
    t.same(await pauseAt(servers[at]?.port ?? 0, cookie), { message, closing: true })
    t.equal(await pauseAt(servers[at]?.port ?? 0), undefined, 'who is not logged in has no orders')
  }
  await pause(servers[2], { closing: false })
  for (const socket of sockets) await until(() => told(socket).length === 3)
  await control(servers[0], 'DELETE', '/orders')
  for (const [at, socket] of sockets.entries()) {
    await until(() => told(socket).length === 4)
    t.same(told(socket).slice(2), [{ closing: false }, undefined])
    t.equal(await pauseAt(servers[at]?.port ?? 0, cookie), undefined)
  }
})

await test('the pause of one user is in the state of that user alone, beside one of all', async (t) => {
  const { server, user } = await controlsWorld(t, { instances: 1 })
  const [own, other] = [await user('CR1'), await user('CR2')]
  const [mine, theirs] = [own.socket('/ws/session'), other.socket('/ws/session')]
  await Promise.all([mine.count(1), theirs.count(1)])
  await pause(server, { subject: 'CR1', message: 'We are looking at your account.', closing: false })
  await until(() => told(mine).length === 2)
  const until60 = Math.floor(Date.now() / 1000) + 60
  await pause(server, { until: until60 })
  await until(() => told(theirs).length === 2)
  await control(server, 'DELETE', '/orders?subject=CR1')
  await until(() => told(mine).length === 3)
  t.same(told(mine).slice(1), [
    { message: 'We are looking at your account.', closing: false },
    { until: until60, closing: true },
  ])
  t.same(told(theirs), [undefined, { until: until60, closing: true }])
  t.same(await pauseAt(server.port, other.cookie), { until: until60, closing: true })
})

await test('a pause that ends by itself leaves the state of the session then', async (t) => {
  const { server, user } = await controlsWorld(t, { instances: 1, redis: false })
  const { socket: open } = await user('CR1')
  const socket = open('/ws/session')
  await socket.count(1)
  const end = Math.floor(Date.now() / 1000) + 2
  await pause(server, { until: end })
  await until(() => told(socket).length === 3)
  t.ok(Date.now() >= end * 1000)
  t.same(told(socket), [undefined, { until: end, closing: true }, undefined])
})

await test('a session without a subject is told of no pause of a user, and nobody is asked for it', async (t) => {
  const { server, upstream, user } = await controlsWorld(t, { instances: 1 })
  const { onIdentity: answer, identityRequests: asked } = upstream
  upstream.onIdentity = (_request, response) => answerJson(response, 500, {})
  const own = await user('CR1')
  upstream.onIdentity = answer
  const before = asked.length
  await pause(server, { subject: 'CR1' })
  const socket = own.socket('/ws/session')
  await socket.count(1)
  t.equal(await pauseAt(server.port, own.cookie), undefined)
  t.same([told(socket), asked.length], [[undefined], before])
  t.match(await own.order({ at: server }), { status: 503, json: { code: 'orders_paused' } })
  t.same(await pauseAt(server.port, own.cookie), { closing: true }, 'once an order has asked, it is known')
})

await test('a session socket that has ended listens to the controls no more', async (t) => {
  const listeners = new Set<() => void>()
  const value = (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  for (const name of ['onNotice', 'onPauses'] as const) t.intercept(Controls.prototype, name, { value })
  const { user } = await controlsWorld(t, { instances: 1, redis: false })
  const socket = (await user('CR1')).socket('/ws/session')
  await socket.count(1)
  t.equal(listeners.size, 2)
  socket.socket.close()
  await until(() => listeners.size === 0)
})
