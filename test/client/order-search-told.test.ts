import { test } from 'tap'
import { searchedAccount } from '../support/client/searched-account.ts'
import { CONTRACT, SENT_AT } from '../support/client/sent-order.ts'

await test('where the last look fails, or was spent, a search whose subscription was not taken all the while has no result', async (t) => {
  const { contract_type: _, ...vague } = CONTRACT
  const steps = ['subscribed', 'read', 'watched'] as const
  for (const [how, at, message] of [
    ['error', 'subscribed', 'refused'],
    ['error', 'read', 'refused'],
    ['error', 'watched', 'refused'],
    ['message', 'read', 'no answer'],
    ['message', 'watched', 'no answer'],
    [undefined, 'watched', 'no answer'],
  ] as const) {
    for (const isSpent of [false, true]) {
      const { search, answer, wait, ended, world, asks } = searchedAccount(t)
      const tell = (step: (typeof steps)[number]): void => {
        if (how === 'error' && step === 'subscribed') world.onSubscription('message')
        if (how && step === at) world.onSubscription(how)
      }
      await search()
      tell('subscribed')
      await answer('time', { time: SENT_AT / 1000 })
      await answer('portfolio', { portfolio: { contracts: isSpent ? [vague] : [] } })
      tell('read')
      await answer('profit_table', { profit_table: { transactions: [] } })
      tell('watched')
      if (isSpent) {
        await answer('proposal_open_contract', { proposal_open_contract: { ...vague, contract_type: 'PUT' } })
        await answer('time', { time: SENT_AT / 1000 })
      }
      await wait()
      if (!isSpent) await answer('statement')
      t.same(asks(), [])
      const why = isSpent ? (how === 'error' ? message : /lost too often/) : 'no answer'
      t.match(ended(), { error: { message: why } }, `${how}, ${at}, ${isSpent}`)
    }
  }
})

await test('a search that was told of all purchases, and has read half of the account, has no result either', async (t) => {
  const { search, answer, wait, ended, world } = searchedAccount(t)
  await search()
  world.onSubscription('message')
  await answer('time', { time: SENT_AT / 1000 })
  await answer('portfolio', { portfolio: { contracts: [] } })
  await answer('profit_table')
  await wait()
  await answer('statement')
  t.match(ended(), { error: { message: 'no answer' } })
})

await test('a search whose subscription was refused believes its last look', async (t) => {
  const { search, answer, wait, ended, world } = searchedAccount(t)
  await search()
  world.onSubscription('error')
  await answer('time', { time: SENT_AT / 1000 })
  await answer('portfolio', { portfolio: { contracts: [] } })
  await answer('profit_table', { profit_table: { transactions: [] } })
  await wait()
  await answer('statement', { statement: { transactions: [] } })
  t.same(ended(), { fate: { is: 'not_seen', since: SENT_AT } })
})

await test('a subscription that was taken again on a new connection makes up for no time without one', async (t) => {
  const { search, reads, state, answer, wait, ended, world } = searchedAccount(t)
  await search()
  await reads()
  await state('waiting')
  await state('open')
  world.onSubscription('message')
  await answer('time', { time: SENT_AT / 1000 })
  await wait()
  await answer('statement')
  t.match(ended(), { error: { message: 'no answer' } })
  const early = searchedAccount(t)
  await early.search()
  early.world.onSubscription('message')
  await early.state('waiting')
  await early.answer('time')
  await early.state('open')
  // This time it is told of purchases only after it has read.
  await early.answer('time', { time: SENT_AT / 1000 })
  await early.answer('portfolio', { portfolio: { contracts: [] } })
  await early.answer('profit_table', { profit_table: { transactions: [] } })
  early.world.onSubscription('message')
  await early.wait()
  await early.answer('statement')
  t.match(early.ended(), { error: { message: 'no answer' } })
})
