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
  /** Whether all columns are texts; otherwise those after the first have figures, which are aligned to the right. */
  readonly isText?: boolean
}

/** Two runs hardly differ by more than 10 %. */
type Outcome = 'met' | 'missed' | 'missed by more than 10 %'

/** A goal of this project, and whether the measurement meets it. Each is written once, in the case that measures it. */
export interface Goal {
  readonly goal: string
  readonly measured: string
  readonly outcome: Outcome
  /** Why it is missed where it is, as far as that is known: one or two sentences. */
  readonly why?: string | undefined
}

/** How a goal is shown. */
interface GoalText {
  /** Follows the figure; ` ×` by default. */
  readonly unit?: string
  readonly digits?: number
  readonly why?: string | undefined
}

/** The results of one case of the bench. */
export interface Report {
  readonly name: string
  readonly title: string
  readonly tables: readonly Table[]
  readonly goals?: readonly Goal[]
  /** Conditions of the measurement, and the contenders that are missing. */
  readonly notes?: readonly string[]
  /**
   * The results of the single rounds; they are written to the JSON file only. Maps are allowed. Members `times` are left out, as
   * they are long.
   */
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

/** The goal that a figure, or the median of its rounds, does not exceed a limit. */
export function atMost(limit: number, goal: string, figure: Spread | number, text: GoalText = {}): Goal {
  const { unit = ' ×', digits = 2, why } = text
  const isSingle = typeof figure === 'number'
  const measured = (isSingle ? figure.toFixed(digits) : shown(figure, digits)) + unit
  return { goal, measured, outcome: outcomeOf(isSingle ? figure : figure.median, limit), why }
}

/** A figure that is not a number meets no goal. */
function outcomeOf(figure: number, limit: number): Outcome {
  if (figure <= limit) return 'met'
  return figure <= limit * 1.1 ? 'missed' : 'missed by more than 10 %'
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

/** A section with the tables, the goals and the notes of a report. */
function markdown({ title, tables, goals = [], notes = [] }: Report): string {
  const all = goals.length > 0 ? [...tables, goalTable(goals)] : tables
  const blocks = all.map((table) => `**${table.title}**\n\n${rowsOf(table).join('\n')}\n`)
  return [`### ${title}\n`, ...blocks, ...notes.map((note) => `- ${note}`)].join('\n')
}

function mapAsObject(key: string, value: unknown): unknown {
  if (key === 'times') return undefined
  return value instanceof Map ? Object.fromEntries(value) : value
}

/** Goals, with the median and the range of what was measured. */
export function goalTable(goals: readonly Goal[]): Table {
  const rows = goals.map(({ goal, measured, outcome }) => [
    goal,
    measured,
    outcome === 'met' ? outcome : `**${outcome}**`,
  ])
  return { title: 'Goals', columns: ['goal', 'measured', ''], rows }
}

/** The machine and the versions of the measured programs. */
export function describeMachine(): string[] {
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

/** The lines of a table in Markdown, without its title. */
export function rowsOf({ columns, rows, isText = false }: Table): string[] {
  const rule = columns.map((_, index) => (isText || index === 0 ? '---' : '---:'))
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
