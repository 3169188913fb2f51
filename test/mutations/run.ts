/*
 * npm run test:mutations -- [--again] [--every=4] [--only=DroppedAwait,DroppedAssignment] src/sessions/near-cache.ts [test/sessions/near-cache.test.ts …]
 *
 * Makes typical slips in source files, one at a time, and runs the near tests of each. Prints the slips that no test notices, unless
 * `equivalents.ts` says why they change nothing, and writes the figures to docs/mutations.md. Exit code 1 if a slip survives.
 * With --again, a slip that a test has noticed is only tried once more if the file or that test has changed since.
 * With --only, there are slips of these kinds alone, such as that an `await` or an assignment is forgotten, and no figures are
 * written. With --every=4, one in four slips is made, the same ones each time, and the figures say so.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { isEquivalent } from './equivalents.ts'
import { noteFigures } from './figures.ts'
import { chooseKinds } from './kinds.ts'
import { NEAR } from './near.ts'

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
/** Most tests wait more than they compute. */
const JOBS = 8
/** How much longer than without a slip a test file may take (ms). */
const TIMEOUT_MS = 60_000
/** Tests of the browser package import what is built. */
const BUILD_CLIENT = `node test/mutations/build-client.ts ${join(ROOT, 'node_modules')}`
/** Ports of their own for tests that run at the same time (sandbox/listening.ts), and no source maps, as .taprc has it. */
const NODE_ARGS = [
  '--no-enable-source-maps',
  '--import=data:text/javascript,process.setSourceMapsEnabled(false);process.env.TAP_JOB_ID=process.env.STRYKER_MUTATOR_WORKER%8',
]
/** What the tests of a sandbox do not need. */
const LEFT_OUT = ['.git', '.tap', 'bench/results', 'test/*/node_modules', 'test/*/*/node_modules']

// Of a test file, as .taprc has it; that of tap itself is shorter.
process.env['TAP_TIMEOUT'] = '180'
// Compiling takes a third of the time of a test that starts a server.
process.env['NODE_COMPILE_CACHE'] = join(ROOT, 'node_modules/.cache/compiled-slips')
const { values, positionals: named } = parseArgs({
  allowPositionals: true,
  options: {
    again: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    every: { type: 'string', default: '1' },
  },
})
const { again: isAgain } = values
const every = Number(values.every)
const only = values.only.split(',').filter((kind) => kind !== '')
const sources = named.filter((path) => path.startsWith('src/') || path.startsWith('client/src/'))
const tests = named.filter((path) => path.startsWith('test/'))
if (sources.length === 0 || sources.length + tests.length < named.length) {
  process.stderr.write(
    'Name source files below src/ or client/src/ and, if you like, the test files that are to notice slips.\n',
  )
  process.exit(64)
}

await chooseKinds(only, every)
let survivors = 0
for (const [near, together] of Map.groupBy(sources, (source) => nearTests(source).join(' '))) {
  if (near === '') throw new Error(`${together.join(' ')}: no test is near, name some`)
  process.stdout.write(`${together.join(' ')}: ${near}\n`)
  const startedAt = performance.now()
  const all = Map.groupBy(await run(together, near.split(' ')), ({ fileName }) => relative(ROOT, fileName))
  const counts = together.map((source) => all.get(source)?.length ?? 0)
  const secondsEach = (performance.now() - startedAt) / 1000 / counts.reduce((sum, count) => sum + count, 0)
  for (const source of together) {
    const mutants = all.get(source) ?? []
    survivors += report(source, mutants, isAgain ? undefined : secondsEach * mutants.length)
  }
}
process.exitCode = survivors === 0 ? 0 : 1

/** Prints the slips of a file that survived, and writes its figures. @returns how many survived */
function report(source: string, mutants: readonly Mutant[], seconds: number | undefined): number {
  const text = readFileSync(join(ROOT, source), 'utf8')
  const left = mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
  const unexplained = left.filter((mutant) => !isEquivalent(source, lineOf(text, mutant), mutant))
  // A slip with which tests run out of time counts as noticed, but the machine may merely have been busy: see for yourself.
  const timedOut = mutants.filter(({ status }) => status === 'Timeout')
  for (const mutant of [...unexplained, ...timedOut]) {
    const { line, column } = mutant.location.start
    const place = `${source}:${line}:${column} ${mutant.mutatorName}${mutant.status === 'Timeout' ? ', out of time' : ''}`
    process.stdout.write(`${place}: ${lineOf(text, mutant)}\n  → ${mutant.replacement}\n`)
  }
  const judged = mutants.filter(
    ({ status }) => status !== 'Ignored' && status !== 'CompileError' && status !== 'RuntimeError',
  )
  process.stdout.write(`${source}: ${judged.length} slips, ${unexplained.length} unnoticed\n`)
  if (only.length > 0) return unexplained.length
  noteFigures(join(ROOT, 'docs/mutations.md'), {
    file: source,
    mutants: judged.length,
    every,
    equivalent: left.length - unexplained.length,
    survived: unexplained.length,
    seconds,
  })
  return unexplained.length
}

async function run(files: readonly string[], near: readonly string[]): Promise<readonly Mutant[]> {
  const folder = mkdtempSync(join(tmpdir(), 'mutations-'))
  const { Stryker } = (await import(STRYKER)) as { readonly Stryker: StrykerClass }
  try {
    return await new Stryker({
      testRunner: 'tap',
      tap: { testFiles: near, forceBail: true, nodeArgs: NODE_ARGS },
      mutate: files,
      coverageAnalysis: 'perTest',
      concurrency: JOBS,
      incremental: true,
      incrementalFile: join(
        ROOT,
        `node_modules/.cache/slips${['', ...(every === 1 ? [] : [every]), ...only].join('-')}.json`,
      ),
      force: !isAgain,
      timeoutMS: TIMEOUT_MS,
      reporters: ['dots'],
      logLevel: 'error',
      tempDirName: folder,
      ...(files[0]?.startsWith('client/') ? { buildCommand: BUILD_CLIENT } : {}),
      ignorePatterns: LEFT_OUT,
      // The API of the compiler that rewrites it is gone from TypeScript 7, and no test reads it.
      tsconfigFile: 'none.json',
    }).runMutationTest()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * The tests that {@link NEAR} names; without any, those of the source file's chapter that are named after the file or import it; without
 * any, all quick ones of the chapter.
 */
function nearTests(source: string): readonly string[] {
  if (tests.length > 0) return tests
  const listed = NEAR[source] ?? NEAR[dirname(source)]
  if (listed !== undefined) return listed.map((name) => join('test', `${name}.test.ts`))
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
