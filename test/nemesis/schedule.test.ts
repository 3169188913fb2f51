import { test } from 'tap'
import { ALL_FAULTS } from './faults/all.ts'
import { PREVIOUS } from './faults/previous-version.ts'
import { planOf } from './schedule.ts'

/** How many of a hundred plans of this length have the previous version for a while. */
const withPrevious = (forMs: number): number =>
  Array.from({ length: 100 }, (_each, seed) => planOf(seed, forMs)).filter(({ faults }) =>
    faults.some(({ name }) => name === PREVIOUS),
  ).length

await test('the previous version is in plans of a minute, and not in those of npm test', (t) => {
  t.ok(withPrevious(60_000) > 5)
  t.equal(withPrevious(35_000), 0)
  t.end()
})

await test('each fault has a name of its own and a sentence, and a seed means one plan', (t) => {
  t.equal(new Set(ALL_FAULTS.map(({ name }) => name)).size, ALL_FAULTS.length)
  for (const { name, sentence } of ALL_FAULTS) t.match(sentence, /^[A-Z].*\.$/s, name)
  t.same(planOf(7, 60_000), planOf(7, 60_000))
  t.end()
})
