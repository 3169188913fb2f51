import { readdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { test } from 'tap'
import { freshProject, packed, run } from '../support/client/packed.ts'

const ROOT = new URL('../../', import.meta.url).pathname
const CLIENT = join(ROOT, 'client')
const { version, exports } = JSON.parse(await readFile(join(CLIENT, 'package.json'), 'utf8')) as {
  version: string
  exports: Record<string, unknown>
}

await test('the package has its licence, changelog and guide, and what its source maps name', async (t) => {
  const { files } = await packed()
  for (const name of ['LICENSE', 'CHANGELOG.md', 'README.md', 'docs/guide.md', 'package.json'])
    t.ok(files.includes(name), name)
  t.equal(await readFile(join(CLIENT, 'LICENSE'), 'utf8'), await readFile(join(ROOT, 'LICENSE'), 'utf8'))
  const scripts = files.filter((path) => path.startsWith('dist/') && path.endsWith('.js'))
  t.ok(scripts.length >= 4)
  for (const path of scripts) {
    const text = await readFile(join(CLIENT, path), 'utf8')
    t.ok(text.startsWith(`// trading-bff-client ${version}\n`), path)
    const [, map = ''] = /\n\/\/# sourceMappingURL=(\S+)\n$/.exec(text) ?? []
    const { sources } = JSON.parse(await readFile(join(CLIENT, dirname(path), map), 'utf8')) as { sources: string[] }
    for (const source of sources) t.ok(files.includes(join(dirname(path), source)), `${path}: ${source}`)
  }
})

await test('publint finds no fault in the package', async (t) => {
  const { tarball } = await packed()
  const { buffer } = Uint8Array.from(await readFile(tarball))
  const { messages, pkg } = await publint({ pack: { tarball: buffer }, level: 'suggestion', strict: true })
  t.same(
    messages.map((message) => formatMessage(message, pkg)),
    [],
  )
})

await test('Are the types wrong? finds every entry and its types, for all who know ES modules and `exports`', async (t) => {
  const { tarball } = await packed()
  const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(await readFile(tarball))))
  if (!analysis.types) return t.fail('no types')
  t.same(Object.keys(analysis.entrypoints).toSorted(), Object.keys(exports).toSorted())
  const entries = Object.keys(exports).filter((entry) => entry !== './package.json')
  // What is left: CommonJS, and resolution as it was before `exports`, which finds the main entry alone.
  const commonJs = entries.map((entry) => `node16-cjs ${entry} CJSResolvesToESM`)
  const expected = [...commonJs, ...entries.slice(1).map((entry) => `node10 ${entry} NoResolution`)]
  const found = analysis.problems.map((problem) =>
    'entrypoint' in problem ? `${problem.resolutionKind} ${problem.entrypoint} ${problem.kind}` : problem.kind,
  )
  t.same(found.toSorted(), expected.toSorted())
})

await test('a fresh Node.js project imports every entry, and errors name the lines of the source', async (t) => {
  const dir = await freshProject(t, {
    'main.js': `import { createClient, version } from 'trading-bff-client'
      import { series } from 'trading-bff-client/series'
      import { createFakeClient } from 'trading-bff-client/testing'
      const client = createFakeClient({ session: { subject: 'user-1' } })
      await client.session.check()
      console.log(version, typeof series, createClient().session.get().status, client.session.get().subject)
      try { createClient().tradingSocket('no account') } catch ({ stack }) { console.log(stack) }`,
  })
  const [facts, ...stack] = (await run(dir, 'node', '--enable-source-maps', 'main.js')).split('\n')
  t.equal(facts, `${version} function unknown user-1`)
  t.match(stack.join('\n'), /trading-bff-client\/src\/core\/create-client\.ts:\d+/)
})

await test('a fresh Vite project builds a page with the package, and nothing else has to be installed', async (t) => {
  const dir = await freshProject(t, {
    'index.html': '<!doctype html><script type="module" src="/main.js"></script>',
    'main.js': `import { createClient, version } from 'trading-bff-client'
      globalThis.found = [version, createClient().session.get().status]`,
    'vite.config.js': `export default { build: { modulePreload: false, sourcemap: true } }`,
  })
  t.same(
    (await readdir(join(dir, 'node_modules'))).filter((name) => !name.startsWith('.')),
    ['trading-bff-client'],
  )
  await symlink(join(ROOT, 'node_modules/vite'), join(dir, 'node_modules/vite'))
  await run(dir, join(ROOT, 'node_modules/.bin/vite'), 'build')
  const assets = join(dir, 'dist/assets')
  const names = await readdir(assets)
  t.same(names.map((name) => name.replace(/-.*?\./, '.')).toSorted(), [
    'index.js',
    'index.js.map',
    'series.js',
    'series.js.map',
  ])
  const entry = names.find((name) => /^index.*js$/.test(name)) ?? ''
  const script = `import('${join(assets, entry)}').then(() => console.log(globalThis.found.join(' ')))`
  t.equal(await run(dir, 'node', '-e', script), `${version} unknown`)
})
