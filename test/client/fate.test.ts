import { test } from 'tap'
import { SocketError } from '../../client/dist/client.js'
import { fate } from '../../client/dist/client/orders.js'
import { failure, reaches } from '../support/client/page-client.ts'
import type { Handling, Offer } from '../support/client/lossy-account.ts'
import { losing, RISE } from '../support/client/lost-orders.ts'
import { until } from '../support/time/until.ts'

const TERMS = { basis: 'stake', currency: 'USD', duration: 5, duration_unit: 't' } as const
const FALL: Offer = { ...RISE, contract_type: 'PUT' }
const LOST: Handling = { executes: 'never', answer: 'cut' }
const MADE: Handling = { executes: 'at once', answer: 'cut' }

await test('fate: made, with the contract, when it was executed before the connection was lost', async (t) => {
  const { lose, find, account } = await losing(t)
  const error = await lose(MADE)
  const found = await find(error)
  t.match(found, { is: 'made', contract: { contract_id: account.truth.get(1), contract_type: 'CALL', buy_price: 10 } })
  t.equal(account.reads, 2)
  t.equal(await fate(error), found, 'it stays so')
  t.equal(account.reads, 2)
})

await test('fate: made when the contract has already ended', async (t) => {
  const { lose, find, account } = await losing(t)
  const error = await lose(MADE)
  for (const contract of account.contracts) contract.hasEnded = true
  t.match(await find(error), { is: 'made', contract: { contract_id: account.truth.get(1) } })
})

await test('fate: made when it is executed while the account is watched, and when only the last read shows it', async (t) => {
  const { lose, find, account } = await losing(t)
  const late = await lose({ executes: 'late', answer: 'cut' })
  t.match(await find(late, () => account.executeLate()), { is: 'made', contract: { contract_type: 'CALL' } })
  const silent = await lose({ executes: 'late', answer: 'cut' }, FALL)
  const found = await find(silent, () => {
    account.isSilent = true
    account.executeLate()
  })
  t.match(found, { is: 'made', contract: { contract_id: account.truth.get(2) } })
})

await test('fate: not seen, since it was sent, when nothing on the account fits it after 15 seconds', async (t) => {
  const { lose, find, account, buy } = await losing(t)
  account.buyElsewhere(RISE, 3600)
  await buy(RISE, 100)
  const before = Date.now()
  const error = await lose(LOST)
  account.buyElsewhere(FALL)
  account.buyElsewhere({ ...RISE, amount: 11 })
  account.buyElsewhere({ ...RISE, underlying_symbol: 'R_50' })
  const found = await find(error, () => account.buyElsewhere(FALL))
  t.match(found, { is: 'not_seen', since: Number })
  t.ok(found.is === 'not_seen' && found.since >= before && found.since <= Date.now())
  t.match(await find(error), { is: 'not_seen' }, 'it can be asked for again')
})

await test('fate: the clocks of the user and of the trading service may differ by hours', async (t) => {
  for (const aheadMs of [-7_200_000, 7_200_000]) {
    const { lose, find, account } = await losing(t)
    account.aheadMs = aheadMs
    for (const offer of [RISE, FALL]) account.buyElsewhere(offer, 60)
    t.match(await find(await lose(LOST)), { is: 'not_seen' })
    t.match(await find(await lose(MADE, FALL)), { is: 'made', contract: { contract_id: account.truth.get(2) } })
  }
})

await test('fate: a contract of which the page knew when it sent the order is not that of the order', async (t) => {
  const { lose, find, account, socket } = await losing(t)
  const other = account.buyElsewhere(RISE)
  await socket.request({ portfolio: 1 })
  t.match(await find(await lose(LOST)), { is: 'not_seen' }, 'bought in the same second')
  const error = await lose(LOST, FALL)
  const { contract_id } = account.buyElsewhere(FALL)
  const found = await find(error)
  t.match(found, { is: 'made', contract: { contract_id } }, 'an equal order of another device cannot be told apart')
  t.not(contract_id, other.contract_id)
})

