import { globSync, readFileSync } from 'node:fs'
import { Session, type Profiler } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { feedWorld, price, quotes, tick } from '../support/feed/world.ts'

// In a process of its own: the functions that are called are those of the whole process.

const FEED = new URL('../../src/sockets/feed/', import.meta.url)
const DECISION = new URL('../../docs/decisions/0010-one-upstream-subscription-for-many-browsers.md', import.meta.url)
const MAP = readFileSync(DECISION, 'utf8').split('**Context.**')[0] ?? ''

/** What a text has in backquotes. */
const quoted = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

/** The files of the feed in which one of these functions was called, without the constructors of a module. */
function calledFiles(coverage: readonly Profiler.ScriptCoverage[]): string[] {
  const root = FEED.href
  return coverage.flatMap(({ url, functions }) => {
    const isCalled = functions.some(({ ranges, functionName }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0)
    return url.startsWith(root) && isCalled ? [url.slice(root.length)] : []
  })
}

await test('a tick passes the files that the map names, and no other of the feed', async (t) => {
  const { market, join } = await feedWorld(t)
  const [first, second] = [await join(), await join()]
  const request = await market.serve(first, { ticks: 'R_100', subscribe: 1 }, price(1))
  t.match(await second.ask({ ticks: 'R_100', subscribe: 1 }), { tick: { quote: 1 } })
  const session = new Session()
  session.connect()
  t.teardown(() => session.disconnect())
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  // Counts from here on.
  await session.post('Profiler.takePreciseCoverage')
  tick(request, 2)
  t.same(quotes([await first.next(), await second.next()]), [2, 2])
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const [, sentence = ''] = /^A tick passes ([^]*?)\.\n/m.exec(MAP) ?? []
  const named = quoted(sentence).map((file) => `${file}.ts`)
  t.same(calledFiles(result).toSorted(), named.toSorted())
})

await test('every type that the map names exists', (t) => {
  const folder = fileURLToPath(FEED)
  const source = globSync('**/*.ts', { cwd: folder })
    .map((file) => readFileSync(folder + file, 'utf8'))
    .join('\n')
  const named = new Set(quoted(MAP).filter((name) => /^[A-Z][a-z]\w*$/.test(name)))
  t.ok(named.size > 20)
  for (const name of named) t.match(source, new RegExp(`\\b(?:class|interface|type) ${name}\\b`), name)
  t.end()
})

await test('every word of the map is the type that it names, in the file that it names', (t) => {
  const rows = [...MAP.matchAll(/^\| ([a-z -]+) \| [^|]+ \| (`[A-Z][^|]*) \| ([^|]*) \|$/gm)]
  t.ok(rows.length > 12)
  for (const [, word = '', types = '', files = ''] of rows) {
    const [names, paths] = [quoted(types), quoted(files)]
    t.equal(names.length, paths.length, word)
    for (const [index, name] of names.entries()) {
      const text = readFileSync(fileURLToPath(new URL(paths[index] ?? '', FEED)), 'utf8')
      t.match(text, new RegExp(`^export (?:class|interface) ${name}\\b`, 'm'), word)
    }
  }
  t.end()
})
