import { test } from 'tap'
import { MemoryValues } from '../../src/store/memory-values.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

/** Values, the keys that were told to have changed, and the way to let time pass. */
function valuesOf(...[t]: Parameters<typeof stoppedClocks>) {
  const pass = stoppedClocks(t)
  const told: string[] = []
  const values = new MemoryValues((key) => void told.push(key))
  return { pass, values, told: () => told.splice(0) }
}

await test('a value is there until its time, and each change is told, its end included', (t) => {
  const { pass, values, told } = valuesOf(t)
  const expiresAt = Date.now() + 1000
  t.equal(values.write('one', 'v', expiresAt), true)
  t.same(values.get('one'), { value: 'v', expiresAt })
  values.write('one', 'w', expiresAt)
  t.same([values.get('one')?.value, values.keys()], ['w', ['one']])
  t.same(told(), ['one', 'one'])
  pass(999)
  t.match(values.get('one'), { value: 'w' })
  t.same(told(), [])
  pass(2)
  t.equal(values.get('one'), undefined)
  t.same([told(), values.keys()], [['one'], []])
  t.end()
})

await test('a value whose time is over at once takes the one before it away', (t) => {
  const { values, told } = valuesOf(t)
  for (const agoMs of [0, 1]) {
    values.write('one', 'v', Date.now() + 1000)
    t.equal(values.write('one', 'w', Date.now() - agoMs), true)
    t.equal(values.get('one'), undefined)
    t.same(told(), ['one', 'one'])
  }
  t.end()
})

await test('a value is removed once, and all at once', (t) => {
  const { values, told } = valuesOf(t)
  values.write('one', 'v', Date.now() + 1000)
  told()
  t.same([values.remove('one'), values.remove('one')], [true, false])
  t.same(told(), ['one'])
  values.write('one', 'v', Date.now() + 1000)
  values.clear()
  t.same(values.keys(), [])
  t.end()
})

await test('the oldest of too many values gives way, which is told', (t) => {
  const { values, told } = valuesOf(t)
  const expiresAt = Date.now() + 1000
  for (let count = 0; count < 100_000; count++) values.write(`${count}`, 'v', expiresAt)
  told()
  values.write('more', 'v', expiresAt)
  t.same(told().toSorted(), ['0', 'more'])
  t.equal(values.get('0'), undefined)
  t.end()
})
