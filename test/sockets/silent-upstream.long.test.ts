import { test } from 'tap'
import { openUpstreamSocket } from '../../src/sockets/upstream-socket.ts'
import { stalledWay } from '../support/peers/stalled-way.ts'
import { startWorld, RELAY } from '../support/world.ts'

await test('A socket whose upstream loses every packet closes with 1013 upstream_timeout', async (t) => {
  const { upstream } = await startWorld(t, RELAY)
  const way = await stalledWay(t, Number(upstream.host.split(':')[1]))
  await way.stall()
  const outcome = await openUpstreamSocket(`ws://127.0.0.1:${way.port}/x`, 1000, new AbortController().signal)
  t.match(outcome, { is: 'refused', why: 'timeout', close: { code: 1013, reason: 'upstream_timeout' } })
})