await test('fate: ambiguous, with the candidates, when two contracts fit', async (t) => {
  const { lose, find, account } = await losing(t)
  const error = await lose(MADE)
  account.buyElsewhere(RISE).hasEnded = true
  const found = await find(error)
  t.match(found, { is: 'ambiguous', candidates: account.contracts.map(({ contract_id }) => ({ contract_id })) })
})

await test('fate: equal orders that are out at the same time are ambiguous, unless the answer to one of them says more', async (t) => {
  const { lose, find, account, buy } = await losing(t)
  const [first, second] = [await lose(MADE), await lose(LOST)]
  const [own] = account.contracts
  for (const error of [first, second]) {
    t.match(await find(error), { is: 'ambiguous', candidates: [{ contract_id: own?.contract_id }] })
  }
  const other = await lose(MADE, FALL)
  t.match(await find(other), { is: 'made' }, 'it is not equal')
  const third = await lose(MADE, { ...RISE, amount: 20 })
  await buy({ ...RISE, amount: 20 }, 100)
  t.match(
    await find(third),
    { is: 'made', contract: { contract_id: account.truth.get(4) } },
    'the answer names the other',
  )
})

await test('fate: an answer that arrives late decides, whether it is a contract or a refusal', async (t) => {
  const { account, find, socket, buy } = await losing(t)
  const lateAnswer = async (answer: 'held' | 'refused'): Promise<SocketError> => {
    account.handling = () => ({ executes: answer === 'held' ? 'at once' : 'never', answer: 'held' })
    const offer = answer === 'held' ? RISE : FALL
    const { proposal } = await socket.request({ proposal: 1, ...TERMS, ...offer })
    const options = { timeoutMs: 50 }
    const command = { buy: proposal.id, price: 10, passthrough: { order: answer === 'held' ? 1 : 2 } }
    const error = (await failure(socket.command(command, options))) as SocketError
    t.match(error, { code: 'timeout', outcome: 'unknown' })
    account.handling = () => ({ executes: 'at once', answer: 'sent' })
    return error
  }
  const executed = await lateAnswer('held')
  account.buyElsewhere(RISE)
  account.answerHeld()
  await socket.request({ time: 1 })
  t.match(await find(executed), { is: 'made', contract: { contract_id: account.truth.get(1) } })
  await buy(FALL, 100)
  const refused = await lateAnswer('refused')
  t.match(await failure(find(refused, () => account.answerHeld())), { code: 'PriceMoved', reply: { msg_type: 'buy' } })
})

await test('fate: waits for a connection, and looks again after one that is lost while it looks', async (t) => {
  const { lose, find, account, watch, socket } = await losing(t)
  account.isDown = true
  const error = await lose(MADE)
  const found = find(error)
  await until(() => account.refused > 0)
  t.equal(watch.size, 0)
  account.isDown = false
  t.match(await found, { is: 'made' })

  let cuts = 0
  account.cuts = (operation) => operation === 'portfolio' && cuts++ === 0
  t.match(await find(await lose(MADE, FALL)), { is: 'made', contract: { contract_type: 'PUT' } })
  t.equal(cuts, 1)
  const missed = await lose({ executes: 'late', answer: 'cut' }, { ...RISE, amount: 12 })
  const whole = find(missed, async () => {
    const waits = reaches(socket, 'waiting')
    account.cut()
    account.executeLate()
    await waits
  })
  t.match(await whole, { is: 'made', contract: { buy_price: 12 } }, 'executed without a connection')
})

await test('fate: rejects when the account cannot be read, which a later call may do', async (t) => {
  const { lose, find, account } = await losing(t)
  account.cuts = (operation) => /portfolio|statement/.test(operation)
  const flaky = await lose(MADE, FALL)
  t.match(await failure(find(flaky)), { name: 'SocketError', code: 'connection_lost' }, 'lost with all three reads')
  account.cuts = () => false
  t.match(await find(flaky), { is: 'made' })
  account.isRefusing = true
  const error = await lose(MADE)
  t.match(await failure(find(error)), { name: 'SocketError', code: 'RateLimit' })
  account.isRefusing = false
  t.match(await find(error), { is: 'made' })
})

