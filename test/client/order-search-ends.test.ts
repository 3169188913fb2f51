import { test } from 'tap'
import { searchedAccount, turns } from '../support/client/searched-account.ts'
import { CONTRACT, SENT_AT } from '../support/client/sent-order.ts'

const NOT_SEEN = { fate: { is: 'not_seen', since: SENT_AT } }
const READS = ['portfolio', 'profit_table']

await test('a search waits until the connection is open, and asks again for the time on each new one', async (t) => {
  const { search, state, asks, answer, reads, world } = searchedAccount(t)
  world.state = 'waiting'
  await search()
  t.same(asks(), [])
  await state('connecting')
  t.same(asks(), [])
  await state('open')
  t.same(asks(), ['time'])
  await state('waiting')
  await answer('time', { time: SENT_AT / 1000 })
  t.same(asks(), [], 'it is lost before the account was read')
  await state('open')
  await reads()
  t.same(asks(), [])
})

await test('a connection that has ended ends the search, and so does its signal, with its reason', async (t) => {
  for (const when of ['before', 'later'] as const) {
    const { search, state, reads, ended, world } = searchedAccount(t)
    if (when === 'before') world.state = 'ended'
    await search()
    if (when === 'later') {
      await reads()
      await state('ended')
    }
    t.match(ended(), { error: { name: 'SocketError', code: 'ended', message: 'the connection has ended' } })
    t.equal(world.log.at(-1), 'closed')
  }
  const reason = new Error('left')
  for (const when of ['before', 'during a read', 'while it waits'] as const) {
    const { search, ended, answer, reads, world, timers } = searchedAccount(t)
    const own = new AbortController()
    if (when === 'before') own.abort(reason)
    await search(own.signal)
    if (when === 'while it waits') await reads()
    own.abort(reason)
    if (when === 'during a read') {
      t.same(world.log.at(-1), [{ time: 1 }, 10_000, true], 'the signal stops the read, too')
      await answer('time')
    }
    await new Promise(setImmediate)
    t.same(ended(), { error: reason }, when)
    t.equal(world.log.at(-1), 'closed')
    t.same(timers.delays, [])
  }
})

await test('a search leaves nothing on the signal that could have stopped it', async (t) => {
  const { search, reads, ended } = searchedAccount(t)
  const own = new AbortController()
  const { signal } = own
  let listeners = 0
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  Object.assign(signal, {
    addEventListener: (name: string, listener: () => void) => {
      if (name === 'abort') listeners++
      add(name, listener)
    },
    removeEventListener: (name: string, listener: () => void) => {
      if (name === 'abort') listeners--
      remove(name, listener)
    },
  })
  await search(signal)
  t.equal(listeners, 1)
  await reads([CONTRACT])
  t.match(ended(), { fate: { is: 'made' } })
  t.equal(listeners, 0)
})

await test('a connection that is lost during the 15 seconds begins them anew, and the last look is at all purchases', async (t) => {
  const { search, reads, state, asks, answer, timers, wait, ended } = searchedAccount(t)
  await search()
  await reads()
  await state('stale')
  t.same(timers.delays, [], 'a stale connection may have missed something')
  await state('open')
  t.same(asks(), ['time'], 'the account is not read as often as the trading service would refuse')
  await answer('time', { time: SENT_AT / 1000 })
  t.same(timers.delays, [15_000])
  await wait()
  t.same(asks(), ['statement'])
  await answer('statement', { statement: { transactions: [] } })
  t.same(ended(), NOT_SEEN)
})

await test('where the last look fails, what was read before counts unless the connection was lost since', async (t) => {
  for (const [lost, expected] of [
    ['', NOT_SEEN],
    ['stale', NOT_SEEN],
    ['waiting', { error: { message: 'no answer' } }],
    ['connecting', { error: { message: 'no answer' } }],
  ] as const) {
    const { search, reads, state, answer, wait, ended } = searchedAccount(t)
    await search()
    await reads()
    if (lost) {
      await state(lost)
      await state('open')
      await answer('time', { time: SENT_AT / 1000 })
    }
    await wait()
    await answer('statement')
    t.match(ended(), expected, lost)
  }
})

await test('an account that cannot be read fails with why, or with the refusal that has come meanwhile', async (t) => {
  const first = searchedAccount(t)
  await first.search()
  await first.answer('time')
  t.same(first.asks(), READS, 'without a time, too')
  for (const kind of READS) await first.answer(kind)
  await first.wait()
  const why = new Error('RateLimit')
  await first.answer('statement', undefined, why)
  t.same(first.ended(), { error: why })
  const half = searchedAccount(t)
  await half.search()
  await half.answer('time')
  await half.answer('portfolio', { portfolio: { contracts: [CONTRACT] } })
  await half.answer('profit_table')
  t.equal(half.ended(), undefined, 'half of the account is not enough')
  await half.state('waiting')
  await half.state('open')
  t.same(half.asks(), ['time'])
  await half.answer('time')
  t.same(half.asks(), [], 'the rest has to do with one more read')
  await half.wait()
  await half.answer('statement', { statement: { transactions: [] } })
  t.match(half.ended(), { fate: { is: 'ambiguous', candidates: [{ contract_id: 7 }] } }, 'without a time')
})

