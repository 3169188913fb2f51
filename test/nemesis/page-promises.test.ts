import { test } from 'tap'
import { ended, executed, held, order, seen, socket } from './hand-made.ts'
import type { Socket } from './history.ts'
import { endedIsRevoked } from './promises/ended-is-revoked.ts'
import { fatesAreTrue } from './promises/fates-are-true.ts'
import { givenUpMeansGivenUp } from './promises/given-up-means-given-up.ts'
import { onceMeansOnce } from './promises/once-means-once.ts'
import { pagesSendInTime } from './promises/pages-send-in-time.ts'
import { readyMeansServed } from './promises/ready-means-served.ts'
import { silenceIsTold } from './promises/silence-is-told.ts'
import { tokensAreRenewedSeldom } from './promises/tokens-are-renewed-seldom.ts'

/** Answers of the token endpoint, one after the other. */
const renewed = (count: number, apartMs: number, session = (_nth: number) => 'login', isGranted = true) =>
  Array.from({ length: count }, (_each, nth) => ({ at: nth * apartMs, session: session(nth), isGranted }))

const price = (at: number) => ({ at, text: '{"tick":{}}' })
const pong = (at: number) => ({ at, text: '{"msg_type":"ping","ping":"pong"}' })

await test('once-means-once: a second execution, and a false word of the package, are seen', async (t) => {
  const transfer = { user: 'pat', session: 'login', recipient: 'wanted', at: 900, until: 1100 } as const
  const wanted = { ...transfer, times: 1, outcome: 'made' } as const
  const made = executed({ request: '{"to_nickname":"wanted"}' })
  t.equal(seen(onceMeansOnce, { intentions: [wanted], executed: [made] }), 0)
  t.equal(seen(onceMeansOnce, { intentions: [wanted], executed: [made, { ...made, key: 'another' }] }), 1)
  t.equal(seen(onceMeansOnce, { intentions: [wanted], executed: [made, { ...made, status: 429 }] }), 0)
  const twice = { intentions: [{ ...wanted, times: 2 } as const] }
  t.equal(seen(onceMeansOnce, { ...twice, executed: [made, made] }), 0)
  t.equal(seen(onceMeansOnce, { ...twice, executed: [made, made, made] }), 1)
  t.equal(seen(onceMeansOnce, { intentions: [wanted] }), 1)
  t.equal(seen(onceMeansOnce, { intentions: [{ ...wanted, outcome: 'not made' }], executed: [made] }), 1)
  t.equal(seen(onceMeansOnce, { intentions: [{ ...wanted, outcome: 'unknown' }], executed: [made] }), 0)
  t.equal(seen(onceMeansOnce, { intentions: [{ ...wanted, until: undefined }] }), 0)
})

await test('tokens-are-renewed-seldom: renewals one after the other are seen, not those of several sessions', async (t) => {
  t.equal(seen(tokensAreRenewedSeldom, { tokenCalls: renewed(5, 1000) }), 1)
  t.equal(seen(tokensAreRenewedSeldom, { tokenCalls: renewed(4, 1000) }), 0)
  t.equal(seen(tokensAreRenewedSeldom, { tokenCalls: renewed(9, 3000) }), 0)
  t.equal(seen(tokensAreRenewedSeldom, { tokenCalls: renewed(9, 1000, (nth) => `login ${nth % 3}`) }), 0)
  t.equal(
    seen(tokensAreRenewedSeldom, { tokenCalls: renewed(9, 1000, () => 'login', false) }),
    0,
    'a refused one is for the circuit',
  )
})

await test('ended-is-revoked: tokens that can be used long after a logout are seen', async (t) => {
  const later = { ...order(), at: 30_000, until: undefined }
  const left = (more: object = {}) => ({ calls: [later], endings: [{ ...ended, ...more }] })
  t.equal(seen(endedIsRevoked, left()), 1)
  t.equal(seen(endedIsRevoked, left({ revokedAt: 4000 })), 0)
  t.equal(seen(endedIsRevoked, left({ revokedAt: 20_000 })), 1, 'too late')
  t.equal(seen(endedIsRevoked, { ...left(), calls: [{ ...later, at: 9000 }] }), 0, 'it may still come')
  t.equal(seen(endedIsRevoked, left({ confirmedAt: undefined })), 0)
  t.equal(seen(endedIsRevoked, left({ by: 'operator' })), 0)
  const login = order({ kind: 'login', key: undefined, at: 2050, until: 2200 })
  t.equal(seen(endedIsRevoked, { ...left(), calls: [login, later] }), 0, 'another tab has another session')
  t.equal(seen(endedIsRevoked, { ...left(), faults: [{ ...held, name: 'silent-provider' }] }), 0)
  const earlier = { ...ended, by: 'provider', askedAt: 1900, confirmedAt: undefined } as const
  t.equal(seen(endedIsRevoked, { ...left(), endings: [earlier, ended] }), 0, 'it has ended in another way')
})

