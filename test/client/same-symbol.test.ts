import { setTimeout as pause } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { chart, has, price, type Followed } from '../support/client/followed.ts'
import { reaches } from '../support/client/page-client.ts'
import { seededRandom } from '../support/time/seeded-random.ts'
import { sideBySide } from '../support/time/side-by-side.ts'
import { socketPeer } from '../support/client/socket-peer.ts'
import { symbolsOnce } from '../support/client/symbols-once.ts'
import { until } from '../support/time/until.ts'

/** A page with a public socket, at a service that streams each symbol once a connection. */
async function publicPage(t: Test) {
  const world = await socketPeer(t)
  return { world, service: symbolsOnce(world), socket: world.client.publicSocket() }
}

/** Such a page, which has asked for the price and the chart of one symbol. */
async function listAndChart(t: Test) {
  const page = await publicPage(t)
  return { ...page, listed: price(page.socket), shown: chart(page.socket, 10) }
}

await sideBySide({
  'the connection for the second stream of a symbol closes with its last stream, and the first goes on': async (t) => {
    const { world, service, socket, listed, shown } = await listAndChart(t)
    const other = chart(socket, 10, 'R_2')
    await has('history', shown, other)
    t.same(service.open(), ['1 R_1', '1 R_2', '2 R_1'], 'what the first connection can carry is there')
    service.tick(7)
    await until(() => listed.messages.at(-1)?.['tick'] === 7 && shown.messages.at(-1)?.['tick'] === 7)
    shown.stop()
    await until(() => world.sockets[1]?.readyState === 3)
    t.same(service.open(), ['1 R_1', '1 R_2'])
    t.same([world.sockets.length, listed.errors, shown.errors], [2, [], []])
    t.equal(socket.status().state, 'open')
  },

  'after the loss of either connection its own streams are made again once, where they were': async (t) => {
    const { world, service, socket, listed, shown } = await listAndChart(t)
    await has('history', shown)
    for (const lost of [1, 0]) {
      const asked = world.seen.length
      const waits = reaches(socket, 'waiting')
      world.sockets[lost]?.terminate()
      await waits
      await until(() => socket.status().state === 'open' && service.open().length === 2)
      service.tick(lost)
      await until(() => [listed, shown].every(({ messages }) => messages.at(-1)?.['tick'] === lost))
      t.equal(world.seen.length, asked + 1)
    }
    t.same(service.open(), ['3 R_1', '4 R_1'])
    t.match(world.seen.slice(-2), [{ ticks_history: 'R_1' }, { ticks: 'R_1' }])
    t.same([listed.errors, shown.errors], [[], []])
  },

  'at most two more connections: a fourth stream of the symbol gets AlreadySubscribed, and the place of one that stops':
    async (t) => {
      const { world, service, socket } = await publicPage(t)
      const listed = price(socket)
      await has('tick', listed)
      const charts: Followed[] = []
      for (const count of [10, 20]) {
        const shown = chart(socket, count)
        charts.push(shown)
        await has('history', shown)
      }
      const tooMany = chart(socket, 30)
      await until(() => tooMany.errors.length === 1)
      t.same(tooMany.errors, ['AlreadySubscribed'])
      t.same(service.open(), ['1 R_1', '2 R_1', '3 R_1'])
      listed.stop()
      await has('history', tooMany)
      t.same(service.open(), ['1 R_1', '2 R_1', '3 R_1'])
      t.equal(world.sockets.length, 3)
      for (const { errors } of charts) t.same(errors, [])
    },

  'a subscription that the page made itself is in the way: the stream gets a connection after the second refusal':
    async (t) => {
      const { world, service, socket } = await publicPage(t)
      await socket.request({ ticks: 'R_1', subscribe: 1 })
      const shown = chart(socket, 10)
      await has('history', shown)
      t.same(service.open(), ['1 R_1', '2 R_1'])
      t.same([shown.errors, world.seen.length], [[], 4])
    },

  'a second connection that the server refuses: the socket says so, waits as it was told, and the list goes on': async (
    t,
  ) => {
    const { world, service, socket } = await publicPage(t)
    const { onSocket } = world
    world.onSocket = (socket) => {
      onSocket(socket)
      if (world.sockets.length > 1) socket.close(4429, 'too_many_relays;retry_after=600')
    }
    const [listed, shown] = [price(socket), chart(socket, 10)]
    await until(() => socket.status().retryAt !== undefined)
    t.match(socket.status(), { state: 'waiting', code: 4429, reason: 'too_many_relays' })
    service.tick(7)
    await until(() => listed.messages.at(-1)?.['tick'] === 7)
    const { retryAt } = socket.status()
    shown.stop()
    await until(() => socket.status().state === 'open')
    const again = chart(socket, 20)
    await until(() => socket.status().state === 'waiting')
    t.equal(socket.status().retryAt, retryAt, 'a connection that is closed and opened again keeps its delay')
    t.same([world.sockets.length, again.errors], [2, []])
  },

  'a trading socket opens no more connections: AlreadySubscribed reaches the page, and passes': async (t) => {
    const world = await socketPeer(t)
    const service = symbolsOnce(world)
    const socket = world.client.tradingSocket('VRTC100')
    const [listed, shown] = [price(socket), chart(socket, 10)]
    await until(() => shown.errors.length === 1)
    listed.stop()
    await has('history', shown)
    t.same([service.open(), world.sockets.length], [['1 R_1'], 1])
  },
})

