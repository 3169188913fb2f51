import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(ROOT + path, 'utf8')
const files = (pattern: string): string[] => globSync(pattern, { cwd: ROOT }).map((path) => path.replaceAll('\\', '/'))
const SOURCES = files('{src,client/src}/**/*.ts')
const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', ...files('docs/*.md'), ...files('docs/{decisions,operating}/*.md')]

/** The code spans of a text, outside of code blocks. */
const spans = (text: string): string[] =>
  [...text.replaceAll(/^ *```.*\n[^]*?^ *```$/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span)

/** The map with which a decision begins, its folder, and its rows. */
interface Map {
  readonly name: string
  readonly text: string
  readonly folder: string
  readonly rows: readonly string[]
}

const MAPS: readonly Map[] = files('docs/decisions/*.md').flatMap((name) => {
  const [, text] = /^\*\*Map\.\*\*(.*?)^\*\*Context\.\*\*/ms.exec(read(name)) ?? []
  if (text === undefined) return []
  const [, folder = ''] = /`((?:client\/)?src\/[\w/-]+)`/.exec(text) ?? []
  return [{ name, text, folder, rows: text.split('\n').filter((line) => /^\| (?!---)/.test(line)) }]
})

/**
 * The paths that a name of a file means: from the root, in `src`, or in the folder of the map. A name without a folder may be that
 * of any file below.
 */
function meant(name: string, folder = 'src'): string[] {
  const paths = [name, `src/${name}`, `${folder}/${name}`].filter((path) => existsSync(ROOT + path))
  return paths.length > 0 || name.includes('/') ? paths : SOURCES.filter((path) => basename(path) === name)
}

await test('Every source file that a document names exists', (t) => {
  let named = 0
  for (const document of DOCUMENTS) {
    const folder = MAPS.find(({ name }) => name === document)?.folder
    for (const span of new Set(spans(read(document)))) {
      if (!/^[\w./-]+\.ts$/.test(span)) continue
      named++
      t.not(meant(span, folder).length, 0, `${document}: ${span}`)
    }
  }
  t.ok(named > 120, `${named} names`)
  t.end()
})

await test('Every path of src that CONTRIBUTING.md names exists', (t) => {
  const named = spans(read('CONTRIBUTING.md')).filter((span) => /^src\/[\w/.-]+$/.test(span))
  t.ok(named.length > 8)
  for (const path of named) t.ok(existsSync(ROOT + path), path)
  t.end()
})

await test('CONTRIBUTING.md lists the chapters of src, and a lint rule of each forbids to import those below it', (t) => {
  const chapters = [...read('CONTRIBUTING.md').matchAll(/^\| `src\/(\w+)` \|/gm)].map(([, name = '']) => name)
  t.same(
    chapters.toSorted(),
    files('src/*/')
      .map((path) => basename(path))
      .toSorted(),
  )
  const { overrides } = JSON.parse(read('.oxlintrc.json')) as {
    overrides: { files: string[]; rules: { 'no-restricted-imports'?: [string, { patterns: { group: string[] }[] }] } }[]
  }
  for (const [index, chapter] of chapters.entries()) {
    const rules = overrides.find((each) => each.files.includes(`src/${chapter}/**`))?.rules['no-restricted-imports']
    const forbidden = rules?.[1].patterns.flatMap(({ group }) => group) ?? []
    const below = chapters.slice(index + 1).map((name) => `**/${name}/**`)
    const isOutside = forbidden.includes('../**')
    for (const name of below) t.ok(isOutside || forbidden.includes(name), `${chapter}: ${name}`)
    for (const name of chapters.slice(0, index)) t.notOk(forbidden.includes(`**/${name}/**`), `${chapter}: ${name}`)
  }
  t.end()
})

await test('Every file that the map of a decision names exists', (t) => {
  t.ok(MAPS.length >= 5, 'the store, the feed, the budget, Idempotency-Key, the browser package')
  for (const { name, folder, rows } of MAPS) {
    const named = new Set(rows.flatMap(spans).filter((span) => span.endsWith('.ts')))
    t.ok(named.size > 5, name)
    for (const file of named) {
      t.ok(existsSync(`${ROOT}${file.startsWith('src/') ? file : `${folder}/${file}`}`), `${name}: ${file}`)
    }
  }
  t.end()
})

const defines = (text: string, noun: string): boolean =>
  new RegExp(`^(?:export )?(?:abstract |async )?(?:class|interface|type|const|function) ${noun}\\b`, 'm').test(text)

await test('What the row of a map names is defined in a file of that row', (t) => {
  for (const { name, folder, rows } of MAPS) {
    for (const row of rows) {
      const paths = spans(row).flatMap((span) => (span.endsWith('.ts') ? meant(span, folder) : []))
      const texts = paths.map(read).join('\n')
      for (const span of spans(row)) {
        const [, noun, verb] = /^(?:([A-Z][a-z]\w+)|(\w+)\(.*\))$/.exec(span) ?? []
        if (noun !== undefined) t.ok(defines(texts, noun), `${name}: ${span}`)
        if (verb !== undefined) t.ok(new RegExp(`\\b${verb}(?:<.*>)?\\(|\\b${verb} = `).test(texts), `${name}: ${span}`)
      }
    }
  }
  t.end()
})

await test('What a map names beside its table is defined in src', (t) => {
  const sources = SOURCES.map(read).join('\n')
  for (const { name, text, rows } of MAPS) {
    for (const span of spans(rows.reduce((rest, row) => rest.replace(row, ''), text))) {
      if (/^[A-Z][a-z]\w+$/.test(span)) t.ok(defines(sources, span), `${name}: ${span}`)
    }
  }
  t.end()
})

const NUMBERS = 'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen'.split(' ')

await test('Where a map counts files and lists them, the list is as long, and has files of its folder', (t) => {
  for (const { name, folder, text } of MAPS) {
    for (const [, count = '', list = ''] of text.matchAll(/(\w+) files: ((?:`[\w/-]+`(?:, | and )?)+)/g)) {
      const listed = spans(list)
      t.equal(NUMBERS[listed.length], count.toLowerCase(), `${name}: ${list}`)
      for (const file of listed) {
        const found = SOURCES.filter((path) => path.startsWith(`${folder}/`) && path.endsWith(`/${file}.ts`))
        t.equal(found.length, 1, `${name}: ${file}`)
      }
    }
  }
  t.end()
})

await test('The map of the feed lists every file that has a timer, and counts them', (t) => {
  const { text = '', folder = '' } = MAPS.find(({ name }) => name.includes('/0010-')) ?? {}
  const [, count = '', table = ''] = /^(\w+) timers run(.*)/ms.exec(text) ?? []
  const rows = [...table.matchAll(/^\| (\w+) \|.*`([\w/-]+\.ts)` \|$/gm)]
  t.equal(NUMBERS[rows.length], count.toLowerCase())
  const timed = SOURCES.filter(
    (path) => path.startsWith(`${folder}/`) && /\bset(?:Timeout|Interval)\(/.test(read(path)),
  )
  t.same(new Set(rows.map(([, , file]) => `${folder}/${file}`)), new Set(timed))
  t.end()
})

await test('The title of a decision has the number of its file', (t) => {
  for (const path of files('docs/decisions/*.md')) {
    const [, number = ''] = /^# (\d+)\. \S/.exec(read(path)) ?? []
    t.ok(basename(path).startsWith(`${number.padStart(4, '0')}-`), path)
  }
  t.end()
})

await test('The maps of the budget and of calls with a key lead to the first byte, which both ways to upstream ask', (t) => {
  for (const decision of ['0011', '0012']) {
    const { text = '' } = MAPS.find(({ name }) => name.includes(`/${decision}-`)) ?? {}
    t.match(text, '`src/upstream/first-byte.ts`', decision)
  }
  for (const way of ['src/upstream/', 'src/sockets/relay/']) {
    const asking = SOURCES.filter((path) => path.startsWith(way) && read(path).includes('new FirstByte('))
    t.not(asking.length, 0, way)
  }
  t.end()
})

await test('The journeys of CONTRIBUTING.md lead through existing files and sections, of as many lines as it says, at most 1,500', (t) => {
  const [, stated = '', table = ''] =
    /^## Read the code\n[^]*?about ([\d,]+) lines[^]*?\n((?:\|.*\n)+)/m.exec(read('CONTRIBUTING.md')) ?? []
  const [, , ...rows] = table.trim().split('\n')
  for (const journey of [
    'login starts',
    'upstream refuses',
    'repeated',
    'refreshed',
    'logout',
    'Redis is away',
    'tells the watchers',
  ]) {
    t.ok(
      rows.some((row) => row.includes(journey)),
      journey,
    )
  }
  let lines = 0
  for (const row of rows) {
    for (const path of spans(row).filter((span) => span.endsWith('.ts'))) lines += read(path).split('\n').length - 1
    for (const [, path = '', heading] of row.matchAll(/\]\(([^)#]+)(?:#([^)]+))?\)/g)) {
      const part =
        heading === undefined
          ? /^\*\*Map\.\*\*[^]*?(?=^\*\*Context)/m
          : new RegExp(`^## ${heading.replaceAll('-', ' ')}$[^]*?(?=^## |(?![^]))`, 'im')
      const [section = ''] = part.exec(read(path)) ?? []
      t.not(section, '', path)
      lines += section.split('\n').length - 1
    }
  }
  t.equal(Math.round(lines / 100) * 100, Number(stated.replace(',', '')), `${lines} lines`)
  t.ok(lines <= 1500, `${lines} lines`)
  t.end()
})
