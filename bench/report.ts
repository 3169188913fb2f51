import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem, release } from 'node:os'
import { fileURLToPath } from 'node:url'
import { spread, type Spread } from './rounds.ts'

/** A table of formatted cells. */
export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** A goal of this project, and whether the measurement meets it. */
export interface Goal {
  readonly goal: string
  readonly measured: string
  readonly isMet: boolean
}

/** The results of one case of the bench. */
export interface Report {
  readonly name: string
  readonly title: string
  readonly tables: readonly Table[]
  readonly goals?: readonly Goal[]
  /** Conditions of the measurement, and the contenders that are missing. */
  readonly notes?: readonly string[]
  /** The results of the single rounds; they are written to the JSON file only. Maps are allowed. */
  readonly raw: unknown
}

/** A table with a row for each name. @param columns the text of a cell by the name of its row, under the title of its column */
export function tableOf(
  title: string,
  names: readonly string[],
  columns: Readonly<Record<string, (name: string) => string>>,
  ofNames = '',
): Table {
  const cells = Object.values(columns)
  return {
    title,
    columns: [ofNames, ...Object.keys(columns)],
    rows: names.map((name) => [name, ...cells.map((cell) => cell(name))]),
  }
}

/** The goal that the median of a ratio does not exceed a limit. */
export function atMost(limit: number, goal: string, ratio: Spread): Goal {
  return { goal, measured: `${shown(ratio)} ×`, isMet: ratio.median <= limit }
}

/** `1.23 (1.20–1.31)` */
export function shown({ median, min, max }: Spread, digits = 2): string {
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`
}

/** The median of the values alone, where their range says nothing. */
export function shownMedian(values: readonly number[], digits: number): string {
  return spread(values).median.toFixed(digits)
}

const RESULTS = new URL('results/', import.meta.url)

/** Prints a report and writes it to bench/results as JSON and Markdown. */
export function publish(report: Report): void {
  const machine = describeMachine()
  const text = `${markdown(report)}\n${machine.map((line) => `- ${line}`).join('\n')}\n`
  mkdirSync(RESULTS, { recursive: true })
  const json = { ...report, machine, measuredAt: new Date().toISOString() }
  writeFileSync(new URL(`${report.name}.json`, RESULTS), `${JSON.stringify(json, mapAsObject, 2)}\n`)
  writeFileSync(new URL(`${report.name}.md`, RESULTS), text)
  process.stdout.write(`\n${text}\nwritten to ${fileURLToPath(new URL(`${report.name}.md`, RESULTS))}\n`)
}

/** The cases whose first table stands in docs/performance.md. Of the others, the goals say enough. */
const DOCUMENTED: ReadonlySet<string> = new Set(['rest', 'keyed'])

/** Replaces the text between the markers of docs/performance.md with the goals and some tables of a whole run. */
export function writeDocument(reports: readonly Report[]): void {
  const file = new URL('../docs/performance.md', import.meta.url)
  const [before, , after] = readFileSync(file, 'utf8').split(/^<!-- (?:measured|end) -->$/m)
  if (before === undefined || after === undefined) throw new Error('docs/performance.md has no markers')
  const goals = reports.flatMap((report) => report.goals ?? [])
  const today = new Date().toISOString().slice(0, 10)
  const text = [
    `Measured on ${today}:\n`,
    ...describeMachine().map((line) => `- ${line}`),
    '\n### Goals\n',
    ...rowsOf(goalTable(goals)),
    '',
    ...reports
      .filter(({ name }) => DOCUMENTED.has(name))
      .map((report) => markdown({ ...report, tables: report.tables.slice(0, 1), goals: [], notes: [] })),
  ]
  writeFileSync(file, `${before}<!-- measured -->\n\n${text.join('\n')}\n<!-- end -->${after}`)
}

/** A section with the tables, the goals and the notes of a report. */
function markdown({ title, tables, goals = [], notes = [] }: Report): string {
  const all = goals.length > 0 ? [...tables, goalTable(goals)] : tables
  const blocks = all.map((table) => `**${table.title}**\n\n${rowsOf(table).join('\n')}\n`)
  return [`### ${title}\n`, ...blocks, ...notes.map((note) => `- ${note}`)].join('\n')
}

function mapAsObject(_key: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value
}

function goalTable(goals: readonly Goal[]): Table {
  const rows = goals.map(({ goal, measured, isMet }) => [goal, measured, isMet ? 'met' : '**missed**'])
  return { title: 'Goals', columns: ['goal', 'measured', ''], rows }
}

/** The machine and the versions of the measured programs. */
function describeMachine(): string[] {
  const { model = 'unknown' } = cpus()[0] ?? {}
  const memory = Math.round(totalmem() / 1024 ** 3)
  const { version } = JSON.parse(
    readFileSync(new URL('../node_modules/undici/package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  return [
    `${cpus().length} × ${model}, ${memory} GiB, Linux ${release()}`,
    `Node ${process.version}, undici ${version}, ${firstLine('nginx', ['-v'])}, ${firstLine('redis-server', ['--version'])}`,
    `${firstLine('wrk', ['-v'])}, ${firstLine('apache2', ['-v'])}, ${firstLine('dpkg-query', ['-W', 'libapache2-mod-auth-openidc'])}`,
    'npm packages of the other contenders: bench/peers/package.json',
  ]
}

function rowsOf({ columns, rows }: Table): string[] {
  const rule = columns.map((_, index) => (index === 0 ? '---' : '---:'))
  return [columns, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`)
}

/** The first line of a program's output. Some print their version to stderr, and some with an exit code of 1. */
function firstLine(program: string, args: readonly string[]): string {
  const env = { PATH: `${process.env['PATH']}:/usr/sbin` }
  const { error, stdout, stderr } = spawnSync(program, args, { env, encoding: 'utf8' })
  if (error !== undefined) return `${program}: not installed`
  const [line = ''] = (stdout + stderr).split('\n', 1)
  return line.replace(/ \[.*| sha=.*| Copyright.*/, '').replace('\t', ' ')
}
