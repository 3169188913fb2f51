import { test } from 'tap'
import { movedMs, noteContract, outcomeOf, rivalsOf } from '../../client/src/orders/rivals.ts'
import { account, SENT_AT, TICK } from '../support/client/sent-order.ts'
import { replace } from '../support/time/replace.ts'

const bought = (req_id: number, contract_id: number) => ({ msg_type: 'buy', req_id, buy: { contract_id } })
const refused = (req_id: number) => ({ msg_type: 'buy', req_id, error: { code: 'PriceMoved' } })

await test('movedMs() is by how much the clock of the user has moved against the one that nobody can set', (t) => {
  t.equal(movedMs({ sentAt: 1000, tick: 100 }, { sentAt: 1700, tick: 300 }), 500)
  t.equal(movedMs({ sentAt: 1700, tick: 300 }, { sentAt: 1000, tick: 100 }), -500)
  replace(t, Date, 'now', () => 9000)
  replace(t, performance, 'now', () => 20)
  t.equal(movedMs({ sentAt: 1000, tick: 100 }), 8080, 'until now')
  t.end()
})

await test('what is known of an order is the first reply to it, and the contract that a reply or a search has told', (t) => {
  const { send, hear } = account()
  const order = send(1)
  t.same(outcomeOf(order), { reply: undefined, contractId: undefined })
  hear(bought(2, 8))
  t.same(outcomeOf(order), { reply: undefined, contractId: undefined })
  noteContract(order, '9')
  t.same(outcomeOf(order), { reply: undefined, contractId: '9' })
  hear(refused(1))
  hear(bought(1, 7))
  t.same(outcomeOf(order), { reply: refused(1), contractId: '7' })
  t.end()
})

await test('the contracts of all other orders of the account are known to be theirs', (t) => {
  const { send, hear } = account()
  const order = send(1)
  hear(bought(1, 7))
  send(2)
  hear(bought(2, 8))
  noteContract(send(3, { sentAt: SENT_AT + 10_000_000, tick: TICK + 10_000_000 }), '9')
  t.same([...rivalsOf(order, 1000).contracts], ['8', '9'])
  t.end()
})

await test('another order is pending unless its outcome is known, its terms differ, or it was sent at another time', (t) => {
  for (const [what, sentMs, tickMs, parameters, reply, isPending] of [
    ['an equal one', 0, 0, {}, undefined, true],
    ['one at the end of the time', 1000, 1000, {}, undefined, true],
    ['one after it', 1001, 1001, {}, undefined, false],
    ['one before it', -1001, -1001, {}, undefined, false],
    ['one at its beginning', -1000, -1000, {}, undefined, true],
    ['one before which the clock was set', 1500, 1000, {}, undefined, true],
    ['one before which it was set back', 1500, 2000, {}, undefined, true],
    ['one before which it was set by less', 1500, 1001, {}, undefined, false],
    ['one of another type', 0, 0, { contract_type: 'PUT' }, undefined, false],
    ['one that was refused', 0, 0, {}, refused(2), false],
    ['one that has bought', 0, 0, {}, bought(2, 8), false],
  ] as const) {
    const { send, hear } = account()
    const order = send(1)
    const other = send(2, { sentAt: SENT_AT + sentMs, tick: TICK + tickMs }, parameters)
    if (reply) hear(reply)
    t.same(rivalsOf(order, 1000).pending, isPending ? [other] : [], what)
  }
  const { send } = account()
  const order = send(1)
  noteContract(send(2), '8')
  t.same(rivalsOf(order, 1000).pending, [], 'one whose contract was found')
  t.end()
})
