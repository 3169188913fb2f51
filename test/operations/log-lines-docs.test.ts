import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(ROOT + path, 'utf8')
const SOURCES = globSync('src/**/*.ts', { cwd: ROOT }).map(read)
const ALL_SOURCES = SOURCES.join('\n')
const [, CHAPTER = ''] = /^## Lines of the log\n([^]*?)^## /m.exec(read('docs/operating/runbook.md')) ?? []
/** The lines in the first column of the table. Of one that ends with … only the beginning is there. */
const LISTED = [...CHAPTER.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, cell = '']) =>
  cell.split('`, `').map((text) => text.replaceAll(/`|…`?$/g, '')),
)

/** The arguments of each call of these functions in a source. */
function argumentsOf(source: string, call: RegExp): string[] {
  return [...source.matchAll(call)].map(({ index, 0: { length } }) => {
    const start = index + length
    let open = 1
    let end = start
    for (; open > 0; end++) open += { '(': 1, ')': -1 }[source.charAt(end)] ?? 0
    return source.slice(start, end - 1)
  })
}

/** The message among the arguments: a text of several words, the part of one before a value, or a constant. */
function messageIn(given: string): string | undefined {
  const [, text, beginning, constant = ''] = /'(\w[^'\n]* [^'\n]*)'|`([^`$]* )|, ([A-Z_]{4,})(?:,|$)/.exec(given) ?? []
  const [, value] = new RegExp(`\\bconst ${constant} =\\s+'(.+)'`).exec(ALL_SOURCES) ?? []
  return text ?? beginning ?? value
}

await test('The runbook lists each line of level 40 or higher that the server writes, and says where to go', (t) => {
  const calls = SOURCES.flatMap((source) => argumentsOf(source, /\.(?:warn|error|fatal)\(|\blogFailure\(/g))
  const written = new Set(calls.flatMap((given) => messageIn(given) ?? []))
  t.ok(written.size > 50, `${written.size} lines`)
  for (const message of written) {
    const isListed = LISTED.some((text) => message.startsWith(text) || text.startsWith(message))
    t.ok(isListed, message)
  }
  t.end()
})

await test('The server writes each line that the runbook lists, and each is listed once', (t) => {
  t.equal(new Set(LISTED).size, LISTED.length)
  for (const line of LISTED) {
    // The provider was unavailable, or refused: one line with two verbs.
    const text = line
      .replace('the provider was unavailable', 'was unavailable')
      .replace(/^the provider refused a/, 'refused a')
    t.ok(ALL_SOURCES.includes(text), line)
  }
  t.end()
})
