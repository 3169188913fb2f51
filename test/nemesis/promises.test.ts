import { test } from 'tap'
import { BUY, ended, executed, held, order, seen, socket } from './hand-made.ts'
import { emptyHistory } from './history.ts'
import { ALL_PROMISES } from './promises/all.ts'
import { atMostOnce } from './promises/at-most-once.ts'
import { endedMeansEnded } from './promises/ended-means-ended.ts'
import { othersAreServed } from './promises/others-are-served.ts'
import { pausedMeansPaused } from './promises/paused-means-paused.ts'
import { trueOutcomes } from './promises/true-outcomes.ts'

await test('Nothing is against a history without events', async (t) => {
  for (const promise of ALL_PROMISES) t.same(promise.check(emptyHistory()), { judged: [], violations: [] })
})

await test('at-most-once: a second execution of a key in a session is seen', async (t) => {
  t.equal(seen(atMostOnce, { executed: [executed(), executed({ instance: 1 })] }), 1)
  t.equal(seen(atMostOnce, { executed: [executed(), executed({ session: 'another login' })] }), 0)
  t.equal(seen(atMostOnce, { executed: [executed({ status: 429 }), executed()] }), 0, 'a refused call is no execution')
})

/** A call that arrived late, for a session that has ended. */
const lateCall = (sentAt: number) => ({ executed: [executed({ sentAt, at: 9000 })], endings: [ended] })

await test('ended-means-ended: a call that left too late is seen, not one that only arrived late', async (t) => {
  t.equal(seen(endedMeansEnded, lateCall(3300)), 1)
  t.equal(seen(endedMeansEnded, lateCall(3000)), 0)
  t.equal(seen(endedMeansEnded, { ...lateCall(3300), faults: [held] }), 0, 'without Redis it takes longer')
  t.equal(seen(endedMeansEnded, { ...lateCall(5100), faults: [held] }), 1)
  const delayed = (of: string) => ({ ...lateCall(3300), delays: [{ of, at: 3000, ms: 500 }] })
  t.equal(seen(endedMeansEnded, delayed('instance 0')), 0)
  t.equal(seen(endedMeansEnded, delayed('harness')), 0)
  t.equal(seen(endedMeansEnded, delayed('instance 1')), 1)
  const message = { at: 4000, sentAt: 4000, instance: 1, session: 'login', text: '{}' }
  t.equal(seen(endedMeansEnded, { delivered: [message], endings: [ended] }), 1)
  t.equal(seen(endedMeansEnded, { delivered: [message], endings: [{ ...ended, confirmedAt: undefined }] }), 0)
  const later = { delivered: [{ ...message, sentAt: 9000 }], endings: [ended] }
  t.equal(seen(endedMeansEnded, { ...later, faults: [held] }), 0, 'an open socket may outlive Redis by minutes')
  const undone = { ...held, name: 'failed-over-redis' }
  t.equal(seen(endedMeansEnded, { ...lateCall(9000), faults: [undone] }), 0, 'no replica may have confirmed the end')
  t.equal(
    seen(endedMeansEnded, { ...lateCall(9000), faults: [{ ...held, name: 'redis-failed-over-after-an-end' }] }),
    1,
  )
})

await test('true-outcomes: who is told of an execution that was none, or of none that was one, is seen', async (t) => {
  t.equal(seen(trueOutcomes, { calls: [order()] }), 1)
  t.equal(seen(trueOutcomes, { calls: [order()], executed: [executed()] }), 0)
  t.equal(seen(trueOutcomes, { calls: [order({ body: 'other' })], executed: [executed()] }), 1)
  const refused = order({ result: 'session_store_unavailable', body: '' })
  t.equal(seen(trueOutcomes, { calls: [refused], executed: [executed()] }), 1)
  t.equal(seen(trueOutcomes, { calls: [refused] }), 0)
  const lost = order({ result: 'upstream_lost', body: '' })
  t.equal(seen(trueOutcomes, { calls: [refused, lost], executed: [executed()] }), 0, 'another attempt was executed')
  const later = order({ result: 'outcome_unknown', body: '', at: 1200, until: 1300 })
  t.equal(seen(trueOutcomes, { calls: [refused, later], executed: [executed()] }), 1, 'a later attempt excuses nothing')
  const unknown = { calls: [order({ result: 'outcome_unknown', body: '' })] }
  t.equal(seen(trueOutcomes, { ...unknown, executed: [executed()] }), 0)
  t.equal(seen(trueOutcomes, { ...unknown, executed: [executed({ sentAt: 1101 })] }), 1)
  const waiting = order({ until: undefined, result: '' })
  t.equal(seen(trueOutcomes, { calls: [refused, waiting], executed: [executed()] }), 0, 'it may be the one that waits')
})

