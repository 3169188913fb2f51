import { test } from 'tap'
import { builtPage } from '../support/client/vite-page.ts'

await test('a page that imports the core loads nothing else at first: at most 9 KiB besides what Vite adds', async (t) => {
  const whole = await builtPage(t, `import * as all from 'trading-bff-client'; globalThis.all = all`)
  t.same(whole.first, ['client.js'])
  t.same(whole.later, ['client/series.js'])
  const vite = await builtPage(t, `import * as all from './names.js'; globalThis.all = [all, import('./lazy.js')]`)
  t.comment(`${whole.size} bytes, of which Vite's own are ${vite.size}`)
  t.ok(whole.size - vite.size <= 9 * 1024, `${whole.size} - ${vite.size} bytes`)
})

for (const [entry, name] of [
  ['react', 'useSession'],
  ['testing', 'createFakeClient'],
] as const) {
  await test(`a page that imports ${entry} and does not use it loads nothing of it`, async (t) => {
    const source = (use: string): string =>
      `import { createClient } from 'trading-bff-client'
       import { ${name} } from 'trading-bff-client/${entry}'
       globalThis.client = createClient()
       ${use}`
    const without = await builtPage(t, source(''))
    t.same(without.first, ['client.js'])
    const withIt = await builtPage(t, source(`globalThis.used = ${name}`))
    t.ok(withIt.first.length > 1, withIt.first.join(' '))
    t.ok(withIt.size > without.size)
  })
}

await test('a page that only follows the session does not load the sockets', async (t) => {
  const source = `import { createSession } from 'trading-bff-client'; globalThis.session = createSession()`
  const { size } = await builtPage(t, source)
  t.ok(size <= 2100, `${size} bytes`)
})
