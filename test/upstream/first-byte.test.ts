import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { connect } from 'node:tls'
import { test, type Test } from 'tap'
import type { Refused } from '../../src/upstream/budget/admission.ts'
import { BudgetCall } from '../../src/upstream/budget/budget-call.ts'
import type { Token } from '../../src/upstream/budget/lease.ts'
import type { Hold, UpstreamRefusals } from '../../src/upstream/budget/upstream-refusals.ts'
import { FirstByte } from '../../src/upstream/first-byte.ts'
import { codeOf, failedBeforeResponse, hasResponseBegun, noResponse, noteUsed } from '../../src/upstream/no-response.ts'

const REFUSED: Refused = { is: 'refused', limited: 'all', retryAfterMs: 7 }

await test('the first byte goes if the session is live, the claim holds, orders are allowed, and the budget has room', (t) => {
  const asked: string[] = []
  const note = <Answer>(name: string, answer: Answer): Answer => {
    asked.push(name)
    return answer
  }
  const may = (session: boolean, claim: boolean, orders: boolean, refused?: Refused) => {
    asked.length = 0
    const conditions = {
      session: () => note('session', session),
      claim: {
        get maySend() {
          return note('claim', claim)
        },
      },
      orders: () => note('orders', orders),
    }
    return new FirstByte(conditions, { start: () => note('budget', refused) }).refusal()
  }
  t.equal(may(true, true, true), undefined)
  t.same(asked, ['session', 'claim', 'orders', 'budget'])
  t.same(may(false, true, true), { is: 'stale', why: 'session' })
  t.same(may(true, false, true), { is: 'stale', why: 'claim' })
  t.same(may(true, true, false), { is: 'stale', why: 'orders' })
  t.same(asked, ['session', 'claim', 'orders'], 'nothing is spent of the budget')
  t.same(may(true, true, true, REFUSED), { is: 'overBudget', limited: 'all', retryAfterMs: 7 })
  t.equal(new FirstByte({}).refusal(), undefined)
  t.equal(new FirstByte({}, { start: () => undefined }).refusal(), undefined)
  t.end()
})

const error = (name: string, code?: string): Error => Object.assign(new Error('x'), { name }, code && { code })

await test('a call that got no response was not sent, was lost, or took too long', (t) => {
  const reset = error('Error', 'ECONNRESET')
  t.same(noResponse(reset, 'nothing', false), { is: 'unreachable', cause: reset })
  for (const sent of ['part', 'whole'] as const)
    t.same(noResponse(reset, sent, true), { is: 'lost', cause: reset, responseBegan: true })
  for (const late of [error('Error', 'UND_ERR_HEADERS_TIMEOUT'), error('TimeoutError')])
    t.same(noResponse(late, 'part', false), { is: 'timeout', cause: late })
  for (const code of ['ERR_SSL_ALERT_INTERNAL_ERROR', 'xERR_SSL_ALERT_UNKNOWN_CA', 'ERR_SSL_ALERT_UNKNOWN_CAx'])
    t.equal(noResponse(error('Error', code), 'whole', false).is, 'lost', code)
  t.same(
    [
      { is: 'unreachable' },
      { is: 'lost', responseBegan: false },
      { is: 'lost', responseBegan: true },
      { is: 'timeout' },
    ].map(failedBeforeResponse),
    [true, true, false, false],
  )
  t.same([error('HTTPParserError'), error('Error', 'UND_ERR_HEADERS_OVERFLOW'), reset].map(hasResponseBegun), [
    true,
    true,
    false,
  ])
  t.same([codeOf(reset), codeOf(error('TypeError'))], ['ECONNRESET', 'TypeError'])
  t.end()
})

/** A call, what it does, and what upstream has refused. */
function callOf({ isCalm = false, hasSource = true, hasAnother = false } = {}) {
  const done: unknown[] = []
  const world = { isCalm, hold: undefined as Hold | undefined, mayProbe: false, taken: true }
  const refusals = {
    get isCalm() {
      return world.isCalm
    },
    hold: (...asked: unknown[]) => {
      done.push(['hold', ...asked])
      return world.hold
    },
    mayProbe: () => world.mayProbe,
    takeProbe: () => {
      done.push(['probe'])
      return { probe: 'a probe', taken: Promise.resolve(world.taken) }
    },
    named: (caller: { user: string; source: string }) => caller,
    refused: (...args: unknown[]) => void done.push(['refused', ...args]),
    note: async (...args: unknown[]) => void done.push(['note', ...args]),
  }
  const token = (name: string, isGood = true): Token => ({
    spend: () => {
      done.push([`spend ${name}`])
      return isGood
    },
    release: () => void done.push([`release ${name}`]),
  })
  const tokens = {
    another: () => (hasAnother ? token('another') : undefined),
    refuse: (hold?: Hold): Refused => {
      done.push(['refuse', hold])
      return REFUSED
    },
  }
  const call = new BudgetCall(
    refusals as unknown as UpstreamRefusals,
    tokens,
    'orders',
    'alice',
    hasSource ? () => 'a source' : undefined,
  )
  return { call, done, world, token }
}

const CALLER = { user: 'alice', source: 'a source' }

