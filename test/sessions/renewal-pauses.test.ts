import { test } from 'tap'
import { RenewalPauses } from '../../src/sessions/renewal-pauses.ts'

await test('the pause of a session grows with every failure in a row, and is short again after a success', (t) => {
  t.intercept(Math, 'random', { value: () => 0 })
  const pauses = new RenewalPauses()
  const fail = (key: string): number => pauses.begin(key, true, -Infinity)
  t.same([fail('one'), fail('one'), fail('one'), fail('another')], [1000, 2000, 4000, 1000])
  pauses.end('one')
  t.equal(pauses.remainingMs('one', -Infinity), 0)
  t.equal(fail('one'), 1000)
  t.end()
})

await test('a pause ends with its time; one that concerns any session, also when the provider works for one', (t) => {
  let now = 1000
  t.intercept(performance, 'now', { value: () => now })
  t.intercept(Math, 'random', { value: () => 0 })
  const pauses = new RenewalPauses()
  const left = (key: string, workedAt = -Infinity): number => pauses.remainingMs(key, workedAt)
  pauses.begin('any', true, 999)
  pauses.begin('this', false, 999)
  pauses.beginFor('own', 5000)
  t.same([left('any'), left('this'), left('own'), left('none')], [1000, 1000, 5000, 0])
  now += 400
  t.same([left('any'), left('this'), left('own')], [600, 600, 4600])
  t.equal(left('any', 1000), 600, 'it worked before')
  t.same([left('any', now), left('this', now), left('own', now), left('none', now)], [0, 600, 4600, 0])
  now += 700
  t.same([left('any'), left('this'), left('own')], [0, 0, 3900])
  t.equal(pauses.begin('own', true, -Infinity), 1000, 'a pause of the session alone is no failure in a row')
  t.end()
})

await test('the pause of a session that fails again after the provider has worked for others ends with its time alone', (t) => {
  let now = 1000
  t.intercept(performance, 'now', { value: () => now })
  t.intercept(Math, 'random', { value: () => 0 })
  const pauses = new RenewalPauses()
  const fail = (workedAt: number): unknown => {
    pauses.begin('one', true, workedAt)
    return [pauses.remainingMs('one', -Infinity), pauses.remainingMs('one', (now += 1))]
  }
  t.same(fail(1000), [1000, 0], 'its first failure')
  t.same(fail(1000), [2000, 0], 'the provider has not worked since')
  t.same(fail(1002), [4000, 3999], 'it has')
  t.same(fail(1002), [8000, 0], 'and now it works for nobody')
  t.end()
})
