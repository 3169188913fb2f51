import { test } from 'tap'
import { once, SocketError } from '../../client/dist/client.js'
import { losing, RISE } from '../support/client/lost-orders.ts'
import { failure } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'

await test('once(): a buy stays unknown when its account cannot be read, however the trading service refuses that', async (t) => {
  const { account, buy, watch } = await losing(t)
  account.handling = () => ({ executes: 'at once', answer: 'cut' })
  account.isRefusing = true
  const order = failure(once(() => buy(RISE, 1)))
  await until(() => account.reads === 2 && watch.size > 0)
  watch.run()
  t.match(await order, { name: 'ApiError', outcome: 'unknown', cause: { code: 'RateLimit' } })
})

for (const [operation, when] of [
  ['portfolio', 'while the account is read for the first time'],
  ['statement', 'with the last read of an account that cannot be read'],
] as const) {
  await test(`once(): the refusal of a buy is its error, also when it arrives ${when}`, async (t) => {
    const { account, socket, watch } = await losing(t)
    account.handling = () => ({ executes: 'never', answer: 'held' })
    account.propose('offer', RISE)
    account.isRefusing = operation === 'statement'
    account.cuts = (read) => {
      if (read === operation) account.answerHeld()
      return false
    }
    const command = { buy: 'offer', price: 10, passthrough: { order: 1 } }
    const order = failure(once(() => socket.command(command, { timeoutMs: 50 })))
    if (operation === 'statement') {
      await until(() => account.reads === 2 && watch.size > 0)
      watch.run()
    }
    const refusal = { name: 'SocketError', code: 'PriceMoved', outcome: undefined, reply: { msg_type: 'buy' } }
    t.match(await order, refusal)
  })
}

await test('once(): an isMade that fails by a refusal of the trading service leaves an order unknown', async (t) => {
  const lost = new SocketError('connection_lost', 'gone', { outcome: 'unknown' })
  const refusal = new SocketError('RateLimit', 'too many', { reply: { msg_type: 'portfolio' } })
  const order = once(() => Promise.reject(lost), { isMade: () => Promise.reject(refusal), remember: 'order' })
  t.match(await failure(order), { name: 'ApiError', outcome: 'unknown', cause: refusal })
})
