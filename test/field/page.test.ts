import { globSync } from 'node:fs'
import { test } from 'tap'
import { KINDS } from './kinds.ts'
import { pageWith, readPage } from './page.ts'
import { readResults } from './results.ts'
import { tests } from './run-suite.ts'

const ROWS = Object.values(KINDS).flatMap(({ rows }) => rows)

await test('The tables of docs/compatibility.md are those of the last runs', (t) => {
  t.equal(readPage(), pageWith(readPage(), readResults()))
  t.end()
})

await test('Each row that was tried is one of test/field, whose test files exist, and says what its failures mean', (t) => {
  for (const { id, suites } of ROWS) {
    for (const pattern of Object.values(suites).flat()) t.ok(globSync(pattern).length > 0, `${id}: ${pattern}`)
  }
  for (const [id, result] of readResults()) {
    const row = ROWS.find((each) => each.id === id)
    t.ok(row !== undefined, id)
    const outcomes = Object.values(result.suites ?? {})
    if (outcomes.some(({ failed }) => failed.length > 0)) t.type(row?.note, 'string', `${id} explains its failures`)
    for (const { passed } of outcomes) t.ok(passed > 0, `${id}: tests have run`)
  }
  t.end()
})

await test('The outcomes of tests are those of the first level in each file', (t) => {
  const output = `TAP version 14
# Subtest: test/a.test.ts
    # Subtest: one
        not ok 1 - an assertion # TODO
    ok 1 - one # time=3.1ms
    not ok 2 - two # time=4ms
    ok 3 - three # SKIP no namespaces
not ok 1 - test/a.test.ts # time=90ms
ok 2 - test/b.test.ts # SKIP
# Subtest: test/c.test.ts
    ok 1 - four # time=1ms
not ok 3 - test/c.test.ts # time=9ms
`
  t.same(tests(output), [
    { file: 'test/a.test.ts', name: 'one', is: 'passed' },
    { file: 'test/a.test.ts', name: 'two', is: 'failed' },
    { file: 'test/a.test.ts', name: 'three', is: 'skipped' },
    { file: 'test/b.test.ts', name: 'the whole file', is: 'skipped' },
    { file: 'test/c.test.ts', name: 'four', is: 'passed' },
    { file: 'test/c.test.ts', name: 'the whole file', is: 'failed' },
  ])
  t.end()
})
