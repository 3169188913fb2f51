import { test, type Test } from 'tap'
import { Identity } from '../../src/sessions/identity.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

/** For how long a login waits for its subject. */
const LIMIT_MS = 3000
const answered = (body: string | Buffer, status = 200) => ({
  is: 'answered',
  response: { status, headers: {}, body: Buffer.from(body) },
})

/** What asks an upstream that answers as a test says, and what it has sent, counted and logged. */
function identityOf(pointer = '/data/id') {
  const log: unknown[] = []
  const world = { outcome: answered('{"data":{"id":"CR1"}}') as object | Promise<object> }
  const signals: AbortSignal[] = []
  const rest = {
    exchange: async (call: object, signal: AbortSignal) => {
      signals.push(signal)
      log.push(call)
      return world.outcome
    },
    close: async () => void log.push('closed'),
  }
  const upstream = { appIdHeader: 'app', appId: 'id' }
  const metrics = { requests: { inc: ({ outcome }: { outcome: string }) => log.push(outcome) } }
  const identity = new Identity(
    rest as never,
    { upstream, identity: { path: '/me', pointer } } as never,
    metrics as never,
  )
  const warn = (fields: object, text: string): void => void log.push([text, { ...fields }])
  const ask = (more: object = {}) => identity.ask('token', { id: 'request', log: { warn } as never, ...more })
  return { world, identity, ask, signals, logged: () => log.splice(0) }
}

/** What upstream's answer comes to: the subject, and the outcome that is counted. */
async function judged(t: Test, outcome: object, pointer?: string) {
  const { world, ask, logged } = identityOf(pointer)
  world.outcome = outcome
  const subject = await ask({ consequence: JSON.stringify([t.name, outcome]) })
  return [subject, ...logged().slice(1)]
}

await test('upstream is asked as the user of the token, each request as a user of its own', async (t) => {
  const { ask, logged, identity } = identityOf()
  const conditions = { session: () => true }
  t.equal(await ask({ conditions }), 'CR1')
  const [call, outcome] = logged() as [{ headers: string[] }, string]
  const expected = { method: 'GET', path: '/me', template: '/me', body: null, timeoutMs: LIMIT_MS, subject: 'request' }
  t.match(call, { ...expected, conditions })
  t.equal(call.headers.at(call.headers.indexOf('authorization') + 1), 'Bearer token')
  t.equal(call.headers.at(call.headers.indexOf('app') + 1), 'id')
  t.equal(call.headers.at(call.headers.indexOf('x-request-id') + 1), 'request')
  t.equal(outcome, 'found')
  await ask()
  t.match(logged()[0], { conditions: {} })
  await identity.close()
  t.same(logged(), ['closed'])
})

await test('a subject is a string or a number, to the last digit', async (t) => {
  for (const [text, subject] of [
    ['"née ☃"', 'née ☃'],
    ['12', '12'],
    ['1.50', '1.50'],
    ['9007199254740991', '9007199254740991'],
    ['9007199254740993', '9007199254740993'],
    ['-0', '0'],
  ] as const) {
    t.same(await judged(t, answered(`{"data":{"id":${text}}}`)), [subject, 'found'])
  }
  t.same(await judged(t, answered('[{"b":"x"}]'), '/0/b'), ['x', 'found'])
})

await test('an answer that names none is counted and logged, without a word of it', async (t) => {
  const noJson = 'the response is not JSON'
  const none = 'IDENTITY_POINTER names no string or number of 1 to 256 characters'
  for (const [outcome, is, why] of [
    [answered('{"data":{"id":"CR1"}}', 199), 'refused', 'status 199'],
    [answered('{"data":{"id":"CR1"}}', 300), 'refused', 'status 300'],
    [answered('{"data":{"id":"CR1"}}', 401), 'refused', 'status 401'],
    [answered('<h1>'), 'unusable', noJson],
    [answered(Buffer.from('{"data":{"id":"\xff"}}', 'latin1')), 'unusable', noJson],
    ...['{}', '{"data":{"id":true}}', '{"data":{"id":["CR1"]}}', '{"data":{"id":""}}'].map(
      (text) => [answered(text), 'unusable', none] as const,
    ),
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 1 }, 'over_budget', 'no call is left'],
    [{ is: 'unreachable', cause: Object.assign(new Error('secret'), { code: 'ECODE' }) }, 'unreachable', 'ECODE'],
    [{ is: 'timeout', cause: new DOMException('secret', 'TimeoutError') }, 'timeout', 'TimeoutError'],
    [{ is: 'lost', cause: new TypeError('secret'), responseBegan: true }, 'lost', 'TypeError'],
  ] as const) {
    const [subject, counted, line] = await judged(t, outcome)
    t.same([subject, counted], [undefined, is])
    t.match(line, [String, { outcome: is, why, count: 1 }])
  }
  for (const status of [200, 299]) t.equal((await judged(t, answered('{"data":{"id":"CR1"}}', status)))[0], 'CR1')
})

await test('the log names the consequence, which is that of a login unless the asker says another one', async (t) => {
  const { world, ask, logged } = identityOf()
  world.outcome = answered('', 403)
  await ask()
  t.match(logged().at(-1), ['a login goes on without a subject', {}])
  await ask({ consequence: 'an order is refused' })
  t.match(logged().at(-1), ['an order is refused', {}])
})

await test('an answer that does not come in time is not waited for, and its request is ended', async (t) => {
  const { world, ask, logged, signals } = identityOf()
  world.outcome = new Promise<object>(() => undefined)
  const limit = new HeldTimers(t, 'setTimeout', LIMIT_MS)
  const subject = ask({ consequence: 'it is late' })
  t.equal(signals[0]?.aborted, false)
  limit.run()
  t.equal(await subject, undefined)
  t.equal(signals[0]?.aborted, true)
  t.match(logged().slice(1), ['timeout', ['it is late', { outcome: 'timeout', why: 'TimeoutError' }]])
})
