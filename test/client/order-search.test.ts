import { test } from 'tap'
import { noteContract } from '../../client/src/orders/rivals.ts'
import { searchedAccount } from '../support/client/searched-account.ts'
import { CONTRACT, SENT_AT } from '../support/client/sent-order.ts'

const MADE = { fate: { is: 'made', contract: CONTRACT } }

await test('a search watches the transactions, asks for the time, and reads what is open and what has ended', async (t) => {
  const { search, world, answer, asks } = searchedAccount(t)
  await search()
  await answer('time', { time: SENT_AT / 1000 })
  t.same(world.log, [
    ['subscribe', { transaction: 1 }],
    [{ time: 1 }, 10_000, false],
    [{ portfolio: 1 }, 10_000, false],
    [{ profit_table: 1, description: 1, limit: 100, sort: 'DESC' }, 10_000, false],
  ])
  t.same(asks(), ['portfolio', 'profit_table'])
})

await test('the only contract that fits is that of the order, once both what is open and what has ended was read', async (t) => {
  const { search, ended, world, answer, timers } = searchedAccount(t)
  await search()
  await answer('time', { time: SENT_AT / 1000 })
  await answer('portfolio', { portfolio: { contracts: [CONTRACT] } })
  t.equal(ended(), undefined)
  await answer('profit_table', { profit_table: { transactions: [] } })
  t.same(ended(), MADE)
  t.equal(world.log.at(-1), 'closed')
  t.same(timers.delays, [])
  t.equal(world.log.length, 5)
  const past = searchedAccount(t)
  await past.search()
  await past.reads([], [CONTRACT])
  t.same(past.ended(), MADE)
})

await test('nothing that fits within 15 seconds and a last look at the purchases means that it was not seen', async (t) => {
  const { search, reads, ended, timers, wait, asks, answer, world } = searchedAccount(t)
  await search()
  await reads()
  t.same([ended(), timers.delays, asks()], [undefined, [15_000], []])
  await wait()
  t.same(world.log.at(-1), [{ statement: 1, action_type: 'buy', description: 1, limit: 100 }, 10_000, false])
  await answer('statement', { statement: { transactions: [] } })
  t.same(ended(), { fate: { is: 'not_seen', since: SENT_AT } })
})

await test('a contract that shows within the 15 seconds or in the last look is that of the order', async (t) => {
  for (const how of ['heard', 'last'] as const) {
    const { search, reads, ended, wait, answer, hear, timers } = searchedAccount(t)
    await search()
    await reads()
    if (how === 'heard') await hear({ msg_type: 'buy', buy: CONTRACT })
    else {
      await wait()
      await answer('statement', { statement: { transactions: [{ ...CONTRACT, action_type: 'buy', amount: -10 }] } })
    }
    t.match(ended(), MADE, how)
    t.same(timers.delays, [])
  }
})

await test('the reply to the order itself is believed at once, whether it was made or refused', async (t) => {
  const refusal = { msg_type: 'buy', req_id: 1, error: { code: 'PriceMoved', message: 'moved' } }
  for (const [reply, expected] of [
    [{ msg_type: 'buy', req_id: 1, buy: CONTRACT }, MADE],
    [refusal, { error: { name: 'SocketError', code: 'PriceMoved', message: 'moved', reply: refusal } }],
    [{ msg_type: 'buy', req_id: 1, error: { code: 'PriceMoved' } }, { error: { code: 'PriceMoved', message: '' } }],
  ] as const) {
    for (const when of ['before', 'later'] as const) {
      const { search, hear, ended, reads, world, asks } = searchedAccount(t)
      if (when === 'before') await hear(reply)
      await search()
      t.same(asks(), when === 'before' ? [] : ['time'])
      if (when === 'later') {
        await reads()
        await hear(reply)
      }
      t.match(ended(), expected, when)
      t.equal(world.log.at(-1), 'closed')
    }
  }
})

await test('a contract that the page knew before, or that is another order’s, is not that of the order', async (t) => {
  const known = searchedAccount(t)
  const { send } = known
  noteContract(send(2, { sentAt: SENT_AT + 10_000_000 }), '7')
  await known.search()
  await known.reads([CONTRACT])
  await known.wait()
  await known.answer('statement', { statement: { transactions: [] } })
  t.match(known.ended(), { fate: { is: 'not_seen' } })
  const before = searchedAccount(t)
  Object.assign(before.order, { before: [{ portfolio: { contracts: [CONTRACT] } }] })
  await before.search()
  await before.reads([CONTRACT])
  await before.wait()
  await before.answer('statement', { statement: { transactions: [] } })
  t.match(before.ended(), { fate: { is: 'not_seen' } })
})

await test('two contracts that fit, or one while an equal order is pending, are ambiguous, and the candidates are told', async (t) => {
  const two = searchedAccount(t)
  await two.search()
  await two.reads([CONTRACT, { ...CONTRACT, contract_id: 8 }])
  t.equal(two.ended(), undefined)
  await two.wait()
  await two.answer('statement', { statement: { transactions: [] } })
  t.same(two.ended(), { fate: { is: 'ambiguous', candidates: [CONTRACT, { ...CONTRACT, contract_id: 8 }] } })
  const equal = searchedAccount(t)
  equal.send(2, { sentAt: SENT_AT + 120_000, tick: 125_000 })
  await equal.search()
  await equal.reads([CONTRACT])
  await equal.wait()
  await equal.answer('statement', { statement: { transactions: [] } })
  t.match(equal.ended(), { fate: { is: 'ambiguous', candidates: [CONTRACT] } })
  const later = searchedAccount(t)
  later.send(2, { sentAt: SENT_AT + 120_001, tick: 125_001 })
  await later.search()
  await later.reads([CONTRACT])
  t.match(later.ended(), MADE)
})

await test('a contract of which too little is known is asked for, and is that of the order if the rest fits', async (t) => {
  const { contract_type: _, ...vague } = CONTRACT
  for (const [told, expected] of [
    [CONTRACT, MADE],
    [{ ...CONTRACT, contract_type: 'PUT' }, undefined],
  ] as const) {
    const { search, reads, ended, answer, world, asks, timers } = searchedAccount(t)
    await search()
    await reads([vague])
    t.same(asks(), ['proposal_open_contract'])
    t.same(world.log.at(-1), [{ proposal_open_contract: 1, contract_id: 7 }, 10_000, false])
    await answer('proposal_open_contract', { proposal_open_contract: told })
    t.match(ended(), expected)
    if (!expected) t.same(asks(), ['time'], 'the search goes on')
    t.same(timers.delays, [])
  }
  const two = searchedAccount(t)
  await two.search()
  await two.reads([vague, { ...vague, contract_id: 8 }])
  t.same(two.asks(), [], 'none of several')
})

await test('a contract is described with what the order has asked for where the account does not say it', async (t) => {
  const { search, hear, ended } = searchedAccount(t)
  await hear({ msg_type: 'buy', req_id: 1, buy: { contract_id: 7 } })
  await search()
  const contract = { contract_type: 'CALL', underlying_symbol: 'R_100', contract_id: 7 }
  t.same(ended(), { fate: { is: 'made', contract } })
})

await test('what several messages say of a contract adds up, and only those about contracts and orders are looked at', async (t) => {
  const { search, reads, ended, hear } = searchedAccount(t)
  const { purchase_time, ...first } = CONTRACT
  await search()
  await hear({ msg_type: 'transaction', transaction: { ...first, action: 'buy', amount: -10 } })
  await hear({ msg_type: 'tick', tick: { contract_id: 9 } })
  await reads([{ contract_id: 7, purchase_time }])
  t.match(ended(), MADE)
})
