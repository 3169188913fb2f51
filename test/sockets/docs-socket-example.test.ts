import { test } from 'tap'
import { documentedSocket } from '../support/documented-socket.ts'
import { logOut, relayWorld, TRADING } from '../support/relay-world.ts'
import { until } from '../support/until.ts'

type Message = Record<string, unknown>

await test('openLine() of docs/frontends.md reconnects, subscribes again, and never repeats an order', async (t) => {
  const world = await relayWorld(t)
  const { browser, server, upstream } = world
  const asked: Message[] = []
  upstream.onSocket = (socket) => {
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message
      asked.push(message)
      if ('ticks' in message) socket.send('{"tick":1}')
      if ('buy' in message) socket.terminate()
    })
  }
  const random = Math.random
  t.teardown(() => (Math.random = random))
  Math.random = () => 0.01
  const openLine = documentedSocket(browser, server.url)
  let ticks = 0
  let end: unknown
  const client = openLine(TRADING, {
    subscribe: (send) => void send({ ticks: 'R_100', subscribe: 1 }),
    receive: () => ticks++,
    ended: (code, reason) => (end = { code, reason }),
  })
  t.equal(client.send({ buy: 'too early' }), false)
  await until(() => ticks === 1)
  t.equal(client.send({ buy: 'abc' }), true)
  await until(() => ticks === 2)
  t.equal(asked.filter((message) => 'buy' in message).length, 1, 'an order without a response is not sent again')
  t.equal(asked.filter((message) => 'ticks' in message).length, 2)

  await logOut(browser)
  await until(() => end !== undefined)
  t.same(end, { code: 4401, reason: 'session_expired' })
  client.stop()
  await world.quiet()
})