await test('a search that has read three times, and lost the connection since, says so, or with what the order was refused', async (t) => {
  const { contract_type: _, ...vague } = CONTRACT
  const { search, answer, state, wait, ended, asks, reads } = searchedAccount(t)
  await search()
  await reads([vague])
  await answer('proposal_open_contract', { proposal_open_contract: vague })
  t.same(asks(), ['time'])
  await answer('time', { time: SENT_AT / 1000 })
  await state('waiting')
  await state('open')
  await answer('time', { time: SENT_AT / 1000 })
  await wait()
  const message = 'the connection was lost too often to read the account'
  t.match(ended(), { error: { name: 'SocketError', code: 'connection_lost', message } })
  const refused = searchedAccount(t)
  await refused.search()
  await refused.reads()
  await refused.wait()
  await refused.hear({ msg_type: 'buy', req_id: 1, error: { code: 'PriceMoved' } })
  await refused.state('waiting')
  await refused.answer('statement')
  t.match(refused.ended(), { error: { code: 'PriceMoved' } })
})

await test('an executed order shows within two minutes by the clock of the trading service, which seconds and its servers blur', async (t) => {
  for (const [purchaseSeconds, isIts] of [
    [-4, false],
    [-3, true],
    [123, true],
    [124, false],
  ] as const) {
    const { search, reads, wait, answer, ended } = searchedAccount(t)
    await search()
    await reads([{ ...CONTRACT, purchase_time: SENT_AT / 1000 + purchaseSeconds }])
    if (!isIts) {
      await wait()
      await answer('statement', { statement: { transactions: [] } })
    }
    t.match(ended(), isIts ? { fate: { is: 'made' } } : NOT_SEEN, `${purchaseSeconds} s`)
  }
})

await test('the time that the answer about the time took, and a clock that was set, blur it further', async (t) => {
  for (const [tookMs, setMs, purchaseSeconds, expected] of [
    [5000, 0, -3, 'made'],
    [5000, 0, -4, 'not_seen'],
    [5000, 0, 128, 'made'],
    [5000, 0, 129, 'not_seen'],
    [0, 60_000, -123, 'ambiguous'],
    [0, 60_000, -124, 'not_seen'],
    [0, 60_000, -63, 'made'],
    [0, 60_000, -64, 'ambiguous'],
    [0, 60_000, 123, 'made'],
    [0, 60_000, 124, 'not_seen'],
    [0, -60_000, -3, 'made'],
    [0, -60_000, -4, 'not_seen'],
    [0, -60_000, 183, 'made'],
    [0, -60_000, 184, 'ambiguous'],
    [0, -60_000, 243, 'ambiguous'],
    [0, -60_000, 244, 'not_seen'],
  ] as const) {
    const { search, clock, wait, answer, asks, ended, world } = searchedAccount(t)
    clock.now += setMs
    await search()
    world.onSubscription('message')
    clock.now += tookMs
    clock.tick += tookMs
    const time = (SENT_AT + tookMs) / 1000
    const contract = { ...CONTRACT, purchase_time: SENT_AT / 1000 + purchaseSeconds }
    await answer('time', { time })
    await answer('portfolio', { portfolio: { contracts: [contract] } })
    await answer('profit_table', { profit_table: { transactions: [] } })
    if (asks().length > 0) {
      await answer('proposal_open_contract', { proposal_open_contract: contract })
      await answer('time', { time })
    }
    if (ended() === undefined) await wait()
    if (asks().length > 0) await answer('statement', { statement: { transactions: [] } })
    t.match(ended(), { fate: { is: expected } }, JSON.stringify([tookMs, setMs, purchaseSeconds]))
  }
})

await test('a search looks again at its connection whatever its subscription tells, also that it is refused', async (t) => {
  for (const how of ['message', 'error'] as const) {
    const { search, asks, world } = searchedAccount(t)
    world.state = 'stale'
    await search()
    world.state = 'open'
    t.same(asks(), [])
    world.onSubscription(how)
    await turns()
    t.same(asks(), ['time'])
  }
})

await test('a contract that shows while the connection is lost is not asked for before there is another one', async (t) => {
  const { contract_type: _, ...vague } = CONTRACT
  const { search, reads, world, hear, state, asks, answer } = searchedAccount(t)
  await search()
  await reads()
  world.state = 'waiting'
  await hear({ msg_type: 'buy', buy: vague })
  t.same(asks(), [])
  await state('open')
  await answer('time', { time: SENT_AT / 1000 })
  t.same(asks(), ['proposal_open_contract'])
})
