import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { test } from 'tap'
import { ALL_FAULTS } from '../faults/all.ts'
import { allPatches, applied, parsePatch, ROOT } from './patch.ts'

const FAULTS: ReadonlySet<string> = new Set(ALL_FAULTS.map((fault) => fault.name))

const DIFF = `A slip.
Plan: {"faults":[]}

--- a/src/one.ts
+++ b/src/one.ts
@@ -1,3 +1,3 @@
 first
-second
+another
@@ -9,1 +9,2 @@
+new
 last
`

await test('a patch is read, and applied wherever its lines are', (t) => {
  const { sentence, wishes, files } = parsePatch('name', DIFF)
  t.same([sentence, wishes, [...files.keys()]], ['A slip.', { faults: [] }, ['src/one.ts']])
  const hunks = files.get('src/one.ts') ?? []
  t.equal(applied('zero\nfirst\nsecond\nlast\n', hunks), 'zero\nfirst\nanother\nnew\nlast\n')
  t.throws(() => applied('first\nlast\n', hunks), /not there exactly once:\nfirst\nsecond/)
  t.throws(() => applied('first\nsecond\nfirst\nsecond\nlast\n', hunks), /not there exactly once/)
  t.end()
})

for (const { name, sentence, wishes, files } of allPatches()) {
  await test(`the patch ${name} applies; if not, renew it, and run PROOF=${name} npm run test:nemesis:proof`, (t) => {
    t.match(sentence, /^[A-Z].*\.$/)
    t.same(
      wishes.faults?.filter((fault) => !FAULTS.has(fault)),
      wishes.faults && [],
      'its faults exist',
    )
    for (const [path, hunks] of files) {
      const text = applied(readFileSync(join(ROOT, path), 'utf8'), hunks)
      if (path.endsWith('.ts')) t.ok(stripTypeScriptTypes(text), 'what comes out can be read')
    }
    t.end()
  })
}
