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
