import { mock } from 'node:test'
import { test } from 'tap'
import { socketPeer } from '../support/client/socket-peer.ts'
import { until } from '../support/time/until.ts'

await test('status().latencyMs is the time that a ping and its reply take', async (t) => {
  const world = await socketPeer(t)
  const socket = world.client.publicSocket()
  t.equal(socket.status().latencyMs, undefined, 'not measured yet')
  await until(() => socket.status().latencyMs !== undefined)
  const { state, latencyMs = -1 } = socket.status()
  t.equal(state, 'open')
  t.ok(latencyMs >= 0 && latencyMs < 4000, `${latencyMs} ms`)
  t.equal(socket.status(), socket.status(), 'the same object until something changes')
})

await test('a connection on which only prices arrive is sent a ping every 30 seconds', async (t) => {
  const world = await socketPeer(t)
  let pings = 0
  world.onSocket = (socket) =>
    socket.on('message', (data: Buffer) => (pings += Number(String(data).includes('"ping"'))))
  const prices: ((quote: number) => void)[] = []
  world.reply = (_message, send) => prices.push((quote) => send({ tick: { epoch: 1, quote } }))
  mock.timers.enable({ apis: ['setInterval', 'Date'], now: Date.now() })
  t.teardown(() => mock.timers.reset())
  let arrived = 0
  world.client.publicSocket().subscribe({ ticks: 'R_1' }, () => arrived++)
  await until(() => prices.length === 1 && pings === 1, 'the stream and the ping of a new connection')
  for (let second = 1; second <= 65; second++) {
    prices[0]?.(second)
    await until(() => arrived === second)
    mock.timers.tick(1000)
    await until(() => pings >= 1 + Math.floor((second - 1) / 30))
  }
  t.equal(pings, 3)
})
