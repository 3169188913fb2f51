import { test } from 'tap'
import { CircuitBreaker, type Verdict } from '../../src/oauth/circuit-breaker.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'

const fails = async (): Promise<string> => 'failure'
const works = async (): Promise<string> => 'success'
const answers = (): Verdict => 'answers'
const judge = (result: string): Verdict => (result === 'failure' ? 'fails' : 'works')

async function openBreaker(): Promise<CircuitBreaker> {
  const breaker = new CircuitBreaker(10)
  for (let count = 0; count < 5; count++) await breaker.run(fails, judge)
  return breaker
}

await test('CircuitBreaker opens after five failures in a row; a success in between resets the count', async (t) => {
  const breaker = new CircuitBreaker(10)
  for (let round = 0; round < 3; round++) {
    for (let count = 0; count < 4; count++) t.equal(await breaker.run(fails, judge), 'failure')
    t.equal(await breaker.run(works, judge), 'success')
  }
  t.notOk(breaker.isOpen)
  for (let count = 0; count < 5; count++) await breaker.run(fails, judge)
  t.ok(breaker.isOpen)
  t.ok(breaker.retryAfterMs() > 0 && breaker.retryAfterMs() <= 1000)
  t.equal(await breaker.run(works, judge), undefined, 'an open breaker runs nothing')
})

await test('a time of day that is set back keeps no circuit open', async (t) => {
  const setAhead = timeAhead(t)
  setAhead(600_000)
  const breaker = await openBreaker()
  setAhead(-600_000)
  t.ok(breaker.retryAfterMs() > 0 && breaker.retryAfterMs() <= 1000)
})

await test('CircuitBreaker counts a rejection as a failure', async (t) => {
  const breaker = new CircuitBreaker(10)
  for (let count = 0; count < 5; count++) {
    await t.rejects(breaker.run(() => Promise.reject(new Error('broken')), judge))
  }
  t.ok(breaker.isOpen)
})

await test('CircuitBreaker lets a single probe through after its pause, and a failed probe lengthens the pause', async (t) => {
  const breaker = await openBreaker()
  await until(() => breaker.retryAfterMs() === 0)
  const { promise, resolve } = Promise.withResolvers<string>()
  const probe = breaker.run(() => promise, judge)
  t.equal(await breaker.run(works, judge), undefined, 'only the probe runs')
  resolve('failure')
  await probe
  t.ok(breaker.retryAfterMs() > 1000, `the next pause is longer: ${breaker.retryAfterMs()} ms`)
  await until(() => breaker.retryAfterMs() === 0)
  await breaker.run(works, judge)
  t.notOk(breaker.isOpen)
  t.equal(breaker.retryAfterMs(), 0)
})

await test('CircuitBreaker does not lengthen its pause for requests that started before it opened', async (t) => {
  const breaker = new CircuitBreaker(10)
  const { promise, resolve } = Promise.withResolvers<string>()
  const requests = Array.from({ length: 9 }, () => breaker.run(() => promise, judge))
  resolve('failure')
  await Promise.all(requests)
  t.ok(breaker.isOpen)
  t.ok(breaker.retryAfterMs() <= 1000)
})

await test('CircuitBreaker.succeed closes an open breaker', async (t) => {
  const breaker = await openBreaker()
  breaker.succeed()
  t.equal(await breaker.run(works, judge), 'success')
})

await test('CircuitBreaker runs at most as many requests at once as it allows', async (t) => {
  const breaker = new CircuitBreaker(2)
  const { promise, resolve } = Promise.withResolvers<string>()
  const both = [breaker.run(() => promise, judge), breaker.run(() => promise, judge)]
  t.equal(await breaker.run(works, judge), undefined)
  t.ok(breaker.retryAfterMs() > 0)
  resolve('success')
  await Promise.all(both)
  t.equal(await breaker.run(works, judge), 'success')
})

await test('CircuitBreaker: an answer that concerns one request alone ends the failures, and is no success for anybody else', async (t) => {
  const breaker = new CircuitBreaker(10)
  for (let count = 0; count < 4; count++) await breaker.run(fails, judge)
  await breaker.run(works, answers)
  t.equal(breaker.workedAt, -Infinity)
  for (let count = 0; count < 4; count++) await breaker.run(fails, judge)
  t.notOk(breaker.isOpen, 'the count of failures in a row begins anew')
  await breaker.run(fails, judge)
  t.ok(breaker.isOpen)
  await until(() => breaker.retryAfterMs() === 0)
  await breaker.run(works, answers)
  t.notOk(breaker.isOpen, 'a probe that is answered so has passed')
  t.equal(breaker.workedAt, -Infinity)
})

await test('CircuitBreaker: a result that says nothing changes nothing, and lets the next probe through', async (t) => {
  const breaker = await openBreaker()
  await until(() => breaker.retryAfterMs() === 0)
  await breaker.run(works, () => 'nothing')
  t.ok(breaker.isOpen)
  t.equal(breaker.retryAfterMs(), 0)
  t.equal(await breaker.run(works, judge), 'success')
  t.notOk(breaker.isOpen)
})

await test('CircuitBreaker lets the next probe through after one that was rejected', async (t) => {
  const breaker = await openBreaker()
  await until(() => breaker.retryAfterMs() === 0)
  await t.rejects(breaker.run(() => Promise.reject(new Error('broken')), judge))
  await until(() => breaker.retryAfterMs() === 0, 'its pause is over')
  t.equal(await breaker.run(works, judge), 'success')
})

await test('CircuitBreaker: the failures of one user hold back no other, until another fails too', async (t) => {
  const breaker = new CircuitBreaker(10)
  for (let count = 0; count < 5; count++) await breaker.run(fails, judge, 'CR1')
  t.ok(breaker.isOpen)
  t.ok(breaker.retryAfterMs('CR1') > 0)
  t.ok(breaker.retryAfterMs() > 0, 'who may be that user')
  t.equal(breaker.retryAfterMs('CR2'), 0)
  t.equal(await breaker.run(works, judge, 'CR1'), undefined)
  const slow = Promise.withResolvers<string>()
  const late = breaker.run(() => slow.promise, judge, 'CR2')
  t.equal(await breaker.run(fails, judge, 'CR3'), 'failure')
  const leftMs = breaker.retryAfterMs('CR4')
  t.ok(leftMs > 1000, 'the pause of a sixth failure')
  t.equal(await breaker.run(works, judge, 'CR2'), undefined)
  slow.resolve('failure')
  t.equal(await late, 'failure')
  t.ok(breaker.retryAfterMs('CR2') <= leftMs, 'no longer than before')
})

await test('CircuitBreaker: the probe of the one user who fails holds back no other, whose success closes the circuit', async (t) => {
  const breaker = new CircuitBreaker(2)
  for (let count = 0; count < 5; count++) await breaker.run(fails, judge, 'CR1')
  await until(() => breaker.retryAfterMs('CR1') === 0)
  const slow = Promise.withResolvers<string>()
  const probe = breaker.run(() => slow.promise, judge, 'CR1')
  t.equal(await breaker.run(works, judge, 'CR1'), undefined, 'a single probe')
  const other = breaker.run(() => slow.promise, judge, 'CR2')
  t.equal(await breaker.run(works, judge, 'CR3'), undefined, 'so many at once')
  slow.resolve('success')
  await Promise.all([probe, other])
  t.notOk(breaker.isOpen)
})
