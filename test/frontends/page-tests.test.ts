import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { compile } from '../../client/build.ts'
import { freshProject, run } from '../support/client/packed.ts'

const ROOT = new URL('../../', import.meta.url).pathname
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

await test('an exception in a listener of a page fails its tests under Vitest in jsdom, also where that has no reportError', async (t) => {
  const dir = await freshProject(t, {})
  for (const name of TOOLS) await symlink(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name))
  for (const name of ['vitest.config.ts', 'tsconfig.json']) {
    await cp(join(ROOT, 'test/frontends/vitest', name), join(dir, name))
  }
  await mkdir(join(dir, 'src'))
  await writeFile(join(dir, 'src/faulty.spec.js'), FAULTY)
  const failed = run(dir, join(ROOT, 'node_modules/.bin/vitest'), 'run')
  await t.rejects(failed)
  t.match(await failed.catch(String), /the fault of a listener/)
})

await test('the tests of a page with a fake client pass under Vitest in jsdom, and compile', async (t) => {
  const dir = await freshProject(t, {})
  for (const name of TOOLS) await symlink(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name))
  await cp(join(ROOT, 'test/frontends/vitest'), dir, { recursive: true })
  const readme = await readFile(join(ROOT, 'client/README.md'), 'utf8')
  const [, sample = ''] = /```ts\n([^`]*from 'vitest'.*?)```/s.exec(readme) ?? []
  await writeFile(join(dir, 'src/readme.spec.ts'), sample)
  await t.resolves(compile([], dir))
  const vitest = join(ROOT, 'node_modules/.bin/vitest')
  const output = await run(dir, vitest, 'run', '--reporter=tap-flat').catch(String)
  t.match(output, /^1\.\.9$/m)
  t.notMatch(output, /^not ok|Error/m)
})
