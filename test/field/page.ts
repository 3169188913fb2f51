import { readFileSync, writeFileSync } from 'node:fs'
import { KINDS } from './kinds.ts'
import type { Result } from './results.ts'
import { DEBIAN, type Kind, type Row } from './row.ts'
import type { Outcome } from './run-suite.ts'

const FILE = new URL('../../docs/compatibility.md', import.meta.url)
const BEGIN = '<!-- npm run test:field makes what follows. -->\n'
const END = '<!-- npm run test:field makes what precedes. -->\n'

/** The page, as it is. */
export const readPage = (): string => readFileSync(FILE, 'utf8')

/** Writes the tables into the page. */
export function writePage(results: ReadonlyMap<string, Result>): void {
  writeFileSync(FILE, pageWith(readPage(), results))
}

/** A page with the tables of these results between its marks. */
export function pageWith(page: string, results: ReadonlyMap<string, Result>): string {
  const [before, after] = [page.split(BEGIN)[0], page.split(END)[1]]
  if (before === undefined || after === undefined) throw new Error('docs/compatibility.md has lost its marks')
  const tried = Object.values(KINDS).filter(({ rows }) => rows.some(({ id }) => results.has(id)))
  const tables = tried.map((kind) => table(kind, results))
  return `${before}${BEGIN}\n${tables.join('\n')}\n${END}${after}`
}

function table({ title, text, columns, rows }: Kind, results: ReadonlyMap<string, Result>): string {
  const head = ['', 'Version', 'From', ...columns, 'Date', 'What is different']
  const lines = rows.flatMap((row) => {
    const result = results.get(row.id)
    return result === undefined ? [] : [cells(row, columns, result)]
  })
  return [`## ${title}\n`, `${text}\n`, line(head), line(head.map(() => '---')), ...lines.map(line), ''].join('\n')
}

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`.replaceAll(/ {2,}/g, ' ')

function cells({ product, from, suites, note = '' }: Row, columns: readonly string[], result: Result): string[] {
  const date = result.at.slice(0, 10)
  const had = result.notHad === undefined ? result.version : 'not tried: could not be had'
  const outcomes = columns.map((column) => shown(suites[column] && result.suites?.[column]))
  return [product, had ?? '', origin(from), ...outcomes, date, note]
}

function origin(from: Row['from']): string {
  if ('debian' in from) return DEBIAN[from.debian]
  return 'installed' in from ? 'installed' : 'npm'
}

function shown(outcome: Outcome | undefined): string {
  if (outcome === undefined) return ''
  const { passed, failed, skipped } = outcome
  const parts = [`${passed} passed`]
  if (failed.length > 0) parts.push(`${failed.length} failed`)
  if (skipped > 0) parts.push(`${skipped} skipped`)
  return parts.join(', ')
}
