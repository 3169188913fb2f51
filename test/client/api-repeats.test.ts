import { test, type Test } from 'tap'
import type { Client } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { failure } from '../support/client/page-client.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { scriptedClient } from '../support/client/scripted-client.ts'
import { until } from '../support/time/until.ts'
import { PROBLEM, problemBody } from '../support/client/own-problem.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const POST = { method: 'POST', body: '{}' } as const

/** A server that responds with these problems, one after the other, and then with 200, and what it is asked. */
class Counter {
  readonly script: (readonly [status: number, code: string, retryAfter?: string] | 'cut')[] = []
  /** The session that it tells of. */
  session = 'first'
  sessions = 0
  /** Called when it is asked for that. */
  onQuestion: () => void = () => undefined
  readonly types: (string | undefined)[] = []
  declare client: Client

  static async start(t: Test, ...script: Counter['script']): Promise<Counter> {
    const counter = new Counter()
    counter.script.push(...script)
    counter.client = await clientOf(t, ({ url, headers }, response) => {
      const { session } = counter
      if (url === '/auth/session') {
        counter.sessions++
        counter.onQuestion()
        const times = { now: 1, expires_at: 3601, idle_expires_at: 601 }
        return void response.end(JSON.stringify({ authenticated: true, session, scope: 'trade', ...times }))
      }
      counter.types.push(headers['content-type'])
      const next = counter.script.shift() ?? [200, '']
      if (next === 'cut') return void response.destroy()
      const [status, code, retryAfter] = next
      if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
      response.writeHead(status, PROBLEM).end(problemBody(code, { status }))
    })
    return counter
  }

  get calls(): number {
    return this.types.length
  }
}

await test('a refusal because there is no session has that confirmed, and no other refusal does', async (t) => {
  for (const [code, asks] of [
    ['login_required', true],
    ['session_expired', true],
    ['bad_request', false],
  ] as const) {
    const counter = await Counter.start(t, [401, code])
    t.match(await failure(counter.client.api('/v1/health')), { code })
    if (asks) await until(() => counter.sessions === 1)
    else t.equal(counter.sessions, 0)
  }
})

await test('a GET asks for no session, also when it is repeated, and only json has a type', async (t) => {
  const counter = await Counter.start(t, [502, 'upstream_unreachable'])
  t.match(await counter.client.api('/v1/health'), { status: 200 })
  t.equal(counter.sessions, 0)
  t.same(counter.types, [undefined, undefined])
})

await test('the type of a body is that of the page, in whatever letters it names the header', async (t) => {
  const counter = await Counter.start(t)
  for (const [name, type] of [
    ['content-type', 'application/json'],
    ['Content-Type', 'application/merge-patch+json'],
    ['accept', 'text/plain'],
  ] as const) {
    await counter.client.api(TRANSFER, { method: 'POST', json: {} as never, headers: { [name]: type } })
  }
  t.same(counter.types, ['application/json', 'application/merge-patch+json', 'application/json'])
})

await test('headers may have each form that those of fetch may have, and each is sent once', async (t) => {
  const { client, calls } = await scriptedClient(t)
  const named = { 'idempotency-KEY': 'of the page', 'x-CSRF': '1' }
  for (const headers of [named, new Headers(named), Object.entries<string>(named)]) {
    await client.api(TRANSFER, { method: 'POST', headers })
    await client.api(TRANSFER, { method: 'POST', headers, idempotencyKey: 'own' })
    t.same(
      calls.splice(0).map(({ key, csrf }) => [key, csrf]),
      [
        ['of the page', '1'],
        ['own', '1'],
      ],
    )
  }
})

await test('a POST that was not executed is repeated only in the session in which it was sent', async (t) => {
  for (const next of ['first', 'second']) {
    const pauses = new HeldTimers(t, 'setTimeout', 750)
    t.intercept(Math, 'random', { value: () => 0.5 })
    const counter = await Counter.start(t, [502, 'upstream_unreachable'])
    const call = counter.client.api(TRANSFER, POST)
    await until(() => pauses.size === 1)
    counter.session = next
    pauses.run()
    if (next === 'first') t.match(await call, { status: 200 })
    else t.match(await failure(call), { code: 'upstream_unreachable', outcome: undefined })
    t.equal(counter.calls, next === 'first' ? 2 : 1)
  }
})

await test('a key that was sent before is not sent if the machine slept before the server had said which session it is', async (t) => {
  const sleep = timeAhead(t)
  const counter = await Counter.start(t, 'cut')
  const call = () => counter.client.api(TRANSFER, { ...POST, idempotencyKey: 'mine' })
  t.match(await failure(call()), { outcome: 'unknown' })
  counter.onQuestion = () => sleep(60_000)
  t.match(await failure(call()), { outcome: 'unknown' })
  t.equal(counter.calls, 1)
  counter.onQuestion = () => undefined
  t.equal((await call()).status, 200)
})

await test('a key with which something may have been executed is sent in no other session, and a refused one is', async (t) => {
  const keyed = { ...POST, idempotencyKey: 'mine' }
  const lost = await Counter.start(t, 'cut')
  t.match(await failure(lost.client.api(TRANSFER, keyed)), { outcome: 'unknown' })
  lost.session = 'second'
  const error = await failure(lost.client.api(TRANSFER, keyed))
  t.match(error, { outcome: 'unknown', cause: { message: 'the key belongs to another session' } })
  t.equal(lost.calls, 1)
  const refused = await Counter.start(t, [400, 'bad_request'])
  t.match(await failure(refused.client.api(TRANSFER, keyed)), { code: 'bad_request', outcome: undefined })
  refused.session = 'second'
  t.match(await refused.client.api(TRANSFER, keyed), { status: 200 })
})

await test('a pause of 5 seconds is waited for, and a longer one is not', async (t) => {
  for (const [seconds, calls] of [
    [5, 2],
    [6, 1],
  ] as const) {
    const pauses = new HeldTimers(t, 'setTimeout', seconds * 1000)
    const counter = await Counter.start(t, [502, 'upstream_unreachable', String(seconds)])
    const call = counter.client.api(TRANSFER, POST).catch(() => undefined)
    if (calls === 2) {
      await until(() => pauses.size === 1)
      pauses.run()
    }
    await call
    t.equal(counter.calls, calls, `${seconds} s`)
  }
})

await test('an abort ends the pause before a repetition at once, and a pause that is over leaves no listener', async (t) => {
  const pauses = new HeldTimers(t, 'setTimeout', 4000)
  const counter = await Counter.start(
    t,
    [502, 'upstream_unreachable', '4'],
    [200, ''],
    [502, 'upstream_unreachable', '4'],
  )
  const abort = new AbortController()
  const removed = t.capture(abort.signal, 'removeEventListener', abort.signal.removeEventListener.bind(abort.signal))
  const call = (): Promise<unknown> => counter.client.api(TRANSFER, { ...POST, signal: abort.signal })
  const repeated = call()
  await until(() => pauses.size === 1)
  pauses.run()
  await repeated
  t.ok(removed().some(({ args: [type] }) => type === 'abort'))
  const aborted = failure(call())
  await until(() => pauses.size === 1)
  abort.abort(new Error('left'))
  t.match(await aborted, { message: 'left' })
  t.equal(pauses.size, 0)
})
