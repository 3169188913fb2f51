import { test } from 'tap'
import { RenewalPauses } from '../../src/sessions/renewal-pauses.ts'

await test('the pause of a session grows with every failure in a row, and is short again after a success', (t) => {
  t.intercept(Math, 'random', { value: () => 0 })
  const pauses = new RenewalPauses()
  const fail = (key: string): number => pauses.begin(key, true)
  t.same([fail('one'), fail('one'), fail('one'), fail('another')], [1000, 2000, 4000, 1000])
  pauses.end('one')
  t.equal(pauses.remainingMs('one', -Infinity), 0)
  t.equal(fail('one'), 1000)
  t.end()
})
