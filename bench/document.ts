import { readFileSync, writeFileSync } from 'node:fs'
import { describeMachine, goalTable, rowsOf, type Goal, type Report, type Table } from './report.ts'
import { triedInVain } from './tried-in-vain.ts'

/**
 * Replaces the text between the markers of docs/performance.md with that of a whole run: the goals, those that it missed and
 * why, what was tried in vain, and the first table of each case. bench/results has the others.
 */
export function writeDocument(reports: readonly Report[]): void {
  const file = new URL('../docs/performance.md', import.meta.url)
  const [before, , after] = readFileSync(file, 'utf8').split(/^<!-- (?:measured|end) -->$/m)
  if (before === undefined || after === undefined) throw new Error('docs/performance.md has no markers')
  writeFileSync(file, `${before}<!-- measured -->\n\n${textOf(reports)}\n<!-- end -->${after}`)
}

function textOf(reports: readonly Report[]): string {
  const goals = reports.flatMap((report) => report.goals ?? [])
  const today = new Date().toISOString().slice(0, 10)
  return [
    `Measured on ${today}:\n`,
    ...describeMachine().map((line) => `- ${line}`),
    '\n## Goals\n',
    ...rowsOf(goalTable(goals)),
    '\n## Missed goals, and why\n',
    ...missed(goals),
    '\n## Tried in vain\n',
    ...rowsOf(triedInVain),
    '\n## Tables',
    ...reports.flatMap(sectionOf),
    '',
  ].join('\n')
}

function missed(goals: readonly Goal[]): string[] {
  const all = goals.filter(({ outcome }) => outcome !== 'met')
  if (all.length === 0) return [`This run met all of ${goals.length} goals.`]
  const byReason = Map.groupBy(all, ({ why = 'Not known.' }) => why)
  const table: Table = {
    title: 'Missed goals',
    isText: true,
    columns: ['goals', 'why they are missed'],
    rows: [...byReason].map(([why, some]) => [some.map(({ goal }) => goal).join('; '), why]),
  }
  return [`This run missed ${all.length} of ${goals.length} goals.\n`, ...rowsOf(table)]
}

/** The first table of a case; its notes where it has none since it failed. */
function sectionOf({ title, tables: [table], notes = [] }: Report): string[] {
  const heading = `\n### ${title}\n`
  return table === undefined ? [heading, ...notes] : [heading, `**${table.title}**\n`, ...rowsOf(table)]
}