await test('ended-is-revoked: a logout that is repeated after the death of an instance is as good as any', async (t) => {
  const logout = order({ kind: 'logout', key: undefined, at: 2000, until: 2100, instance: 0 })
  const again = { ...logout, at: 4000, until: 4100, instance: 1 }
  const later = { ...order(), at: 60_000, until: undefined }
  const killed = (at: number, instance: number, ...calls: (typeof logout)[]) => ({
    calls: [...calls, later],
    kills: [{ at, instance }],
    faults: [{ ...held, name: 'killed-after-a-logout' }],
    endings: [ended],
  })
  t.equal(seen(endedIsRevoked, killed(2100, 0, logout)), 0, 'nobody has asked again')
  t.equal(seen(endedIsRevoked, killed(2100, 0, logout, again)), 1)
  t.equal(seen(endedIsRevoked, killed(2100, 1, logout)), 1, 'another one was killed')
  const taken = (revokedAt: number) => ({ ...killed(2100, 0, logout, again), endings: [{ ...ended, revokedAt }] })
  t.equal(seen(endedIsRevoked, taken(20_000)), 0, 'it takes over 6 s after it was asked')
  t.equal(seen(endedIsRevoked, taken(20_500)), 1)
  t.equal(seen(endedIsRevoked, killed(4200, 1, logout, again)), 0, 'it was killed, too')
  const older = { ...killed(2100, 0, logout, again), faults: [{ ...held, name: 'previous-version' }] }
  t.equal(seen(endedIsRevoked, older), 0, 'an instance of the previous version does not take over')
})

const sent = (order: string, lateMs: number) => ({
  leavings: [{ user: 'bea', order, clickedAt: 1000, at: 1000 + lateMs }],
})

await test('pages-send-in-time: an order that leaves long after the click is seen', async (t) => {
  t.equal(seen(pagesSendInTime, sent('bea-b1', 1900)), 0, 'a ping may come before')
  t.equal(seen(pagesSendInTime, sent('bea-b1', 2100)), 1)
  t.equal(seen(pagesSendInTime, sent('pat-wants-1', 32_000)), 0, 'a repetition')
  t.equal(seen(pagesSendInTime, sent('pat-wants-1', 34_000)), 1)
})

await test('silence-is-told: a ping that is answered long after the last price is seen', async (t) => {
  const open: Socket = {
    ...socket,
    kind: 'public',
    received: [price(500), pong(9000)],
    closedAt: undefined,
    closed: undefined,
  } as const
  t.equal(seen(silenceIsTold, { sockets: [open] }), 1)
  t.equal(seen(silenceIsTold, { sockets: [{ ...open, received: [price(500), pong(8000)] }] }), 0)
  t.equal(seen(silenceIsTold, { sockets: [{ ...open, received: [...open.received, price(9500)] }] }), 0, 'it is over')
  t.equal(seen(silenceIsTold, { sockets: [{ ...open, received: [pong(9000)] }] }), 0, 'it waits for nothing')
  const forgetting = [{ at: 600, text: '{"forget_all":"ticks"}' }]
  t.equal(seen(silenceIsTold, { sockets: [{ ...open, sent: forgetting }] }), 0)
})

await test('ready-means-served: an instance that refuses all orders and says that it is ready is seen', async (t) => {
  const refused = [1000, 7000, 12_000, 17_000].map((until) => order({ until, result: 'session_store_unavailable' }))
  const ready = { at: 17_500, instance: 0, isReady: true }
  t.equal(seen(readyMeansServed, { calls: refused, readiness: [ready] }), 1)
  t.equal(seen(readyMeansServed, { calls: refused, readiness: [{ ...ready, isReady: false }] }), 0)
  t.equal(seen(readyMeansServed, { calls: refused, readiness: [{ ...ready, instance: 1 }] }), 0)
  t.equal(seen(readyMeansServed, { calls: refused, readiness: [{ ...ready, at: 16_000 }] }), 0, 'it may not know yet')
  t.equal(seen(readyMeansServed, { calls: [...refused, order({ until: 13_000 })], readiness: [ready] }), 0)
})

const told = (more: object) => [{ user: 'bea', at: 1000, purchase: 'bea-b1', is: 'made' as const, ...more }]

await test('fates-are-true: a purchase that is told as another one, or as not made, is seen', async (t) => {
  const id = '9007199254740993'
  const bought = [{ at: 900, purchase: 'bea-b1', contractId: id }]
  t.equal(seen(fatesAreTrue, { bought, told: told({ contractId: id }) }), 0)
  t.equal(seen(fatesAreTrue, { bought, told: told({ contractId: '9007199254740992' }) }), 1, 'that of a neighbour')
  t.equal(seen(fatesAreTrue, { bought, told: told({ purchase: 'bea-b2', contractId: id }) }), 1)
  t.equal(seen(fatesAreTrue, { bought, told: told({ is: 'not made' }) }), 1)
  t.equal(seen(fatesAreTrue, { bought, told: told({ is: 'unknown' }) }), 0)
  t.equal(seen(fatesAreTrue, { told: told({ is: 'not made' }) }), 0)
})

await test('given-up-means-given-up: an order that arrives when nobody waits for it is seen', async (t) => {
  const lost = order({ result: 'upstream_timeout', at: 900, until: 1100 })
  const arrived = (at: number) => ({ calls: [lost], executed: [executed({ sentAt: 1000, at })] })
  t.equal(seen(givenUpMeansGivenUp, arrived(1250)), 0)
  t.equal(seen(givenUpMeansGivenUp, arrived(1350)), 1)
  t.equal(seen(givenUpMeansGivenUp, { ...arrived(1350), delays: [{ of: 'instance 0', at: 1200, ms: 500 }] }), 0)
  const again = order({ result: 'ok', at: 1300, until: 1400 })
  t.equal(seen(givenUpMeansGivenUp, { ...arrived(1350), calls: [lost, again] }), 0, 'another attempt waits')
  const gone = order({ result: 'no_answer', at: 900, until: 1100 })
  t.equal(seen(givenUpMeansGivenUp, { ...arrived(1350), calls: [gone] }), 0, 'the call of a page that has gone goes on')
  const late = { ...held, name: 'late-execution' }
  t.equal(seen(givenUpMeansGivenUp, { ...arrived(1350), faults: [late] }), 0, 'what has left is late on its way')
  t.equal(seen(givenUpMeansGivenUp, { ...arrived(9000), faults: [late] }), 1)
})
