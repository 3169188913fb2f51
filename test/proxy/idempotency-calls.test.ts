import { setImmediate } from 'node:timers/promises'
import { Readable } from 'node:stream'
import { test } from 'tap'
import { Problem } from '../../src/problem.ts'
import { idempotencyKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import type { ForwardOutcome } from '../../src/upstream/forwarding.ts'
import { BodyRefused } from '../../src/upstream/request-body.ts'
import { answers, keyedCalls } from '../support/idempotency/keyed-call.ts'

const CAUSE = new Error('upstream')
const LARGE = 'x'.repeat(2000)

/** An outcome of upstream, what the browser gets, what becomes of the record, and what the outcome of a repetition is. */
const OUTCOMES: readonly (readonly [ForwardOutcome, code: string, ending: string, repeated: string | undefined])[] = [
  [{ is: 'unreachable', cause: CAUSE }, 'upstream_unreachable', 'freed', undefined],
  [{ is: 'lost', cause: CAUSE, responseBegan: false }, 'upstream_lost', 'unknown', 'outcome_unknown'],
  [{ is: 'timeout', cause: CAUSE }, 'upstream_timeout', 'unknown', 'outcome_unknown'],
  [{ is: 'overBudget', limited: 'user', retryAfterMs: 1 }, 'upstream_limit', 'freed', undefined],
  [{ is: 'bodyRefused', problem: new Problem('body_too_large') }, 'body_too_large', 'freed', undefined],
  [{ is: 'withheld', status: 500 }, 'upstream_error', 'unknown', 'outcome_unknown'],
  [{ is: 'withheld', status: 401 }, 'credential_renewed', 'freed', undefined],
  [{ is: 'cut', status: 200, cause: CAUSE }, 'upstream_lost', 'unknown', 'outcome_unknown'],
  [{ is: 'cut', status: 429, cause: CAUSE }, 'rate_limited', 'freed', undefined],
  [{ is: 'cut', status: 413, cause: CAUSE }, 'body_too_large', 'freed', undefined],
]

for (const [outcome, code, ending, repeated] of OUTCOMES) {
  const status = 'status' in outcome ? ` ${outcome.status}` : ''
  await test(`a call whose outcome is ${outcome.is}${status} gets ${code}, and its key is ${ending}`, async (t) => {
    const { world, call, outcomes, counted, sent } = await keyedCalls()
    world.upstream = () => outcome
    const problem = await call('key')
    t.equal(problem?.code, code)
    t.equal(problem?.details.outcome, ending === 'unknown' ? 'unknown' : undefined)
    t.same(outcomes, [ending])
    t.equal(counted.length, 1)
    world.upstream = answers(200, 'done')
    t.equal((await call('key'))?.code, repeated)
    t.equal(sent.length, repeated === undefined ? 2 : 1)
  })
}

await test('a call is sent whole with its length, and its repetition gets the same response', async (t) => {
  const { world, call, sent, outcomes, lines, nextBrowser } = await keyedCalls()
  world.upstream = answers(201, 'done', { etag: '"1"' })
  t.equal(await call('key'), undefined)
  t.match(sent[0], { body: Buffer.from('body') })
  t.same(sent[0]?.headers.slice(-2), ['content-length', '4'])
  const first = world.raw
  t.match(first, { status: 201, text: 'done', hasEnded: true })
  t.notOk(first.headers.includes('idempotency-replayed'))
  const second = nextBrowser()
  t.equal(await call('key'), undefined)
  t.match(second, { status: 201, text: 'done', hasEnded: true })
  t.same(second.headers.slice(-2), ['idempotency-replayed', 'true'])
  t.equal((await call('key', 'other'))?.code, 'idempotency_key_reused')
  t.same(outcomes, ['answered', 'replayed', 'key_reused'])
  t.match(lines, [
    { level: 'info', audit: 'idempotency', outcome: 'replayed', method: 'POST', route: '/transfer', session: 'tag' },
    { level: 'warn', audit: 'idempotency', outcome: 'key_reused' },
  ])
  t.equal(await call('empty', null), undefined)
  t.same(sent[1]?.body, null)
  t.notOk(sent[1]?.headers.includes('content-length'))
})

await test('a call that is repeated while it runs is refused, and one beyond the keys of its session', async (t) => {
  const { world, call, outcomes, store } = await keyedCalls()
  const reply = Promise.withResolvers<ForwardOutcome>()
  world.upstream = () => reply.promise
  const first = call('key')
  await setImmediate()
  const repeated = await call('key')
  t.match(repeated, { code: 'idempotency_in_progress', details: { retryAfterSeconds: 1 } })
  reply.resolve({ is: 'timeout', cause: CAUSE })
  await first
  const unknown = await call('key')
  t.match(unknown, { code: 'outcome_unknown', details: { outcome: 'unknown' } })
  store.count = async () => 2 ** 40
  const tooMany = await call('another')
  t.match(tooMany, { code: 'rate_limited', details: { retryAfterSeconds: 60 } })
  t.match(tooMany?.message, /too many Idempotency-Keys/)
  t.same(outcomes, ['in_progress', 'unknown', 'repeated_unknown', 'too_many'])
})

await test('a response too large to be kept is streamed, and its repetition is told so', async (t) => {
  const { world, call, outcomes, nextBrowser } = await keyedCalls()
  world.upstream = answers(200, LARGE)
  t.equal(await call('key'), undefined)
  t.match(world.raw, { status: 200, text: LARGE, hasEnded: true })
  nextBrowser()
  const again = await call('key')
  t.match(again, { code: 'answer_not_kept', details: { outcome: 'unknown' } })
  t.match(again?.message, /status 200/)
  t.same(outcomes, ['not_kept', 'repeated_not_kept'])
})

await test('the record of a large response says so before its end, and a large refusal leaves a free key', async (t) => {
  for (const [status, during, after] of [
    [200, 'answer_not_kept', 'answer_not_kept'],
    [429, 'idempotency_in_progress', undefined],
    [413, 'idempotency_in_progress', undefined],
  ] as const) {
    const { world, call, nextBrowser } = await keyedCalls()
    const rest = Promise.withResolvers<void>()
    world.upstream = async ({ begin, response }) => {
      begin(status, { 'content-length': '2000' })
      response.write(Buffer.from(LARGE))
      await rest.promise
      response.end()
      return { is: 'answered', status }
    }
    const first = call('key')
    await setImmediate()
    nextBrowser()
    t.equal((await call('key'))?.code, during, `${status}`)
    rest.resolve()
    await first
    world.upstream = answers(200, 'done')
    t.equal((await call('key'))?.code, after, `${status}`)
  }
})

await test('a large response that breaks off is no problem any more', async (t) => {
  const { world, call, lines } = await keyedCalls()
  world.upstream = ({ begin, response }) => {
    begin(200, { 'content-length': '2000' })
    response.write(Buffer.from('half'))
    return { is: 'cut', status: 200, cause: CAUSE }
  }
  t.equal(await call('key'), undefined)
  t.match(world.raw.text, 'half')
  t.ok(lines.length > 0)
})

await test('a refusal that breaks off says when to try again', async (t) => {
  for (const [retryAfter, status, expected] of [
    ['7', 429, { 'retry-after': '7' }],
    [undefined, 429, { 'retry-after': '1' }],
    [undefined, 413, {}],
  ] as const) {
    const { world, call } = await keyedCalls()
    world.upstream = () => ({ is: 'cut', status, cause: CAUSE, ...(retryAfter !== undefined && { retryAfter }) })
    const problem = await call('key')
    t.same(problem?.headers(), expected)
    t.equal(problem?.message, 'The trading service refused the call.')
    t.equal(problem?.cause, CAUSE)
    t.equal(problem?.details.outcome, undefined, 'nothing was executed')
  }
})

await test('a call whose browser has left is recorded, and logged with what was sent', async (t) => {
  for (const [outcome, sent, status, ending] of [
    [{ is: 'browserGone', sent: 'nothing', status: 0 }, 'nothing', 0, 'freed'],
    [{ is: 'browserGone', sent: 'part', status: 0, cause: CAUSE }, 'part', 0, 'unknown'],
    [{ is: 'answered', status: 200 }, 'whole', 200, 'answered'],
    [{ is: 'unreachable', cause: CAUSE }, 'nothing', 0, 'freed'],
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 1 }, 'nothing', 0, 'freed'],
    [{ is: 'timeout', cause: CAUSE }, 'whole', 0, 'unknown'],
  ] as const satisfies readonly (readonly [ForwardOutcome, string, number, string])[]) {
    const { world, call, lines, outcomes } = await keyedCalls()
    world.upstream = () => {
      world.raw.destroyed = true
      return outcome
    }
    t.equal(await call('key'), undefined)
    t.same(outcomes, [ending])
    const line = lines.find(({ audit }) => audit === 'browser_left')
    t.match(line, { sent, status, cause: 'cause' in outcome ? CAUSE : undefined }, outcome.is)
    t.equal(world.raw.hasEnded, false)
  }
})

