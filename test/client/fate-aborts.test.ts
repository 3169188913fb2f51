import { test } from 'tap'
import type { SocketError } from '../../client/dist/client.js'
import { fate } from '../../client/dist/client/orders.js'
import { failure } from '../support/client/page-client.ts'
import { lossyAccount, type Handling, type Offer } from '../support/client/lossy-account.ts'
import { losing, RISE } from '../support/client/lost-orders.ts'
import { until } from '../support/time/until.ts'

const FALL: Offer = { ...RISE, contract_type: 'PUT' }
const LOST: Handling = { executes: 'never', answer: 'cut' }

await test('fate: the abort of one call does not stop another one', async (t) => {
  const { lose, find } = await losing(t)
  const error = await lose(LOST)
  const own = new AbortController()
  const first = failure(fate(error, { signal: own.signal }))
  const second = find(error)
  own.abort(new Error('mine'))
  t.match(await first, { message: 'mine' })
  t.match(await second, { is: 'not_seen' })
})

await test('fate: can be aborted while it waits for the fate of another order, after which the others have their turn', async (t) => {
  const { account, find, lose, watch } = await losing(t)
  const errors = [await lose(LOST), await lose(LOST, { ...FALL })] as const
  account.isDown = true
  account.cut()
  const first = new AbortController()
  const search = failure(fate(errors[0], { signal: first.signal }))
  const second = new AbortController()
  const waiting = failure(fate(errors[1], { signal: second.signal }))
  const third = find(errors[1])
  second.abort(new Error('left'))
  t.match(await waiting, { message: 'left' })
  t.match(await failure(fate(errors[1], { signal: second.signal })), { message: 'left' })
  t.equal(watch.size, 0)
  account.isDown = false
  first.abort(new Error('left, too'))
  t.match(await search, { message: 'left, too' })
  t.match(await third, { is: 'not_seen' })
})

await test('fate: one that is aborted while it waits lets nobody look before those that it has waited for', async (t) => {
  const { account, lose, socket, watch } = await losing(t)
  const [watched, other] = [await lose(LOST), await lose(LOST, { ...FALL })]
  const first = fate(watched)
  await until(() => watch.size === 1, 'the first one watches the account')
  const own = new AbortController()
  const waiting = failure(fate(other, { signal: own.signal }))
  own.abort(new Error('left'))
  t.match(await waiting, { message: 'left' })
  const { reads } = account
  const last = fate(other)
  for (let turn = 0; turn < 5; turn++) await socket.request({ time: 1 })
  t.equal(account.reads, reads)
  for (const each of [first, last]) {
    await until(() => watch.size === 1)
    watch.run()
    t.match(await each, { is: 'not_seen' })
  }
})

await test('fate: an account that cannot be reached keeps no order of another account waiting', async (t) => {
  const { lose, find, account } = await losing(t)
  const { account: away, buy } = await lossyAccount(t)
  away.handling = () => LOST
  const unreachable = await failure(buy(RISE, 1))
  away.isDown = true
  away.cut()
  const own = new AbortController()
  const waiting = failure(fate(unreachable as SocketError, { signal: own.signal }))
  t.match(await find(await lose(LOST)), { is: 'not_seen' })
  t.ok(account.reads > 0)
  own.abort(new Error('left'))
  t.match(await waiting, { message: 'left' })
})
