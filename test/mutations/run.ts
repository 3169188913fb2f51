/*
 * npm run test:mutations -- src/sessions/near-cache.ts [test/sessions/near-cache.test.ts …]
 *
 * Makes typical slips in source files, one at a time, and runs the near tests of each. Prints the slips that no test notices, unless
 * `equivalents.ts` says why they change nothing, and writes the figures to docs/mutations.md. Exit code 1 if a slip survives.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isEquivalent } from './equivalents.ts'
import { noteFigures } from './figures.ts'

/** A slip of one place of the code, as Stryker reports it. */
export interface Mutant {
  readonly status: string
  readonly fileName: string
  readonly mutatorName: string
  readonly replacement: string
  /** Lines and columns from 1. */
  readonly location: {
    readonly start: { readonly line: number; readonly column: number }
    readonly end: { readonly line: number; readonly column: number }
  }
}

interface StrykerClass {
  new (options: Readonly<Record<string, unknown>>): { runMutationTest(): Promise<readonly Mutant[]> }
}

/** Not named in the import, since `npm ci` of the project does not install it. */
const STRYKER: string = '@stryker-mutator/core'
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** How much longer than without a slip a test file may take (ms). */
const TIMEOUT_MS = 20_000
/** Tests of the browser package import what is built. */
const BUILD_CLIENT = `node test/mutations/build-client.ts ${join(ROOT, 'node_modules')}`
/** What the tests of a sandbox do not need. */
const LEFT_OUT = ['.git', '.tap', 'bench/results', 'test/*/node_modules', 'test/*/*/node_modules']

// Of a test file, as .taprc has it; that of tap itself is shorter.
process.env['TAP_TIMEOUT'] = '180'
const named = process.argv.slice(2)
const sources = named.filter((path) => path.startsWith('src/') || path.startsWith('client/src/'))
const tests = named.filter((path) => path.startsWith('test/'))
if (sources.length === 0 || sources.length + tests.length < named.length) {
  process.stderr.write(
    'Name source files below src/ or client/src/ and, if you like, the test files that are to notice slips.\n',
  )
  process.exit(64)
}

let survivors = 0
for (const source of sources) {
  const near = tests.length > 0 ? tests : nearTests(source)
  if (near.length === 0) throw new Error(`${source} has no near test: name some`)
  process.stdout.write(`${source}: ${near.join(' ')}\n`)
  const startedAt = performance.now()
  const mutants = await run(source, near)
  const seconds = (performance.now() - startedAt) / 1000
  const text = readFileSync(join(ROOT, source), 'utf8')
  const left = mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
  const unexplained = left.filter((mutant) => !isEquivalent(source, lineOf(text, mutant), mutant))
  for (const mutant of unexplained) {
    const { line, column } = mutant.location.start
    const place = `${source}:${line}:${column} ${mutant.mutatorName}`
    process.stdout.write(`${place}: ${lineOf(text, mutant)}\n  → ${mutant.replacement}\n`)
  }
  const judged = mutants.filter(
    ({ status }) => status !== 'Ignored' && status !== 'CompileError' && status !== 'RuntimeError',
  )
  noteFigures(join(ROOT, 'docs/mutations.md'), {
    file: source,
    mutants: judged.length,
    equivalent: left.length - unexplained.length,
    survived: unexplained.length,
    seconds,
  })
  survivors += unexplained.length
}
process.exitCode = survivors === 0 ? 0 : 1

async function run(source: string, near: readonly string[]): Promise<readonly Mutant[]> {
  const folder = mkdtempSync(join(tmpdir(), 'mutations-'))
  const { Stryker } = (await import(STRYKER)) as { readonly Stryker: StrykerClass }
  try {
    return await new Stryker({
      testRunner: 'tap',
      tap: { testFiles: near, forceBail: true },
      mutate: [source],
      coverageAnalysis: 'perTest',
      concurrency: 1,
      timeoutMS: TIMEOUT_MS,
      reporters: ['dots'],
      logLevel: 'error',
      tempDirName: folder,
      ...(source.startsWith('client/') ? { buildCommand: BUILD_CLIENT } : {}),
      ignorePatterns: LEFT_OUT,
      // The API of the compiler that rewrites it is gone from TypeScript 7, and no test reads it.
      tsconfigFile: 'none.json',
    }).runMutationTest()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The tests of a source file's chapter that are named after the file or import it; without any, all quick ones of the chapter. */
function nearTests(source: string): string[] {
  const chapter = source.startsWith('client/') ? 'client' : (source.split('/')[1] ?? '')
  const folder = join('test', chapter)
  const all = readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.long.test.ts'))
    .map((name) => join(folder, name))
  const stem = basename(source, '.ts')
  const parent = basename(dirname(source))
  const near = all.filter(
    (path) =>
      basename(path).startsWith(stem) ||
      new RegExp(`/${parent}/${stem}\\.ts'`).test(readFileSync(join(ROOT, path), 'utf8')),
  )
  return near.length > 0 ? near : all
}

/** The line in which a slip begins. */
function lineOf(text: string, { location }: Mutant): string {
  return text.split('\n')[location.start.line - 1]?.trim() ?? ''
}
