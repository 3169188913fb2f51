import { stat } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { createRestClients } from '../../src/upstream/rest-clients.ts'
import { ALONE } from '../support/server/settings.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { ok, rawUpstream } from '../support/upstream/raw-upstream.ts'

/** Longer than a connection for orders may be idle. */
const STALL_MS = 1000

/** Sends orders, each of which resolves with its connection: 1 for the first one. */
async function orders(t: Test) {
  const upstream = await rawUpstream(t)
  upstream.answer = (_request, socket) => void socket.write(ok('{}', 'Keep-Alive: timeout=60\r\n'))
  const clients = createRestClients(readConfig({ ...ALONE, API_URL: upstream.url }).upstream)
  t.teardown(() => clients.close())
  return async (): Promise<number | undefined> => {
    const order = { method: 'POST', path: '/', template: '/', headers: [], body: null } as const
    t.match(await clients.orders.exchange(order), { is: 'answered' })
    // In the next turn of the event loop undici knows that the connection is idle.
    await turn()
    return upstream.requests.at(-1)?.connection
  }
}

await test('An order does not use a connection that was idle for too long while the process stood still', async (t) => {
  const connectionOfNext = await orders(t)
  t.equal(await connectionOfNext(), 1)
  t.equal(await connectionOfNext(), 1, 'it is used again at once')
  // In the phase in which sockets are read, an immediate comes before the timers of connections that have become too old.
  await stat('.')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS)
  t.equal(await connectionOfNext(), 2)
})

await test('An order does not use a connection from before the machine was suspended, when only the time of day went on', async (t) => {
  const connectionOfNext = await orders(t)
  const ahead = timeAhead(t)
  t.equal(await connectionOfNext(), 1)
  t.equal(await connectionOfNext(), 1, 'it is used again at once')
  ahead(STALL_MS)
  t.equal(await connectionOfNext(), 2)
  t.equal(await connectionOfNext(), 2, 'the new one is used again')
})