await test('a chart that changes its symbol keeps the second connection', async (t) => {
  const { world, service, socket } = await publicPage(t)
  await has('tick', price(socket), price(socket, 'R_2'))
  let shown = chart(socket, 10)
  await has('history', shown)
  for (const symbol of ['R_2', 'R_1', 'R_2']) {
    shown.stop()
    shown = chart(socket, 10, symbol)
    await has('history', shown)
    await until(() => service.open().join() === `1 R_1,1 R_2,2 ${symbol}`)
  }
  t.equal(world.sockets.length, 2)
})

await test('components with equal streams share one on the second connection as well, and a later one gets its history', async (t) => {
  const { world, service, socket: one } = await publicPage(t)
  const two = world.client.publicSocket()
  const first = [price(one), chart(one, 10)]
  await has('history', first[1] as Followed)
  const second = [price(two), chart(two, 10)]
  await has('history', second[1] as Followed)
  t.same(service.open(), ['1 R_1', '2 R_1'])
  two.close()
  service.tick(7)
  await until(() => first.every(({ messages }) => messages.at(-1)?.['tick'] === 7))
  one.close()
  await until(() => world.sockets.every(({ readyState }) => readyState === 3))
  t.equal(world.sockets.length, 2)
})

await test('requests and a forget of the page go over the first connection', async (t) => {
  const { world, socket } = await publicPage(t)
  const own = await socket.request({ ticks: 'R_2', subscribe: 1 })
  const [, shown] = [price(socket), chart(socket, 10)]
  await has('history', shown)
  t.match(await socket.request({ forget: own.subscription?.id ?? '' }), { forget: 1 })
  t.equal(world.seen.at(-1)?.on, 1)
})

await test('close() of the client closes every connection, and streams end everywhere', async (t) => {
  const { world, service, socket, listed, shown } = await listAndChart(t)
  await has('history', shown)
  world.client.close()
  await until(() => service.open().length === 0)
  await until(() => listed.errors.length === 1 && shown.errors.length === 1)
  t.same([listed.errors, shown.errors, world.sockets.length], [['ended'], ['ended'], 2])
  t.equal(socket.status().state, 'ended')
})

await test('after any order of starts, stops and losses every stream of the page is open exactly once', async (t) => {
  await Promise.all(
    Array.from({ length: 20 }, async (_, run) => {
      const { random } = seededRandom(run)
      const below = (limit: number): number => Math.floor(random() * limit)
      const { world, service, socket } = await publicPage(t)
      const live = new Map<number, Followed>()
      for (let step = 0; step < 60; step++) {
        // Two symbols, and of each its ticks and two histories: as many as three connections carry.
        const which = below(6)
        const symbol = `R_${which % 2}`
        const followed = live.get(which)
        if (random() < 0.08) world.sockets[below(world.sockets.length)]?.terminate()
        else if (followed) {
          followed.stop()
          live.delete(which)
        } else live.set(which, which < 2 ? price(socket, symbol) : chart(socket, which, symbol))
        await pause(below(40))
      }
      const areOpen = (symbol: string): boolean =>
        service.open().filter((stream) => stream.endsWith(symbol)).length ===
        [...live.keys()].filter((which) => `R_${which % 2}` === symbol).length
      let latest = 1000
      const ticks = ({ messages }: Followed): number => messages.filter(({ tick }) => tick === latest).length
      // A stream that the page has just stopped may be open, while another still waits for its place.
      const isSettled = async (): Promise<boolean> => {
        service.tick(++latest)
        await pause(50)
        return areOpen('R_0') && areOpen('R_1') && [...live.values()].every((followed) => ticks(followed) > 0)
      }
      await until(isSettled, `run ${run}`, 30_000)
      for (const followed of live.values()) t.same([ticks(followed), followed.errors], [1, []], `run ${run}`)
      world.client.close()
    }),
  )
})