await test('after a 401 a call gets what became of its session, before it may come again', async (t) => {
  for (const [renewal, code] of [
    [{ is: 'ended', tag: 'tag' }, 'session_expired'],
    [{ is: 'providerDown', tag: 'tag', cause: CAUSE, retryAfterMs: 1 }, 'provider_unavailable'],
  ] as const) {
    const { world, call, renewed, outcomes } = await keyedCalls()
    world.upstream = () => ({ is: 'withheld', status: 401 })
    world.renewal = renewal
    t.equal((await call('key'))?.code, code)
    t.same(renewed, [true])
    t.same(outcomes, ['freed'])
  }
  const { world, call } = await keyedCalls()
  world.upstream = () => ({ is: 'withheld', status: 401 })
  t.same((await call('key'))?.headers(), { 'retry-after': '0' })
})

await test('a call that is not sent leaves a free key, and says why', async (t) => {
  const { world, call, outcomes, sent } = await keyedCalls()
  world.isCurrent = false
  t.equal((await call('key'))?.code, 'session_expired')
  t.same(outcomes, ['freed'])
  world.isCurrent = true
  world.upstream = answers(200, 'done')
  t.equal(await call('key'), undefined)
  t.equal(sent.length, 1)
})

await test('a call whose key was lost before it was sent is answered as others know it', async (t) => {
  const { world, call, outcomes, store, session, records, lines } = await keyedCalls()
  const other = records
  world.upstream = async () => {
    // This process stood still, and another has taken the key and answered.
    await store.remove(idempotencyKey(session.id, 'key'))
    const taken = await other.claim(session, 'key', 'another digest')
    if (taken.is !== 'claimed') throw new Error(taken.is)
    throw new StoreUnavailable('away')
  }
  t.equal((await call('key'))?.code, 'idempotency_key_reused')
  t.same(outcomes, ['record_lost', 'freed', 'key_reused'])
  t.match(lines, [{ outcome: 'record_lost' }, { outcome: 'key_reused' }])
})

const pieces = (...texts: string[]): Readable => Readable.from(texts.map((text) => Buffer.from(text)))
const broken = (error: Error): Readable =>
  new Readable({
    read() {
      this.destroy(error)
    },
  })

await test('a body that comes in pieces is sent once it is whole, by a session that is still live', async (t) => {
  const { world, call, sent, lines } = await keyedCalls()
  world.upstream = answers(200, 'done')
  t.equal(await call('key', null, pieces('a ', 'body')), undefined)
  t.same(sent[0]?.body, Buffer.from('a body'))
  world.authorization = { is: 'anonymous' }
  t.equal((await call('late', null, pieces('a body')))?.code, 'session_expired')
  const problem = new Problem('body_too_large')
  t.equal(await call('refused', null, broken(new BodyRefused(problem))), problem)
  t.equal(await call('left', null, broken(CAUSE)), undefined)
  t.equal(sent.length, 1)
  t.match(lines.at(-1), { audit: 'browser_left', sent: 'nothing', status: 0 })
})
