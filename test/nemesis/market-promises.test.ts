import { test } from 'tap'
import { executed, held, seen, socket } from './hand-made.ts'
import type { Socket } from './history.ts'
import { attributionArrives } from './promises/attribution-arrives.ts'
import { budgetIsKept } from './promises/budget-is-kept.ts'
import { ticksAreTrue } from './promises/ticks-are-true.ts'

/** Calls that have left at these times, and were on the way for a while. */
const sentAt = (times: readonly number[]) => times.map((at) => executed({ sentAt: at, at: at + 5000 }))

await test('budget-is-kept: one call too many in a window is seen', async (t) => {
  const budgets = [{ calls: 2, windowMs: 1000 }]
  t.equal(seen(budgetIsKept, { budgets, executed: sentAt([0, 500, 900]) }), 1)
  t.equal(seen(budgetIsKept, { budgets, executed: sentAt([900, 0, 500]) }), 1)
  t.equal(seen(budgetIsKept, { budgets, executed: sentAt([0, 500, 1000, 1500]) }), 0)
  t.equal(seen(budgetIsKept, { budgets: [], executed: sentAt([0, 0, 0]) }), 0)
  t.equal(
    seen(budgetIsKept, {
      budgets: [...budgets, { calls: 3, windowMs: 5000 }],
      executed: sentAt([0, 1000, 2000, 3000]),
    }),
    1,
  )
})

await test('attribution-arrives: a partner who is lost, or gets the sign-up of another, is seen', async (t) => {
  const start = { user: 'ada', kind: 'signup', attribution: 'sidc=1', state: 'state' } as const
  const arrived = (attribution: string) => ({
    starts: [start],
    authorizations: [{ at: 1000, state: 'state', attribution }],
  })
  t.equal(seen(attributionArrives, arrived('')), 1)
  t.equal(seen(attributionArrives, arrived('sidc=2')), 1)
  t.equal(seen(attributionArrives, arrived('sidc=1')), 0)
  const login = { ...start, kind: 'login', attribution: '' } as const
  t.equal(seen(attributionArrives, { ...arrived('sidc=1'), starts: [login] }), 1)
  t.equal(seen(attributionArrives, { ...arrived('sidc=1'), starts: [] }), 0, 'a browser that has not come back')
  const unread = [{ ...held, name: 'wrong-secrets' }]
  t.equal(seen(attributionArrives, { ...arrived(''), faults: unread }), 0, 'no other instance can read its cookie')
  t.equal(seen(attributionArrives, { ...arrived('sidc=2'), faults: unread }), 1)
})

await test('ticks-are-true: a tick that is missing, doubled, late or of another is seen', async (t) => {
  const ticks = [1, 2, 2, 3, 4].map((quote, nth) => ({ at: nth * 1000, symbol: 'R_100', epoch: nth, quote }))
  const asked = { at: 0, text: '{"ticks":"R_100","req_id":7,"passthrough":{"of":"ada"}}' }
  const told = (nth: number, more: object = {}) => {
    const { epoch, quote, symbol } = ticks[nth] ?? { epoch: 0, quote: 0, symbol: '' }
    const text = { tick: { epoch, quote, symbol }, req_id: 7, passthrough: { of: 'ada' }, ...more }
    return { at: nth * 1000, text: JSON.stringify(text) }
  }
  const gets = (received: Socket['received'], more: Partial<Socket> = {}) =>
    seen(ticksAreTrue, { ticks, sockets: [{ ...socket, sent: [asked], received, ...more }] })
  t.equal(gets([told(1), told(2), told(3)]), 0)
  t.equal(gets([told(1), told(3)]), 1, 'a tick is missing')
  t.equal(gets([told(3), told(3)]), 1, 'a tick came twice')
  t.equal(gets([told(3), told(1)]), 1, 'a tick came late')
  t.equal(gets([told(1, { passthrough: { of: 'bob' } })]), 1, 'a tick is of another user')
  t.equal(gets([told(1, { req_id: 8 })]), 1, 'a tick is of another stream')
  t.equal(gets([told(1, { tick: { symbol: 'R_50', epoch: 1, quote: 2 } })]), 1, 'a tick is of another symbol')
  const past = { at: 1, text: '{"history":{"prices":[1,2],"times":[0,1]},"req_id":7,"passthrough":{"of":"ada"}}' }
  t.equal(gets([past, told(2)]), 0)
  t.equal(gets([past, told(3)]), 1, 'a tick is missing behind a history')
  const later = { at: 20_000, symbol: 'R_100', epoch: 9, quote: 9 }
  const silent = { ticks: [...ticks, later], sockets: [{ ...socket, sent: [asked], received: [told(1)] }] }
  t.equal(seen(ticksAreTrue, silent), 1, 'the rest does not come')
  t.equal(seen(ticksAreTrue, { ...silent, faults: [{ ...held, touches: [{ instances: [0] }] }] }), 0)
})