await test('fate: never not seen when a purchase may have been missed after the last read', async (t) => {
  const { lose, find, account, socket } = await losing(t)
  const error = await lose({ executes: 'late', answer: 'cut' })
  const found = failure(
    find(error, async () => {
      // Its type has to be asked for, with the third read.
      account.buyElsewhere(FALL)
      await until(() => account.reads === 3)
      const waits = reaches(socket, 'waiting')
      account.cut()
      account.executeLate()
      await waits
    }),
  )
  t.match(await found, { name: 'SocketError', code: 'connection_lost' })
  t.match(await find(error), { is: 'made', contract: { contract_id: account.truth.get(1) } })
})

await test('fate: one at a time, and once for two calls with the same error', async (t) => {
  const { lose, account, watch } = await losing(t)
  const errors = [await lose(LOST), await lose(LOST, FALL)] as const
  const found = [fate(errors[0]), fate(errors[1])]
  t.equal(fate(errors[0]), found[0])
  await until(() => watch.size > 0)
  t.equal(account.reads, 2)
  watch.run()
  t.match(await found[0], { is: 'not_seen' })
  await until(() => watch.size > 0)
  watch.run()
  t.match(await found[1], { is: 'not_seen' })
  t.equal(account.reads, 6)
})

await test('fate: can be aborted, and refuses an error that is not about a lost purchase', async (t) => {
  const { lose, socket, watch, account } = await losing(t)
  const error = await lose(LOST)
  const leaving = new AbortController()
  const found = fate(error, { signal: leaving.signal })
  await until(() => watch.size > 0)
  leaving.abort(new Error('left'))
  t.match(await failure(found), { message: 'left' })
  t.equal(watch.size, 0)
  account.cuts = (operation) => operation === 'sell'
  const sale = await failure(socket.command({ sell: 1, price: 0 }))
  t.match(sale, { outcome: 'unknown', order: undefined })
  t.match(await failure(fate(sale as SocketError)), { name: 'TypeError' })
  t.match(await failure(fate(new SocketError('not_sent', 'not sent'))), { name: 'TypeError' })
})

await test('fate: of a purchase by parameters, of a payout, and of one whose proposal the page has not asked for', async (t) => {
  const { account, find, socket } = await losing(t)
  const lost = async (command: object, order: number): Promise<SocketError> => {
    account.handling = () => MADE
    await until(() => socket.status().state === 'open')
    await socket.request({ time: 1 })
    const error = await failure(socket.command({ ...command, passthrough: { order } } as never))
    t.match(error, { outcome: 'unknown' })
    return error as SocketError
  }
  const byParameters = await lost({ buy: 1, price: 10, parameters: { ...TERMS, ...RISE } }, 1)
  t.match(await find(byParameters), { is: 'made', contract: { contract_id: account.truth.get(1) } })
  const payout = { ...TERMS, ...FALL, basis: 'payout', amount: 20 }
  const byPayout = await lost({ buy: 1, price: 12, parameters: payout }, 2)
  t.match(await find(byPayout), { is: 'made', contract: { contract_id: account.truth.get(2), payout: 20 } })
  account.propose('unseen', { ...RISE, underlying_symbol: 'R_25' })
  const unknown = await lost({ buy: 'unseen', price: 10 }, 3)
  t.match(await find(unknown), { is: 'ambiguous', candidates: [{ contract_id: account.truth.get(3) }] })
})

await test('fate: an equal order of the minute before may be executed after this one', async (t) => {
  const { lose, find, account } = await losing(t)
  await lose({ executes: 'late', answer: 'cut' })
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() + 61_000 })
  const error = await lose(LOST)
  account.executeLate()
  t.match(await find(error), { is: 'ambiguous' })
})
