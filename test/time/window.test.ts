import { test } from 'tap'
import { Window } from '../../src/time/window.ts'

void test('a window allows its limit, and the next one begins with the first event after its end', async (t) => {
  let now = 5000
  t.intercept(performance, 'now', { value: () => now })
  const window = new Window(1000)
  t.equal(window.leftMs, 0, 'no window before the first event')
  t.same([window.allows(2), window.allows(2), window.allows(2)], [true, true, false])
  t.equal(window.leftMs, 1000)
  now += 999
  t.notOk(window.allows(2), 'until its last moment')
  now += 1
  t.equal(window.leftMs, 0)
  now += 500
  t.ok(window.allows(1))
  t.equal(window.leftMs, 1000, 'not from the end of the last window')
})

void test('an event that is refused is not counted: a larger limit still has room', async (t) => {
  const window = new Window(60_000)
  t.same([window.allows(1), window.allows(1), window.allows(2), window.allows(2)], [true, false, true, false])
})
