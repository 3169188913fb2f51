import { readFileSync, writeFileSync } from 'node:fs'
import { KINDS } from './kinds.ts'
import type { Outcome } from './run-suite.ts'

/** What the last run of a row has shown. */
export interface Result {
  readonly row: string
  /** ISO 8601, to the minute, UTC. */
  readonly at: string
  readonly version?: string
  readonly suites?: Readonly<Record<string, Outcome>>
  /** Why the product could not be had. */
  readonly notHad?: string
}

const FILE = new URL('results.jsonl', import.meta.url)

/** The last result of each row, by its id. */
export function readResults(): Map<string, Result> {
  const lines = readFileSync(FILE, 'utf8').split('\n').filter(Boolean)
  return new Map(lines.map((line) => JSON.parse(line) as Result).map((result) => [result.row, result]))
}

/** Replaces the result of a row, in the order of the rows. */
export function noteResult(result: Result): void {
  const results = readResults().set(result.row, result)
  const ids = Object.values(KINDS).flatMap(({ rows }) => rows.map(({ id }) => id))
  const lines = ids.map((id) => results.get(id)).filter((each) => each !== undefined)
  writeFileSync(FILE, lines.map((each) => `${JSON.stringify(each)}\n`).join(''))
}
