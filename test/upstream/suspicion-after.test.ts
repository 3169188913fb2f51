import { test } from 'tap'
import {
  isSuspected,
  mayProbe,
  suspicionAfter,
  SUSPICIONS,
  type CallEvent,
} from '../../src/upstream/budget/suspicion.ts'

const NOW = 1_000_000_000
const caller = (name: string) => ({ user: name, source: name })

/** What is known after these events, one after the other. */
function after(events: readonly (readonly [at: number, event: CallEvent])[], before = SUSPICIONS.nothing.orders) {
  return events.reduce((known, [at, event]) => suspicionAfter(known, event, NOW + at), before)
}

const refused = (name: string): CallEvent => ({ is: 'refused', caller: caller(name), waitMs: 1000, probe: undefined })
const RAISED = after(['a', 'b', 'c'].map((name) => [0, refused(name)] as const))

await test('at most 500 users and sources are kept, those refused last', (t) => {
  const full = after(Array.from({ length: 500 }, (_, at) => [at, refused(`user ${at}`)] as const))
  t.equal(Object.keys(full.users).length, 500)
  t.equal(Object.keys(full.sources).length, 500)
  const next = after([[600, refused('another')]], full)
  for (const kept of [next.users, next.sources]) {
    t.equal(Object.keys(kept).length, 500)
    t.ok('another' in kept)
    t.ok('user 499' in kept)
    t.notOk('user 0' in kept, 'the one refused longest ago is forgotten')
  }
  t.end()
})

await test('a probe that is answered discounts whoever raised the suspicion, and those before, but at most 500', (t) => {
  const early = after([[-60_000, refused('early')], ...['a', 'b', 'c'].map((name) => [0, refused(name)] as const)])
  const probing: CallEvent = { is: 'probing', caller: caller('d'), probe: 'p' }
  const answered: CallEvent = { is: 'answered', probe: 'p' }
  const cleared = after(
    [
      [10, probing],
      [20, answered],
    ],
    early,
  )
  t.same(Object.keys(cleared.discounted), ['a', 'b', 'c'])
  t.equal(isSuspected(cleared, NOW + 20), false)
  const again = after(
    ['a', 'b', 'c'].map((name) => [1000, refused(name)] as const),
    cleared,
  )
  t.equal(isSuspected(again, NOW + 1000), false, 'they raise none for a while')
  const others = after(
    ['x', 'y', 'z'].map((name) => [1000, refused(name)] as const),
    cleared,
  )
  t.equal(isSuspected(others, NOW + 1000), true)
  const once = after(
    [
      [1010, { ...probing, caller: caller('e') }],
      [1020, answered],
    ],
    others,
  )
  t.same(Object.keys(once.discounted).toSorted(), ['a', 'b', 'c', 'x', 'y', 'z'], 'the first ones, too')
  const many = after(Array.from({ length: 600 }, (_, at) => [at, refused(`user ${at}`)] as const))
  const all = after(
    [
      [700, { ...probing, probe: 'q' }],
      [710, { ...answered, probe: 'q' }],
    ],
    many,
  )
  t.equal(Object.keys(all.discounted).length, 500)
  t.end()
})

await test('a refused probe holds all back for its time, at least for ever longer pauses, and the suspicion goes on', (t) => {
  let known = RAISED
  let at = 10
  const holds: number[] = []
  for (let probe = 0; probe < 4; probe++) {
    const name = `prober ${probe}`
    const id = `p${probe}`
    known = after([[at, { is: 'probing', caller: caller(name), probe: id }]], known)
    known = after([[at, { is: 'refused', caller: caller(name), waitMs: 100, probe: id }]], known)
    holds.push(known.heldUntil - NOW - at)
    t.equal(known.probe, null)
    t.ok(known.suspectedUntil > known.heldUntil, 'so that the first call afterwards is a probe')
    t.equal(mayProbe(known, caller('new'), NOW + at), false)
    at += holds.at(-1) ?? 0
    t.equal(mayProbe(known, caller('new'), NOW + at + 1), true)
  }
  for (const [index, hold] of holds.entries()) {
    t.ok(hold >= (1000 * 2 ** index) / 2 && hold <= 1000 * 2 ** index * 1.5, holds.join(' '))
  }
  const long = after([[at, { is: 'probing', caller: caller('l'), probe: 'l' }]], known)
  const held = after([[at, { is: 'refused', caller: caller('l'), waitMs: 50_000, probe: 'l' }]], long)
  t.equal(held.heldUntil, NOW + at + 50_000, 'its own Retry-After, if that is longer')
  t.end()
})

await test('what has no effect any more is forgotten, and no time of a clock that was ahead is kept', (t) => {
  const text = SUSPICIONS.format({
    ...SUSPICIONS.nothing,
    orders: after(
      ['a', 'b', 'c'].map((name) => [0, refused(name)] as const),
      after([[-15_000, refused('old')]]),
    ),
  })
  const read = (ms: number) => SUSPICIONS.parse(text, NOW + ms).orders
  t.same(Object.keys(read(0).users), ['old', 'a', 'b', 'c'])
  t.equal(read(0).raisedAt, NOW)
  const over = read(3_600_000)
  t.same([over.users, over.sources, over.raisedAt, over.suspectedUntil], [{}, {}, 0, 0])
  const ahead = read(-3_600_000)
  t.same(ahead.users['a']?.[0], NOW - 3_600_000)
  t.ok((ahead.users['a']?.[1] ?? 0) <= NOW - 3_600_000 + 60_000)
  t.equal(ahead.sources['a'], NOW - 3_600_000)
  t.ok(ahead.suspectedUntil > NOW - 3_600_000 && ahead.suspectedUntil < NOW - 3_000_000)
  t.end()
})
