import { test } from 'tap'
import { WebSocket } from 'ws'
import { createClient, once, type Client, type ServerOptions, type SocketError } from '../../client/dist/client.js'
import { fate } from '../../client/dist/client/orders.js'
import { failure } from '../support/client/page-client.ts'
import { type World, startWorld } from '../support/world.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const TERMS = {
  proposal: 1,
  contract_type: 'CALL',
  underlying_symbol: 'R_100',
  basis: 'stake',
  currency: 'USD',
  duration: 5,
  duration_unit: 'm',
} as const

/** Where the sockets of the page lose their connection: at a purchase that leaves, or at the answer to one that arrives. */
let losesAt: 'purchase' | 'answer' | undefined

function clientOf(world: World): Client {
  const { browser, server } = world
  class PageSocket extends WebSocket {
    constructor(url: string) {
      super(url, { headers: { origin: server.url, cookie: browser.cookieHeader(new URL(server.url), undefined) } })
      this.on('error', () => undefined)
    }

    override send(data: string): void {
      if (losesAt === 'purchase' && data.includes('"buy"')) this.terminate()
      else super.send(data)
    }

    override emit(event: string, ...args: unknown[]): boolean {
      const isLost = event === 'message' && losesAt === 'answer' && String(args[0]).includes('"msg_type":"buy"')
      if (isLost) this.terminate()
      return !isLost && super.emit(event, ...args)
    }
  }
  const fetch = (url: string, init: RequestInit) => browser.fetch(url, init as Parameters<typeof browser.fetch>[1])
  return createClient({ baseUrl: server.url, fetch, WebSocket: PageSocket } as unknown as ServerOptions)
}

await test('the fate of purchases at the sandbox, behind a server that is restarted', async (t) => {
  const world = await startWorld(t, { user: 'demo', redis: true })
  const watch = new HeldTimers(t, 'setTimeout', 15_000)
  // The client reconnects almost at once, however often it has lost its connection.
  t.intercept(Math, 'random', { value: () => 0.001 })
  const client = clientOf(world)
  t.teardown(() => client.close())
  const { data } = await (await client.api('/trading/v1/options/accounts')).json<{ data: { account_id: string }[] }>()
  const socket = client.tradingSocket(data[0]?.account_id ?? '')
  let amount = 10
  /** Buys a contract that is like none before. */
  const buy = async (more: object = {}) => {
    amount++
    const { proposal } = await socket.request({ ...TERMS, ...more, amount } as typeof TERMS & { amount: number })
    return socket.command({ buy: proposal.id, price: proposal.ask_price })
  }
  const lose = async (at: typeof losesAt, more?: object): Promise<SocketError> => {
    losesAt = at
    const error = await failure(buy(more))
    losesAt = undefined
    t.match(error, { outcome: 'unknown' })
    return error as SocketError
  }

  const { contract_id } = (await buy()).buy
  const open = await lose('answer')
  t.match(await fate(open), { is: 'made', contract: { buy_price: amount, contract_type: 'CALL' } })
  const ended = await lose('answer', { duration: 1, duration_unit: 't' })
  await until(async () => (await socket.request({ profit_table: 1 })).profit_table.count === 1)
  const found = await fate(ended)
  t.match(found, { is: 'made', contract: { buy_price: amount, sell_price: Number } })

  const port = String(world.server.port)
  const killed = await lose('answer')
  await world.server.close()
  await world.instance({ PORT: port })
  t.match(await fate(killed), { is: 'made', contract: { buy_price: amount } })

  /** Waits for a fate. Its 15 seconds are over as soon as they have begun; those of the requests before the loss are not. */
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    let isOver = false
    const settled = promise.finally(() => (isOver = true))
    const isPending = (): boolean => !isOver
    while (isPending()) {
      await until(() => isOver || (losesAt === undefined && watch.size > 0))
      watch.run()
    }
    return settled
  }
  t.match(await soon(fate(await lose('purchase'))), { is: 'not_seen' })

  losesAt = 'answer'
  t.equal(await once(() => buy().finally(() => (losesAt = undefined))), undefined, 'it was made')
  losesAt = 'purchase'
  const unseen = failure(once(() => buy().finally(() => (losesAt = undefined))))
  t.match(await soon(unseen), { name: 'SocketError', outcome: 'unknown' })
  const { portfolio } = await socket.request({ portfolio: 1 })
  t.equal(portfolio.contracts.length, 4)
  t.ok(portfolio.contracts.some((contract) => contract.contract_id === contract_id))
})