/** A socket on which a purchase was answered. */
const answered = (text: string) => ({ ...socket, received: [{ at: 1000, text: BUY.replace('{', `{${text}`) }] })

await test('true-outcomes: an answer to a purchase is of upstream if, and only if, upstream had the purchase', async (t) => {
  const delivered = [{ at: 900, sentAt: 900, instance: 0, session: 'login', text: BUY }]
  t.equal(seen(trueOutcomes, { sockets: [answered('"contract_id":1,')] }), 1)
  t.equal(seen(trueOutcomes, { sockets: [answered('"contract_id":1,')], delivered }), 0)
  t.equal(seen(trueOutcomes, { sockets: [answered('"code":"OrdersPaused",')], delivered }), 1)
  t.equal(seen(trueOutcomes, { sockets: [answered('"code":"OrdersPaused",')] }), 0)
  t.equal(seen(atMostOnce, { delivered: [...delivered, ...delivered] }), 1)
})

/** An order of u1 that was refused because the orders of somebody are paused. */
const refusedAs = (subject: string) => ({
  calls: [order({ result: 'orders_paused' })],
  executed: [executed({ method: 'GET', response: '{"data":{"user_id":"u1"}}' })],
  pauses: [{ subject, askedAt: 500, confirmedAt: 600, liftAskedAt: undefined, liftedAt: undefined }],
})

await test('others-are-served: an error that no fault explains is seen', async (t) => {
  const refused = order({ result: 'session_store_unavailable' })
  t.equal(seen(othersAreServed, { calls: [refused] }), 1)
  t.equal(seen(othersAreServed, { calls: [refused], faults: [held] }), 0)
  t.equal(seen(othersAreServed, { calls: [order({ ...refused, instance: 1 })], faults: [held] }), 1)
  t.equal(seen(othersAreServed, { calls: [order({ ...refused, result: 'internal_error' })], faults: [held] }), 1)
  t.equal(seen(othersAreServed, { calls: [order({ ...refused, at: 3600, until: 3700 })], faults: [held] }), 1)
  t.equal(seen(othersAreServed, { calls: [order({ until: 5000 })] }), 1, 'a response that comes late')
  t.equal(seen(othersAreServed, refusedAs('u1')), 0)
  const other = refusedAs('u2')
  t.equal(seen(othersAreServed, other), 1, 'another user is paused')
  const later = other.executed.map((each) => ({ ...each, instance: 1 }))
  t.equal(seen(othersAreServed, { ...other, executed: later }), 0, 'only another instance knows whose it is')
  const login = order({ kind: 'login', began: 'login', at: 800, until: 1050, key: undefined })
  const known = { ...other, executed: later, calls: [...other.calls, login] }
  t.equal(seen(othersAreServed, known), 1, 'the login has asked whose the session is')
  const expired = order({ result: 'session_expired', at: 2200, until: 2300 })
  t.equal(seen(othersAreServed, { calls: [expired] }), 1)
  t.equal(seen(othersAreServed, { calls: [expired], endings: [ended] }), 0)
  const closed = { ...socket, closedAt: 900, closed: { code: 1013, reason: 'upstream_lost' } }
  t.equal(seen(othersAreServed, { sockets: [closed] }), 1)
  t.equal(seen(othersAreServed, { sockets: [{ ...closed, isClosedByPage: true }] }), 0)
})

