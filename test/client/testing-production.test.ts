import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { test, type Test } from 'tap'
import { run } from '../support/client/packed.ts'
import { builtPage } from '../support/client/vite-page.ts'

const DIST = new URL('../../client/dist', import.meta.url).pathname
const SOURCE = `import { createFakeClient } from 'trading-bff-client/testing'
  globalThis.used = createFakeClient().session.get().status`
const REFUSED = 'trading-bff-client/testing is for tests, and not for production builds'
const DEVTOOLS = `import 'trading-bff-client/devtools'; globalThis.used = 'devtools'`
const NO_DEVTOOLS = 'trading-bff-client/devtools is for development, and not for production builds'

/**
 * What becomes of a script: the status of its session, or the message of its error.
 * @param before runs first
 */
function outcome(t: Test, script: string, before = ''): Promise<string> {
  const main = `${before}; import(${JSON.stringify(script)}).then(() => console.log(globalThis.used), ({ message }) => console.log(message))`
  return run(t.testdirName, 'node', '-e', `const { console } = globalThis; ${main}`)
}

/** Bundles the script for browsers. */
async function bundled(t: Test, options: { readonly minify: boolean }): Promise<string> {
  const outfile = join(t.testdirName, 'bundle.mjs')
  const contents = SOURCE.replace('trading-bff-client/testing', './testing.js')
  await build({ stdin: { contents, resolveDir: DIST }, bundle: true, format: 'esm', outfile, ...options })
  return outfile
}

await test('a production build of Vite throws, also if it runs where NODE_ENV says otherwise', async (t) => {
  const { script } = await builtPage(t, SOURCE)
  t.equal(await outcome(t, script, `process.env.NODE_ENV = 'test'`), REFUSED)
  t.equal(await outcome(t, script, `delete globalThis.process`), REFUSED)
})

await test('a library that Vite builds throws too, although Vite leaves NODE_ENV to those who use it', async (t) => {
  const { script } = await builtPage(t, SOURCE, 'production', { lib: { entry: 'main.js', formats: ['es'] } })
  t.equal(await outcome(t, script, `process.env.NODE_ENV = 'test'`), REFUSED)
})

await test('a build of Vite for development has a fake client', async (t) => {
  const { script } = await builtPage(t, SOURCE, 'development')
  t.equal(await outcome(t, script, `delete globalThis.process`), 'unknown')
})

await test('a bundle of esbuild has a fake client, unless it is minified, which means production', async (t) => {
  t.testdir()
  t.equal(await outcome(t, await bundled(t, { minify: false }), `delete globalThis.process`), 'unknown')
  t.equal(await outcome(t, await bundled(t, { minify: true }), `delete globalThis.process`), REFUSED)
})

await test('the module itself throws with NODE_ENV=production, and in a browser, where nothing says that it is a test', async (t) => {
  const script = join(t.testdir(), 'main.mjs')
  await writeFile(script, SOURCE.replace('trading-bff-client/testing', join(DIST, 'testing.js')))
  t.equal(await outcome(t, script), 'unknown')
  t.equal(await outcome(t, script, `process.env.NODE_ENV = 'test'`), 'unknown')
  t.equal(await outcome(t, script, `process.env.NODE_ENV = 'production'`), REFUSED)
  t.equal(await outcome(t, script, `delete globalThis.process`), REFUSED)
})

await test('production builds of Vite with the devtools throw, and have nothing of them where they are for development alone', async (t) => {
  const { script } = await builtPage(t, DEVTOOLS)
  t.equal(await outcome(t, script, `process.env.NODE_ENV = 'test'`), NO_DEVTOOLS)
  const guarded = `if (import.meta.env.DEV) await import('trading-bff-client/devtools'); globalThis.used = 'none'`
  const built = await builtPage(t, guarded)
  t.same([built.first, built.later], [[], []])
  t.equal(await outcome(t, built.script), 'none')
})

await test('a build of Vite for development has the devtools, also where nothing is imported by name or a server renders', async (t) => {
  const { script, first } = await builtPage(t, DEVTOOLS, 'development')
  t.same(first, ['devtools.js'])
  t.equal(await outcome(t, script, `delete globalThis.process`), 'devtools')
})
