import { test, type Test } from 'tap'
import { createClient, type Client, type PublicSocket } from '../../client/dist/client.js'
import { series, type Point, type Series } from '../../client/dist/client/series.js'
import { ManualTimers } from '../support/time/manual-timers.ts'
import { replace } from '../support/time/replace.ts'

/** Promises settle. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** A socket of a market that is closed, for a client that knows the time of its server. */
class ClosedMarket {
  readyState = 1
  readonly bufferedAmount = 0
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null

  constructor() {
    setImmediate(() => this.onopen?.())
  }

  send(text: string): void {
    const { req_id, subscribe } = JSON.parse(text) as { req_id: number; subscribe?: number }
    const error = { code: 'MarketIsClosed', message: 'closed' }
    const history = { times: [1_700_000_000, 1_900_000_000], prices: [1, 2] }
    const data = JSON.stringify({ req_id, ...(subscribe ? { error } : { history }) })
    setImmediate(() => this.onmessage?.({ data }))
  }

  close(): void {
    this.readyState = 3
  }
}

/** A page with a chart that asks again later, and has a point that is ahead of its time. */
async function charted(t: Test) {
  const timers = new ManualTimers(t)
  const listeners = new Set<object>()
  const listen = (_name: string, listener: object, { signal }: { readonly signal: AbortSignal }): void => {
    listeners.add(listener)
    signal.addEventListener('abort', () => listeners.delete(listener))
  }
  replace(t, globalThis, 'addEventListener', listen)
  const now = 1_700_000_000
  const body = { authenticated: true, now, expires_at: now + 9, idle_expires_at: now + 9, session: 's', scope: '' }
  const client = createClient({
    baseUrl: 'http://server.test',
    fetch: () => Promise.resolve(Response.json(body)),
    WebSocket: ClosedMarket as never,
  })
  await client.session.check()
  const before = listeners.size
  const socket = client.publicSocket()
  const chart = series(socket, { symbol: 'R_100', style: 'ticks' })
  for (let turns = 0; turns < 9; turns++) await settled()
  t.match(chart.get(), { points: [{ quote: 1 }], error: { code: 'MarketIsClosed' } })
  return { client, socket, chart, timers, left: () => listeners.size - before }
}

const ENDS: Readonly<Record<string, (client: Client, socket: PublicSocket, chart: Series<Point>) => void>> = {
  'stop()': (_client, _socket, chart) => chart.stop(),
  'its socket': (_client, socket) => socket.close(),
  'its client': (client) => client.close(),
}

for (const [name, end] of Object.entries(ENDS)) {
  await test(`a series that ends with ${name} leaves neither a timer nor a listener behind`, async (t) => {
    const { client, socket, chart, timers, left } = await charted(t)
    end(client, socket, chart)
    await settled()
    // A socket that was closed keeps its connection for a moment.
    socket.close()
    t.ok(Math.max(0, ...timers.delays) <= 1000, timers.delays.join())
    timers.run()
    await settled()
    t.equal(left(), 0)
    client.close()
  })
}

await test('a series on a socket that has ended or is closed already leaves no listener behind', async (t) => {
  const { client, socket, chart, left } = await charted(t)
  chart.stop()
  client.close()
  const late = series(socket, { symbol: 'R_100', style: 'ticks' })
  await settled()
  t.match(late.get(), { error: { code: 'ended' } })
  socket.close()
  t.throws(() => series(socket, { symbol: 'R_100', style: 'ticks' }))
  t.equal(left(), 0)
})