/** A call that is refused for a budget of 100 calls in ten seconds: how many were made, and how many of them by its user. */
const refusedAfter = (count: number, own: number) => ({
  budgets: [{ calls: 100, windowMs: 10_000 }],
  executed: Array.from({ length: count }, () => executed({ sentAt: 5000 })),
  calls: [
    ...Array.from({ length: own }, () => order({ at: 5000, until: 5010, kind: 'read' })),
    order({ result: 'upstream_budget', at: 10_000, until: 10_010 }),
  ],
})

await test('others-are-served: a call that is refused for a budget which is hardly used is seen', async (t) => {
  t.equal(seen(othersAreServed, refusedAfter(25, 0)), 0)
  t.equal(seen(othersAreServed, refusedAfter(24, 1)), 1)
  t.equal(seen(othersAreServed, refusedAfter(24, 2)), 0, 'its user has had an equal part')
})

await test('paused-means-paused: an order or a purchase that left too late is seen', async (t) => {
  const paused = { askedAt: 900, confirmedAt: 1000, liftAskedAt: 5000, liftedAt: 5100 }
  const late = (sentAt: number) => ({ executed: [executed({ sentAt, at: 9000 })], pauses: [paused] })
  t.equal(seen(pausedMeansPaused, late(2200)), 1)
  t.equal(seen(pausedMeansPaused, late(2000)), 0)
  t.equal(seen(pausedMeansPaused, late(5050)), 0, 'whoever lifts a pause permits orders')
  t.equal(seen(pausedMeansPaused, { ...late(4000), pauses: [{ ...paused, confirmedAt: undefined }] }), 0)
  const alone = (instance: number) => [{ ...paused, confirmedAt: undefined, here: { instance, at: 1000 } }]
  t.equal(seen(pausedMeansPaused, { ...late(4000), pauses: alone(0), faults: [held] }), 1, 'it has obeyed already')
  t.equal(seen(pausedMeansPaused, { ...late(4000), pauses: alone(1) }), 0, 'another instance obeys alone')
  const killed = { ...held, name: 'killed-instance' }
  t.equal(seen(pausedMeansPaused, { ...late(4000), pauses: alone(0), faults: [killed] }), 0, 'it has forgotten that')
  t.equal(seen(pausedMeansPaused, { ...late(3000), faults: [held] }), 0, 'the instance hears nothing of Redis')
  t.equal(seen(pausedMeansPaused, { ...late(3000), faults: [{ ...held, touches: [{ instances: [1] }] }] }), 1)
  t.equal(seen(pausedMeansPaused, { ...late(2200), delays: [{ of: 'instance 0', at: 2000, ms: 500 }] }), 0)
  t.equal(
    seen(pausedMeansPaused, { executed: [executed({ sentAt: 3000, path: '/accounts/1/otp' })], pauses: [paused] }),
    0,
  )
  t.equal(seen(pausedMeansPaused, { executed: [executed({ sentAt: 3000, method: 'GET' })], pauses: [paused] }), 0)
  const known = executed({ at: 1, sentAt: 1, method: 'GET', response: '{"data":{"user_id":"u1"}}' })
  const ofOne = (subject: string) => ({
    executed: [known, executed({ sentAt: 3000 })],
    pauses: [{ ...paused, subject }],
  })
  t.equal(seen(pausedMeansPaused, ofOne('u1')), 1)
  t.equal(seen(pausedMeansPaused, ofOne('u2')), 0, 'another user is paused')
  const message = { at: 3000, sentAt: 3000, instance: 1, session: 'login', text: BUY }
  t.equal(seen(pausedMeansPaused, { delivered: [message], pauses: [paused] }), 1)
  const after = { ...socket, sent: [{ at: 5200, text: BUY }] }
  t.equal(
    seen(pausedMeansPaused, { delivered: [message], pauses: [paused], sockets: [after] }),
    0,
    'it was asked for after the lift, and passed on with what had waited before',
  )
  t.equal(seen(pausedMeansPaused, { delivered: [{ ...message, text: '{"time":1}' }], pauses: [paused] }), 0)
})
