import { test } from 'tap'
import { suspicionAfter, SUSPICIONS, type CallEvent, type Caller } from '../../src/upstream/budget/suspicion.ts'

const callerOf = (user: string): Caller => ({ user, source: user })

await test('a probe whose time is over, and that ends late, lets no third one go out beside the second', (t) => {
  let now = 1_700_000_000_000
  let suspicion = SUSPICIONS.nothing.orders
  const note = (event: CallEvent): string | undefined => {
    suspicion = suspicionAfter(suspicion, event, now)
    return suspicion.probe?.id
  }
  for (const user of ['a', 'b', 'c']) note({ is: 'refused', caller: callerOf(user), waitMs: 1000, probe: undefined })
  t.equal(note({ is: 'probing', caller: callerOf('d'), probe: 'first' }), 'first')
  now += 15_001
  t.equal(note({ is: 'probing', caller: callerOf('e'), probe: 'second' }), 'second')
  t.equal(note({ is: 'unanswered', probe: 'first' }), 'second')
  t.equal(note({ is: 'answered', probe: 'first' }), 'second')
  t.equal(note({ is: 'refused', caller: callerOf('d'), waitMs: 1000, probe: 'first' }), 'second')
  t.equal(note({ is: 'probing', caller: callerOf('f'), probe: 'third' }), 'second')
  t.equal(note({ is: 'unanswered', probe: 'second' }), undefined)
  t.equal(note({ is: 'probing', caller: callerOf('f'), probe: 'third' }), 'third')
  t.end()
})
