/*
 * npm run test:field -- [--again] [KIND | ROW]…
 *
 * Runs tests of this repository with other people's programs, notes what they show in results.jsonl, and makes the tables of
 * docs/compatibility.md from it. A row that was tried within the last day is left out, so that a run that was interrupted goes on,
 * unless it is named or --again is given.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { KINDS } from './kinds.ts'
import { NotHad, obtain } from './obtain.ts'
import { writePage } from './page.ts'
import { noteResult, readResults, type Result } from './results.ts'
import type { Row } from './row.ts'
import { runSuite } from './run-suite.ts'

const DAY_MS = 86_400_000

const { values, positionals: named } = parseArgs({
  allowPositionals: true,
  options: { again: { type: 'boolean', default: false } },
})
const all = Object.entries(KINDS).flatMap(([kind, { rows }]) => rows.map((row) => ({ kind, row })))
const unknown = named.filter((name) => all.every(({ kind, row }) => kind !== name && row.id !== name))
if (unknown.length > 0) {
  process.stderr.write(`No kind and no row: ${unknown.join(', ')}. Kinds: ${Object.keys(KINDS).join(', ')}\n`)
  process.stderr.write(`Rows: ${all.map(({ row }) => row.id).join(', ')}\n`)
  process.exit(64)
}

// So that an interrupted run leaves no folder behind.
process.once('SIGINT', () => process.exit(130))
let failures = 0
for (const { kind, row } of all) {
  if (named.length > 0 && !named.includes(kind) && !named.includes(row.id)) continue
  const last = readResults().get(row.id)
  if (last !== undefined && Date.now() - Date.parse(last.at) < DAY_MS && !values.again && !named.includes(row.id)) {
    process.stdout.write(`${row.id}: was tried at ${last.at}\n`)
    continue
  }
  const result = await tryRow(row)
  noteResult(result)
  writePage(readResults())
  const failed = Object.values(result.suites ?? {}).flatMap((outcome) => outcome.failed)
  failures += failed.length
  const shown = result.notHad ?? (failed.length === 0 ? 'all pass' : `failed: ${failed.join('\n  ')}`)
  process.stdout.write(`${row.id} ${result.version ?? ''}: ${shown}\n`)
}
process.exitCode = failures === 0 ? 0 : 1

function minute(): string {
  return `${new Date().toISOString().slice(0, 16)}Z`
}

async function tryRow(row: Row): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'bff-field-'))
  const clear = (): void => rmSync(folder, { recursive: true, force: true })
  process.once('exit', clear)
  try {
    const { version, programs } = obtain(row, folder)
    const environment = { ...row.environment }
    if (programs !== undefined) {
      for (const [name, value] of Object.entries(environment)) environment[name] = value.replace('PROGRAMS', programs)
      environment['PATH'] = `${programs}:${process.env['PATH']}`
    }
    const suites: Record<string, Awaited<ReturnType<typeof runSuite>>> = {}
    for (const [column, files] of Object.entries(row.suites))
      suites[column] = await runSuite(files, environment, row.only)
    return { row: row.id, at: minute(), version, suites }
  } catch (error) {
    if (!(error instanceof NotHad)) throw error
    return { row: row.id, at: minute(), notHad: error.message }
  } finally {
    process.off('exit', clear)
    clear()
  }
}
