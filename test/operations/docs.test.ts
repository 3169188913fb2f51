import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { SECRET_SETTINGS, settingRules } from '../../src/settings.ts'

const DOCS = new URL('../../docs/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, DOCS), 'utf8')

await test('every protection of threats.md names a test that is there', (t) => {
  const chapters = 'catalog|http|journeys|oauth|operations|ops|relay|session|store|upstream'
  const named = [...read('threats.md').matchAll(new RegExp(`\\b(?:${chapters})/[a-z-]+`, 'g'))].map(
    ([name]) => name,
  )
  t.ok(named.length > 30)
  for (const name of new Set(named)) t.ok(existsSync(new URL(`../test/${name}.test.ts`, DOCS)), name)
  for (const [, row = ''] of read('threats.md').matchAll(/^\| (?!It tries|They try|---)(.*) \|$/gm)) {
    t.match(row, /\| (?:[a-z]+\/[a-z-]+|config)(?:, (?:[a-z]+\/[a-z-]+|config))*$/, row)
  }
  t.end()
})

await test('what operating.md calls a setting is one', (t) => {
  const settings = new Set([...Object.keys(settingRules), ...SECRET_SETTINGS.map((name) => `${name}_FILE`)])
  const others = new Set([
    'REDIS_MAXMEMORY',
    'REDIS_CONTAINER_MEMORY',
    'NAME_FILE',
    'NODE_EXTRA_CA_CERTS',
    'SIGTERM',
    'SIGINT',
  ])
  // Other programs have names of their own.
  const prose = read('operating.md').replaceAll(/```(?:apache|nginx|vcl)\n[^]*?```/g, '')
  const named = [...prose.matchAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g)].map(([name]) => name)
  t.ok(named.length > 40)
  for (const name of new Set(named)) {
    t.ok(settings.has(name) || others.has(name), name)
  }
  t.end()
})

await test('links between documents lead somewhere', (t) => {
  for (const name of ['operating.md', 'threats.md', '../README.md']) {
    const here = new URL(name, DOCS)
    for (const [, target = ''] of readFileSync(here, 'utf8').matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
      t.ok(existsSync(new URL(target, here)), `${name}: ${target}`)
    }
  }
  t.end()
})
