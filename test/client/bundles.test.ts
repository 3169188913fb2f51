import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { builtPage } from '../support/client/vite-page.ts'

const { exports, sideEffects } = JSON.parse(
  await readFile(new URL('../../client/package.json', import.meta.url), 'utf8'),
) as { exports: Record<string, { default?: string }>; sideEffects: readonly string[] }
/** The entries besides the core, such as `./react`, and the module of each. One that does something by itself is always loaded. */
const ENTRIES = Object.entries(exports).flatMap(([entry, { default: path }]) =>
  entry === '.' || path === undefined || sideEffects.includes(path)
    ? []
    : [{ entry, module: path.replace('./dist/', '') }],
)

await test('a page that imports the core loads no other entry at first: at most 10 KiB besides what Vite adds', async (t) => {
  const whole = await builtPage(t, `import * as all from 'trading-bff-client'; globalThis.all = all`)
  t.same(whole.first, ['client.js'])
  t.ok(whole.later.includes('client/series.js'), 'what the core loads by itself is apart')
  const vite = await builtPage(t, `import * as all from './names.js'; globalThis.all = [all, import('./lazy.js')]`)
  t.comment(`${whole.size} bytes, of which Vite's own are ${vite.size}`)
  t.ok(whole.size - vite.size <= 10 * 1024, `${whole.size} - ${vite.size} bytes`)
})

await test('a page that only follows the session does not load the sockets', async (t) => {
  const source = `import { createSession } from 'trading-bff-client'; globalThis.session = createSession()`
  const { size } = await builtPage(t, source)
  t.ok(size <= 2275, `${size} bytes`)
})

for (const { entry, module } of ENTRIES) {
  await test(`a page that imports ${entry} and does not use it loads nothing of it, unless the core would later`, async (t) => {
    const page = `import { createClient } from 'trading-bff-client'; globalThis.client = createClient()`
    const importing = `${page}; import * as entry from 'trading-bff-client/${entry.slice(2)}'`
    const { later } = await builtPage(t, page)
    const without = await builtPage(t, importing)
    t.same(without.first, later.includes(module) ? ['client.js', module] : ['client.js'])
    const using = await builtPage(t, `${importing}; globalThis.used = entry`)
    t.ok(using.first.includes(module), using.first.join(' '))
  })
}
