import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { sharedResponseKey } from '../../src/store/keys.ts'
import { USER_AGENT } from '../../src/upstream/headers.ts'
import { exactly } from '../support/exactly.ts'
import { answered, ENDPOINT, sharing } from '../support/proxy/sharing.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const KEY = sharedResponseKey(ENDPOINT.path)
const withheld = (status: number, headers = {}) => answered('secret', status, headers)
const LOST = { is: 'lost', cause: new Error('reset'), responseBegan: false } as const

await test('the first caller asks upstream, and gets its response', async (t) => {
  const pass = stoppedClocks(t)
  const { instance, store } = sharing()
  const { call, asked, world } = instance()
  const locks: unknown[] = []
  const lock = store.lock.bind(store)
  store.lock = async (...args) => {
    locks.push(args)
    return lock(...args)
  }
  world.exchange = async () => {
    pass(250)
    return answered('text', 201, { 'content-type': 'text/plain' })
  }
  const reply = await call('request')
  t.match(reply, { status: 201, body: 'text' })
  t.match(reply.headers.join(), 'content-type,text/plain')
  const { method, path } = ENDPOINT
  const headers = ['user-agent', USER_AGENT, 'x-request-id', 'request']
  t.strictSame(asked, [{ method, path, template: path, headers, body: null, timeoutMs: 10_000 }])
  t.same(world.counted, [[ENDPOINT, 'answered']])
  t.same(world.latencies, [[path, { method }, 0.25]])
  t.match(locks, exactly([KEY, /^[\w-]{36}$/, 10_100]))
})

await test('what upstream says of its limits is passed on, unless there is a budget for all users', async (t) => {
  for (const hasBudget of [false, true]) {
    const { call, world } = sharing({ hasBudget }).instance()
    world.exchange = async () => answered('text', 200, { 'ratelimit-limit': '7' })
    t.equal((await call()).headers.includes('ratelimit-limit'), !hasBudget)
  }
})

await test('a response counts for HEALTH_SECONDS since it was asked for, at every instance', async (t) => {
  const pass = stoppedClocks(t)
  const { instance, store } = sharing()
  const [one, other] = [instance(), instance()]
  one.world.exchange = async () => {
    pass(400)
    return answered('first')
  }
  t.match(await one.call(), { body: 'first' })
  t.match(await other.call(), { body: 'first' })
  t.notMatch((await store.read(KEY))?.value, /first|Zmlyc3/)
  for (const { call } of [one, other]) t.match(await call(), { body: 'first' })
  for (let left = 2599; left > 0; left -= 400) pass(Math.min(left, 400))
  for (const { call } of [one, other]) t.match(await call(), { body: 'first' })
  t.same([one.asked.length, other.asked.length], [1, 0])
  // The store still has it at the very moment.
  pass(2)
  t.match(await other.call(), { body: 'response 1' })
  t.match(await one.call(), { body: 'response 1' })
  t.same([one.asked.length, other.asked.length], [1, 1])
})

await test('a response that took longer than HEALTH_SECONDS is good for those who waited, and for nobody after them', async (t) => {
  const pass = stoppedClocks(t)
  const { instance } = sharing()
  const { call, asked, world } = instance()
  world.exchange = async () => {
    for (let left = 4000; left > 0; left -= 400) pass(400)
    return answered('slow')
  }
  t.same(
    (await Promise.all([call(), call()])).map(({ body }) => body),
    ['slow', 'slow'],
  )
  t.equal(asked.length, 1)
  world.exchange = async () => answered('quick')
  t.match(await call(), { body: 'quick' })
})

await test('while a response is asked for, a recent one is sent, and an old one is not', async (t) => {
  for (const [ms, isSent] of [
    [2999, true],
    [3000, false],
  ] as const) {
    const pass = stoppedClocks(t)
    const { instance } = sharing()
    const { call, world } = instance()
    await call()
    for (let left = 3000 + ms; left > 0; left -= 400) pass(Math.min(left, 400))
    const gate = Promise.withResolvers<void>()
    world.exchange = async () => (await gate.promise, answered('new'))
    const first = call()
    let isOver = false
    const second = call().finally(() => (isOver = true))
    await setImmediate()
    t.equal(isOver, isSent)
    gate.resolve()
    t.match(await first, { body: 'new' })
    t.match(await second, { body: isSent ? 'response 1' : 'new' })
  }
})

await test('beside the one who asks 512 callers may wait, and one more gets 429', async (t) => {
  const { instance } = sharing()
  const { call, asked, world } = instance()
  for (const round of [1, 2]) {
    const gate = Promise.withResolvers<void>()
    world.exchange = async () => (await gate.promise, { is: 'timeout', cause: new Error('late') })
    const all = Array.from({ length: 513 }, () => call())
    await t.rejects(call(), { code: 'rate_limited', details: { retryAfterSeconds: 1 } })
    gate.resolve()
    for (const each of await Promise.allSettled(all)) if (each.status === 'fulfilled') t.fail('it timed out')
    t.equal(asked.length, round)
    await world.forget()
  }
})

await test('failures are shared, as far as callers may know of them', async (t) => {
  const cause = new Error('reset')
  for (const [outcome, problem, details, times] of [
    [withheld(503, { 'retry-after': '7' }), 'upstream_error', { status: 503, retryAfterSeconds: 7 }, 1],
    [withheld(503, { 'retry-after': ['7', '8'] }), 'upstream_error', { status: 503, retryAfterSeconds: undefined }, 1],
    [withheld(302), 'upstream_error', { detail: /redirect/, retryAfterSeconds: undefined }, 1],
    [{ is: 'unreachable', cause }, 'upstream_unreachable', { cause }, 2],
    [{ is: 'lost', cause, responseBegan: false }, 'upstream_lost', { cause }, 2],
    [{ is: 'lost', cause, responseBegan: true }, 'upstream_lost', { cause }, 1],
    [{ is: 'timeout', cause }, 'upstream_timeout', { cause }, 1],
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 2500 }, 'upstream_budget', { retryAfterSeconds: 3 }, 1],
  ] as const) {
    const { instance } = sharing()
    const [one, other] = [instance(), instance()]
    one.world.exchange = async () => outcome
    for (const _ of [1, 2]) await t.rejects(one.call(), { code: problem, details }, problem)
    const elsewhere = 'cause' in details ? { cause: { message: 'the shared request failed' } } : details
    await t.rejects(other.call(), { code: problem, details: elsewhere })
    t.same([one.asked.length, other.asked.length], [times, 0])
    t.equal(one.world.counted.length, times)
    const failure = await other.call().catch((error: { details: object }) => error.details)
    t.notMatch(failure, { outcome: String }, 'it was a GET')
  }
})

await test('a connection that fails before a response is tried once more, for as long as the first try has left', async (t) => {
  const pass = stoppedClocks(t)
  for (const [tookMs, tries] of [
    [4000, [10_000, 6000]],
    [10_000, [10_000]],
  ] as const) {
    const { instance } = sharing()
    const { call, asked, world } = instance()
    world.exchange = async () => {
      if (asked.length > 1) return answered('second')
      pass(tookMs)
      return LOST
    }
    if (tries.length === 1) await t.rejects(call(), { code: 'upstream_lost' })
    else t.match(await call(), { body: 'second' })
    t.same(
      asked.map(({ timeoutMs }) => timeoutMs),
      tries,
    )
  }
})
