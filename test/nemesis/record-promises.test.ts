import { test } from 'tap'
import { ended, held, order, seen, socket } from './hand-made.ts'
import type { Pause } from './history.ts'
import type { AuditLine, Leftover, Sample } from './states.ts'
import { nothingIsLeft } from './promises/nothing-is-left.ts'
import { recordsAreTrue } from './promises/records-are-true.ts'
import { statesAreTrue } from './promises/states-are-true.ts'

const line = (more: Partial<AuditLine>): AuditLine => ({
  ...{ at: 2050, audit: 'session_ended', session: 'abc', requestId: undefined, reason: 'logout', control: undefined },
  ...more,
})

/** A logout at the provider that the page of another session has asked for. */
const elsewhere = (user: string) => [{ ...ended, user, session: 'another login', by: 'provider' } as const]

await test('records-are-true: an end that is recorded twice, not at all or with another reason is seen', async (t) => {
  const login = order({ kind: 'login', key: undefined, began: 'login', requestId: 'request' })
  const begun = line({ at: 1000, audit: 'login', requestId: 'request', reason: undefined })
  const over = (...audits: AuditLine[]) => ({ calls: [login], endings: [ended], audits: [begun, ...audits] })
  t.equal(seen(recordsAreTrue, over(line({}))), 0)
  t.equal(seen(recordsAreTrue, over(line({}), line({ at: 3000 }))), 1)
  const undone = { ...held, name: 'late-replicas-of-redis' }
  t.equal(seen(recordsAreTrue, { ...over(line({}), line({ at: 3000 })), faults: [undone] }), 0, 'it has come back')
  const halted = (name: string, from: number) => ({
    ...over(line({}), line({ at: 9000 })),
    faults: [{ ...held, name, from }],
  })
  for (const name of ['killed-instance', 'long-stopped-instance']) {
    t.equal(seen(recordsAreTrue, halted(name, 2500)), 0, 'its instance could not say so any more')
    t.equal(seen(recordsAreTrue, halted(name, 4000)), 1)
  }
  t.equal(seen(recordsAreTrue, over()), 1, 'nothing says that it has ended')
  t.equal(seen(recordsAreTrue, over(line({ session: 'def' }))), 1, 'another one has ended')
  t.equal(seen(recordsAreTrue, over(line({ reason: 'revoked' }))), 1, 'no operator has asked for it')
  const byProvider = { ...over(line({ reason: 'revoked' })), endings: [{ ...ended, by: 'provider' } as const] }
  t.equal(seen(recordsAreTrue, byProvider), 0)
  t.equal(seen(recordsAreTrue, { ...byProvider, endings: elsewhere('ada') }), 0, 'the provider has begun both')
  t.equal(seen(recordsAreTrue, { ...byProvider, endings: elsewhere('bob') }), 1)
  t.equal(seen(recordsAreTrue, { ...over(line({})), audits: [line({})] }), 1, 'nothing says that it has begun')
  t.equal(seen(recordsAreTrue, { ...over(), faults: [{ ...held, name: 'killed-instance' }] }), 0, 'lines are lost')
  t.equal(seen(recordsAreTrue, { ...over(), rotations: [1500] }), 0, 'it has another name by then')
})

const changed = (at: number) => line({ at, audit: 'controls_changed', session: undefined, control: 'orders' })

await test('records-are-true: a change of the controls that is not recorded is seen', async (t) => {
  const paused = { askedAt: 1900, confirmedAt: 2000, liftAskedAt: 4000, liftedAt: 4100 }
  t.equal(seen(recordsAreTrue, { pauses: [paused], audits: [changed(1950), changed(4050)] }), 0)
  t.equal(seen(recordsAreTrue, { pauses: [paused], audits: [changed(1950)] }), 1)
})

await test('states-are-true: an instance that counts wrongly, or is not ready, is seen while nothing is broken', async (t) => {
  const sample: Sample = {
    ...{ from: 9000, to: 9100, instance: 0, status: 200, publicSockets: 0, tradingSockets: 1, pauses: 0 },
    ...{ feedSockets: 0, gauges: [] },
  }
  const open = { ...socket, received: [{ at: 1, text: '{}' }] }
  const told = (more: Partial<Sample>, pauses: Pause[] = []) =>
    seen(statesAreTrue, { sockets: [open], samples: [{ ...sample, ...more }], pauses })
  t.equal(told({}), 0)
  t.equal(told({ status: 503 }), 1)
  t.equal(told({ tradingSockets: 0 }), 1)
  t.equal(told({ tradingSockets: 2 }), 1)
  t.equal(told({ publicSockets: 1 }), 1)
  t.equal(told({ pauses: 1 }), 1)
  const paused = { askedAt: 1000, confirmedAt: 1100, liftAskedAt: undefined, liftedAt: undefined }
  t.equal(told({}, [paused]), 1)
  t.equal(told({ pauses: 1 }, [paused]), 0)
  t.equal(
    told({ pauses: 1 }, [{ ...paused, liftAskedAt: 8500, liftedAt: 8600 }]),
    0,
    'instances need time to hear of it',
  )
  t.equal(seen(statesAreTrue, { samples: [{ ...sample, status: 503 }], faults: [{ ...held, to: 8500 }] }), 0)
  t.equal(
    seen(statesAreTrue, { samples: [sample], pageSockets: [{ at: 100, closedAt: undefined }] }),
    0,
    'a balancer may have sent it there',
  )
  t.equal(seen(statesAreTrue, { samples: [sample], pageSockets: [{ at: 100, closedAt: 5000 }] }), 1)
  t.equal(
    seen(statesAreTrue, { sockets: [{ ...open, closedAt: 8500 }], samples: [{ ...sample, tradingSockets: 0 }] }),
    0,
  )
})

await test('nothing-is-left: a socket, a stream, a descriptor or a key that stays is seen', async (t) => {
  const state = { pid: 1, name: 'instance 0', descriptors: 20, megabytes: 100 }
  const nothing: Leftover = {
    ...{ at: 9000, gauges: [{ instance: 0, name: 'bff_relays', value: 0 }], upstreamSockets: 1, feedSockets: 1 },
    ...{
      silent: [],
      lastingKeys: [],
      processes: [{ before: state, after: { ...state, descriptors: 25, megabytes: 150 } }],
    },
  }
  const left = (more: Partial<Leftover>) => seen(nothingIsLeft, { leftovers: [{ ...nothing, ...more }] })
  t.equal(left({}), 0)
  t.equal(left({ gauges: [{ instance: 0, name: 'bff_relays', value: 1 }] }), 1)
  t.equal(left({ gauges: [], silent: [0] }), 1, 'nobody knows')
  t.equal(left({ upstreamSockets: 2 }), 1)
  t.equal(left({ lastingKeys: ['bff:1:session:x'] }), 1)
  t.equal(left({ processes: [{ before: state, after: { ...state, descriptors: 40 } }] }), 1)
  t.equal(left({ processes: [{ before: state, after: { ...state, megabytes: 400 } }] }), 1)
})
