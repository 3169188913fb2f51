import type { Test } from 'tap'
import type { SocketError } from '../../../client/dist/client.js'
import { fate, type Fate } from '../../../client/dist/client/orders.js'
import { HeldTimers } from '../time/held-timers.ts'
import { until } from '../time/until.ts'
import { lossyAccount, type Handling, type Offer } from './lossy-account.ts'
import { failure } from './page-client.ts'

const WATCH_MS = 15_000

export const RISE: Offer = { contract_type: 'CALL', underlying_symbol: 'R_100', amount: 10 }

/** An account, and the orders that a test loses there. The 15 seconds are over when it says so. */
export async function losing(t: Test) {
  const watch = new HeldTimers(t, 'setTimeout', WATCH_MS)
  const world = await lossyAccount(t)
  const { account, socket, buy } = world
  await socket.request({ time: 1 })
  let orders = 0
  /** Sends an order, whose answer is lost. */
  const lose = async (handling: Handling, offer = RISE): Promise<SocketError> => {
    const order = ++orders
    account.handling = () => handling
    const error = await failure(buy(offer, order))
    t.match(error, { outcome: 'unknown' })
    account.handling = () => ({ executes: 'at once', answer: 'sent' })
    return error as SocketError
  }
  /** What became of it: with the 15 seconds over as soon as they have begun, after something may have happened in them. */
  const find = async (error: SocketError, meanwhile: () => unknown = () => undefined): Promise<Fate> => {
    account.reads = 0
    let isOver = false
    const found = fate(error).finally(() => (isOver = true))
    void (async () => {
      for (let ran = false; ;) {
        await until(() => isOver || watch.size > 0)
        if (isOver) return
        if (!ran) await meanwhile()
        ran = true
        watch.run()
      }
    })()
    const is = await found
    t.ok(account.reads <= 3, `${account.reads} reads`)
    return is
  }
  return { ...world, lose, find, watch }
}
