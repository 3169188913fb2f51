import { stat } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { createRestClients } from '../../src/upstream/rest-clients.ts'
import { ALONE } from '../support/server/settings.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { ok, rawUpstream } from '../support/upstream/raw-upstream.ts'

/** Longer than a connection for orders may be idle. */
const STALL_MS = 1000

/** Sends orders, of which `next` resolves with the connection: 1 for the first one. */
async function orders(t: Test) {
  const upstream = await rawUpstream(t)
  upstream.answer = (_request, socket) => void socket.write(ok('{}', 'Keep-Alive: timeout=60\r\n'))
  const clients = createRestClients(readConfig({ ...ALONE, API_URL: upstream.url }).upstream)
  t.teardown(() => clients.close())
  const next = async (): Promise<number> => {
    const order = { method: 'POST', path: '/', template: '/', headers: [], body: null } as const
    t.match(await clients.orders.exchange(order), { is: 'answered' })
    // In the next turn of the event loop undici knows that the connection is idle.
    await turn()
    return upstream.requests.at(-1)?.connection ?? 0
  }
  return {
    next,
    /** Resolves with a connection that was used again at once: on a slow machine the first ones may have been idle for too long. */
    used: async (): Promise<number> => {
      let connection = await next()
      await until(async () => {
        const before = connection
        connection = await next()
        return connection === before
      }, 'a connection is used again at once')
      return connection
    },
  }
}

await test('An order does not use a connection that was idle for too long while the process stood still', async (t) => {
  const { next, used } = await orders(t)
  const connection = await used()
  // In the phase in which sockets are read, an immediate comes before the timers of connections that have become too old.
  await stat('.')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS)
  t.equal(await next(), connection + 1)
})

await test('An order does not use a connection from before the machine was suspended, when only the time of day went on', async (t) => {
  const { next, used } = await orders(t)
  const ahead = timeAhead(t)
  const connection = await used()
  ahead(STALL_MS)
  t.equal(await next(), connection + 1)
  t.ok((await used()) > connection, 'the new one is used again')
})
