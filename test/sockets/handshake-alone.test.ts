import { queryObjects } from 'node:v8'
import { test } from 'tap'
import { Handshake } from '../../src/sockets/handshake.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { RELAY, startWorld } from '../support/world.ts'

await test('an open socket keeps nothing of its handshake, such as its request', async (t) => {
  const world = await startWorld(t, RELAY)
  const paths = [PUBLIC, TRADING, '/ws/session']
  for (const path of paths) await world.socket(path).opened()
  // Once for all of them, since it walks through the whole heap.
  t.equal(queryObjects(Handshake), 0, paths.join(', '))
})
