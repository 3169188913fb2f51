import { test } from 'tap'
import { CircuitBreaker } from '../../src/oauth/circuit-breaker.ts'
import { until } from '../support/until.ts'

const fails = async (): Promise<string> => 'failure'
const works = async (): Promise<string> => 'success'
const isFailure = (result: string): boolean => result === 'failure'

async function opened(): Promise<CircuitBreaker> {
  const breaker = new CircuitBreaker(10)
  for (let count = 0; count < 5; count++) await breaker.run(fails, isFailure)
  return breaker
}

await test('five failures in a row open it, with a success in between they do not', async (t) => {
  const breaker = new CircuitBreaker(10)
  for (let round = 0; round < 3; round++) {
    for (let count = 0; count < 4; count++) t.equal(await breaker.run(fails, isFailure), 'failure')
    t.equal(await breaker.run(works, isFailure), 'success')
  }
  t.notOk(breaker.isOpen)
  for (let count = 0; count < 5; count++) await breaker.run(fails, isFailure)
  t.ok(breaker.isOpen)
  t.ok(breaker.retryAfterMs > 0 && breaker.retryAfterMs <= 1000)
  t.equal(await breaker.run(works, isFailure), undefined, 'nothing is run while it is open')
})

await test('what throws is a failure', async (t) => {
  const breaker = new CircuitBreaker(10)
  for (let count = 0; count < 5; count++) {
    await t.rejects(breaker.run(() => Promise.reject(new Error('broken')), isFailure))
  }
  t.ok(breaker.isOpen)
})

await test('after its pause one request goes through, whatever comes meanwhile', async (t) => {
  const breaker = await opened()
  await until(() => breaker.retryAfterMs === 0)
  const { promise, resolve } = Promise.withResolvers<string>()
  const probe = breaker.run(() => promise, isFailure)
  t.equal(await breaker.run(works, isFailure), undefined, 'one at a time')
  resolve('failure')
  await probe
  t.ok(breaker.retryAfterMs > 1000, `the next pause is longer: ${breaker.retryAfterMs} ms`)
  await until(() => breaker.retryAfterMs === 0)
  await breaker.run(works, isFailure)
  t.notOk(breaker.isOpen)
  t.equal(breaker.retryAfterMs, 0)
})

await test('what was under way when it opened does not open it for longer', async (t) => {
  const breaker = new CircuitBreaker(10)
  const { promise, resolve } = Promise.withResolvers<string>()
  const late = Array.from({ length: 9 }, () => breaker.run(() => promise, isFailure))
  resolve('failure')
  await Promise.all(late)
  t.ok(breaker.isOpen)
  t.ok(breaker.retryAfterMs <= 1000)
})

await test('a success elsewhere closes it', async (t) => {
  const breaker = await opened()
  breaker.succeed()
  t.equal(await breaker.run(works, isFailure), 'success')
})

await test('no more are under way than it allows', async (t) => {
  const breaker = new CircuitBreaker(2)
  const { promise, resolve } = Promise.withResolvers<string>()
  const both = [breaker.run(() => promise, isFailure), breaker.run(() => promise, isFailure)]
  t.equal(await breaker.run(works, isFailure), undefined)
  t.ok(breaker.retryAfterMs > 0)
  resolve('success')
  await Promise.all(both)
  t.equal(await breaker.run(works, isFailure), 'success')
})
