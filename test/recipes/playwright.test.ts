import { test } from 'tap'
import { CHROMIUM } from '../support/browser/chromium.ts'
import { bundled, examplePage } from '../support/browser/example-page.ts'
import { run } from '../support/client/packed.ts'
import { installed } from '../support/recipes/recipe.ts'
import { startWorld } from '../support/world.ts'

await test('docs/examples/playwright: tests of the example page share a login, and buy once', async (t) => {
  const { dir } = await installed(t, 'playwright')
  const { server } = await startWorld(t, { settings: { STATIC_DIR: await bundled(await examplePage(t)) } })
  const playwright = [process.execPath, 'node_modules/@playwright/test/cli.js', 'test', '--reporter=line']
  const output = await run(dir, `CHROMIUM=${CHROMIUM}`, `PAGE_URL=${server.url}`, ...playwright).catch(
    ({ stdout }: { stdout: string }) => stdout,
  )
  t.match(output, /^ *4 passed/m)
  t.notMatch(output, /failed|flaky|skipped|did not run/)
})