await test('a call spends its token when it is written, and another when it is written again', (t) => {
  const calm = callOf({ isCalm: true })
  calm.call.grant(calm.token('first'))
  t.equal(calm.call.start(), undefined)
  t.same(calm.done, [['spend first']])
  t.same(calm.call.start(), REFUSED)
  t.same(calm.done.slice(1), [['refuse', undefined]])
  calm.call.end()
  t.equal(calm.done.length, 2, 'a token that was spent is not given back')
  const again = callOf({ isCalm: true, hasAnother: true })
  again.call.grant(again.token('first', false))
  t.equal(again.call.start(), undefined)
  t.same(again.done, [['spend first'], ['spend another']], 'the lease had ended')
  const unsent = callOf({ isCalm: true })
  unsent.call.grant(unsent.token('first'))
  unsent.call.end()
  unsent.call.end()
  t.same(unsent.done, [['release first']])
  t.end()
})

await test('a call that upstream would refuse is held, and a probe is not held by the hold of all', async (t) => {
  const { call, done, world, token } = callOf()
  call.grant(token('first'))
  world.hold = { limited: 'user', retryAfterMs: 5 } as unknown as Hold
  t.same(call.start(), REFUSED)
  t.same(done, [
    ['hold', 'orders', CALLER],
    ['refuse', world.hold],
  ])
  world.hold = { limited: 'all', retryAfterMs: 5 } as unknown as Hold
  t.equal(call.hold(), world.hold)
  world.taken = false
  t.equal(await call.takeProbe(), false)
  t.equal(call.hold(), world.hold)
  world.taken = true
  t.equal(await call.takeProbe(), true)
  t.equal(call.hold(), undefined)
  world.hold = undefined
  t.equal(call.hold(), undefined)
  world.hold = { limited: 'user', retryAfterMs: 5 } as unknown as Hold
  t.equal(call.hold(), world.hold)
  world.isCalm = true
  t.equal(call.hold(), undefined)
})

await test('a call becomes a probe when it is written, if there is none, and says what became of it', async (t) => {
  for (const [end, note] of [
    [(call: BudgetCall) => call.answered(200, undefined), { is: 'answered', probe: 'a probe' }],
    [(call: BudgetCall) => call.end(), { is: 'unanswered', probe: 'a probe' }],
  ] as const) {
    const { call, done, world } = callOf()
    t.equal(call.mayProbe, false)
    call.written()
    t.same(done, [])
    world.mayProbe = true
    t.equal(call.mayProbe, true)
    call.written()
    call.written()
    t.same(done, [['probe']], 'once')
    call.answered(103, undefined)
    t.equal(done.length, 1, 'no answer yet')
    end(call)
    call.end()
    await setImmediate()
    t.same(done.slice(1), [['note', 'orders', note]])
  }
  const started = callOf({ hasAnother: true })
  started.world.mayProbe = true
  t.equal(started.call.start(), undefined)
  t.same(started.done.slice(1), [['spend another'], ['probe']])
  const calm = callOf({ isCalm: true })
  calm.world.mayProbe = true
  calm.call.written()
  t.same(calm.done, [])
})

await test('a 429 counts for its user, with the first of its times', (t) => {
  const { call, done, world } = callOf()
  call.answered(429, ['7', '8'])
  call.answered(429, '9')
  call.answered(429, undefined)
  call.answered(200, undefined)
  t.same(done, [
    ['refused', 'orders', CALLER, '7', undefined],
    ['refused', 'orders', CALLER, '9', undefined],
    ['refused', 'orders', CALLER, undefined, undefined],
  ])
  world.mayProbe = true
  call.written()
  call.answered(429, '1')
  t.same(done.at(-1), ['refused', 'orders', CALLER, '1', 'a probe'])
  call.end()
  t.equal(done.length, 5)
  t.end()
})

await test('a call without a source counts for no user, and is no probe', async (t) => {
  const { call, done, world } = callOf({ hasSource: false })
  world.mayProbe = true
  t.equal(call.mayProbe, false)
  t.equal(await call.takeProbe(), false)
  call.written()
  call.answered(429, '7')
  call.hold()
  t.same(done, [['hold', 'orders', undefined]])
})

await test('an alert in TLS by which upstream refuses a client means that nothing was read, whatever its name is in this Node', async (t) => {
  const errorOf = await alertingServer(t)
  // handshake_failure, four kinds of bad certificates, certificate_unknown, unknown_ca, access_denied, certificate_required
  for (const alert of [40, 42, 43, 44, 45, 46, 48, 49, 116]) {
    const refused = await errorOf(alert)
    t.equal(noResponse(refused, 'whole', false).is, 'unreachable', codeOf(refused))
    t.equal(noResponse(refused, 'whole', true).is, 'lost')
    noteUsed(refused)
    t.equal(noResponse(refused, 'whole', false).is, 'lost', 'something had arrived over the connection')
  }
  // bad_record_mac, decode_error, internal_error
  for (const alert of [20, 50, 80]) {
    const failed = await errorOf(alert)
    t.equal(noResponse(failed, 'whole', false).is, 'lost', codeOf(failed))
  }
})

/** A server that ends each handshake with an alert. Resolves with the error that a client gets. */
async function alertingServer(t: Test): Promise<(alert: number) => Promise<Error>> {
  let alert = 0
  const fatal = (): Buffer => Buffer.from([0x15, 3, 3, 0, 2, 2, alert])
  const server = createServer(
    (socket) => void socket.on('error', () => undefined).once('data', () => socket.end(fatal())),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return async (next) => {
    alert = next
    const [failure] = (await once(connect({ host: '127.0.0.1', port }), 'error')) as [Error]
    return failure
  }
}
