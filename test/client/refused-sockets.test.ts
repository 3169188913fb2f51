import { test } from 'tap'
import { failure } from '../support/page-client.ts'
import { socketPeer } from '../support/socket-peer.ts'

await test('a request waits for the next connection while the server refuses connections', async (t) => {
  const world = await socketPeer(t)
  let refusals = 0
  world.onSocket = (socket) => refusals++ < 2 && socket.close(1013, 'upstream_unreachable')
  const socket = world.client.publicSocket()
  t.match(await socket.request({ active_symbols: 'brief' }), { ok: true })
  t.equal(world.sockets.length, 3)
  t.equal(world.seen.filter(({ on }) => on === 3).length, 1)
})

await test('a request on a connection that has worked is not sent again', async (t) => {
  const world = await socketPeer(t)
  world.reply = () => world.sockets[0]?.terminate()
  const socket = world.client.publicSocket()
  await socket.request({ ping: 1 })
  t.match(await failure(socket.request({ time: 1 })), { code: 'connection_lost' })
  await socket.request({ ping: 1 })
  t.equal(world.seen.length, 1)
})
