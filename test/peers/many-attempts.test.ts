import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { test } from 'tap'
import { dial } from '../../src/peers/dialing.ts'
import { lookupThreads } from '../support/peers/lookup-threads.ts'
import { stalledWay } from '../support/peers/stalled-way.ts'
import { until } from '../support/time/until.ts'

const HOST = 'silent.test'
const [CONNECTIONS, BESIDE] = [1500, 1024]

await test('Where no address answers, each connection takes a descriptor, and only so many take another one', async (t) => {
  const names = lookupThreads(t, 8)
  const [first, second] = ['127.0.0.2', '127.0.0.3'] as const
  names.addresses.set(
    HOST,
    [first, second].map((address) => ({ address, family: 4 })),
  )
  const way = await stalledWay(t, 9, first)
  const other = await stalledWay(t, 9, second, way.port)
  await Promise.all([way.stall(), other.stall()])
  let [tried, open] = [0, 0]
  const noteSocket = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket }
    tried++
    open++
    socket.on('close', () => void open--)
  }
  subscribe('net.client.socket', noteSocket)
  t.teardown(() => unsubscribe('net.client.socket', noteSocket))
  for (const time of ['once', 'again']) {
    tried = 0
    const dials = Array.from({ length: CONNECTIONS }, () =>
      dial('other', { host: HOST, port: way.port, timeoutMs: 60_000 }, () => undefined),
    )
    await until(() => tried === 2 * CONNECTIONS, 'every connection has tried both')
    await until(() => open <= CONNECTIONS + BESIDE, `${time}: the other first ones are given up`)
    t.ok(open > CONNECTIONS + BESIDE - 10)
    for (const end of dials) end()
    await until(() => open === 0)
  }
})
