import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { compile } from '../../client/build.ts'
import { freshProject, run } from '../support/client/packed.ts'

const ROOT = new URL('../../', import.meta.url).pathname
const VITEST = join(ROOT, 'node_modules/.bin/vitest')
const RECIPE = join(ROOT, 'docs/examples/vitest')
/** What a page's own project would have installed. */
const TOOLS = ['vitest', 'jsdom', 'react', 'react-dom']

/** The test of a page whose listener has a fault. */
const FAULTY = `
import { createFakeClient } from 'trading-bff-client/testing'
import { test } from 'vitest'

// Some versions of jsdom have none.
Reflect.deleteProperty(globalThis, 'reportError')
test('a price is drawn', async () => {
  const client = createFakeClient()
  client.server.reply('ticks', { tick: { epoch: 1, quote: 1.5 } })
  await new Promise((resolve) => {
    client.publicSocket().subscribe({ ticks: 'R_100' }, () => {
      resolve(undefined)
      throw new Error('the fault of a listener')
    })
  })
  client.close()
})`

/** A project with the recipe for Vitest, and the tools of this repository. */
async function project(t: Test): Promise<string> {
  const dir = await freshProject(t, {})
  for (const name of TOOLS) await symlink(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name))
  for (const name of ['vitest.config.ts', 'src']) await cp(join(RECIPE, name), join(dir, name), { recursive: true })
  await cp(join(ROOT, 'test/frontends/vitest'), dir, { recursive: true })
  return dir
}

await test('an exception in a listener of a page fails its tests under Vitest in jsdom, also where that has no reportError', async (t) => {
  const dir = await project(t)
  await writeFile(join(dir, 'src/faulty.spec.js'), FAULTY)
  const failed = run(dir, VITEST, 'run', 'src/faulty.spec.js')
  await t.rejects(failed)
  t.match(await failed.catch(String), /the fault of a listener/)
})

await test('the tests of a page with a fake client pass under Vitest in jsdom and in Node.js, and compile', async (t) => {
  const dir = await project(t)
  await t.resolves(compile([], dir))
  const output = await run(dir, VITEST, 'run', '--reporter=tap-flat').catch(String)
  t.match(output, /^1\.\.10$/m)
  t.notMatch(output, /^not ok|Error/m)
})

await test('the test in client/README.md is that of the recipe for Vitest', async (t) => {
  const readme = await readFile(join(ROOT, 'client/README.md'), 'utf8')
  t.ok(readme.includes(`\`\`\`ts\n${await readFile(join(RECIPE, 'src/page.spec.ts'), 'utf8')}\`\`\``))
})
