import { test } from 'tap'
import { exchangeOn } from '../support/client/exchange-on.ts'
import { failure } from '../support/client/page-client.ts'
import { replace } from '../support/time/replace.ts'

const PING = { ping: 1, req_id: 2 }
const SENT = { sell: 7, price: 1, req_id: 1 }

/** A command on a connection that was silent, which the page changes at once, and the moment at which it looks at the clock. */
function probing(t: Parameters<typeof exchangeOn>[0], signal?: AbortSignal) {
  const clock = { now: 50_000 }
  replace(t, Date, 'now', () => clock.now)
  const world = exchangeOn(t)
  world.link.isFresh = false
  const message = { sell: 7, price: 1 }
  const result = failure(world.exchange.command(message, { signal }))
  message.sell = 8
  return { ...world, clock, result }
}

await test('on a silent connection, a command is sent as it was given once a ping is answered, also by a refusal, within a second', async (t) => {
  for (const answer of [{ ping: 'pong' }, { error: { code: 'RateLimit', message: 'too many' } }]) {
    const { exchange, link, timers, clock, result } = probing(t)
    t.same(link.sent, [PING])
    t.same(timers.delays, [1000])
    clock.now += 1000
    exchange.take({ ...answer, req_id: 2 })
    await new Promise(setImmediate)
    t.same(link.sent, [PING, SENT])
    exchange.take({ req_id: 1, error: { code: 'Closed', message: '' } })
    t.match(await result, { code: 'Closed' })
  }
})

await test('a command whose ping is not answered, or whose page was busy meanwhile, is not sent', async (t) => {
  const silent = probing(t)
  silent.timers.run()
  t.match(await silent.result, { code: 'not_sent', message: 'not sent: the connection is silent' })
  const lost = probing(t)
  lost.exchange.down({ state: 'waiting' })
  t.match(await lost.result, { code: 'not_sent', message: 'not sent: the connection is silent' })
  const busy = probing(t)
  busy.clock.now += 1001
  busy.exchange.take({ req_id: 2, ping: 'pong' })
  t.match(await busy.result, { code: 'not_sent', message: 'not sent: the page was busy' })
  const gone = probing(t)
  gone.link.status = { state: 'waiting' }
  gone.exchange.take({ req_id: 2, ping: 'pong' })
  t.match(await gone.result, { code: 'not_sent', message: 'not sent: the connection is waiting' })
  for (const { link } of [silent, lost, busy, gone]) t.same(link.sent, [PING])
})

await test('a command that is aborted during its ping is not sent, and fails with the reason', async (t) => {
  const reason = new Error('left')
  for (const isAnswered of [false, true]) {
    const own = new AbortController()
    const { exchange, link, result } = probing(t, own.signal)
    if (isAnswered) exchange.take({ req_id: 2, ping: 'pong' })
    own.abort(reason)
    t.equal(await result, reason)
    t.same(link.sent, [PING])
  }
})
