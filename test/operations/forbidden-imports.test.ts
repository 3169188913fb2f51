import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Pattern {
  readonly group?: readonly string[]
  readonly regex?: string
}
interface Override {
  readonly files: readonly string[]
  readonly rules: {
    readonly 'no-restricted-imports'?: readonly [level: string, options: { readonly patterns: readonly Pattern[] }]
  }
}
const config = JSON.parse(readFileSync(join(ROOT, '.oxlintrc.json'), 'utf8')) as {
  readonly overrides: readonly Override[]
}
const borders = config.overrides.flatMap(({ files, rules }) => {
  const [, { patterns }] = rules['no-restricted-imports'] ?? ['', { patterns: [] }]
  return files.flatMap((place) => patterns.map((pattern) => ({ place, pattern })))
})

/** What a regular expression forbids. */
const OF_REGEX: Readonly<Record<string, string>> = {
  '^[^.]': 'react',
  '/core/(client|create-client|api/once|sockets/(socket|lazy-series))\\.ts$': '../core/client.ts',
  '^(\\.\\./)+(series|orders|sessions)/': '../series/x.ts',
}

/** An import for each thing that a pattern forbids, as a file at this depth writes it. */
function forbiddenBy({ group, regex = '' }: Pattern, depth: number): string[] {
  if (group === undefined) return [OF_REGEX[regex] ?? '']
  return group
    .filter((each) => !each.startsWith('!'))
    .map((each) => each.replace(/^\*\*\//, '../'.repeat(depth)).replace(/\/\*+$/, '/x.ts'))
    .map((each) => each.replace(/:\*$/, ':fs'))
}

await test('the linter finds every import that its borders forbid, planted in a file of that chapter', (t) => {
  // Not t.testdir(), which is a folder that the linter ignores.
  const folder = mkdtempSync(join(tmpdir(), 'borders-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, '.oxlintrc.json'), JSON.stringify({ ...config, options: {} }))
  const planted = new Map<string, string[]>()
  for (const { place, pattern } of borders) {
    const chapter = place.replace(/\/\*\*$/, '')
    for (const specifier of forbiddenBy(pattern, chapter.split('/').length)) {
      const file = chapter.endsWith('.ts') ? chapter : join(chapter, `${planted.size}.ts`)
      planted.set(file, [...(planted.get(file) ?? []), specifier])
    }
  }
  t.ok(planted.size > 400)
  for (const [file, specifiers] of planted) {
    const lines = specifiers.map((specifier, index) => `export type { T as T${index} } from '${specifier}'\n`)
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), lines.join(''))
  }
  const oxlint = join(ROOT, 'node_modules/.bin/oxlint')
  const { stdout } = spawnSync(oxlint, ['-A', 'all', '--format', 'json', '.'], { cwd: folder, encoding: 'utf8' })
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string; filename: string }[] }
  const found = Map.groupBy(
    diagnostics.filter(({ code }) => code.includes('no-restricted-imports')),
    ({ filename }) => filename,
  )
  const missed = [...planted].filter(([file, specifiers]) => (found.get(file)?.length ?? 0) < specifiers.length)
  t.same(missed, [])
  t.end()
})

await test('every chapter of src has a border', (t) => {
  const chapters = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const places = new Set(borders.map(({ place }) => place))
  t.ok(chapters.length > 10)
  for (const { name } of chapters) t.ok(places.has(`src/${name}/**`), name)
  t.end()
})
