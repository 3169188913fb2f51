import { readFileSync, writeFileSync } from 'node:fs'

/** What was seen of a patch. */
export interface Finding {
  /** The promise that was broken by the patch; undefined if none was. */
  readonly by: string | undefined
  readonly seed: number | undefined
  readonly minutes: number
  /** How many plans were run until then. */
  readonly runs: number
}

const README = new URL('README.md', import.meta.url)

const isRow = (line: string): boolean => line.startsWith('| `')

/** Replaces the row of a patch in the table of README.md. */
export function noteFinding(name: string, { by, seed, minutes, runs }: Finding): void {
  const lines = readFileSync(README, 'utf8').trimEnd().split('\n')
  const rows = lines.filter((line) => isRow(line) && !line.startsWith(`| \`${name}\` |`))
  const date = new Date().toISOString().slice(0, 10)
  rows.push(`| \`${name}\` | ${by ?? '**not noticed**'} | ${minutes.toFixed(1)} | ${seed ?? ''} | ${runs} | ${date} |`)
  const table = lines.findIndex((line) => line.startsWith('| ---')) + 1
  const rest = lines.slice(table).filter((line) => !isRow(line))
  writeFileSync(README, [...lines.slice(0, table), ...rows.toSorted(), ...rest, ''].join('\n'))
}
