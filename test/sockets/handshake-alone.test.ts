import { queryObjects } from 'node:v8'
import { test } from 'tap'
import { Handshake } from '../../src/sockets/handshake.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { RELAY, startWorld } from '../support/world.ts'

await test('an open socket keeps nothing of its handshake, such as its request', async (t) => {
  const world = await startWorld(t, RELAY)
  for (const path of [PUBLIC, TRADING, '/ws/session']) {
    await world.socket(path).opened()
    t.equal(queryObjects(Handshake), 0, path)
  }
})
