import { test } from 'tap'
import { socketPeer } from '../support/client/socket-peer.ts'
import { untyped } from '../support/client/untyped.ts'
import { until } from '../support/time/until.ts'

await test('a property of a stream that is undefined is not sent, as in a request', async (t) => {
  const world = await socketPeer(t)
  world.reply = (_message, send) => send({ subscription: { id: 'a-stream' } })
  const socket = world.client.publicSocket()
  let firsts = 0
  for (const message of [{ ticks_history: 'R_1', granularity: undefined }, { ticks_history: 'R_1' }]) {
    untyped(socket).subscribe(message, () => firsts++)
  }
  await until(() => firsts === 2)
  t.same(world.seen, [{ ticks_history: 'R_1', subscribe: 1, req_id: world.seen[0]?.['req_id'], on: 1 }])
})
