import { test } from 'tap'
import { failure, reports } from '../support/client/page-client.ts'
import { socketPeer } from '../support/client/socket-peer.ts'
import { untyped } from '../support/client/untyped.ts'
import { until } from '../support/time/until.ts'

await test('a socket that has ended keeps its last word when it is closed, and a listener that throws at the end costs nobody anything', async (t) => {
  const world = await socketPeer(t)
  const reported = reports(t)
  const closed = world.client.publicSocket()
  const other = world.client.publicSocket()
  await until(() => other.status().state === 'open')
  const failed = failure(untyped(closed).request({ time: 1 }, { timeoutMs: 60_000 }))
  world.reply = () => undefined
  const states: string[] = []
  closed.onStatus(() => {
    throw new Error('of the page')
  })
  closed.onStatus(() => states.push(closed.status().state))
  closed.close()
  t.same([states, other.status().state], [['ended'], 'open'])
  t.match(reported, [{ message: 'of the page' }])
  t.match(await failed, { code: 'closed' })
  world.sockets[0]?.close(4404, 'not_found')
  await until(() => other.status().state === 'ended')
  other.onStatus(() => states.push(other.status().state))
  other.close()
  t.match(other.status(), { state: 'ended', code: 4404, reason: 'not_found' })
  t.same([states, closed.status().code], [['ended'], 1000])
})

await test('a command that was sent before its socket ended for good may have been executed', async (t) => {
  const world = await socketPeer(t)
  const socket = world.client.publicSocket()
  await untyped(socket).request({ time: 1 })
  world.reply = () => undefined
  const failed = failure(untyped(socket).command({ sell: 7, price: 0 }))
  await until(() => world.seen.some((message) => 'sell' in message))
  world.sockets[0]?.close(4404, 'not_found')
  t.match(await failed, { code: 'ended', closeCode: 4404, outcome: 'unknown' })
})
