import { setTimeout as pause } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { Message, SocketError, TradingSocket } from '../../client/dist/client.js'
import { fate } from '../../client/dist/client/orders.js'
import { createFakeClient, type FakeClient, type FakeOptions } from '../../client/dist/testing.js'
import { failure } from '../support/client/page-client.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'

const REFUSED = { error: { code: 'InvalidPrice', message: 'too low' } }

/** A fake client with an open trading socket. It ends with the test. */
async function trading(t: Test, options: FakeOptions = {}): Promise<FakeClient & { readonly socket: TradingSocket }> {
  const client = createFakeClient({ session: {}, ...options })
  t.teardown(() => client.close())
  const socket = client.tradingSocket('VRTC100')
  await until(() => socket.status().state === 'open')
  return { ...client, socket }
}

await test('a refusal has the type of its operation, and the passthrough of its message, as that of the trading service has', async (t) => {
  const { server, socket } = await trading(t)
  const types: unknown[] = []
  const hear = (error: unknown): unknown => types.push((error as SocketError).reply?.['msg_type'])
  for (const operation of ['buy', 'ticks', 'ticks_history'] as const) server.reply(operation, REFUSED)
  hear(await failure(socket.command({ buy: 'a-proposal', price: 10 })))
  hear(await failure(socket.request({ statement: 1 })))
  socket.subscribe({ ticks: 'R_100' }, () => t.fail('it is refused'), hear)
  hear(await failure(socket.request({ ticks_history: 'R_100', end: 'latest', passthrough: { page: 7 } })))
  t.same(new Set(types), new Set(['buy', 'history', 'statement', 'tick']))
  const heard: Message[] = []
  socket.listen((message) => heard.push(message))
  await socket.request({ time: 1, passthrough: { page: 7 } }).catch(() => undefined)
  t.match(heard, [{ passthrough: { page: 7 }, msg_type: 'time' }])
})

await test('the refusal of a buy that comes after its timeout is what fate() finds', async (t) => {
  const { server, socket } = await trading(t)
  server.reply('buy', async () => {
    await pause(50)
    return REFUSED
  })
  const error = await failure(socket.command({ buy: 'a-proposal', price: 10 }, { timeoutMs: 1 }))
  t.match(error, { code: 'timeout', outcome: 'unknown' })
  t.match(await failure(fate(error as SocketError)), { code: 'InvalidPrice' })
})

await test('an open trading socket is use of the session, and an open public one is none', async (t) => {
  const pass = timeAhead(t)
  const client = await trading(t, { session: { idleMs: 100_000 } })
  const { socket, session } = client
  const market = client.publicSocket()
  await until(() => market.status().state === 'open')
  pass(150_000)
  await session.check()
  t.equal(session.get().status, 'active')
  pass(90_000)
  socket.close()
  await pause(300)
  pass(90_000)
  await session.check()
  t.equal(session.get().status, 'active', 'it was used until the socket closed')
  pass(20_000)
  await session.check()
  t.equal(session.get().status, 'anonymous')
})
