import { test } from 'tap'
import { WebSocket } from 'ws'
import { createClient, type PublicSocket, type ServerOptions } from '../../client/dist/client.js'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

for (const PUBLIC_FEED of ['relay', 'shared']) {
  await test(`series beside ticks of the same symbol, and three losses of the connection (PUBLIC_FEED=${PUBLIC_FEED})`, async (t) => {
    const { server } = await startWorld(t, { settings: { PUBLIC_FEED }, market: { tickMs: 100 } })
    const sockets: WebSocket[] = []
    class PageSocket extends WebSocket {
      constructor(url: string) {
        super(url, { headers: { origin: server.url } })
        this.on('error', () => undefined)
        sockets.push(this)
      }
    }
    const options = { baseUrl: server.url, WebSocket: PageSocket } as unknown as ServerOptions
    const client = createClient(options)
    t.teardown(() => client.close())
    const market = client.publicSocket()
    const count = 80
    const chart = market.series({ symbol: 'R_100', style: 'ticks', count })
    const candles = market.series({ symbol: 'R_100', style: 'candles', granularity: 60, count })
    let prices = 0
    market.subscribe({ ticks: 'R_100' }, () => prices++)
    await until(() => chart.get().points.length === count && candles.get().points.length === count)
    for (let losses = 0; losses < 3; losses++) {
      const before = prices
      for (const socket of sockets.splice(0)) socket.terminate()
      await until(() => prices > before + 3, 'prices after a reconnect')
    }
    const last = chart.get().points.at(-1)
    await until(() => (chart.get().points.at(-1)?.epoch ?? 0) > (last?.epoch ?? 0) + 1, 'prices of later seconds')
    const { points, gap } = chart.get()
    t.equal(points.length, count)
    t.equal(gap, undefined)
    t.ok(await isPartOf(points, market), 'they are a part of the history of upstream, in its order')

    const shown = candles.get().points
    t.equal(shown.length, count)
    const history = await market.request({
      ticks_history: 'R_100',
      style: 'candles',
      granularity: 60,
      end: 'latest',
      count: count + 1,
    })
    const closed = shown.slice(0, -1)
    t.same(
      history.candles?.filter(({ epoch }) => closed.some((candle) => candle.epoch === epoch)),
      closed,
    )
    chart.stop()
    candles.stop()
    const stopped = chart.get()
    await until(() => prices > 0)
    t.equal(chart.get(), stopped)
  })
}

/** Whether these points follow each other in the history of upstream just so. */
async function isPartOf(
  points: readonly { readonly epoch: number; readonly quote: number }[],
  market: PublicSocket,
): Promise<boolean> {
  const { history } = await market.request({ ticks_history: 'R_100', end: 'latest', count: 500 })
  const all = history?.times.map((epoch, index) => `${epoch}:${history.prices[index]}`) ?? []
  return ` ${all.join(' ')} `.includes(` ${points.map(({ epoch, quote }) => `${epoch}:${quote}`).join(' ')} `)
}
