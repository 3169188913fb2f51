import { Readable } from 'node:stream'
import { test, type Test } from 'tap'
import type { Dispatcher } from 'undici'
import { Exchange, NotStarted } from '../../src/upstream/exchange.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'
import { replace } from '../support/time/replace.ts'

type Outcome = { readonly is: string }

/** An exchange that settles as it is told, whether its first byte may go and its connection fails, and what it has done. */
function exchangeOf(t: Test, hasBudget = true) {
  const timers = new ManualTimers(t)
  const world = { refusal: undefined as unknown, isFailing: false, log: [] as unknown[] }
  const log = (...entry: unknown[]): void => void world.log.push(entry)
  class OwnExchange extends Exchange<Outcome> {
    onResponseError(controller: Dispatcher.DispatchController | undefined, cause: Error): void {
      log('error', controller, cause.message)
    }
    protected onComplete(): void {
      log('complete')
    }
    /** What only its own kind sees. */
    get state() {
      return { sent: this.sent, responseBegan: this.responseBegan, controller: this.controller }
    }
    respond(status: number, headers: Record<string, string>): number {
      return this.noteStatus(status, headers)
    }
    stop(reason: Error): void {
      this.abort(reason)
    }
    over(is: string): void {
      this.settle({ is })
    }
  }
  const reservation = { answered: (...args: unknown[]) => log('answered', ...args), end: () => log('token free') }
  const exchange = new OwnExchange({
    ...(hasBudget && { reservation: reservation as never }),
    firstByte: { refusal: () => world.refusal } as never,
    span: { end: (how: unknown) => log('span', how) } as never,
    isConnectionFailing: () => world.isFailing,
  })
  const controller = { abort: (reason: Error) => log('abort', reason) } as unknown as Dispatcher.DispatchController
  return { exchange, world, controller, timers, logged: () => world.log.splice(0) }
}

await test('a request is written when a connection is free, unless its first byte may not go', (t) => {
  const { exchange, controller, logged } = exchangeOf(t)
  exchange.onRequestStart(controller)
  t.same([exchange.state.controller, logged()], [controller, []])
  for (const [refusal, message] of [
    [{ is: 'stale', why: 'session' }, 'the request is no longer wanted'],
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 7 }, 'the budget of calls is used up'],
  ] as const) {
    const refused = exchangeOf(t)
    refused.world.refusal = refusal
    refused.exchange.onRequestStart(refused.controller)
    const [[what, reason]] = refused.logged() as [[string, unknown]]
    t.equal(what, 'abort')
    t.ok(reason instanceof NotStarted)
    t.match(reason, { name: 'NotStarted', message, outcome: refusal })
  }
  t.end()
})

await test('a request that no connection takes in time fails, and is not written when one is free', async (t) => {
  const { exchange, controller, timers, logged } = exchangeOf(t)
  const body = new Readable({ read: () => undefined })
  let left = 0
  exchange.limitQueueing(300, body, () => void left++)
  t.same(timers.delays, [300])
  t.equal(left, 0)
  timers.run()
  await new Promise(setImmediate)
  t.equal(body.destroyed, true, 'nobody reads its body')
  const message = 'no connection to upstream became free in time'
  t.same(logged(), [['error', undefined, message]])
  exchange.onRequestStart(controller)
  t.match(logged(), [['abort', { message }]])
})

await test('a request that has begun, or is over, waits for no connection any more', async (t) => {
  for (const how of ['begun', 'over'] as const) {
    const { exchange, controller, timers, logged } = exchangeOf(t)
    let left = 0
    exchange.limitQueueing(300, null, () => void left++)
    if (how === 'begun') exchange.onRequestStart(controller)
    else exchange.over('browserGone')
    t.same([timers.delays, left], [[], 1])
    logged()
    timers.run()
    await new Promise(setImmediate)
    t.same(logged(), [])
  }
})

await test('a request that is aborted is over at once, and is not written if undici begins it later', (t) => {
  const { exchange, controller, world, logged } = exchangeOf(t)
  const reason = new Error('the browser has left')
  exchange.stop(reason)
  t.same(logged(), [['error', undefined, reason.message]])
  world.refusal = { is: 'stale', why: 'session' }
  exchange.onRequestStart(controller)
  t.same(logged(), [['abort', reason]])
  exchange.stop(reason)
  t.same(logged(), [['abort', reason]])
  t.end()
})

await test('an exchange knows how much of it was sent, and whether a response has begun', (t) => {
  const { exchange } = exchangeOf(t)
  t.match(exchange.state, { sent: 'nothing', responseBegan: false })
  exchange.onBodySent()
  t.match(exchange.state, { sent: 'part', responseBegan: false })
  exchange.onRequestSent()
  t.match(exchange.state, { sent: 'whole', responseBegan: false })
  exchange.onResponseStarted()
  t.match(exchange.state, { sent: 'whole', responseBegan: true })
  t.end()
})

await test('a response is whole unless its connection is failing', (t) => {
  const { exchange, world, logged } = exchangeOf(t)
  exchange.onResponseEnd()
  t.same(logged(), [['complete']])
  world.isFailing = true
  exchange.onResponseEnd()
  t.same(logged(), [['error', undefined, 'the connection was reset']])
  t.end()
})

await test('the budget learns of the response and its retry-after, and gets the token back in the end', async (t) => {
  const { exchange, logged } = exchangeOf(t)
  exchange.respond(429, { 'retry-after': '7' })
  exchange.over('answered')
  t.same(logged(), [['answered', 429, '7'], ['token free'], ['span', { status: 429, error: undefined }]])
  t.same(await exchange.outcome, { is: 'answered' })
  const free = exchangeOf(t, false)
  free.exchange.respond(200, {})
  free.exchange.over('answered')
  t.same(free.logged(), [['span', { status: 200, error: undefined }]])
})

await test('the span of a request that upstream or a browser has left without its end says how', async (t) => {
  for (const [is, isFailure] of [
    ...['unreachable', 'lost', 'timeout', 'cut', 'browserGone', 'overBudget', 'stale', 'bodyRefused'].map(
      (each) => [each, true] as const,
    ),
    ['answered', false],
    ['', false],
  ] as const) {
    const { exchange, logged } = exchangeOf(t, false)
    exchange.over(is)
    t.same(logged(), [['span', { status: undefined, error: isFailure ? is : undefined }]])
    t.same(await exchange.outcome, { is })
  }
})

await test('whoever waits for an exchange learns its outcome, even if this server fails while it is settled', async (t) => {
  const { exchange, world } = exchangeOf(t)
  replace(t, world.log, 'push', () => {
    throw new Error('a fault of this server')
  })
  t.throws(() => exchange.over('answered'), /a fault/)
  t.same(await Promise.race([exchange.outcome, new Promise((later) => void setImmediate(later))]), { is: 'answered' })
})

await test('a 205 of upstream goes on as a 204, and any other status as it is', (t) => {
  const { exchange } = exchangeOf(t)
  t.same(
    [200, 204, 205, 206, 405].map((status) => exchange.respond(status, {})),
    [200, 204, 204, 206, 405],
  )
  t.end()
})
