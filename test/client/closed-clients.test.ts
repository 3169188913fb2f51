import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { test } from 'tap'
import type { createClient, PublicSocket } from '../../client/dist/client.js'
import { fate } from '../../client/dist/client/orders.js'
import { failure } from '../support/client/page-client.ts'
import { socketPeer } from '../support/client/socket-peer.ts'
import { untyped } from '../support/client/untyped.ts'
import { until } from '../support/time/until.ts'

function follow(socket: PublicSocket, onError: () => unknown): () => void {
  return untyped(socket).subscribe(
    { ticks: 'R_1' },
    () => undefined,
    () => void onError(),
  )
}

await test('a socket that is asked for after close() has ended and opens nothing, also one that looks for an order', async (t) => {
  const world = await socketPeer(t)
  const { client } = world
  const account = client.tradingSocket('VRTC100')
  await until(() => account.status().state === 'open')
  world.reply = () => undefined
  const lost = failure(untyped(account).command({ buy: 'proposal', price: 1 }))
  await until(() => world.seen.length === 1)
  client.close()
  const error = await lost
  t.match(error, { code: 'ended', outcome: 'unknown', closeCode: 1000 })
  t.match(await failure(fate(error as never)), { code: 'ended' })
  for (const open of [() => client.publicSocket(), () => client.tradingSocket('VRTC100')]) {
    const socket = open()
    t.same(socket.status(), { state: 'ended', code: 1000, reason: '' })
    t.match(await failure(untyped(socket).request({ time: 1 })), { code: 'ended', closeCode: 1000 })
    const failed: unknown[] = []
    untyped(socket).subscribe(
      { ticks: 'R_1' },
      () => undefined,
      ({ code }) => failed.push(code),
    )
    await until(() => failed.length === 1)
    t.same(failed, ['ended'])
    socket.close()
  }
  await pause(100)
  t.equal(world.sockets.length, 1)
  t.equal(world.seen.length, 1)
})

await test('no listener of a stream is told of its end once another one has stopped or closed it', async (t) => {
  const world = await socketPeer(t)
  const [first, second] = [world.client.publicSocket(), world.client.publicSocket()]
  const told: string[] = []
  follow(first, () => {
    told.push('first')
    second.close()
    stop()
    follow(first, () => told.push('again'))
  })
  follow(second, () => told.push('of the closed socket'))
  const stop = follow(first, () => told.push('stopped'))
  follow(first, () => told.push('last'))
  await until(() => world.seen.length > 0)
  world.sockets[0]?.close(4404, 'not_found')
  await until(() => told.includes('again'))
  t.same(told, ['first', 'last', 'again'])
})

await test('no listener of a series that was stopped is told that its part of the package could not be loaded', async (t) => {
  const dir = t.testdir({
    'client.js': await readFile(new URL('../../client/dist/client.js', import.meta.url), 'utf8'),
  })
  const { createClient: createAlone } = (await import(pathToFileURL(`${dir}/client.js`).href)) as {
    createClient: typeof createClient
  }
  const client = createAlone({ baseUrl: 'http://127.0.0.1:9' })
  t.teardown(() => client.close())
  const socket = client.publicSocket()
  const told: string[] = []
  const [stopped, shown] = ['R_1', 'R_2'].map((symbol) => {
    const series = socket.series({ symbol, style: 'ticks', count: 1 })
    series.subscribe(() => told.push(`${symbol}: ${series.get().error?.code}`))
    return series
  })
  stopped?.stop()
  await until(() => shown?.get().error !== undefined)
  t.same(told, ['R_2: not_loaded'])
})
